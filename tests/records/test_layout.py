"""What users write is in a home of theirs, which is read before the installation."""

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from campaign import driver, provenance, request
from campaign.__main__ import arguments as campaign_arguments
from campaign.bundle.contents import working_file
from campaign.bundle.rerun import arguments as rerun_arguments
from campaign.bundle.rerun import is_in_checkout
from campaign.request import command_of
from containers import images, installed, selection, store, trust, trusted_keys
from containers.registry_connection import Registry, RegistryError
from containers.sharing import registry
from containers.table import load_table
from records import acting_user, layout
from records.base import CampaignError
from records.campaign import find_campaign
from reframe_checks.mixins.hidden_places import places_of
from tests.other_user import OTHER, in_child, needs_root, open_folder

__all__ = ["open_folder"]
SITE = """\
description: {words}
hostnames: [".*"]
scheduler: local
partition: default
launch: mpiexec
nodes: 1
cores_per_node: 1
memory_bytes_per_node: 1.0e+9
peak_flops_per_node: 1.0e+9
link_bytes_per_s: null
"""


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """Return an installation and a home."""
    installation, home = tmp_path / "sw" / "wyeast", tmp_path / "home"
    for folder in (installation, home):
        folder.mkdir(parents=True)
        folder.chmod(0o755)
    monkeypatch.setenv("WYEAST_ROOT", str(installation))
    monkeypatch.setenv(layout.HOME, str(home))
    return installation, home


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def put_image(place: Path, name: str, content: bytes) -> str:
    """Put a file into a store and its lock; return its digest."""
    digest = hashlib.sha256(content).hexdigest()
    file = place / ".wyeast" / "images" / "sha256" / f"{digest}.sif"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)
    path = place / images.LOCK
    lock: dict[str, Any] = {"schema": images.SCHEMA, "images": {}}
    if path.exists():
        lock = json.loads(path.read_text())
    lock["images"][name] = {"file": f"{name}.sif", "sha256": digest, "labels": {}}
    write(path, json.dumps(lock))
    return digest


def test_without_a_home_all_is_in_the_checkout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(layout.HOME, raising=False)
    assert layout.home(layout.CODE) == layout.CODE and not layout.is_shared(layout.CODE)
    assert layout.runs(tmp_path) == tmp_path / "runs"
    assert layout.state(tmp_path) == layout.installed(tmp_path) == tmp_path / ".wyeast"
    assert layout.find(tmp_path, "a/b") == tmp_path / "a/b"


def test_only_the_installation_has_a_home_elsewhere(
    places: tuple[Path, Path], tmp_path: Path
) -> None:
    installation, home = places
    assert layout.home(installation) == home == layout.home(layout.CODE)
    # The lock of a bundle's guests is in a folder that is laid out as a checkout.
    guests = images.guest_root(installation, "abc")
    assert guests.is_relative_to(home) and layout.home(guests) == guests
    assert layout.home(home) == home and layout.home(tmp_path) == tmp_path
    assert layout.installed(installation) == installation / ".wyeast"


def test_a_home_is_read_first_file_by_file(places: tuple[Path, Path]) -> None:
    installation, home = places
    for site in ("local", "theirs"):
        write(installation / f"site_configs/{site}/site.yaml", SITE.format(words="installed"))
        write(installation / f"site_configs/{site}/references.yaml", "")
    write(home / "site_configs/local/site.yaml", SITE.format(words="own"))
    write(home / "site_configs/mine/site.yaml", SITE.format(words="own"))
    assert [path.parent.name for path in layout.site_files(installation)] == [
        "local", "mine", "theirs",
    ]  # fmt: skip
    found = {name: selection.site_data(installation, name)["description"]
             for name in ("local", "mine", "theirs")}  # fmt: skip
    assert found == {"local": "own", "mine": "own", "theirs": "installed"}
    # What the home lacks of a site is the installation's.
    beside = layout.site_file(installation, "local", "references.yaml")
    assert beside == installation / "site_configs/local/references.yaml"
    assert layout.name_of(installation, beside) == "site_configs/local/references.yaml"
    with pytest.raises(CampaignError, match=r"site other is unknown; .*local, mine, theirs"):
        selection.site_file(installation, "other")


