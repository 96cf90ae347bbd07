"""`python -m campaign.bundle.make`: put a campaign into one archive that others can repeat."""

from __future__ import annotations

import argparse
import os
import re
import shlex
import sys
from datetime import datetime
from pathlib import Path

from campaign.bundle import leaks
from campaign.bundle.contents import gather
from campaign.bundle.people import DEVELOPERS, creators_of
from campaign.bundle.redaction import in_folders, redacted
from campaign.provenance import sha256_of
from containers.ending import exit_code
from records import layout
from records.acting_user import act_for, become, owner_of
from records.archive import (
    MOST_BYTES,
    BundleError,
    read_sums,
    refuse_beyond_limits,
    sums_of,
    write,
)
from records.base import CampaignError
from records.campaign import find_campaign
from records.causes import one_line
from records.command_words import CommandWords
from records.manifest import read_manifest
from records.program import (
    CITATION,
    SETTING,
    Program,
    program_of,
    public_address,
    remote_of,
    setting_of,
)

ROOT = Path(os.environ.get("WYEAST_ROOT", Path(__file__).resolve().parents[2]))
#: So many of the texts that were found are shown, each once.
SHOWN = 5


def arguments(words: list[str] | None = None) -> argparse.Namespace:
    """Return the parsed command line."""
    parser = CommandWords(
        prog="python -m campaign.bundle.make",
        description="Pack a campaign and the definitions it was measured with into one archive.",
    )
    parser.add_argument("campaign", help="a campaign's folder, its name in runs/, or `latest`")
    parser.add_argument("--out", help="the archive (.wyeast/bundles/<campaign>.tar.gz)")
    parser.add_argument("--with-images", action="store_true", help="include the images")
    parser.add_argument(
        "--creator", default=DEVELOPERS,
        help="who is to be cited for the data: names separated by semicolons, each person's with "
        "an ORCID in brackets (%(default)s)",
    )  # fmt: skip
    parser.add_argument(
        "--repository",
        help=f"where to get the program ({SETTING} of {CITATION}, or git's remote origin if "
        "that is a public address of https)",
    )
    parser.add_argument(
        "--most-bytes",
        type=int,
        default=MOST_BYTES,
        help="largest unpacked size of the bundle, the same limit as in a rerun (%(default)s)",
    )
    parser.add_argument(
        "--redact",
        action="store_true",
        help="replace what probably should not be given away, and list old and new digests",
    )
    parser.add_argument(
        "--keep", metavar="PATTERN", help="what may be found in it: an expression for whole texts"
    )
    parser.add_argument("--dry-run", action="store_true", help="list what it would contain")
    return parser.parse_args(words)


def pattern_of(keep: str | None) -> re.Pattern[str] | None:
    """Return what may be found in a bundle; raises BundleError for what is no pattern."""
    try:
        return re.compile(keep) if keep else None
    except re.error as error:
        raise BundleError(
            f"KEEP={shlex.quote(keep or '')} is not a valid pattern: {error}"
        ) from None


def note_on_address(root: Path, program: Program) -> str:
    """Return what whoever makes a bundle is to know of the program's address; empty if nothing.

    It names what may be nobody else's business, and is in no bundle.
    """
    naming = f"REPOSITORY=<address>, or `{SETTING}` in {CITATION}"
    remote = remote_of(root)
    own = public_address(remote) if remote else None
    if program.repository is None:
        kept = f": git's remote, {own}, does not look public, and is not in it" if own else ""
        return f"it does not say where to get the program{kept}; name it with {naming}"
    if program.repository == own and setting_of(root) is None:
        return (
            f"it says that the program is at {own}, as git's remote does; name another "
            f"with {naming}"
        )
    return ""


def make(options: argparse.Namespace) -> int:
    """Make a bundle, unless it is there; return the exit code.

    Raises BundleError and CampaignError.
    """
    folder = find_campaign(ROOT, options.campaign)
    become(owner_of(folder), ROOT)
    manifest = read_manifest(folder)
    creators = creators_of(options.creator)
    program = program_of(ROOT, manifest.commit, options.repository)
    if options.repository and not public_address(options.repository):
        raise BundleError(
            f"REPOSITORY={shlex.quote(options.repository)} is not an address that others can use; "
            "give one such as https://host/path"
        )
    bundle = gather(ROOT, folder, manifest, options.with_images, creators, program)
    refuse_beyond_limits(bundle.members, options.most_bytes)
    name = f"{bundle.name}.tar.gz"
    out = layout.meant(options.out) if options.out else layout.state(ROOT) / "bundles" / name
    if out.is_dir():
        out = out / name
    for sentence in filter(None, [*bundle.notes, note_on_address(ROOT, program)]):
        print(f"note: {sentence}", file=sys.stderr)
    found = leaks.scan(bundle.members, folder, pattern_of(options.keep))
    for one in found:
        shown = b", ".join(sorted(one.texts)[:SHOWN]).decode(errors="replace")
        kind = "secret:" if one.is_secret else "private?"
        words = "" if one.is_secret else f" ({one_line(shown, 200)})"
        print(f"{kind} {one.sentence}{words}", file=sys.stderr)
    if found and not options.redact:
        raise BundleError(
            "a reader of the bundle would see the above; REDACT=1 replaces it, and "
            "KEEP='<pattern>' says what may be seen, but never secrets"
        )
    if found:
        bundle.members = redacted(in_folders(bundle.members, folder), found, bundle.members)
        bundle.describe(creators, program)
        if left := leaks.scan(bundle.members, folder, pattern_of(options.keep)):
            raise BundleError(f"it could not be replaced: {left[0].sentence}")
    if options.dry_run:
        for member in sorted(bundle.members):
            print(f"{bundle.members[member].size:>12} {member}")
        size = sum(member.size for member in bundle.members.values())
        print(f"would write {out}: {len(bundle.members)} files, {size} bytes before compression")
        return 0
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BundleError(
            f"{out} cannot be written: {error.filename}: {error.strerror}; name another file with "
            "OUT="
        ) from None
    sums = sums_of(bundle.members)
    if out.exists():
        if read_sums(out) != (bundle.name, sums):
            raise BundleError(
                f"{out} already exists with different content; remove it, or name another file "
                "with OUT="
            )
        print(f"bundle: {out} already exists with this content")
        return 0
    made = int(datetime.fromisoformat(manifest.created_utc).timestamp())
    write(out, bundle.name, bundle.members, sums, made)
    print(f"bundle: {out} ({len(sums)} files, {out.stat().st_size} bytes, sha256 {sha256_of(out)})")
    return 0


def main(words: list[str] | None = None) -> int:
    """Make a bundle; return the exit code."""
    options = arguments(words)
    act_for(ROOT)
    errors = (BundleError, CampaignError, ValueError)
    return exit_code("bundle", lambda: make(options), errors, "no partial file is left")


if __name__ == "__main__":
    sys.exit(main())
