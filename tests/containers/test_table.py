"""The table of implementations: what it says, and what it refuses."""

from pathlib import Path

import pytest
import yaml

from containers import table

PROJECT = Path(__file__).resolve().parents[2]
TEXT = (PROJECT / table.TABLE).read_text()


def changed(**implementations: object) -> str:
    data = yaml.safe_load(TEXT)
    data["implementations"].update(implementations)
    return yaml.safe_dump(data)


def test_the_project_s_own_table() -> None:
    own = table.parse_table(TEXT)
    assert own.defaults() == ["openmpi-5.0.11", "mpich-5.0.2"]
    labels = own.resolve("openmpi-5.0.11").labels()
    assert labels["org.wyeast.family"] == "openmpi" and labels["org.wyeast.pmi"] == "pmix"
    assert set(labels) == {
        f"org.wyeast.{key}"
        for key in ("implementation", "family", "version", "builder", "interface", "pmi", "mpiexec",
                    "mpiexec.pinned", "mpiexec.oversubscribed", "eager_limit", "init_wait")
    }  # fmt: skip


def test_an_implementation_is_one_entry_and_may_override_its_family() -> None:
    entry = {"family": "mpich", "version": "3.4.3", "builder": "wheel", "pinned": "-bind-to socket"}
    own = table.parse_table(changed(**{"mpich-3.4.3": entry}))
    found = own.resolve("mpich-3.4.3")
    assert (found.pinned, found.pmi, found.sources) == ("-bind-to socket", "pmi2", ["mpich-3.4.3"])
    assert found.definition == "image.def" and not found.default


@pytest.mark.parametrize(
    ("entry", "sentence"),
    [
        ({"famly": "mpich", "version": "1", "builder": "wheel"},
         r"implementations\.x: unknown key `famly`; did you mean `family`\?"),
        ({"family": "mpic", "version": "1", "builder": "wheel"},
         r"family `mpic` is not among families; did you mean `mpich`\?"),
        ({"family": "mpich", "version": "1", "builder": "weel"}, r"implementations\.x\.builder"),
        ({"family": "mpich", "builder": "wheel"}, r"implementations\.x\.version: field required"),
        ({"family": "lam", "version": "1", "builder": "debian", "sources": ["x"]},
         r"implementations\.x: .* has no `sources`; remove the key"),
        ({"family": "mpich", "version": "1", "builder": "debian", "packages": {"run": ["x"]}},
         r"implementations\.x: .* needs their names in `packages.build`"),
        ({"family": "mpich", "version": "1", "builder": "debian", "packages": {"build": ["x"]}},
         r"implementations\.x: .* needs their names in `packages.run`"),
        ({"family": "mpich", "version": "1", "builder": "wheel", "pmi": "none"},
         r"implementations\.x\.pmi: input should be 'pmix', 'pmi2' or 'daemons'"),
        ({"family": "mpich", "version": "1", "builder": "wheel", "variants": {"a": {"B": "c d"}}},
         r"implementations\.x\.variants\.a\.B"),
        ({"family": "mpich", "version": "1", "builder": "wheel", "variants": {"a": {"B": ""}}},
         r"implementations\.x\.variants\.a\.B"),
        ({"family": "mpich", "version": "1", "builder": "wheel", "variants": {"a": {"B=": "c"}}},
         r"implementations\.x\.variants\.a\.B="),
        ({"family": "mpich", "version": "1", "builder": "wheel", "variants": {"a+b": {"B": "c"}}},
         r"implementations\.x\.variants\.a\+b"),
        ({"family": "mpich", "version": "1", "builder": "wheel", "variants": {"site": {"B": "c"}}},
         r"a variant cannot be called `site`"),
    ],
)  # fmt: skip
def test_refusals_name_file_entry_and_key(entry: dict[str, str], sentence: str) -> None:
    with pytest.raises(table.TableError, match=sentence) as caught:
        table.parse_table(changed(x=entry))
    assert table.TABLE in str(caught.value)


@pytest.mark.parametrize("text", ["", "[", "bases: 1", "implementations: {}"])
def test_what_is_not_a_table_is_refused(text: str) -> None:
    with pytest.raises(table.TableError, match=table.TABLE):
        table.parse_table(text)


def test_choices() -> None:
    own = table.parse_table(TEXT)
    # Spack's are built when they are named.
    of_spack = own.built_by("spack")
    assert of_spack and set(own.choose("all")) == set(own.implementations) - set(of_spack)
    assert own.choose(of_spack[0]) == [of_spack[0]]
    assert own.choose("mpich-5.0.2, mpich-5.0.2") == ["mpich-5.0.2"]
    with pytest.raises(table.TableError, match=r"did you mean `mpich-5.0.2`"):
        own.choose("mpich-5.0.1")
    with pytest.raises(table.TableError, match="selects no implementation"):
        own.choose(",")


def test_variants() -> None:
    own = table.parse_table(TEXT)
    lam = own.resolve("lam-7.1.4")
    assert list(lam.variants) == ["tcp", "lamd", "sysv", "usysv", "crtcp"]
    assert lam.labels()["org.wyeast.variant.lamd"] == "LAM_MPI_SSI_rpi=lamd"
    assert lam.pmi == "daemons"
    assert own.resolve("lam-7.1.4+lamd") == lam
    assert own.choose("lam-7.1.4+lamd, lam-7.1.4,lam-7.1.4+lamd") == ["lam-7.1.4+lamd", "lam-7.1.4"]
    with pytest.raises(table.TableError, match=r"no variant `udp`; use one of lam-7.1.4\+tcp, "):
        own.choose("lam-7.1.4+udp")
    with pytest.raises(table.TableError, match=r"mpich-5.0.2 has no variants; name it without"):
        own.resolve("mpich-5.0.2+tcp")
    with pytest.raises(table.TableError, match=r"no variant ``"):
        own.resolve("lam-7.1.4+")
