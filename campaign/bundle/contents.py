"""What a campaign's bundle contains: the whole campaign, and what it was measured with."""

from __future__ import annotations

import io
import json
import re
import tarfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from campaign.bundle import crate
from campaign.bundle.bounds import MOST_ROUNDS
from campaign.bundle.people import Creator
from campaign.bundle.readme import readme
from campaign.provenance import sha256_of
from containers import images, store, table
from records import layout
from records.acting_user import git
from records.archive import BundleError, Member
from records.base import CampaignError
from records.campaign import IMPORTED
from records.manifest import OUTSIDE, Manifest
from records.program import Program

SCHEMA = "wyeast-bundle-1"
ABOUT = "bundle.json"
COMMIT = re.compile(r"[0-9a-f]{40,64}")
#: What of the program nobody needs who measures: all else of its commit is in the bundle.
LEFT_OUT = ("tests/", "docs/", "documentation/", "runs/", ".ci/")
#: Pages explain what is not needed to measure.
PAGES = ".md"


@dataclass
class Bundle:
    """The files of a bundle by name, and sentences on anything unexpected."""

    name: str
    manifest: Manifest
    members: dict[str, Member] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    definitions: dict[str, dict[str, str | None]] = field(default_factory=dict)
    with_images: bool = False
    #: Whether the whole program is in it, as it was committed.
    from_commit: bool = False
    #: What was found, in sentences: what a rerun is to find.
    expected: list[str] = field(default_factory=list)

    def describe(self, creators: Sequence[Creator], program: Program) -> None:
        """Add, or renew, the files that say what the others are."""
        about = {
            "schema": SCHEMA,
            "campaign": self.name,
            "definitions": self.definitions,
            "images": self.with_images,
            "notes": self.notes,
        }
        self.members[ABOUT] = of_json(about)
        citation = crate.citation(self.manifest, creators, program)
        self.members["CITATION.cff"] = Member(citation.encode())
        self.members[".zenodo.json"] = of_json(crate.zenodo(self.manifest, creators, program))
        # Once they are there they are two of them.
        for name in ("README.md", crate.CRATE):
            self.members.pop(name, None)
        text = readme(self.manifest, program, self.sizes, self.expected, self.from_commit)
        self.members["README.md"] = Member(text.encode())
        self.members[crate.CRATE] = of_json(
            crate.metadata(self.manifest, self.sizes, creators, program)
        )

    @property
    def sizes(self) -> dict[str, int]:
        """Return the sizes of its files in bytes."""
        return {name: member.size for name, member in self.members.items()}


def of_commit(root: Path, commit: str | None) -> dict[str, Member]:
    """Return the files of a commit by name; empty if the commit is not here."""
    # Anybody may have written a manifest, and git would take other words for options.
    if not isinstance(commit, str) or not COMMIT.fullmatch(commit):
        return {}
    packed = git(root, "archive", "--format=tar", commit)
    if packed is None:
        return {}
    found = {}
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        for info in archive:
            content = archive.extractfile(info) if info.isreg() else None
            if content:
                found[info.name] = Member(content.read(), bool(info.mode & 0o100))
    return found


def of_campaign(folder: Path) -> dict[str, Member]:
    """Return the files of a campaign's folder, without those in flight and the mark of an import.

    Raises BundleError for a link, which would bring in something else.
    """
    found = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder)
        if any(part.startswith(".") for part in name.parts) or str(name) == IMPORTED:
            continue
        if path.is_symlink():
            raise BundleError(
                f"{path} is a link, and a bundle holds only regular files: replace the link with "
                "its content"
            )
        if path.is_file():
            found[f"campaign/{name.as_posix()}"] = Member(path)
    return found


def working_file(root: Path, name: str) -> Member | None:
    """Return an input of a campaign as it is here now; None if it is not here."""
    if name != images.LOCK:
        path = layout.input_file(root, name)
        return Member(path) if path.is_file() else None
    try:
        content = images.lock_content(root)
    except images.ImageError:
        return None
    return None if content is None else Member(content)


