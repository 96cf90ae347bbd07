"""What libraries say of themselves, and where ranks ran, in a campaign of two implementations."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from analysis.__main__ import app
from analysis.comparison.compare import compare
from analysis.models.library_choices import nearness_table, variables_table
from analysis.report.all_tables import each_named_once, tables_of
from records.campaign import read_campaign
from tests.analysis.support.synthetic import Synthetic, Truth

PROJECT = Path(__file__).resolve().parents[3]
OBJECTS = [{"kind": "core", "processors": ["0", "1"]}, {"kind": "L3 cache", "processors": ["0-1"]}]


def output(processors: list[list[int]], results: list[dict[str, Any]]) -> str:
    header = {
        "record": "header", "format": "wyeast-records-1", "program": "preflight",
        "program_version": "1.0.0", "library": "one", "mpi_standard": "4.1", "ranks": 2,
        "hosts": ["a", "a"], "processors": processors, "clock": "MPI_Wtime", "clock_tick_s": 1e-9,
        "clock_resolution_s": 2e-8, "started_utc": "2026", "parameters": {},
    }  # fmt: skip
    records = [header, *({"record": "result", **one} for one in results)]
    end = {"record": "end", "results": len(results)}
    return "".join(json.dumps(record) + "\n" for record in [*records, end])


def test_the_tables_of_a_campaign(tmp_path: Path) -> None:
    truth = {name: Truth(1e-6, 1e9, 1e9) for name in ("bound", "free")}
    synthetic = Synthetic(tmp_path / "campaign", truth, rounds=0)
    synthetic.write()
    said: list[dict[str, Any]] = [
        {"operation": "topology", "host": "a", "objects": OBJECTS},
        {"operation": "control_variables", "variables": {"eager_limit": "4096"}},
        {"operation": "performance_variables", "variables": {"sent": [1, 25]}},
    ]
    for name, processors in (("bound", [[0], [0]]), ("free", [[0, 1], [0, 1]])):
        text = output(processors, said if name == "bound" else said[:1])
        synthetic.launch(1, name, "Preflight", {}, text, program="preflight")
    path = synthetic.folder
    campaign = read_campaign(path)
    assert [row.values for row in variables_table(campaign).rows] == [
        ("bound", "eager_limit", "", "4096"), ("bound", "sent", "1", "25"),
    ]  # fmt: skip
    assert [row.values for row in nearness_table(campaign).rows] == [
        ("bound", 2, 1, "1", "core", "core", 1), ("free", 2, 1, "2", "L3 cache", "L3 cache", 1),
    ]  # fmt: skip
    done = CliRunner().invoke(app, ["library", str(path), "--no-pager"])
    assert done.exit_code == 0 and "eager_limit" in done.output and "L3 cache" in done.output


def test_what_ranks_have_in_common_and_where_they_were_are_two_files(tmp_path: Path) -> None:
    synthetic = Synthetic(tmp_path / "c", {"bound": Truth(1e-6, 1e9, 1e9)}, rounds=0)
    synthetic.write()
    text = output([[0], [0]], [{"operation": "topology", "host": "a", "objects": OBJECTS}])
    placement = {"hosts": [["a", 2]], "processors": [["0", 2]], "cores": [["0", 2]],
                 "sockets": [["0", 2]], "numa_nodes": [["0", 2]]}  # fmt: skip
    synthetic.launch(1, "bound", "Preflight", {}, text, program="preflight", placement=placement)
    tables = tables_of(compare(read_campaign(synthetic.folder)), PROJECT)
    assert {"nearness", "placement"} <= {one.name for one in tables}
    with pytest.raises(ValueError, match="two tables have the name placement"):
        each_named_once([*tables, *(one for one in tables if one.name == "placement")])