def test_the_inputs_of_a_campaign_are_code_of_the_installation_and_the_users_site(
    places: tuple[Path, Path],
) -> None:
    installation, home = places
    write(installation / "requirements.lock", "installed")
    write(installation / "records/a.py", "installed")
    # A folder in which somebody works may have anything by these names.
    write(home / "requirements.lock", "own")
    write(home / "records/a.py", "own")
    write(home / "records/b.py", "own")
    write(installation / "site_configs/local/site.yaml", SITE.format(words="installed"))
    write(installation / "site_configs/local/references.yaml", "installed")
    own = write(home / "site_configs/local/site.yaml", SITE.format(words="own"))
    put_image(installation, "mpich", b"1")
    found = provenance.input_digests(installation, "local", False)
    of = {name: hashlib.sha256(text).hexdigest() for name, text in
          (("installed", b"installed"), ("own", own.read_bytes()))}  # fmt: skip
    lock = found.pop(images.LOCK)
    assert lock == provenance.sha256_of(installation / images.LOCK)
    assert found == {
        "records/a.py": of["installed"], "requirements.lock": of["installed"],
        "site_configs/local/references.yaml": of["installed"],
        "site_configs/local/site.yaml": of["own"],
    }  # fmt: skip
    # With one in both, their entries count together, and so do they in a bundle.
    put_image(installation, "openmpi", b"1")
    put_image(home, "mpich", b"2")
    found = provenance.input_digests(installation, "local", False)
    content = images.lock_content(installation)
    assert content is not None and found[images.LOCK] == hashlib.sha256(content).hexdigest()
    assert json.loads(content) == images.load_lock(installation)
    packed = working_file(installation, images.LOCK)
    assert packed is not None and packed.digest() == found[images.LOCK]
    (installation / images.LOCK).unlink()
    found = provenance.input_digests(installation, "local", False)
    assert found[images.LOCK] == provenance.sha256_of(home / images.LOCK)
    put_image(installation, "openmpi", b"another")
    assert provenance.input_digests(installation, "local", False)[images.LOCK] != packed.digest()


def test_images_are_shared_by_digest_and_written_in_the_home(places: tuple[Path, Path]) -> None:
    installation, home = places
    shared = put_image(installation, "mpich", b"shared")
    put_image(installation, "openmpi", b"old")
    own = put_image(home, "openmpi", b"own")
    lock = images.load_lock(installation)["images"]
    assert {name: entry["sha256"] for name, entry in lock.items()} == {
        "mpich": shared, "openmpi": own,
    }  # fmt: skip
    assert store.path_of(installation, lock["mpich"]).is_relative_to(installation)
    assert store.path_of(installation, lock["openmpi"]).is_relative_to(home)
    assert images.available(installation) == ["mpich", "openmpi"]
    # An entry of one's own, with the image that the installation has: it is not copied.
    images.write_entry(installation, "renamed", lock["mpich"])
    assert "renamed" not in json.loads((installation / images.LOCK).read_text())["images"]
    found = images.verify(installation, "renamed")
    assert found.is_relative_to(installation)
    assert (
        images.labels(found) == {}
        and images.labels(store.path_of(installation, lock["openmpi"])) == {}
    )
    # What no lock of the home names goes, and nothing of the installation.
    (home / images.LOCK).unlink()
    assert images.prune(installation) == [own]
    assert store.path_of(installation, lock["mpich"]).is_file()


def test_what_an_installation_replaces_stays_for_a_campaign_that_runs_it(
    places: tuple[Path, Path],
) -> None:
    """Of another user, whose locks of sites are in a home that nobody else knows."""
    installation, home = places
    old, unused = put_image(installation, "mpich", b"old"), put_image(installation, "lam", b"lam")
    write(installation / images.LOCK, json.dumps({"schema": images.SCHEMA, "images": {}}))
    keep = (
        "import sys; from pathlib import Path; from containers import store\n"
        "with store.in_use(Path(sys.argv[1]), [sys.argv[2], '0' * 64]): print(); input()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", keep, installation, old], cwd=layout.CODE, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    ) as campaign:  # fmt: skip
        assert campaign.stdin and campaign.stdout and campaign.stdout.readline()
        with pytest.MonkeyPatch.context() as keeper:
            keeper.delenv(layout.HOME)
            assert images.prune(installation) == [unused]
            campaign.communicate("\n")
            assert images.prune(installation) == [old]
    assert not list((home / ".wyeast").glob("**/*.sif"))


def test_the_word_of_a_registry_needs_a_key_of_either(places: tuple[Path, Path]) -> None:
    installation, home = places
    with pytest.raises(RegistryError, match="has no key to verify who made it"):
        registry.word_for(installation, registry.OF_REGISTRY, unsigned=False)
    write(home / trusted_keys.FOLDER / "a.asc", "a")
    assert registry.word_for(installation, registry.OF_REGISTRY, unsigned=False) is None


