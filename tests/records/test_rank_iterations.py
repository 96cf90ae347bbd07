"""What each rank took is read with the iterations that it makes, and becomes a table."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars
import pytest

from analysis.tables.parquet import ITERATIONS, RANK_ITERATIONS, iterations_of
from records.base import RecordError
from records.program_output import read_program_output
from tests.reframe_checks.conftest import header, lines, summary


def by_rank(*times: list[float], operation: str = "bcast", synchronisation: str = "barrier") -> str:
    """Return the output of one communication: the iterations' times, then those of two ranks."""
    key = {"operation": operation, "method": "", "group": "world", "message_bytes": 8}
    result = {
        "record": "result", **key, "ranks": 2, "iterations": 2, "warmup": 1,
        "synchronisation": synchronisation, "discarded": 0, "clock_error_s": 0.0,
        "time_s": summary(1e-5), "median_by_rank_s": [1e-5, 1e-5],
        "moved_bytes": 8, "verified_bytes": 8,
    }  # fmt: skip
    series = [
        {"record": "rank_iterations", **key, "rank": rank, "time_s": own}
        for rank, own in enumerate(times[1:])
    ]
    whole = {"record": "iterations", **key, "time_s": times[0]}
    end = {"record": "end", "results": 1}
    return lines(header("collective"), result, whole, *series, end)


def test_times_of_single_ranks_are_read(tmp_path: Path) -> None:
    """An iteration takes as long as its slowest rank, by windows longer; an echo as rank 0."""
    path = tmp_path / "out"
    for text in (
        by_rank([2e-5, 3e-5], [2e-5, 1e-5], [1e-5, 3e-5]),
        by_rank([2e-5, 4e-5], [2e-5, 1e-5], [1e-5, 3e-5], synchronisation="window"),
        by_rank([2e-5, 1e-5], [2e-5, 1e-5], [1e-5, 3e-5], operation="echo"),
        by_rank(
            [2e-5, 1e-5], [2e-5, 1e-5], [1e-5, 3e-5], operation="echo", synchronisation="window"
        ),
    ):
        path.write_text(text)
        output = read_program_output(path)
        assert [(s.rank, list(s.time_s)) for s in output.rank_iterations] == [
            (0, [2e-5, 1e-5]), (1, [1e-5, 3e-5]),
        ]  # fmt: skip
        assert len(output.iterations) == 1


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (by_rank([2e-5, 4e-5], [2e-5, 1e-5], [1e-5, 3e-5]),
         "bcast [world], 8 bytes, iteration 1: took 4e-05 s, but 3e-05 s by the ranks' own times"),
        (by_rank([2e-5, 2e-5], [2e-5, 1e-5], [1e-5, 3e-5], synchronisation="window"),
         "iteration 1: took 2e-05 s"),
        (by_rank([2e-5, 3e-5], [2e-5, 1e-5], [1e-5, 3e-5], operation="echo"), "iteration 1"),
        (by_rank([2e-5, 3e-5], [2e-5, 3e-5]), "there are 1 series of single ranks' times"),
        (by_rank([2e-5, 3e-5], [2e-5, 3e-5], [1e-5]), "1 times, but the result is of 2"),
        (by_rank([2e-5, 3e-5], [2e-5, 3e-5], [1e-5, 1e-5]).replace('"rank": 1', '"rank": 0'),
         "not one of each of 2 ranks"),
    ],
)  # fmt: skip
def test_times_of_single_ranks_that_do_not_fit_are_refused(
    tmp_path: Path, text: str, sentence: str
) -> None:
    (tmp_path / "out").write_text(text)
    with pytest.raises(RecordError) as error:
        read_program_output(tmp_path / "out")
    assert sentence in str(error.value)


def test_ranks_have_a_table_of_their_own(tmp_path: Path) -> None:
    """So that a mean over the iterations' table is none over ranks."""
    (tmp_path / "out").write_text(by_rank([2e-5, 3e-5], [2e-5, 1e-5], [1e-5, 3e-5]))
    launch = SimpleNamespace(
        record=SimpleNamespace(launch="first"), output=read_program_output(tmp_path / "out")
    )
    campaign: Any = SimpleNamespace(launches=[launch])
    whole = iterations_of(campaign, ITERATIONS).collect()
    assert whole["time_s"].to_list() == [2e-5, 3e-5]
    ranks = iterations_of(campaign, RANK_ITERATIONS).collect()
    assert ranks.select("rank", "iteration", "time_s").rows() == [
        (0, 0, 2e-5), (0, 1, 1e-5), (1, 0, 1e-5), (1, 1, 3e-5),
    ]  # fmt: skip
    assert ranks.schema == polars.Schema(RANK_ITERATIONS)
