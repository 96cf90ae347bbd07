"""Checks that campaigns leave out unless they name them: what passes, and where it runs."""

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from records.limits.links import Bytes, bytes_over_links
from reframe_checks import big_counts, files, layouts, passive_target, threads
from reframe_checks.mixins.communicating import AskedPoint
from reframe_checks.mixins.experiment import Experiment
from reframe_checks.mixins.launching import Placement
from reframe_checks.mixins.noted import STARTED
from tests.reframe_checks.conftest import StandIn
from tests.reframe_checks.test_communicating import Record, output, result
from tests.reframe_checks.test_start_up import startup

#: What selects the check, the check, and its parameters.
CASES: list[tuple[str, Any, dict[str, object]]] = [
    ("PassiveTarget.*suite=progress", passive_target.PassiveTarget, {"suite": "progress"}),
    ("Layouts", layouts.Layouts, {}),
    ("BigCounts.*length=within-int", big_counts.BigCounts, {"length": "within-int"}),
    ("Threads.*threads=2", threads.Threads, {"threads": 2}),
    ("Files.*end=storage", files.Files, {"end": "storage"}),
]


def printed(check: Any, parameters: dict[str, object]) -> tuple[str, list[Record]]:
    """Return the program of a check and the results that it asks for."""
    of: Any = SimpleNamespace(**parameters, site=dict)
    of.operations = lambda: files.Files.operations(of)
    points: list[AskedPoint] = list(check.asked_points(of))
    return str(check.program), [
        {**result(*point[:2], point.message_bytes, 1e-4), "group": point.group,
         "iterations": check.iterations_wanted(of)}
        for point in points
    ]  # fmt: skip


def with_cores(stand_in: StandIn, cores: int) -> str:
    """Return settings for a site whose only node has so many cores."""
    return stand_in.settings(
        lambda text: text.replace("cores_per_node: detect", f"cores_per_node: {cores}")
    )


@pytest.mark.parametrize(("only", "check", "parameters"), CASES)
def test_what_was_asked_for_passes_and_less_does_not(
    stand_in: StandIn, only: str, check: Any, parameters: dict[str, object]
) -> None:
    program, records = printed(check, parameters)
    whole, less = stand_in.play(
        {"stdout": output(records, program)}, {"stdout": output(records[:-1], program)}, only=only,
        options=["-C", with_cores(stand_in, 8)],
    )  # fmt: skip
    assert whole.code == 0, whole.text
    assert less.code != 0 and "missing: AskedPoint" in less.reason()


def test_a_start_by_sessions_is_asked_for(stand_in: StandIn) -> None:
    stand_in.write(startup())
    outcome = stand_in.run(only="SessionStart.*ranks=2.*cache=warm")
    assert outcome.code == 0, outcome.text
    [launch] = outcome.launches
    assert launch["cell"] == "SessionStart ranks=2 cache=warm"
    assert "startup --sessions" in str(launch["command"])


def test_files_are_in_a_folder_of_the_launch_below_the_site_s(
    stand_in: StandIn, tmp_path: Path
) -> None:
    folder = tmp_path / "scratch"
    folder.mkdir()
    program, records = printed(files.Files, {"end": "memory"})
    stand_in.write(output(records, program))
    settings = stand_in.settings(lambda text: f"{text}files_folder: {folder}\n")
    outcome = stand_in.run("-C", settings, only="Files.*end=memory")
    assert outcome.code == 0, outcome.text
    [script] = [path for path in stand_in.root.rglob("rfm_job.sh") if "Files" in str(path)]
    text = script.read_text()
    [own] = set(re.findall(rf"{folder}/wyeast-[0-9a-f]{{32}}", text))
    assert f"source={own},destination=/files" in text and "--folder /files" in text
    # Nothing of it is in the launch's time.
    assert text.index('mkdir "$launch_files"') < text.index(f">{STARTED}")
    assert not [*folder.iterdir()]


