"""What of a bundle nobody may mean to give away: secrets, and whose machine it was.

`scan` finds it, with what each is and where; `replaced` takes it out of one file, given by its name
and bytes, wherever a bundle has that file.
"""

from __future__ import annotations

import base64
import gzip
import io
import os
import pwd
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from records import packs
from records.archive import Member
from records.nodes import of_kernel

if TYPE_CHECKING:
    import polars

PARQUET, GZIP = ".parquet", ".gz"
PACKS = f"campaign/{packs.FOLDER}/"
#: Where a word begins, also in JSON, which writes the end of the line before it as a letter.
BEGINS = rb"(?:(?<!\w)|(?<=\\[nrt]))"
#: Of a word of any letters: not with that letter.
ANY_BEGINS = rb"(?!(?<=\\)[nrt])" + BEGINS
#: Nothing else looks like these.
SECRETS = {
    "a private key": rb"-----BEGIN [A-Z ]*PRIVATE KEY(?: BLOCK)?-----"
    rb"(?:[^-]{,20000}-----END [A-Z ]*PRIVATE KEY(?: BLOCK)?-----)?",
    "a token of GitHub": BEGINS + rb"(?:gh[pousr]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{22,})",
    "a token of GitLab": BEGINS + rb"gl(?:pat|rt|ptt|dt|oas|cbt|ft|soat|agent|imt)-[\w.-]{20,}",
    "a token of Hugging Face": BEGINS + rb"hf_[A-Za-z0-9]{30,}",
    "a token of PyPI": BEGINS + rb"pypi-AgE[A-Za-z0-9_-]{16,}",
    "a token of Slack": BEGINS + rb"xox[abeoprs]-[\w-]{20,}",
    "a key of AWS": BEGINS + rb"(?:AKIA|ASIA)[0-9A-Z]{16}\b"
    rb"|(?i:aws_secret_access_key|aws_session_token)[\"']?\s*[=:]\s*[\"']?[A-Za-z0-9/+=]{30,}",
    "a JSON web token": BEGINS + rb"eyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]{8,}",
}
#: What may be meant.
HINTS = {
    "what may be a password or token": ANY_BEGINS
    # None of JSON's own escapes of a character is cut in two: the rest would not be one.
    + rb"(?i:password|secret|api[_-]?key|[a-z_]*token)"
    rb"(?:\\?[\"'])?\s*[=:]\s*(?:\\?[\"'])?(?:[^\s\"',;\\]|\\[^\s\"]){8,}",
    "an address with a password": ANY_BEGINS + rb"[a-z]+://[^/\s:@\"]+:[^/\s:@\"]+@",
    "a home folder": rb"/(?:home|users|Users)/[\w.-]+",
    "an account": rb"(?<![\w-])(?:--account|--mail-user|--uid|--wckey)[= ][\w.@+-]+"
    rb"|(?m:^#(?:SBATCH -[AU]|PBS -[AM]|BSUB -[PGu]) +[\w.@+-]+)",
    "the name of a user": rb"\"user(?:_?name)?\": *\"(?!root\"|user\"|redacted-)[\w.-]+\"",
    "an internal address": rb"(?<![\w.-])(?:10(?:\.[0-9]{1,3}){3}|192\.168(?:\.[0-9]{1,3}){2}"
    rb"|172\.(?:1[6-9]|2[0-9]|3[01])(?:\.[0-9]{1,3}){2})(?![\w.-])"
    rb"|(?i:\b(?:fe80|f[cd][0-9a-f]{2}):[0-9a-f:]*:[0-9a-f:]+)"
    rb"|(?i:(?<![\w:.-])(?:[0-9a-f]{2}:){5}[0-9a-f]{2}(?![\w:.-]))",
}
#: What has none of these, in small letters, has none of that: a search for an expression takes a
#: hundred times as long as one for a text, and hardly any of a campaign's files has any.
NEEDS = {
    "a token of GitHub": (b"ghp_", b"gho_", b"ghu_", b"ghs_", b"ghr_", b"github_pat_"),
    "a token of GitLab": (b"glpat-", b"glrt-", b"glptt-", b"gldt-", b"gloas-", b"glcbt-", b"glft-",
                          b"glsoat-", b"glagent-", b"glimt-"),
    "a token of Hugging Face": (b"hf_",),
    "a token of PyPI": (b"pypi-",),
    "a token of Slack": (b"xox",),
    "a key of AWS": (b"akia", b"asia", b"aws_se"),
    "a JSON web token": (b"eyj",),
    "what may be a password or token": (b"password", b"secret", b"api", b"token"),
    "an address with a password": (b"://",),
    "an account": (b"--account", b"--mail-user", b"--uid", b"--wckey", b"#sbatch", b"#pbs",
                   b"#bsub"),
}  # fmt: skip
#: What a kernel was told, as JSON has it; what is not for all is looked for in it.
KERNEL = re.compile(rb"\"kernel_command_line\": *(\"(?:[^\"\\]|\\.)*\")")
#: What can be saved from a page (analysis.tables.csv), and the most of one that is looked at.
DOWNLOAD = re.compile(rb"data:application/gzip;base64,([A-Za-z0-9+/=]+)")
MOST_OF_A_LINK = 2**27
KERNEL_LINE = "a kernel's whole command line"
#: User names that identify nobody.
NOBODY = ("root", "nobody", "daemon", "user")
#: What is meant to be read is looked through for secrets alone, and images not at all: they hold no
#: data of a campaign.
IMAGES, DEFINITIONS = "images/", "definitions/"