def test_what_the_installation_has_can_be_pulled_beside_a_lock_of_ones_own(
    places: tuple[Path, Path],
) -> None:
    installation, home = places
    there, own = put_image(installation, "mpich", b"shared"), put_image(home, "openmpi", b"own")
    for place in places:
        lock = json.loads((place / images.LOCK).read_text())
        for entry in lock["images"].values():
            entry |= {"bytes": 1, "inputs_sha256": "0" * 64, "built_utc": "2026-01-01T00:00:00Z"}
        write(place / images.LOCK, json.dumps(lock))
    source = Registry("oras://localhost:1/a", insecure=True)
    found = registry.wanted(installation, source, "", "")
    assert {name: entry.sha256 for name, entry in found.items()} == {"mpich": there, "openmpi": own}


def test_keys_of_both_count_and_a_revoked_one_in_neither(
    places: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    installation, home = places
    for place, names in ((installation, "ab"), (home, "bc")):
        for name in names:
            write(place / trusted_keys.FOLDER / f"{name}.asc", name)
    revoked: list[Path] = []

    def keys_in(path: Path, _: str) -> list[trusted_keys.PublicKey]:
        print_ = path.stem.upper() * 40
        return [trusted_keys.PublicKey(path, print_, "", 0, path in revoked)]

    monkeypatch.setattr(trusted_keys, "_keys_in", keys_in)
    assert {key.fingerprint[0] for key in trusted_keys.trusted(installation)} == {"A", "B", "C"}
    for place in (installation, home):
        revoked[:] = [place / trusted_keys.FOLDER / "b.asc"]
        found = trusted_keys.trusted(installation)
        assert {key.fingerprint[0] for key in found if not key.fault()} == {"A", "C"}
        assert [key.file for key in found if key.fault()] == revoked


def test_a_path_is_meant_from_where_it_was_typed(
    places: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installation, home = places
    assert layout.meant("a") == Path("a")
    monkeypatch.setenv(layout.CALLER, str(tmp_path))
    assert layout.meant("a") == tmp_path / "a" and layout.meant("/b") == Path("/b")
    for place in (tmp_path / "elsewhere", home / "runs" / "own"):
        write(place / "manifest.json", "{}")
    assert find_campaign(installation, "elsewhere") == tmp_path / "elsewhere"
    assert find_campaign(installation, "own") == home / "runs" / "own"


def test_a_job_that_drives_a_campaign_is_told_its_home(places: tuple[Path, Path]) -> None:
    """By name: a job may inherit what its submitter's shell has chosen, or nothing."""
    installation, home = places
    *_, wrapped = driver.command_of(installation, home / "runs" / "a", {}, "local", [], None)
    assert f"WYEAST_HOME={home} WYEAST_ACTIVATED='' && . ./activate" in wrapped


def test_containers_see_neither_of_them(places: tuple[Path, Path], tmp_path: Path) -> None:
    installation, home = places
    disk = tmp_path / "disk"
    disk.mkdir()
    (home / "runs").symlink_to(disk)
    assert {installation, home, disk} <= set(places_of(installation, tmp_path / "stage"))


def test_definitions_may_be_in_the_home(places: tuple[Path, Path], tmp_path: Path) -> None:
    _, home = places
    assert is_in_checkout(home / "site_configs/x") and not is_in_checkout(home / "../x")


def part_of(home: Path, mode: int) -> None:
    (home / "site_configs").mkdir()
    (home / "site_configs").chmod(mode)
    os.chown(home / "site_configs", OTHER, OTHER)


@needs_root
@pytest.mark.parametrize(
    ("work", "said"),
    [
        (lambda _, home: home.chmod(0o777), "others can write in"),
        (lambda _, home: home.chmod(0o1777), "others can write in"),
        (lambda _, home: part_of(home, 0o777), "/home/site_configs is not yours, or others can"),
        (lambda _, home: os.chown(home, 0, 0), "belongs to root"),
        (lambda _, home: home.rmdir(), "cannot be entered"),
        (lambda code, _: code.chmod(0o777), "can be changed by others"),
        (lambda code, _: os.chown(code, 12345, 0), ""),
        (lambda code, _: None, ""),
    ],
)  # fmt: skip
def test_a_home_is_its_users_alone(
    open_folder: Path, monkeypatch: pytest.MonkeyPatch, work: Any, said: str
) -> None:
    """The folder itself is looked at: whoever writes in it decides what its user starts."""
    code, home = open_folder / "code", open_folder / "home"
    for folder, owner in ((code, 0), (home, OTHER)):
        folder.mkdir()
        folder.chmod(0o755)
        os.chown(folder, owner, owner)
    monkeypatch.setenv("WYEAST_ROOT", str(code))
    monkeypatch.setenv(layout.HOME, str(home))
    work(code, home)

    def asked() -> str | None:
        os.setresuid(OTHER, OTHER, OTHER)
        return acting_user.unsafe_home(code)

    found = in_child(asked)
    assert said in found if said else found is None


@needs_root
@pytest.mark.parametrize(
    ("mode", "owner", "said"),
    [
        (0o777, 0, "/above and so replace"),
        (0o775, 0, "/above and so replace"),
        (0o755, 12345, "/above belongs to"),
        (0o1777, 0, ""),
        (0o755, 0, ""),
        (0o755, OTHER, ""),
    ],
)
def test_nobody_else_can_replace_a_home_from_above(
    open_folder: Path, monkeypatch: pytest.MonkeyPatch, mode: int, owner: int, said: str
) -> None:
    code, above = open_folder / "code", open_folder / "above"
    home = above / "between" / "home"
    code.mkdir()
    home.mkdir(parents=True)
    for folder, of in ((code, 0), (above, owner), (home.parent, OTHER), (home, OTHER)):
        folder.chmod(mode if folder == above else 0o755)
        os.chown(folder, of, 7 if folder == above else of)
    above.chmod(mode)
    monkeypatch.setenv("WYEAST_ROOT", str(code))
    monkeypatch.setenv(layout.HOME, str(home))

    def asked() -> str | None:
        os.setresuid(OTHER, OTHER, OTHER)
        return acting_user.unsafe_home(code)

    found = in_child(asked)
    assert said in str(found) if said else found is None


@needs_root
@pytest.mark.parametrize("is_within", [False, True])
def test_a_link_on_the_way_to_a_home_is_of_nobody_else(
    open_folder: Path, monkeypatch: pytest.MonkeyPatch, is_within: bool
) -> None:
    """It could lead to another folder of the user's, who trusts what is in that one."""
    code, home, link = open_folder / "code", open_folder / "own" / "home", open_folder / "link"
    code.mkdir()
    home.mkdir(parents=True)
    for folder in (home.parent, home):
        folder.chmod(0o755)
        os.chown(folder, OTHER, OTHER)
    link.symlink_to("own")
    ways = [link / "home"]
    if is_within:
        (open_folder / "first").symlink_to("link/../link")
        ways = [open_folder / "first" / "home"]
    monkeypatch.setenv("WYEAST_ROOT", str(code))

    def asked() -> list[str | None]:
        os.setresuid(OTHER, OTHER, OTHER)
        found = []
        for way in ways:
            os.environ[layout.HOME] = str(way)
            found.append(acting_user.unsafe_home(code))
        return found

    for owner, is_trusted in ((0, True), (OTHER, True), (12345, False)):
        os.chown(link, owner, owner, follow_symlinks=False)
        [found] = in_child(asked)
        said = None if is_trusted else f"{link} is a link of user 12345, who could have it lead"
        assert found is None if said is None else found.startswith(said)


@pytest.mark.parametrize("words", [["clean"], ["admit"], ["bill"], ["setup"], ["report"], ["pull"]])
def test_no_target_works_in_a_home_that_others_write(tmp_path: Path, words: list[str]) -> None:
    kept = write(tmp_path / ".wyeast" / "logs" / "a.log", "")
    tmp_path.chmod(0o777)
    done = subprocess.run(
        [layout.CODE / "bin" / "wyeast", *words], cwd=tmp_path, capture_output=True, text=True,
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)}, timeout=60,
    )  # fmt: skip
    assert done.returncode == 2 and f"others can write in {tmp_path}" in done.stderr
    assert "nothing was done, for the reason above" in done.stderr
    assert "Traceback" not in done.stderr
    assert kept.exists() and len(list(tmp_path.iterdir())) == 1


