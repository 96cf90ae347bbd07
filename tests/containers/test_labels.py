"""Labels of images are data: what is not as the table says is refused wherever it is read."""

import json
from pathlib import Path
from typing import Any

import pytest

from containers import images, store
from containers.labels import PREFIX, RULES, LabelError, Labels, checked
from containers.registry_connection import RegistryError
from containers.sharing import registry
from containers.table import TableError, load_table, parse_table
from tests.sif_files import said, write_sif

PROJECT = Path(__file__).resolve().parents[2]
NAME = "mpich-5.0.2"
COMMAND = "X=1;touch${IFS}/tmp/x"
#: A label, a value that somebody could have written, and what is said of it.
HOSTILE = [
    ("eager_limit", COMMAND, "names of variables"),
    ("eager_limit", "A  B", "names of variables"),
    ("init_wait", "A", "VARIABLE=value"),
    ("init_wait", "A=$(id)", "VARIABLE=value"),
    ("init_wait", "A=1  B=2", "VARIABLE=value"),
    ("pmi", "pmix;id", "pmix, pmi2 or daemons"),
    ("pmi", "pmix --prolog=/tmp/x", "pmix, pmi2 or daemons"),
    ("pmi", "pmix\n", "pmix, pmi2 or daemons"),
    ("mpiexec", "mpiexec -x", "a program's name or absolute path"),
    ("mpiexec", "../mpiexec", "a program's name or absolute path"),
    ("mpiexec", "--help", "a program's name or absolute path"),
    ("mpiexec.pinned", "-bind-to $(id)", "options that contain only letters"),
    ("mpiexec.oversubscribed", "'a b'", "options that contain only letters"),
    ("family", "../lam", "lower-case letters"),
    ("version", "5 0", "letters, digits"),
    ("builder", "me", "wheel, debian, prefix or spack"),
    ("interface", "shmem", "mpi or pvm"),
    ("foreign_programs", "/bin/sh", "names of programs"),
    ("hpl", "`id`", "a version"),
    ("nas", "yes", "official"),
    ("spack_version", "`id`", "a version"),
    ("variant.slow", "SPEED=a,B=c", "VARIABLE=value"),
    ("variant.slow", "SPEED=$(id)", "VARIABLE=value"),
    ("variant.slow", "=x", "VARIABLE=value"),
    ("variant.A B", "A=1", "names a variant"),
    ("binds", "/root:/mnt", "does not choose which folders"),
    ("library", "MPICH Version: 5.0.2", "is unknown here"),
    ("library.taken", "/tmp/libmpi.so", "is unknown here"),
    ("thread_level", "multiple", "is unknown here"),
]


def entry(words: object) -> dict[str, Any]:
    return {"file": f"{NAME}.sif", "sha256": "0" * 64, "bytes": 1, "inputs_sha256": "0" * 64,
            "built_utc": "2026-01-01T00:00:00Z", "labels": words}  # fmt: skip


def locked(root: Path, words: object) -> Path:
    (root / "containers").mkdir()
    images.write_entry(root, NAME, entry(words))
    return store.folder(root) / f"{NAME}.sif"


@pytest.mark.parametrize(("label", "value", "rule"), HOSTILE)
def test_a_wrong_label_is_refused_wherever_it_is_read(
    tmp_path: Path, label: str, value: str, rule: str
) -> None:
    words = {f"{PREFIX}{label}": value}
    path = locked(tmp_path, words)
    path.parent.mkdir(parents=True)
    write_sif(path, [said(words)])
    ways = [
        lambda: images.labels(path),
        lambda: images.entry_of(tmp_path, NAME),
        lambda: images.verify(tmp_path, NAME),
        lambda: images.interface_of(tmp_path, NAME),
        lambda: images.labels_inside(path),
        lambda: images.install(tmp_path, NAME, path, entry(words), f"{NAME} of the bundle"),
        lambda: registry.read_lock(
            json.dumps({"schema": images.SCHEMA, "images": {NAME: entry(words)}}), f"{NAME}'s lock"
        ),
    ]
    for way in ways:
        with pytest.raises((images.ImageError, RegistryError)) as refused:
            way()
        sentence = str(refused.value)
        assert NAME in sentence and f"{PREFIX}{label}" in sentence and rule in sentence
        assert "\n" not in sentence


@pytest.mark.parametrize("words", [None, [], {"org.wyeast.pmi": 1}, {"org.wyeast.pmi": None}])
def test_what_are_not_labels_is_refused(tmp_path: Path, words: object) -> None:
    path = locked(tmp_path, words)
    for way in (lambda: images.labels(path), lambda: images.entry_of(tmp_path, NAME)):
        with pytest.raises(images.ImageError, match=NAME):
            way()


def test_labels_have_types() -> None:
    words = {
        "org.label-schema.usage": "$(id)",
        "org.wyeast.implementation": "lam-7.1.4",
        "org.wyeast.pmi": "daemons",
        "org.wyeast.mpiexec": "/opt/mpi/bin/mpiexec",
        "org.wyeast.mpiexec.pinned": "-genv I_MPI_PIN=1 --map-by :OVERSUBSCRIBE",
        "org.wyeast.mpiexec.oversubscribed": "",
        "org.wyeast.eager_limit": "ONE TWO",
        "org.wyeast.init_wait": "ONE=^two",
        "org.wyeast.variant.tcp": "LAM_MPI_SSI_rpi=tcp DEPTH=2",
    }
    labels = Labels.of(words, "an image")
    assert labels.implementation == "lam-7.1.4" and labels.pmi == "daemons"
    assert labels.pinned == ("-genv", "I_MPI_PIN=1", "--map-by", ":OVERSUBSCRIBE")
    assert labels.oversubscribed == () and labels.eager_limit == ("ONE", "TWO")
    assert labels.init_wait == {"ONE": "^two"}
    assert labels.variants == {"tcp": {"LAM_MPI_SSI_rpi": "tcp", "DEPTH": "2"}}
    assert labels.family is None and labels.foreign_programs == () and labels.bound is None
    assert checked(words, "an image") == words


def test_what_is_shown_of_a_label_is_short_and_plain() -> None:
    with pytest.raises(LabelError) as refused:
        checked({"org.wyeast.pmi": "\x1b[2J" + "x" * 10_000}, "an image")
    assert "\x1b" not in str(refused.value) and len(str(refused.value)) < 250


def test_every_implementation_of_the_table_has_labels_that_are_read() -> None:
    table = load_table(PROJECT)
    for name in table.implementations:
        words = table.resolve(name).labels()
        assert Labels.of(words, name).implementation == name
        plain = {key.removeprefix(PREFIX) for key in words if ".variant." not in key}
        assert plain <= RULES.keys()


def test_the_table_is_held_to_the_same_rules() -> None:
    text = (PROJECT / "containers/implementations.yaml").read_text()
    with pytest.raises(TableError, match=r"mpich.*label org.wyeast.mpiexec.pinned"):
        parse_table(text.replace("pinned: -bind-to core", "pinned: -bind-to $(id)"))