def add_definitions(root: Path, bundle: Bundle) -> dict[str, dict[str, str | None]]:
    """Add the definitions that were used; return where each comes from, with the digest it had.

    A file whose digest is in the manifest is taken from wherever it has that digest: from the
    manifest's commit, else from the working files; if neither has it, that is noted. Others are the
    commit's.
    """
    manifest = bundle.manifest
    commit = manifest.commit
    committed = of_commit(root, commit)
    if not committed:
        bundle.notes.append(
            f"the commit {commit} that it was measured with is not here: the bundle holds only "
            "those of its definitions whose digests are in the manifest"
        )
    said: dict[str, dict[str, str | None]] = {}
    for name, digest in sorted(manifest.inputs.items()):
        if Path(name).is_absolute() or ".." in Path(name).parts:
            # The campaign may be another's: its digests would tell which files are here, and the
            # bundle would write where it is unpacked carelessly.
            bundle.notes.append(f"{ascii(name)[1:-1]} is not in the bundle: it is not one of ours")
            continue
        working = working_file(root, name)
        origin: str | None = None
        if name in committed and committed[name].digest() == digest:
            origin, bundle.members[f"definitions/{name}"] = "commit", committed[name]
        elif working and working.digest() == digest:
            origin, bundle.members[f"definitions/{name}"] = "working file", working
        else:
            bundle.notes.append(
                f"{name} is not in the bundle: neither the commit nor the working file is the one "
                f"that was used ({digest[:12]}…)"
                + ("; the manifest has the images' digests and labels" * (name == images.LOCK))
            )
        said[name] = {"sha256": digest, "from": origin}
    for name, member in committed.items():
        if name not in said and not name.startswith(LEFT_OUT) and not name.endswith(PAGES):
            bundle.members[f"definitions/{name}"] = member
            said[name] = {"sha256": None, "from": "commit"}
    bundle.from_commit = bool(committed)
    if manifest.software.get("wyeast_changes"):
        bundle.notes.append(
            "it was measured with uncommitted changes: files whose digests are not in the "
            "manifest are in the bundle as they were committed"
        )
    return said


def add_images(root: Path, bundle: Bundle) -> None:
    """Add the images that were measured; raises BundleError if an image here is a different one."""
    entries = {}
    for name, image in bundle.manifest.images.items():
        if image.runs == OUTSIDE:
            raise BundleError(
                f"{name} is an installation of site {bundle.manifest.site}, which is not an image: "
                "make the bundle without images; it can be read anywhere, and measured again at "
                "that site alone"
            )
        implementation, _ = table.split_variant(name)
        try:
            entry = images.load_lock(root)["images"].get(implementation) or {}
        except images.ImageError as error:
            raise BundleError(str(error)) from None
        path = store.path_of(root, entry) if entry else store.place_of(root, image.sha256)
        if not path.is_file():
            raise BundleError(
                f"the image {implementation} is missing ({path}); make the bundle without images, "
                "or bring it here"
            )
        if sha256_of(path) != image.sha256 or entry.get("sha256") != image.sha256:
            raise BundleError(
                f"{path} is not the image that was measured "
                f"({image.sha256[:12]}…); make the bundle without images"
            )
        bundle.members[f"images/{implementation}.sif"] = Member(path, executable=True)
        # Where this checkout had it from, and who answered for it, is no business of others.
        ours = ("origin", "admitted", "guest")
        own = {key: value for key, value in entry.items() if key not in ours}
        entries[implementation] = own | {"file": f"{implementation}.sif"}
    lock = {"schema": images.SCHEMA, "images": entries}
    bundle.members["images/images.lock"] = of_json(lock)


def of_json(data: Any) -> Member:
    """Return the text of a JSON file."""
    return Member((json.dumps(data, indent=1, sort_keys=True) + "\n").encode())


def expected_of(folder: Path) -> list[str]:
    """Return in sentences what a campaign found, for each group of its cells."""
    from analysis.comparison.answer import sentences_of
    from analysis.comparison.compare import compare
    from records.campaign import read_campaign

    try:
        comparison = compare(read_campaign(folder))
    except (ValueError, CampaignError) as error:
        return [f"Nothing is compared in it: {error}."]
    found = [words for group in comparison.groups_of_pairs for words in sentences_of(group)]
    return found or [
        "It compares nothing: fewer than two implementations have sound launches. A rerun "
        "compares its medians with these."
    ]


def gather(
    root: Path, folder: Path, manifest: Manifest, with_images: bool,
    creators: Sequence[Creator], program: Program,
) -> Bundle:  # fmt: skip
    """Return the bundle of a campaign; raises BundleError if it cannot be complete."""
    bundle = Bundle(manifest.campaign, manifest)
    if manifest.sample is not None:
        raise BundleError(
            f"{folder} is a sample, which lacks what is needed to repeat a campaign; name the "
            "campaign it was taken from"
        )
    if folder.resolve().name != bundle.name:
        raise BundleError(
            f"{folder} is a copy, or was renamed: its manifest says {bundle.name}; pack that "
            "one, or give this folder its name back"
        )
    if not manifest.finished_utc:
        bundle.notes.append("the campaign is not finished")
    if manifest.rounds > MOST_ROUNDS:
        bundle.notes.append(
            f"it has {manifest.rounds} rounds, and a rerun repeats at most {MOST_ROUNDS} unless it "
            f"is given MOST_ROUNDS={manifest.rounds}"
        )
    bundle.members |= of_campaign(folder)
    definitions = add_definitions(root, bundle)
    if with_images:
        add_images(root, bundle)
    bundle.definitions, bundle.with_images = definitions, with_images
    bundle.expected = expected_of(folder)
    bundle.describe(creators, program)
    return bundle