@needs_root
def test_a_cluster_in_a_box_is_not_measured_on_from_a_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment = os.environ | {layout.HOME: str(tmp_path), "WYEAST_ROOT": str(layout.CODE)}
    for words in (["up"], ["exec", "--", "true"]):
        done = subprocess.run(
            [sys.executable, "-m", "cluster", *words], cwd=layout.CODE, capture_output=True,
            text=True, env=environment, timeout=60,
        )  # fmt: skip
        assert done.returncode == 1 and "measures in a checkout of one's own" in done.stderr
        assert f"{layout.HOME} is {tmp_path}" in done.stderr and not list(tmp_path.iterdir())
    for name in (layout.HOME, "WYEAST_ROOT"):
        monkeypatch.setenv(name, environment[name])
    options = campaign_arguments(["--site=virtual", "--look"])
    with pytest.raises(CampaignError, match="virtual is a cluster in a box, which measures in a"):
        request.refuse_before_building(layout.CODE, options)


@pytest.mark.parametrize(
    "words",
    [
        ["campaign.site.new", "--dry-run", "--", "there"],
        ["containers.trust", "verify"],
        ["containers.trust", "sign"],
        ["containers.trust", "new-key", "--name=a", "--email=a@b"],
    ],
)
def test_no_command_works_in_a_home_that_others_write(tmp_path: Path, words: list[str]) -> None:
    tmp_path.chmod(0o777)
    done = subprocess.run(
        [sys.executable, "-m", *words], cwd=layout.CODE, capture_output=True, text=True,
        env=os.environ | {layout.HOME: str(tmp_path), "WYEAST_ROOT": str(layout.CODE)}, timeout=60,
    )  # fmt: skip
    assert done.returncode == 1 and "others can write in" in done.stderr
    assert not list(tmp_path.iterdir())