def test_a_folder_that_cannot_be_made_is_said(stand_in: StandIn, tmp_path: Path) -> None:
    program, records = printed(files.Files, {"end": "memory"})
    stand_in.write(output(records, program))
    none = tmp_path / "none"
    settings = stand_in.settings(lambda text: f"{text}files_folder: {none}\n")
    outcome = stand_in.run("-C", settings, only="Files.*end=memory")
    assert outcome.code != 0
    assert f"files: no folder can be made in {none}, the site's files_folder" in outcome.reason()


def test_a_launch_that_is_ended_leaves_no_folder(stand_in: StandIn, tmp_path: Path) -> None:
    folder = tmp_path / "scratch"
    folder.mkdir()
    program, records = printed(files.Files, {"end": "memory"})
    stand_in.write(output(records, program))
    script = stand_in.root / "bin" / "apptainer"
    first, rest = script.read_text().split("\n", 1)
    end = f"ls {folder} >{tmp_path}/during; read -r _ _ _ _ _ leader _ </proc/$$/stat; kill $leader"
    script.write_text(f'{first}\ncase "$*" in *"program files"*|*/files*) {end} ;; esac\n{rest}')
    settings = stand_in.settings(lambda text: f"{text}files_folder: {folder}\n")
    outcome = stand_in.run("-C", settings, only="Files.*end=memory")
    assert outcome.code != 0
    assert (tmp_path / "during").read_text().startswith("wyeast-") and not [*folder.iterdir()]


def test_threads_without_a_core_each_are_left_out(stand_in: StandIn) -> None:
    program, records = printed(threads.Threads, {"threads": 1})
    stand_in.write(output(records, program))
    outcome = stand_in.run("-C", with_cores(stand_in, 2), only="Threads")
    assert outcome.code == 0, outcome.text
    assert [one["cell"] for one in outcome.launches] == ["Threads threads=1 ranks=2"]
    assert "its threads need 4 cores of a node, and this site's nodes have 2" in outcome.text


@pytest.mark.parametrize(
    ("nodes", "threads_of_a_rank", "processors", "over"),
    [(2, 4, {}, False), (2, 8, {}, True), (1, 4, {}, True), (2, 4, {"processors": 4}, True)],
)
def test_ranks_are_too_many_for_the_nodes_that_they_are_on(
    nodes: int, threads_of_a_rank: int, processors: dict[str, int], over: bool
) -> None:
    """A site's other nodes help nobody."""
    of: Any = SimpleNamespace(
        num_tasks=2, cores_of_a_rank=threads_of_a_rank, most_ranks=lambda: 40,
        site=lambda: {"cores_per_node": 4, "nodes": 10, **processors},
        world=lambda: Placement(2, nodes, threads_of_a_rank),
    )  # fmt: skip
    assert Experiment.oversubscribed(of) is over


def test_ranks_with_threads_are_bound_to_no_core() -> None:
    assert Placement(2, 1).placement(2, 8) == "pinned"
    assert Placement(2, 1, cores_of_a_rank=2).placement(2, 8) == "oversubscribed"


@pytest.mark.parametrize(
    ("operation", "method", "group", "needed"),
    [
        ("put", "allocate 4 in a row", "pair", Bytes(4000, 4000)),
        ("rput", "allocate", "pair", Bytes(0, 1000)),
        ("fetch-and-op", "create computing", "pair", Bytes(1000, 1000)),
        ("layout-vector", "pack", "pair", Bytes(2000, 2000)),
        ("long-round-trip", "count", "pair", Bytes(2000, 2000)),
        ("long-bcast", "type", "pair", Bytes(0, 1000)),
        ("long-allreduce-bxor", "pieces", "pair", Bytes(1000, 1000)),
        ("threads", "tags window of 64", "pair of 2 threads", Bytes(1000, 1000)),
        ("file-read", "segments", "world", Bytes()),
    ],
)
def test_what_has_to_pass_the_link(operation: str, method: str, group: str, needed: Bytes) -> None:
    of: Any = SimpleNamespace(
        operation=operation, method=method, group=group, message_bytes=1000, moved_bytes=1000
    )
    assert bytes_over_links(of, ["a", "b"]) == needed
    assert bytes_over_links(of, ["a", "a"]) == Bytes()
