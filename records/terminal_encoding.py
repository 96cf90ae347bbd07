"""Where a command prints: streams that are closed, and terminals that have few letters."""

import codecs
import io
import locale
import os
import sys
import unicodedata

#: What is printed of characters that an encoding lacks and that have no letters in them.
PLAIN = {
    "\N{EN DASH}": "-", "\N{EM DASH}": "-", "\N{MINUS SIGN}": "-", "\N{HORIZONTAL ELLIPSIS}": "...",
    "\N{LEFT SINGLE QUOTATION MARK}": "'", "\N{RIGHT SINGLE QUOTATION MARK}": "'",
    "\N{LEFT DOUBLE QUOTATION MARK}": '"', "\N{RIGHT DOUBLE QUOTATION MARK}": '"',
    "\N{MULTIPLICATION SIGN}": "x", "\N{PLUS-MINUS SIGN}": "+/-", "\N{LESS-THAN OR EQUAL TO}": "<=",
    "\N{GREATER-THAN OR EQUAL TO}": ">=", "\N{ALMOST EQUAL TO}": "~", "\N{RIGHTWARDS ARROW}": "->",
    "\N{MICRO SIGN}": "u", "\N{GREEK SMALL LETTER MU}": "u", "\N{MIDDLE DOT}": ".",
}  # fmt: skip
OTHERS = "?"
HANDLER = "wyeast-plain"


def plain(text: str) -> str:
    """Return a text in ASCII that reads alike, with letters without accents."""
    return "".join(map(_plain_letter, text))


def _plain_letter(letter: str) -> str:
    if letter.isascii():
        return letter
    alike = unicodedata.normalize("NFKD", letter).replace("\N{FRACTION SLASH}", "/")
    bare = alike.encode("ascii", "ignore").decode()
    power = "^" if bare and unicodedata.decomposition(letter).startswith("<super>") else ""
    return PLAIN.get(letter) or f"{power}{bare}" or OTHERS


def _replace(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return plain(error.object[error.start : error.end]), error.end


def _known(encoding: str) -> str:
    """Return an encoding, or ASCII for one of a locale that Python has not, such as ARMSCII-8."""
    try:
        return codecs.lookup(encoding).name
    except LookupError:
        return "ascii"


def open_streams() -> None:
    """Have standard input, output and error be something, where who starts us has closed them.

    A file that is opened later would take such a one's number, and what is printed, by us or by a
    program that we start, would be in it. One that was opened earlier already has the number.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            # The lowest number that is free, for programs that we start too.
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
            stream = open(number, "w" if number else "r", closefd=False)  # noqa: SIM115 stays open
            setattr(sys, name, stream)
            continue
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w" if number else "r"))  # noqa: SIM115 stays open


def suit_terminal() -> None:
    """Have standard output and error print what a terminal can show, if that is not UTF-8.

    Files and pipes get UTF-8, as all our files have it.
    """
    codecs.register_error(HANDLER, _replace)
    for stream in (sys.stdout, sys.stderr):
        if not isinstance(stream, io.TextIOWrapper):
            continue
        encoding = _known(locale.getencoding()) if stream.isatty() else stream.encoding
        if codecs.lookup(encoding).name != "utf-8":
            stream.reconfigure(encoding=encoding, errors=HANDLER)
