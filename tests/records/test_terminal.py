"""A terminal that is not in UTF-8 gets plain characters, and files and pipes all of them."""

import io
import locale
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from records.terminal_encoding import plain, suit_terminal

PROJECT = Path(__file__).resolve().parents[2]
SAID = "3 \N{MULTIPLICATION SIGN} 10\N{SUPERSCRIPT FIVE} \N{EN DASH} größe\N{HORIZONTAL ELLIPSIS}"
PRINT = (
    "from records.terminal_encoding import suit_terminal; suit_terminal(); "
    f"print({SAID!r}, '\u2588')"
)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (SAID, "3 x 10^5 - gro?e..."), ("\N{VULGAR FRACTION ONE HALF}", "1/2"), ("plain", "plain"),
        ("n\N{SUPERSCRIPT TWO} in \N{MICRO SIGN}s", "n^2 in us"), ("\N{FULL BLOCK}", "?"),
    ],
)  # fmt: skip
def test_what_reads_alike_is_said_in_ascii(text: str, said: str) -> None:
    assert plain(text) == said and said.isascii()


def through_a_terminal(**variables: str) -> bytes:
    """Return what a terminal is sent by a program in an environment."""
    ours, theirs = pty.openpty()
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(PROJECT), **variables}
    with subprocess.Popen([sys.executable, "-c", PRINT], env=environment, stdout=theirs) as child:
        os.close(theirs)
        said = b""
        try:
            while part := os.read(ours, 4096):
                said += part
        except OSError:
            # So Linux says that nobody has the other end any more.
            pass
    os.close(ours)
    assert child.returncode == 0
    return said.strip()


def test_a_terminal_of_the_c_locale_gets_plain_characters() -> None:
    for more in ({}, {"PYTHONUTF8": "1"}):
        assert through_a_terminal(LC_ALL="C", **more) == b"3 x 10^5 - gro?e... ?"
        assert through_a_terminal(LC_ALL="C.UTF-8", **more).decode() == f"{SAID} \u2588"


def test_letters_that_the_encoding_has_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.TextIOWrapper):
        def isatty(self) -> bool:
            return True

    for kind, encoding, said in (
        (Terminal, "ISO-8859-1", "3 \xd7 10^5 - größe...".encode("latin-1")),
        # A locale may have an encoding that Python has not.
        (Terminal, "ARMSCII-8", b"3 x 10^5 - gro?e..."),
        (io.TextIOWrapper, "ISO-8859-1", SAID.encode()),
    ):
        written = io.BytesIO()
        stream = kind(written, encoding="utf-8")
        monkeypatch.setattr(sys, "stdout", stream)
        monkeypatch.setattr(locale, "getencoding", lambda known=encoding: known)
        suit_terminal()
        stream.write(SAID)
        stream.flush()
        assert written.getvalue() == said


#: What a program does that has a file of its own, and starts another one.
WRITE = (
    "import os, sys; from records.terminal_encoding import open_streams; open_streams(); "
    "file = open(sys.argv[1], 'w'); print('said', flush=True); print('said', file=sys.stderr); "
    "os.system('echo said; echo said >&2'); file.write('written')"
)


def test_what_is_printed_into_a_closed_stream_is_in_no_file(tmp_path: Path) -> None:
    """As where somebody starts us by `<&- >&- 2>&-`, which closes them."""
    for closed in ("<&-", ">&-", "2>&-", "<&- >&- 2>&-"):
        file = tmp_path / "file"
        done = subprocess.run(
            ["sh", "-c", f'exec "$@" {closed}', "sh", sys.executable, "-c", WRITE, str(file)],
            env={"PATH": os.environ["PATH"], "PYTHONPATH": str(PROJECT)},
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        said = [0 if f"{sign}&-" in closed.split() else 2 for sign in (">", "2>")]
        assert [text.count("said") for text in (done.stdout, done.stderr)] == said
        assert done.returncode == 0 and file.read_text() == "written", closed
