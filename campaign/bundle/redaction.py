"""A bundle without what nobody means to give away: replaced, with a list of what was changed.

Digests that files have of each other are renewed with them: a launch's record has those of its
files, and each line of a journal that of the line before. So a redacted campaign is as whole as
another one, and its list (`redacted.json`) leads from each new digest to the old one. Its launches
are folders, as those of older campaigns: what a pack has of them could not be changed in its place.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path

from campaign.bundle.leaks import DEFINITIONS, IMAGES, PACKS, Leak, replaced, stand_ins
from records import files, journal
from records.archive import BundleError, Member
from records.kept import FOLDERS, kept_launches
from records.manifest import FILE, manifest_of, manifest_text

SCHEMA = "wyeast-redacted-1"
#: In a campaign's folder: what was changed, with the digests before and after.
LIST = "redacted.json"
CAMPAIGN = "campaign/"
BEFORE = re.compile(rb'"before": *"([0-9a-f]{64})"')
#: Where a launch is in a pack, as the journal has it; in a text of it quotes would be escaped.
PLACE = re.compile(rb'"place": *\{[^}]*\}')
DIGEST = re.compile(rb"\b[0-9a-f]{64}\b")


def in_folders(members: Mapping[str, Member], folder: Path) -> dict[str, Member]:
    """Return the files of a campaign with its launches in folders and not in packs.

    Those that count alone; the journal, if it is among the files, says so. `folder` is the
    campaign's. Raises RecordError and OSError for what cannot be read.
    """
    found = {name: one for name, one in members.items() if not name.startswith(PACKS)}
    for launch in kept_launches(folder):
        for file in launch.names():
            name = f"{CAMPAIGN}{FOLDERS}/{launch.name}/{file}"
            if name not in found:
                found[name] = Member(launch.read(file))
    name = f"{CAMPAIGN}{journal.FILE}"
    if name in found:
        said = bytes_of(found[name])
        found[name] = Member(chained(name, said, PLACE.sub(b'"place": null', said)))
    return found


def redacted(
    members: Mapping[str, Member], found: list[Leak], before: Mapping[str, Member]
) -> dict[str, Member]:
    """Return the files of a campaign with other texts in the place of what was found.

    `before` are its files as the campaign has them, with its launches in packs.
    Raises BundleError for a secret in a definition: changed, it would not be what was measured by;
    and CampaignError for a manifest that would be none without what was found.
    """
    refuse_secret_definitions(found)
    given = stand_ins(found)
    own = {name: one for name, one in members.items() if name.startswith(CAMPAIGN)}
    contents = {name: bytes_of(one) for name, one in own.items()}
    first = {name: replaced(name, content, given) for name, content in contents.items()}
    what = ", ".join(sorted({one.what for one in found}))
    # Some of it names what was found: a user's name, a home.
    name = f"{CAMPAIGN}{FILE}"
    what = replaced(name, what.encode(), given).decode()
    manifest = manifest_of(files.json_of(first[name].decode()), name)
    first[name] = manifest_text(manifest.changed(redacted=f"replaced in it: {what}")).encode()
    changed = with_digests(contents, first)
    # A journal was changed before, too, where launches were taken out of packs.
    was = {name: before[name].digest() if name in before else digest(contents[name])
           for name in changed}  # fmt: skip
    listed = {
        name.removeprefix(CAMPAIGN): {"was": was[name], "is": digest(content)}
        for name, content in sorted(changed.items())
        if digest(content) != was[name]
    }
    changed[f"{CAMPAIGN}{LIST}"] = files.json_text({"schema": SCHEMA, "files": listed}).encode()
    return {
        **members,
        **{name: Member(content) for name, content in changed.items()
           if content != contents.get(name)},
    }  # fmt: skip


def refuse_secret_definitions(found: list[Leak]) -> None:
    """Raise BundleError for a secret in what others are to read as it was."""
    of_definitions = [
        place
        for one in found
        for place in one.places
        if one.is_secret and place.startswith((DEFINITIONS, IMAGES))
    ]
    if of_definitions:
        raise BundleError(
            f"a secret is in {', '.join(of_definitions[:5])}: definitions are packed exactly as "
            "they were used, or not at all; remove it from them, commit, and measure again"
        )


def with_digests(before: Mapping[str, bytes], after: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return files with the digests of others as these are now, until nothing changes any more."""
    contents = {name: chained(name, before[name], content) for name, content in after.items()}
    while True:
        renewed = {
            digest(before[name]): digest(content)
            for name, content in contents.items()
            if content != before[name]
        }
        again = {
            name: chained(name, before[name], renewed_in(name, after[name], renewed))
            for name in contents
        }
        if again == contents:
            return again
        contents = again


def renewed_in(name: str, content: bytes, renewed: Mapping[str, str]) -> bytes:
    """Return a file of JSON with other digests in it; others as they are."""
    if not name.endswith((".json", ".jsonl")):
        return content
    return DIGEST.sub(lambda one: renewed.get(one[0].decode(), one[0].decode()).encode(), content)


def chained(name: str, before: bytes, after: bytes) -> bytes:
    """Return a journal whose lines have the digests of those before them; others as they are."""
    if Path(name).name != journal.FILE or before == after:
        return after
    lines, last = [], journal.NOTHING
    for line in after.splitlines(keepends=True):
        line = BEFORE.sub(lambda _, last=last: f'"before":"{last}"'.encode(), line, count=1)  # type: ignore[misc]
        lines.append(line)
        last = digest(line)
    return b"".join(lines)


def bytes_of(member: Member) -> bytes:
    """Return what a file holds."""
    with member.open() as file:
        return file.read()


def digest(content: bytes) -> str:
    """Return the SHA-256 of bytes."""
    return hashlib.sha256(content).hexdigest()


def refuse_another_list(campaign: Path, sums: Mapping[str, str]) -> str | None:
    """Return what a redacted campaign says of itself; None for one that is whole.

    `sums` are the digests of its files by name. Raises BundleError where its list is not of them.
    """
    if not (campaign / LIST).exists():
        return None
    try:
        listed = files.read_json(campaign / LIST)
        known = {str(name): str(one["is"]) for name, one in listed["files"].items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        raise BundleError(f"its {LIST} is not the list of a redacted campaign") from None
    for name, is_now in known.items():
        if sums.get(f"{CAMPAIGN}{name}") != is_now:
            raise BundleError(f"its {LIST} is for a different {name} than it holds")
    return f"{len(known)} of its files were redacted before it was sent ({LIST} has the digests)"
