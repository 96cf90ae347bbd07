"""Profiles are read whole or refused with file and line, and their tables follow from them."""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from analysis.__main__ import app
from analysis.models.profile import ProfiledCell, profile_data, profiled_cells
from analysis.report import report as report_module
from analysis.report.drawings.profile_figures import in_blocks, matrix_figure, share_figure
from analysis.report.report import write_report
from analysis.tables.launch_names import LaunchNames
from analysis.tables.table import with_origin
from records.base import RecordError
from records.campaign import read_campaign
from records.profile import (
    RECORDS,
    Profile,
    ProfiledFunction,
    impossible_time,
    is_profiled,
    lost_message,
    read_profile,
)
from tests.analysis.support.synthetic import HPL, TWICE, Synthetic
from tests.reframe_checks.conftest import header, lines


def test_only_what_is_called_after_another_experiment_is_profiled() -> None:
    assert is_profiled("ProfileLinpack") and is_profiled("ProfileNas")
    assert not any(map(is_profiled, ("Linpack", "Profile", "ProfileX", "ProfilerOverhead")))


def of_rank(rank: int, wall: float = 10.0, **more: object) -> dict[str, object]:
    return {"record": "profile_rank", "rank": rank, "wall_s": wall, "user_s": 7.0,
            "system_s": 1.0, "threads": 1, "unseen_receives": 0, "outside_messages": 0,
            **more}  # fmt: skip


def calls(rank: int, function: str, time: float, count: int = 4, **more: int) -> dict[str, object]:
    return {"record": "profile", "rank": rank, "function": function, "calls": count,
            "time_s": time, "sent_messages": 0, "sent_bytes": 0, "received_messages": 0,
            "received_bytes": 0, **more}  # fmt: skip


def sizes(rank: int, function: str, bins: dict[int, int]) -> dict[str, object]:
    return {"record": "profile_messages", "rank": rank, "function": function,
            "at_least_bytes": list(bins), "messages": list(bins.values())}  # fmt: skip


def between(
    from_: int, to: int, counted: str, messages: int, size: int, kind: str = "message"
) -> dict[str, object]:
    return {"record": "profile_matrix", "kind": kind, "from": from_, "to": to, "counted": counted,
            "messages": messages, "bytes": size}  # fmt: skip


#: Rank 0 sends 3 messages of 1000 and 1 of 96 bytes to rank 1; both reduce.
RECORDS_OF_RANKS: list[dict[str, object]] = [
    of_rank(0),
    calls(0, "MPI_Send", 1.0, sent_messages=4, sent_bytes=3096),
    sizes(0, "MPI_Send", {64: 1, 512: 3}),
    calls(0, "MPI_Allreduce", 1.0, 2, sent_messages=2, sent_bytes=16),
    sizes(0, "MPI_Allreduce", {8: 2}),
    between(0, 1, "sent", 4, 3096),
    of_rank(1),
    calls(1, "MPI_Recv", 3.0, received_messages=4, received_bytes=3096),
    calls(1, "MPI_Allreduce", 0.0, 2, sent_messages=2, sent_bytes=16),
    sizes(1, "MPI_Allreduce", {8: 2}),
    between(0, 1, "received", 4, 3096),
    between(1, 0, "sent", 2, 800, "collective"),
    between(0, 1, "received", 1, 4, "one-sided"),
]


def text_of(records: list[dict[str, object]], program: str = "xhpl", ranks: int = 2) -> str:
    first = header(program, ranks) | {"format": "wyeast-profile-1"}
    del first["mpi_wtime"]
    return lines(first, *records, {"record": "end", "results": len(records)})


GOOD = text_of(RECORDS_OF_RANKS)


def read(tmp_path: Path, text: str = GOOD) -> Profile:
    path = tmp_path / "profile.jsonl"
    path.write_text(text)
    return read_profile(path)


def cell_of(*profiles: Profile) -> ProfiledCell:
    return ProfiledCell("ProfileLinpack n=2000", "alpha-1.0", "xhpl", False, profiles)


