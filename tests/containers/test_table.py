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
        for key in ("implementation", "family", "version", "builder", "pmi", "mpiexec",
                    "mpiexec.pinned", "mpiexec.oversubscribed")
    }  # fmt: skip


def test_an_implementation_is_one_entry_and_may_override_its_family() -> None:
    entry = {"family": "mpich", "version": "3.4.3", "builder": "wheel", "pinned": "-bind-to socket"}
    own = table.parse_table(changed(**{"mpich-3.4.3": entry}))
    found = own.resolve("mpich-3.4.3")
    assert (found.pinned, found.pmi, found.source) == ("-bind-to socket", "pmi2", "mpich-3.4.3")
    assert found.definition == "wheel.def" and not found.default


@pytest.mark.parametrize(
    ("entry", "sentence"),
    [
        ({"famly": "mpich", "version": "1", "builder": "wheel"},
         r"implementations\.x: unknown key `famly`; did you mean `family`\?"),
        ({"family": "mpic", "version": "1", "builder": "wheel"},
         r"family `mpic` is not among families; did you mean `mpich`\?"),
        ({"family": "mpich", "version": "1", "builder": "weel"}, r"implementations\.x\.builder"),
        ({"family": "mpich", "builder": "wheel"}, r"implementations\.x\.version: field required"),
    ],
)  # fmt: skip
def test_refusals_name_file_entry_and_key(entry: dict[str, str], sentence: str) -> None:
    with pytest.raises(table.TableError, match=sentence) as caught:
        table.parse_table(changed(x=entry))
    assert table.TABLE in str(caught.value)


@pytest.mark.parametrize("text", ["", "[", "bases: 1", "implementations: {}"])
def test_what_is_no_table_is_refused(text: str) -> None:
    with pytest.raises(table.TableError, match=table.TABLE):
        table.parse_table(text)


def test_choices() -> None:
    own = table.parse_table(TEXT)
    assert own.choose("all") == list(own.implementations)
    assert own.choose("mpich-5.0.2, mpich-5.0.2") == ["mpich-5.0.2"]
    with pytest.raises(table.TableError, match=r"did you mean `mpich-5.0.2`"):
        own.choose("mpich-5.0.1")
    with pytest.raises(table.TableError, match="no implementation is chosen"):
        own.choose(",")
