"""Which variables are removed and recorded, by real ReFrame over an image that is played."""

import json
from typing import Any

from tests.packed import records_in
from tests.reframe_checks.conftest import StandIn


def preflight(stand_in: StandIn) -> dict[str, Any]:
    """Run the preflight; return its record."""
    outcome = stand_in.run(only="Preflight")
    assert outcome.code == 0, outcome.text
    [record] = records_in(stand_in.root / "runs" / "campaign").values()
    return record


def test_a_preflight_records_the_ranks_variables_and_whose_they_are(stand_in: StandIn) -> None:
    inside = "PATH=/bin\0OMPI_MCA_btl=tcp,self\0TOKEN=s3\0PS1=a\nUCX_TLS=x\0"
    (stand_in.root / "environment").write_text(inside)
    record = preflight(stand_in)
    assert record["environment"] == {
        "OMPI_MCA_btl": "tcp,self", "PATH": None, "PS1": None, "TOKEN": None,
    }  # fmt: skip
    assert record["from_elsewhere"] == ["OMPI_MCA_btl"]


def test_a_launch_without_them_fails(stand_in: StandIn) -> None:
    (stand_in.root / "environment").write_text("")
    outcome = stand_in.run(only="Preflight")
    assert outcome.code != 0
    assert "the launch left no environment_of_rank: which variables it had" in outcome.reason()


def test_what_is_set_on_the_node_is_removed_there_and_recorded(stand_in: StandIn) -> None:
    """As a login shell or a prolog may do; BASH_ENV has the job's own shell do it."""
    prolog = stand_in.root / "prolog"
    prolog.write_text("export OMPI_MCA_btl=tcp APPTAINER_BIND=/opt LOADED=yes\n")
    stand_in.variables = {"BASH_ENV": str(prolog), "APPTAINERENV_UCX_TLS": "tcp"}
    record = preflight(stand_in)
    # ReFrame has removed the other one.
    assert record["variables_removed"] == ["APPTAINER_BIND", "OMPI_MCA_btl"]
    text = json.dumps(record)
    assert "UCX_TLS" not in text and "LOADED" not in text


def test_a_program_hidden_by_a_mount_is_distinguished_from_one_that_fails(
    stand_in: StandIn,
) -> None:
    stand_in.write("", 'FATAL:   "mpiexec": executable file not found in $PATH\n', 255)
    outcome = stand_in.run()
    [launch] = outcome.launches
    said = str(launch["sentence"])
    assert (
        '"mpiexec": executable file not found in $PATH; if the image has it, something is' in said
    )
    assert "a line `bind path` of the machine's apptainer.conf" in said