@dataclass
class Leak:
    """Something that was found: what it is, the texts of it, and where."""

    what: str
    is_secret: bool
    texts: set[bytes] = field(default_factory=set)
    places: list[str] = field(default_factory=list)

    @property
    def sentence(self) -> str:
        """Return what it is and where, and how often."""
        more = f" and in {len(self.places) - 1} more files" if self.places[1:] else ""
        return f"{self.what} is in {self.places[0]}{more}"


def people(folder: Path) -> dict[str, bytes]:
    """Return what to look for: names and homes of the user here and of a folder's owner."""
    found: dict[str, bytes] = {}
    for uid in {os.getuid(), folder.stat().st_uid}:
        try:
            user = pwd.getpwuid(uid)
        except KeyError:
            continue
        name, home = user.pw_name.encode(), user.pw_dir.rstrip("/").encode()
        if len(name) > 2 and user.pw_name not in NOBODY:
            found[f"the user name {user.pw_name}"] = BEGINS + re.escape(name) + rb"(?!\w)"
        if home.count(b"/") and len(home) > 1:
            # The kernel calls a process's own root so, whoever's home is called root, too.
            own = rb"(?<!/proc/self)" + re.escape(home)
            found[f"the home folder {user.pw_dir}"] = own + rb"(?![\w.-])"
    return found


def texts_of(name: str, content: bytes) -> bytes:
    """Return what a file says, whatever holds it.

    Of a table in Parquet that is each text that a column has, one a line, and what else is in it as
    it is written; of a page also what can be saved from it, and of what gzip has made all.
    """
    if name.endswith(PARQUET):
        import polars as pl

        # Names of columns, and what is known of the table, stand at its end as they are.
        return b"\n".join([*texts_in(pl.read_parquet(io.BytesIO(content))), content])
    if name.endswith(GZIP):
        return unpacked_of(content)
    return b"\n".join([content, *(unpacked(one[1]) for one in DOWNLOAD.finditer(content))])


def texts_in(table: polars.DataFrame) -> list[bytes]:
    """Return each text that a table has in its columns, also in lists, records and bytes."""
    found: set[bytes] = set()
    for column in table:
        if not (column.dtype.is_numeric() or column.dtype.is_temporal()):
            values = column.to_list()
            found.update(one if isinstance(one, bytes) else str(one).encode() for one in values)
    return sorted(found - {b"", b"None"})


def files_of(members: Mapping[str, Member]) -> Iterator[tuple[str, bytes]]:
    """Yield what the files of a bundle hold, by name, and of a pack each file that is in it.

    Images are left out.
    """
    for name, member in sorted(members.items()):
        if name.startswith(IMAGES):
            continue
        with member.open() as file:
            if not name.startswith(PACKS):
                yield name, file.read()
                continue
            for inner, content in packs.texts_of(file):
                yield f"{name}/{inner}".rstrip("/"), content


def unpacked(link: bytes) -> bytes:
    """Return what a link has that a page can be saved from; nothing for what is damaged."""
    try:
        return unpacked_of(base64.b64decode(link))
    except ValueError:
        return b""


def unpacked_of(content: bytes) -> bytes:
    """Return what gzip has made something of; nothing for what is damaged."""
    try:
        with gzip.open(io.BytesIO(content)) as file:
            return file.read(MOST_OF_A_LINK)
    except (OSError, EOFError, zlib.error):
        return b""


def scan(
    members: Mapping[str, Member], folder: Path, kept: re.Pattern[str] | None = None
) -> list[Leak]:
    """Return what was found, secrets first.

    `folder` is the campaign's, whose owner's name is looked for; what `kept` matches whole is meant
    to be there, unless it is a secret.
    """
    kinds = [(what, re.compile(one), True) for what, one in SECRETS.items()]
    kinds += [(what, re.compile(one), False) for what, one in (people(folder) | HINTS).items()]
    found = {what: Leak(what, secret) for what, _, secret in kinds}
    found[KERNEL_LINE] = Leak(KERNEL_LINE, False)
    for name, held in files_of(members):
        content = texts_of(name, held)
        for what, text, place in matches(content, kinds, not name.startswith(DEFINITIONS)):
            if kept and not found[what].is_secret and kept.fullmatch(text.decode(errors="replace")):
                continue
            if text not in found[what].texts or not found[what].places[-1].startswith(f"{name}:"):
                found[what].texts.add(text)
                line = content.count(b"\n", 0, place) + 1
                if not any(one.startswith(f"{name}:") for one in found[what].places[-1:]):
                    found[what].places.append(f"{name}:{line}")
    return [one for one in found.values() if one.places]