def test_known_profile_gives_the_known_tables(tmp_path: Path) -> None:
    profile = read(tmp_path)
    assert impossible_time(profile) is None and lost_message(profile) is None
    cell = cell_of(profile, profile)
    found = [
        (one.function, one.calls, one.time_s, one.share_of_mpi, one.share_of_wall, one.sent_bytes)
        for one in cell.functions
    ]
    assert found == [
        ("MPI_Recv", 8, 6.0, 0.6, 0.15, 0),
        ("MPI_Allreduce", 8, 2.0, 0.2, 0.05, 64),
        ("MPI_Send", 8, 2.0, 0.2, 0.05, 6192),
    ]
    shares = cell.shares
    assert (shares.ranks, shares.wall_s, shares.cpu, shares.communication) == (2, 10.0, 0.8, 0.25)
    assert (shares.least, shares.most) == (0.2, 0.3)
    assert cell.sizes[:2] == [("MPI_Allreduce", 8, 8), ("MPI_Send", 512, 6)]
    # A message once, by its sender; what was got from a window as well.
    assert cell.matrix() == {(0, 1): 3100, (1, 0): 800}


def test_figures_say_in_words_what_they_show(tmp_path: Path) -> None:
    hostile = cell_of(read(tmp_path, text_of(RECORDS_OF_RANKS, "a<b>&c")))
    hostile = ProfiledCell("x", "y", hostile.profiles[0].header.program, False, hostile.profiles)
    for figure in (share_figure(hostile), matrix_figure(hostile)):
        assert "a&lt;b&gt;&amp;c" in figure and "<b>" not in figure
        assert "<script" not in figure and 'role="img"' in figure
    bars, matrix = share_figure(hostile), matrix_figure(hostile)
    assert "MPI_Recv 60.0%; MPI_Allreduce 20.0%; MPI_Send 20.0%</desc>" in bars
    assert "rank 0 to 1: 3.1 kB; rank 1 to 0: 800 B</desc>" in matrix
    widths = [float(one) for one in re.findall(r'class="bar"[^>]*width="([\d.]+)"', bars)]
    assert widths[0] == pytest.approx(3 * widths[1], abs=0.2)
    assert matrix.count('class="cell"') == 2


def test_a_matrix_of_many_ranks_is_drawn(tmp_path: Path) -> None:
    records = [of_rank(rank) for rank in range(40)]
    records += [between(rank, 39 - rank, "sent", 1, 8) for rank in range(40)]
    figure = matrix_figure(cell_of(read(tmp_path, text_of(records, ranks=40))))
    # Blocks of two ranks: their messages together.
    assert figure.count('class="cell"') == 20 and 'class="inside"' not in figure
    assert "rank 0-1 to rank 38-39: 16 B" in figure and "in blocks of 2" in figure
    assert "320 B in all; rank 0 to 39: 8 B" in figure


#: Four ranks on two nodes: 0 and 2, 1 and 3.
RECORDS_OF_NODES = [
    of_rank(0, 19.0, ranks=2, longest_wall_s=10.0),
    calls(0, "MPI_Send", 1.9, sent_messages=4, sent_bytes=3096),
    sizes(0, "MPI_Send", {64: 1, 512: 3}),
    between(0, 0, "sent", 1, 96), between(0, 0, "received", 1, 96),
    between(0, 1, "sent", 3, 3000),
    of_rank(1, 20.0, ranks=2, longest_wall_s=11.0),
    calls(1, "MPI_Recv", 6.0, received_messages=3, received_bytes=3000),
    between(0, 1, "received", 3, 3000),
]  # fmt: skip


def test_a_profile_by_node_is_read_and_drawn(tmp_path: Path) -> None:
    profile = read(tmp_path, text_of(RECORDS_OF_NODES, ranks=4))
    assert profile.is_by_node and not read(tmp_path).is_by_node
    assert impossible_time(profile) is None and lost_message(profile) is None
    cell = cell_of(profile)
    assert cell.title.startswith("xhpl, 4 ranks")
    shares = cell.shares
    assert (shares.ranks, shares.wall_s) == (4, 11.0)
    assert (shares.least, shares.most) == pytest.approx((0.1, 0.3))
    assert shares.communication == pytest.approx(7.9 / 39)
    figure = matrix_figure(cell)
    assert "Bytes from node to node" in figure and figure.count('class="cell"') == 2
    assert "node 0 to node 1: 3 kB" in figure


