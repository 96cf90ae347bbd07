"""What checks that run only when named ask for is what their programs print."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from records.program_output import read_program_output
from reframe_checks import big_counts, files, layouts, passive_target, threads
from reframe_checks.mixins.communicating import point_of
from tests.benchmarks.conftest import Built

pytestmark = pytest.mark.real
#: The check, and its parameters.
CASES: list[tuple[Any, dict[str, object]]] = [
    (passive_target.PassiveTarget, {"suite": "windows"}),
    (passive_target.PassiveTarget, {"suite": "operations"}),
    (passive_target.PassiveTarget, {"suite": "progress"}),
    (layouts.Layouts, {}),
    (big_counts.BigCounts, {"length": "within-int"}),
    (threads.Threads, {"threads": 2}),
    (files.Files, {"end": "memory"}),
    (files.Files, {"end": "storage"}),
]


@pytest.mark.parametrize(("check", "parameters"), CASES)
def test_the_points_are_those_of_the_program(
    one: Built, tmp_path: Path, check: Any, parameters: dict[str, object]
) -> None:
    asked: Any = SimpleNamespace(**parameters, site=lambda: {"files_folder": str(tmp_path)})
    asked.operations = lambda: files.Files.operations(asked)
    words = check.arguments(asked)
    words = [str(tmp_path) if word == files.INSIDE else word for word in words]
    few = ["--iterations", "2", "--warmup", "0", "--raw"]
    done = one.run(str(check.program), *words, *few)
    assert done.returncode == 0 and "left out" not in done.stderr, done.stderr
    output = tmp_path / "stdout"
    output.write_text(done.stdout)
    found = read_program_output(output).communications()
    assert [point_of(result) for result in found] == list(check.asked_points(asked))
    if check is not files.Files:
        return
    assert [*tmp_path.iterdir()] == [output], "the file that was written is gone"