def matches(
    content: bytes, kinds: Iterable[tuple[str, re.Pattern[bytes], bool]], whole: bool
) -> Iterator[tuple[str, bytes, int]]:
    """Yield each thing in a text with what it is and its place; secrets alone if not `whole`."""
    small = content.lower()
    for what, pattern, secret in kinds:
        if (secret or whole) and any(need in small for need in NEEDS.get(what, (b"",))):
            for one in pattern.finditer(content):
                yield what, one[0], one.start()
    for one in KERNEL.finditer(content) if whole else ():
        if for_all(one[1]) != one[1]:
            yield KERNEL_LINE, one[1], one.start(1)


def for_all(told: bytes) -> bytes:
    """Return a kernel's command line, a text of JSON, with what of it is for all."""
    return b'"' + (of_kernel(told[1:-1].decode(errors="replace")) or "").encode() + b'"'


def stand_ins(found: Iterable[Leak]) -> dict[bytes, bytes]:
    """Return what stands for each text that was found: the same for the same text.

    A path stays a path, a value of JSON one, and a kernel's command line what of it is for all.
    """
    given: dict[bytes, bytes] = {}
    for one in found:
        word = next((known for known in ("user", "home") if known in one.what), "")
        word = word or re.sub(r"\W+", "-", one.what.removeprefix("a").removeprefix("n").strip())
        for text in sorted(one.texts - given.keys()):
            if one.what == KERNEL_LINE:
                given[text] = for_all(text)
                continue
            stands = f"redacted-{word}-{len(given) + 1}".encode()
            if text.startswith(b"/"):
                stands = b"/" + stands
            elif text.startswith(b'"'):
                stands = text[: text.index(b":") + 1] + b' "' + stands + b'"'
            given[text] = stands
    return given


def alone(text: bytes) -> bytes:
    """Return a pattern for a text that is no part of a longer word."""
    before = BEGINS if text[:1].isalnum() else b""
    return before + re.escape(text) + (rb"(?!\w)" if text[-1:].isalnum() else b"")


def replaced(name: str, content: bytes, given: Mapping[bytes, bytes]) -> bytes:
    """Return a file, by its name and bytes, with other texts in the place of those of `given`.

    The longest goes first; of a table in Parquet the texts of its columns are looked through.
    """
    if not given:
        return content
    # What was found as a word of its own is replaced where it is one.
    longest = sorted(given, key=len, reverse=True)
    pattern = re.compile(b"|".join(map(alone, longest)))

    def of(text: bytes) -> bytes:
        return pattern.sub(lambda one: given[one[0]], text)

    if name.endswith(GZIP):
        was = unpacked_of(content)
        return content if of(was) == was else gzip.compress(of(was), 9, mtime=0)
    if not name.endswith(PARQUET):
        return DOWNLOAD.sub(lambda link: saved(of, link), of(content))
    import polars as pl

    table = pl.read_parquet(io.BytesIO(content))
    changed = table.with_columns(map(lambda column: column_with(of, column), table))
    changed.columns = [of(one.encode()).decode() for one in table.columns]
    if changed.equals(table) and changed.columns == table.columns and of(content) == content:
        return content
    out = io.BytesIO()
    changed.write_parquet(out)
    return out.getvalue()


def column_with(of: Callable[[bytes], bytes], column: polars.Series) -> polars.Series:
    """Return a column with other texts in it: of lists and records as their text."""
    import polars as pl

    if column.dtype.is_numeric() or column.dtype.is_temporal() or column.dtype == pl.Boolean:
        return column
    was = column.to_list()
    if column.dtype == pl.Binary:
        return pl.Series(column.name, [one if one is None else of(one) for one in was])
    texts = [one if one is None else str(one) for one in was]
    new = [one if one is None else of(one.encode()).decode() for one in texts]
    return column if new == texts else pl.Series(column.name, new)


def saved(of: Callable[[bytes], bytes], link: re.Match[bytes]) -> bytes:
    """Return a page's link with other texts in what can be saved from it."""
    was = unpacked(link[1])
    if of(was) == was:
        return link[0]
    packed = base64.b64encode(gzip.compress(of(was), 9, mtime=0))
    return b"data:application/gzip;base64," + packed
