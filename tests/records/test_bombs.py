"""A small archive unpacks to any amount of text: none is read that no launch has left."""

import io
from pathlib import Path

import pytest
from pydantic import TypeAdapter, ValidationError

from records import acting_user, files, kept, packs
from records.base import MOST_NUMBERS, Ranges, RecordError, numbers_of
from records.program_output import program_output


def test_no_file_is_read_that_fills_the_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(acting_user, "MOST_BYTES", 1000)
    launch = tmp_path / "launch"
    launch.mkdir()
    for size in (1000, 1001):
        (launch / str(size)).write_text("x" * size)
    one = kept.FolderLaunch(launch)
    assert len(one.read("1000")) == len(files.read_text(launch / "1000")) == 1000
    for read in (lambda: one.read("1001"), lambda: files.read_text(launch / "1001")):
        with pytest.raises(OSError, match="it has more than 0 MB"):
            read()


def test_a_line_has_no_more_values_than_anybody_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each takes up to forty times the memory of its text."""
    monkeypatch.setattr(files, "MOST_VALUES", 100)
    assert files.json_of(f"[{'[],' * 100}1]")
    with pytest.raises(ValueError, match="it has more than 100 values"):
        files.json_of(f"[{'[],' * 101}1]")


@pytest.mark.parametrize("text", ['{"x":[' + "[]," * 101 + "0]}", "\n" * 101, "\x85" * 101])
def test_a_program_s_output_has_no_more_values_than_a_program_prints(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "MOST_VALUES", 100)
    with pytest.raises(RecordError, match="stdout: it has more than 100 values"):
        program_output(text, Path("stdout"))


@pytest.mark.parametrize(
    "ranges",
    ["0-99999999999", f"0-{'9' * 5000}", f"{MOST_NUMBERS}", ",".join(["0-16383"] * 2), "٣-٤"],
)
def test_a_list_of_processors_has_no_more_than_a_host_has(ranges: str) -> None:
    most = TypeAdapter(Ranges).validate_python(f"0-{MOST_NUMBERS - 1}")
    assert len(numbers_of(most)) == MOST_NUMBERS and numbers_of(most) is numbers_of(most)
    with pytest.raises(ValidationError):
        TypeAdapter(Ranges).validate_python(ranges)


def test_a_pack_s_launch_is_not_larger_than_what_a_launch_leaves(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    member = packs.member("round001_A/stdout", b"x" * 1001, 1.0)
    pack = io.BytesIO(packs.member("round001_A/launch.json", b"{}", 1.0) + member)
    [segment] = packs.segments_of(pack)
    assert packs.content_of(pack, segment, "stdout") == b"x" * 1001
    monkeypatch.setattr(packs, "MOST_BYTES", 1000)
    with pytest.raises(RecordError, match="it has more than 0 MB"):
        packs.content_of(pack, segment, "stdout")