@pytest.mark.parametrize(
    ("place", "changes", "words"),
    [
        (6, {"ranks": 1}, "there are 3 of the 4 ranks"),
        (6, {"ranks": None, "longest_wall_s": None}, "there are 2 of the 4 ranks"),
        (6, {"ranks": None}, "are of a node, and go together"),
        (6, {"longest_wall_s": 20.1}, "ran longer than all ranks of its node together"),
        (8, {"to": 3}, "rank 3 is not the lowest of a node"),
    ],
)
def test_half_a_node_is_refused(
    tmp_path: Path, place: int, changes: dict[str, object], words: str
) -> None:
    records = [dict(one) for one in RECORDS_OF_NODES]
    records[place] = {
        key: value for key, value in (records[place] | changes).items() if value is not None
    }
    with pytest.raises(RecordError, match=words):
        read(tmp_path, text_of(records, ranks=4))


def test_what_a_node_did_not_receive_is_told(tmp_path: Path) -> None:
    records = [dict(one) for one in RECORDS_OF_NODES]
    records[8] |= {"messages": 2}
    sentence = lost_message(read(tmp_path, text_of(records, ranks=4)))
    assert sentence and sentence.startswith("rank 0 sent 3 messages of 3000 bytes to rank 1")


def test_blocks_of_ranks_have_every_byte() -> None:
    matrix = {(row, column): row + 1 for row in range(33) for column in range(33)}
    blocks = in_blocks(matrix, 2)
    assert sum(blocks.values()) == sum(matrix.values()) and len(blocks) == 17 * 17
    # The last rank has no neighbour.
    assert blocks[16, 16] == 33 and in_blocks(matrix, 1) == matrix


def test_a_matrix_of_very_many_ranks_stays_small(tmp_path: Path) -> None:
    records = [of_rank(rank) for rank in range(100)]
    records += [between(a, b, "sent", 1, 8) for a in range(100) for b in range(100)]
    figure = matrix_figure(cell_of(read(tmp_path, text_of(records, ranks=100))))
    assert figure.count('class="cell"') == 25 * 25
    rights = [float(x) + float(w) for x, w in re.findall(
        r'class="cell" x="([\d.]+)"[^>]*? width="([\d.]+)"', figure)]  # fmt: skip
    assert max(rights) <= 340.1