def test_a_key_is_named_by_the_file_that_it_is_in(
    places: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installation, home = places
    for place, said in ((installation, "containers/trust/a.asc"), (home, f"{home}/containers/")):
        key = trusted_keys.PublicKey(place / trusted_keys.FOLDER / "a.asc", "A" * 40, "a", 0, False)
        assert f"(a, {said}" in str(key)
    monkeypatch.setattr(trust, "_named_signers", lambda _: {"B" * 40})
    monkeypatch.setattr(trust, "trusted", lambda _: [])
    with pytest.raises(trust.TrustError, match=f"{home}/{trusted_keys.FOLDER}"):
        trust.signers(installation, tmp_path / "a.sif")


def test_the_prefix_of_an_mpi_is_meant_from_where_it_was_typed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PREFIX and HOST_MPI are both read by `find`."""
    monkeypatch.setenv(layout.CALLER, str(tmp_path))
    with pytest.raises(installed.PrefixError, match=f"^{tmp_path}/mpi is not a folder"):
        installed.find("mpi", load_table(layout.CODE), ())
    # Whoever goes on with it, such as a job or a rerun's campaign, is elsewhere.
    for parsed in (campaign_arguments(["--host-mpi=mpi"]),
                   rerun_arguments(["a.tar.gz", "--host-mpi=mpi"])):  # fmt: skip
        assert parsed.host_mpi == f"{tmp_path}/mpi"
    assert f"HOST_MPI={tmp_path}/mpi" in command_of(campaign_arguments(["--host-mpi=mpi"]))


@needs_root
def test_root_starts_no_installation_of_a_user(
    open_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, home = open_folder / "code", open_folder / "home"
    for folder in (code, home):
        folder.mkdir()
        folder.chmod(0o755)
    monkeypatch.setenv("WYEAST_ROOT", str(code))
    monkeypatch.setenv(layout.HOME, str(home))
    assert acting_user.unsafe_home(code) is None
    monkeypatch.setenv(layout.HOME, "home")
    assert "give the folder's whole path" in str(acting_user.unsafe_home(code))
    monkeypatch.setenv(layout.HOME, str(home))
    os.chown(code, OTHER, OTHER)
    assert "its programs are not started" in str(acting_user.unsafe_home(code))


@needs_root
def test_the_commit_of_anothers_installation_is_known(
    open_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, home = open_folder / "code", open_folder / "home"
    home.mkdir()
    subprocess.run(["git", "init", "-q", code], check=True)
    subprocess.run(
        ["git", "-C", code, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q",
         "--allow-empty", "-m", "one"], check=True,
    )  # fmt: skip
    for path in (code, *code.rglob("*")):
        path.chmod(path.stat().st_mode | 0o444 | (0o111 if path.is_dir() else 0))
    monkeypatch.setenv("WYEAST_ROOT", str(code))
    monkeypatch.setenv(layout.HOME, str(home))

    def asked() -> list[str]:
        os.setresuid(OTHER, OTHER, OTHER)
        found = [acting_user.git(code, "rev-parse", "HEAD")]
        del os.environ[layout.HOME]
        found.append(acting_user.git(code, "rev-parse", "HEAD"))
        return [(one or b"").decode() for one in found]

    with_home, without = in_child(asked)
    assert len(with_home.strip()) == 40
    # Git does not trust another user's repository by itself.
    assert not without
