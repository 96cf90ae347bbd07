"""What of a bundle nobody may mean to give away: secrets, and whose machine it was."""

from __future__ import annotations

import os
import pwd
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from records import packs
from records.archive import Member

#: Nothing else looks like these, so no bundle is made that has one.
SECRETS = {
    "a private key": rb"-----BEGIN [A-Z ]*PRIVATE KEY",
    "an access token": rb"\b(?:gh[pousr]_[A-Za-z0-9]{36}|glpat-[\w-]{20}|AKIA[0-9A-Z]{16}"
    rb"|xox[abps]-[\w-]{20})",
}
#: What may be meant.
HINTS = {
    "what may be a password or token": rb"(?i)\b(?:password|secret|api[_-]?key|[a-z_]*token)"
    rb"[\"']?\s*[=:]\s*[\"']?[^\s\"',;]{8,}",
    "an address with a password": rb"[a-z]+://[^/\s:@\"]+:[^/\s:@\"]+@",
    "a home folder": rb"/(?:home|users|Users)/[\w.-]+",
}
#: Names of users who are nobody in particular.
NOBODY = ("root", "nobody", "daemon", "user")


def people(folder: Path) -> dict[str, bytes]:
    """Return what to look for of the user here and the owner of a folder: names and homes."""
    found: dict[str, bytes] = {}
    for uid in {os.getuid(), folder.stat().st_uid}:
        try:
            user = pwd.getpwuid(uid)
        except KeyError:
            continue
        name, home = user.pw_name.encode(), user.pw_dir.rstrip("/").encode()
        if len(name) > 2 and user.pw_name not in NOBODY:
            found[f"the user name {user.pw_name}"] = rb"(?<!\w)" + re.escape(name) + rb"(?!\w)"
        if home.count(b"/") and len(home) > 1:
            found[f"the home folder {user.pw_dir}"] = re.escape(home) + rb"(?![\w.-])"
    return found


def texts_of(name: str, member: Member) -> Iterator[tuple[str, bytes]]:
    """Yield what a file of a bundle holds, of a pack each file in it, by name."""
    with member.open() as file:
        if not name.startswith(f"campaign/{packs.FOLDER}/"):
            yield name, file.read()
            return
        for inner, content in packs.texts_of(file):
            yield f"{name}/{inner}".rstrip("/"), content


def scan(members: Mapping[str, Member], folder: Path) -> tuple[list[str], list[str]]:
    """Return sentences on secrets and on what may be private, each with where and how often.

    `folder` is the campaign's, whose owner's name is looked for. Images are not looked into: they
    hold no data of a campaign. Definitions, which are meant to be read, are for secrets alone.
    """
    said: list[list[str]] = []
    for kinds, passed_over in (
        (SECRETS, ("images/",)),
        ({**HINTS, **people(folder)}, ("images/", "definitions/")),
    ):
        where: dict[str, list[str]] = {}
        for name, member in sorted(members.items()):
            if name.startswith(passed_over):
                continue
            for place, content in texts_of(name, member):
                for kind, pattern in kinds.items():
                    if found := re.search(pattern, content):
                        line = content.count(b"\n", 0, found.start()) + 1
                        where.setdefault(kind, []).append(f"{place}:{line}")
        said.append(
            [
                f"{kind} is in {places[0]}"
                + (f" and in {len(places) - 1} more files" if places[1:] else "")
                for kind, places in where.items()
            ]
        )
    return said[0], said[1]