def test_figures_of_profiles_have_a_budget(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = cell_of(read(tmp_path))
    assert len(report_module.profile_figures([one] * 3)) == 3
    of_one = len(share_figure(one)) + len(matrix_figure(one))
    monkeypatch.setattr(report_module, "PROFILE_ROOM", 2 * of_one)
    assert len(report_module.profile_figures([one] * 3)) == 2


Change = Callable[[str], str]
CHANGES: list[tuple[Change, str]] = [
    (lambda t: "", ":1: the profile is empty"),
    (lambda t: t + t, ":16: there is more after the end record"),
    (lambda t: t.split("\n", 1)[0] + "\n" + t, ":2: a second header"),
    (lambda t: t.split("\n", 1)[1], ":1: the first record is not the header"),
    (lambda t: t[: t.rindex('{"record": "end"')], ":14: no end record: the profile is truncated"),
    (lambda t: t[:-4], ":15: not a JSON object"),
    (lambda t: t.replace("wyeast-profile-1", "wyeast-records-1"), ":1: format"),
    (lambda t: t.replace('"results": 13', '"results": 12'), ":15: the end record counts 12"),
    (lambda t: t.replace('"time_s": 1.0', '"time_s": -1.0', 1), ":3: time_s: Input should"),
    (lambda t: t.replace('"time_s": 1.0', '"time_s": NaN', 1), ":3: NaN is not a number"),
    (lambda t: t.replace('"rank": 1', '"rank": 2', 1), ":8: rank 2 is not one of the 2 ranks"),
    (lambda t: t.replace('"rank": 1', '"rank": 0', 1), ":8: a record that appears twice"),
    (lambda t: t.replace("MPI_Recv", "Recv"), ":9: function: String should match"),
    (lambda t: t.replace('"calls": 4', '"calls": 0', 1), ":3: calls: Input should"),
    (lambda t: t.replace("[64, 512]", "[64, 500]"), ":4: a bin does not begin at a power of two"),
    (lambda t: t.replace("[64, 512]", "[512, 64]"), ":4: the bins do not ascend"),
    (lambda t: t.replace("[64, 512]", "[64]"), ":4: at_least_bytes and messages do not"),
    (lambda t: t.replace("[64, 512]", "[64, 1024]"), ":4: messages of 3136 to 6268 bytes in all"),
    (lambda t: t.replace("[1, 3]", "[1, 4]"), ":4: 5 messages by size, but MPI_Send sent 4"),
    (lambda t: t.replace('"sent_messages": 4', '"sent_messages": 0'), ":3: 3096 bytes in no"),
    (lambda t: t.replace('"kind": "message"', '"kind": "pigeon"', 1), ":7: kind: Input should"),
    (lambda t: t.replace('"record": "profile_rank"', '"record": "rank"', 1), ":2: the record 'ra"),
    (lambda t: t.replace('"wall_s"', '"wall"', 1), ":2: wall_s: Field required"),
]


@pytest.mark.parametrize(("change", "sentence"), CHANGES)
def test_anything_else_is_refused_with_its_line(
    tmp_path: Path, change: Change, sentence: str
) -> None:
    assert change(GOOD) != GOOD
    with pytest.raises(RecordError) as error:
        read(tmp_path, change(GOOD))
    said = str(error.value)
    assert said.startswith(f"{tmp_path}/profile.jsonl:") and sentence in said


def test_ranks_and_sizes_that_lack_are_refused(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="there are 1 of the 2 ranks"):
        read(tmp_path, text_of(RECORDS_OF_RANKS[:6]))
    without = [one for one in RECORDS_OF_RANKS if one["record"] != "profile_messages"]
    with pytest.raises(
        RecordError, match="rank 0: the sizes of MPI_Allreduce's messages are missing"
    ):
        read(tmp_path, text_of(without))
    with pytest.raises(RecordError, match="it ended without MPI_Finalize"):
        read_profile(tmp_path / "none")


def replaced(index: int, **changes: object) -> list[dict[str, object]]:
    records = [dict(one) for one in RECORDS_OF_RANKS]
    records[index] |= changes
    return records


def test_time_that_cannot_be(tmp_path: Path) -> None:
    longer = replaced(7, time_s=10.1)
    sentence = impossible_time(read(tmp_path, text_of(longer)))
    assert sentence == "rank 1 spent 10.1 s in calls of MPI, and its 1 thread ran for 10 s"
    longer[6] = of_rank(1, threads=2)
    assert impossible_time(read(tmp_path, text_of(longer))) is None


def test_functions_of_many_ranks_are_gone_through_once(tmp_path: Path) -> None:
    class Once(list[ProfiledFunction]):
        times = 0

        def __iter__(self) -> Iterator[ProfiledFunction]:
            self.times += 1
            return super().__iter__()

    records = [record for rank in range(40) for record in
               (of_rank(rank), calls(rank, "MPI_Recv", 1.0, 1))]  # fmt: skip
    profile = read(tmp_path, text_of(records, ranks=40))
    functions = Once(profile.functions)
    assert impossible_time(replace(profile, functions=functions)) is None and functions.times == 1


def test_messages_that_are_lost(tmp_path: Path) -> None:
    lost = replaced(10, messages=3, bytes=2096)
    sentence = lost_message(read(tmp_path, text_of(lost)))
    assert sentence == (
        "rank 0 sent 4 messages of 3096 bytes to rank 1, which received 3 of 2096 bytes"
    )
    # Where a receive could not be seen, fewer can be sound, and more cannot.
    lost[6] = of_rank(1, unseen_receives=1)
    assert lost_message(read(tmp_path, text_of(lost))) is None
    lost[10]["messages"] = 5
    assert lost_message(read(tmp_path, text_of(lost)))


def campaign(tmp_path: Path, text: str | None = GOOD) -> Path:
    """Return a campaign's folder with a profiled Linpack in each of two rounds."""
    synthetic = Synthetic(tmp_path / "campaign", TWICE, rounds=1)
    folder = synthetic.write()
    for number in (1, 2):
        launch = synthetic.launch(
            number, "alpha-1.0", "ProfileLinpack", {"grid": "1x2", "n": 4000},
            HPL.format(n=4000, q=2, time=1.0, gflops=40.0), program="xhpl", output_format="hpl",
        )  # fmt: skip
        if text is not None:
            (launch / "profile.jsonl").write_text(text)
    return folder


def test_tables_in_the_terminal(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["profile", str(campaign(tmp_path))])
    assert done.exit_code == 0, done.output
    rows = [
        [cell.strip() for cell in line.strip("│").split("│")]
        for line in done.output.splitlines()
        if line.startswith("│")
    ]
    assert ["ProfileLinpack grid=1x2 n=4000", "alpha-1.0", "2", "10 s", "80.0%", "25.0%", "20.0%",
            "30.0%"] in rows  # fmt: skip
    assert ["MPI_Recv", "8", "6 s", "60.0%", "15.0%", "0 B"] in rows
    assert ["MPI_Allreduce", "8", "8"] in rows


def test_numbers_to_be_saved(tmp_path: Path) -> None:
    found = read_campaign(campaign(tmp_path))
    names = LaunchNames(found)
    shares, functions, _ = (
        with_origin(table, found, names) for table in profile_data(profiled_cells(found)[0])
    )
    [row] = (dict(zip(shares.heads, shares.record(row), strict=True)) for row in shares.rows)
    assert (row["wall (s)"], row["cpu (1)"], row["inside_mpi (1)"]) == pytest.approx(
        (10, 0.8, 0.25)
    )
    assert row["launches (1)"] == 2 and row["image_sha256"] == f"{1:064x}"
    rows = [
        dict(zip(functions.heads, functions.record(row), strict=True)) for row in functions.rows
    ]
    [receive] = [one for one in rows if one["function"] == "MPI_Recv"]
    assert (receive["calls (1)"], receive["time (s)"]) == (8, pytest.approx(6))


def test_a_campaign_without_profiles_says_so(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["profile", str(Synthetic(tmp_path / "c", TWICE).write())])
    assert done.exit_code == 1 and "make run CHECKS=Profile" in done.output


def test_profiled_launches_are_in_the_report_and_in_no_comparison(tmp_path: Path) -> None:
    folder = campaign(tmp_path)
    [cell] = profiled_cells(read_campaign(folder))[0]
    assert len(cell.profiles) == 2
    report = write_report(folder, None, None).read_text()
    section = report.split('<section id="profiles">')[1].split("</section>")[0]
    assert section.count("<svg") == 2 and "25.0%" in section
    elsewhere, entries = report.replace(section, "").split('<ol class="traces">')
    assert "ProfileLinpack" not in elsewhere and "ProfileLinpack" in entries


def test_a_profile_that_cannot_be_read_is_listed(tmp_path: Path) -> None:
    folder = campaign(tmp_path, GOOD[:-30])
    cells, problems = profiled_cells(read_campaign(folder))
    assert not cells and len(problems) == 2
    report = write_report(folder, None, None).read_text()
    assert "profile.jsonl:15: not a JSON object" in report.split('<section id="left-out">')[1]


def test_format_is_documented() -> None:
    """The schema in benchmarks/ and the reader know the same keys."""
    project = Path(__file__).resolve().parents[3]
    schema: dict[str, Any] = json.loads((project / "benchmarks/format.schema.json").read_text())
    for name, model in RECORDS.items():
        keys = {field.alias or key for key, field in model.model_fields.items()}
        of = schema["$defs"]["profile_header" if name == "header" else name]
        optional = {key for key, field in model.model_fields.items() if not field.is_required()}
        assert keys == set(of["properties"]), name
        # A profile's end has none of what may stand in that of a program that is measured.
        assert keys - optional == set(of["required"]), name
