"""`python -m campaign.bundle.rerun`: verify a bundle, repeat its campaign here and compare."""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from campaign.bundle.bounds import MOST_ROUNDS, refuse_unbounded
from campaign.bundle.redaction import LIST, refuse_another_list
from campaign.provenance import sha256_of
from containers import images, origin, store, table, trust
from containers.ending import exit_code
from containers.installed import prefix_of
from containers.locking import BuildError, only_build
from containers.programs import ProvisionError
from containers.registry_connection import RegistryError
from containers.sharing.registry import check_name
from records import base, files, layout
from records.acting_user import act_for, rights_of_owner
from records.archive import MOST_BYTES, BundleError, unpack
from records.base import CampaignError
from records.campaign import IMPORTED, is_imported
from records.causes import harmless
from records.command_words import CommandWords
from records.locks import scratch
from records.manifest import OUTSIDE, PLAIN, Manifest, read_manifest
from site_configs.installation_entries import is_installation

ROOT = Path(os.environ.get("WYEAST_ROOT", Path(__file__).resolve().parents[2]))
#: What `campaign.measuring` calls campaigns; no word by which others are asked for is such a name.
CAMPAIGN = re.compile(rf"[0-9]{{8}}T[0-9]{{6}}Z-{PLAIN.pattern}")
#: What was measured; the rest of a campaign's folder is made from it again, and never brought in:
#: a sender's report is a page with whatever script the sender put there.
MEASURED = (
    "campaign/manifest.json", "campaign/journal.jsonl", "campaign/launches/", "campaign/packs/",
    "campaign/nodes/", "campaign/reframe/", f"campaign/{LIST}",
)  # fmt: skip


def arguments(words: list[str] | None = None) -> argparse.Namespace:
    """Return the parsed command line."""
    parser = CommandWords(
        prog="python -m campaign.bundle.rerun",
        description="Verify a bundle, put its campaign into runs/, repeat it with the same checks, "
        "images, tier, rounds and order, and compare. It runs the programs of the images: check "
        "first who sent the bundle.",
    )
    parser.add_argument("bundle", help="an archive that `make bundle` made")
    parser.add_argument("--site", default="local", help="where to repeat it (%(default)s)")
    parser.add_argument(
        "--dry-run", action="store_true", help="verify, and print what would be done"
    )
    parser.add_argument(
        "--keep-images", action="store_true",
        help="measure with the images here where they differ from the bundle's",
    )  # fmt: skip
    parser.add_argument(
        "--allow-unsigned", action="store_true",
        help="run the bundle's images although no key of containers/trust has signed them",
    )  # fmt: skip
    parser.add_argument(
        "--most-rounds", type=int, default=MOST_ROUNDS,
        help="maximum number of rounds of a campaign that is repeated (%(default)s)",
    )  # fmt: skip
    parser.add_argument(
        "--again", action="store_true", help="measure again even if it was repeated already"
    )
    parser.add_argument(
        "--host-mpi",
        metavar="PREFIX",
        type=prefix_of,
        help="use this MPI in place of the one that was bound",
    )
    parser.add_argument(
        "--most-bytes",
        type=int,
        default=MOST_BYTES,
        help="largest size of the unpacked bundle (%(default)s)",
    )
    parser.epilog = "The words after -- start a command on the site."
    words = sys.argv[1:] if words is None else words
    end = words.index("--") if "--" in words else len(words)
    options = parser.parse_args(words[:end])
    options.submit = words[end + 1 :]
    return options


def definition_differences(manifest: Manifest) -> list[str]:
    """Return sentences on which definitions here differ from those that were used."""
    others = []
    for name, digest in sorted(manifest.inputs.items()):
        # Digests of images are compared by themselves, and the site is another one.
        if name == images.LOCK or name.startswith("site_configs/"):
            continue
        here = layout.input_file(ROOT, name)
        # Anybody may have chosen these names, and they are printed on a terminal.
        if not name.isprintable() or not is_in_checkout(here) or not here.is_file():
            others.append(f"{ascii(name)[1:-1]} is not here")
        elif sha256_of(here) != digest:
            others.append(f"{name} differs here")
    sentences = others[:10]
    if others[10:]:
        sentences.append(f"and {len(others) - 10} more definitions differ")
    # This is meant for a shell: manifests whose commit is not a commit are never read.
    if others and manifest.commit:
        sentences.append(f"to use the bundle's definitions: git checkout {manifest.commit}")
    return sentences


def is_in_checkout(path: Path) -> bool:
    """Return whether a path that anybody may have chosen is in the checkout or the user's home."""
    real = path.resolve()
    return any(real.is_relative_to(one) for one in (ROOT, layout.home(ROOT).resolve()))


def image_differences(manifest: Manifest) -> dict[str, str | None]:
    """Return the implementations whose image here is not the measured one, with its digest."""
    locked = images.load_lock(ROOT)["images"]
    found: dict[str, str | None] = {}
    for name, image in manifest.images.items():
        implementation, _ = table.split_variant(name)
        entry = locked.get(implementation)
        here = str(entry["sha256"]) if entry else None
        if here != image.sha256:
            found[implementation] = here
    return found


def guests_of(bundle: Path) -> str:
    """Return the name under which a bundle's images are kept apart: its digest, shortened."""
    return sha256_of(bundle)[:16]


def put_image(
    unpacked: Path, sums: dict[str, str], implementation: str, digest: str, bundle: Path
) -> None:
    """Put an image of the bundle beside those here, only for the bundle's rerun.

    Raises BundleError unless it is the image that was measured.
    """
    name = f"images/{implementation}.sif"
    try:
        lock = files.read_json(unpacked / "images" / "images.lock")
        given = dict(lock["images"][implementation])
        labels = {str(key): str(value) for key, value in given["labels"].items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        raise BundleError(
            f"the bundle's images/images.lock does not have {implementation}"
        ) from None
    if not PLAIN.fullmatch(implementation) or {sums[name], given.get("sha256")} != {digest}:
        raise BundleError(f"{name} of the bundle is not the image that was measured ({digest})")
    guests = guests_of(bundle)
    lock_of_guests = images.guest_root(ROOT, guests) / images.LOCK
    lock_of_guests.parent.mkdir(parents=True, exist_ok=True)
    target = store.place_of(ROOT, digest)
    target.parent.mkdir(parents=True, exist_ok=True)
    # Nothing else of the bundle's entry is believed, least of all that a build here made it.
    entry = {
        "file": f"{implementation}.sif",
        "sha256": digest,
        "bytes": (unpacked / name).stat().st_size,
        "labels": labels,
        "origin": {"how": "bundle", "from": bundle.name},
        # Repeating a bundle means running its programs; this does not extend to the checkout's
        # images.
        "admitted": origin.word(f"make rerun BUNDLE={bundle.name}"),
    }
    aside = files.aside_of(target)
    with only_build(ROOT):
        try:
            shutil.copyfile(unpacked / name, aside)
            images.install(ROOT, implementation, aside, entry, f"{name} of the bundle", guests)
        finally:
            aside.unlink(missing_ok=True)


def measured_sums(sums: dict[str, str]) -> dict[str, str]:
    """Return the digests of the measured files of a campaign."""
    return {name: digest for name, digest in sums.items() if name.startswith(MEASURED)}


def same_as_here(target: Path, sums: dict[str, str]) -> bool:
    """Return whether a campaign's folder here has exactly the measured files."""
    here = {
        f"campaign/{path.relative_to(target).as_posix()}": path
        for path in sorted(target.rglob("*"))
        if path.is_file() and not any(p.startswith(".") for p in path.relative_to(target).parts)
    }
    wanted = measured_sums(sums)
    found = {name: path for name, path in here.items() if name.startswith(MEASURED)}
    return found.keys() == wanted.keys() and all(
        sha256_of(path) == wanted[name] for name, path in found.items()
    )


def bring_in(unpacked: Path, sums: dict[str, str], bundle: Path, dry_run: bool) -> str:
    """Put the campaign of a bundle into runs/ under its name; return a sentence that says so.

    Raises BundleError if another campaign has the name.
    """
    target = layout.runs(ROOT) / unpacked.name
    if target.exists():
        with rights_of_owner(target):
            same = same_as_here(target, sums)
        if not same:
            raise BundleError(
                f"{target} already exists with different content, and no campaign is overwritten; "
                "move it away first"
            )
        return f"runs/{target.name} is here already"
    if dry_run:
        return f"would put the campaign into runs/{target.name}"
    target.parent.mkdir(exist_ok=True)
    with scratch(target.parent, f".{target.name}.") as folder:
        aside = folder / target.name
        for name in measured_sums(sums):
            copy = aside / name.removeprefix("campaign/")
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(unpacked / name, copy)
        digest = hashlib.sha256(json.dumps(measured_sums(sums), sort_keys=True).encode())
        mark = {
            "schema": "wyeast-imported-1",
            "imported_utc": files.utc_now(),
            "bundle": bundle.name,
            "bundle_sha256": sha256_of(bundle),
            "measured_sha256": digest.hexdigest(),
        }
        files.write_json(aside / IMPORTED, mark)
        files.put_in_place(aside, target)
    return f"runs/{target.name} is imported"


def repetitions(name: str, site: str) -> list[tuple[Path, bool]]:
    """Return the campaigns of a site that repeat another one, and whether they are finished."""
    found = []
    for path in sorted(layout.runs(ROOT).glob(f"*-{site}-*/manifest.json")):
        if is_imported(path.parent):
            continue
        try:
            manifest = read_manifest(path.parent)
        except CampaignError:
            continue
        if manifest.like == name and manifest.site == site:
            found.append((path.parent, bool(manifest.finished_utc)))
    return found


def repeat(options: argparse.Namespace, name: str) -> tuple[Path, int]:
    """Measure a campaign like another, or resume one that was cut short; return it and a code.

    Raises BundleError where nothing was measured.
    """
    done = repetitions(name, options.site)
    command = ["--site", options.site, "--like", name]
    if done and not done[-1][1]:
        command = ["--resume", done[-1][0].name]
        print(f"resuming runs/{done[-1][0].name}", flush=True)
    elif done and not options.again:
        print(f"runs/{done[-1][0].name} repeats it already; AGAIN=1 measures it again", flush=True)
        return done[-1][0], 0
    if options.host_mpi:
        command += ["--host-mpi", options.host_mpi]
    python = [*options.submit, sys.executable, "-m", "campaign"]
    code = subprocess.run([*python, *command], cwd=ROOT, check=False).returncode
    now = repetitions(name, options.site)
    if not now or not now[-1][1] or (now == done):
        raise BundleError("the repetition was not finished; the sentences above say why")
    return now[-1][0], code


def compare(before: Path, after: Path) -> int:
    """Make the tables and the report of the one that was brought in; compare, and say why.

    Return the exit code of the comparison.
    """
    analysis = [sys.executable, "-m", "analysis"]
    if not (before / "report.html").exists():
        subprocess.run([*analysis, "conclude", str(before), "--no-answer"], cwd=ROOT, check=False)
    words = [*analysis, "compare", str(before), str(after), "--why"]
    return subprocess.run(words, cwd=ROOT, check=False).returncode


def rerun(options: argparse.Namespace) -> int:
    """Do what the command line says, with the images of the bundle; return the exit code.

    Raises BundleError, CampaignError and ImageError.
    """
    if not options.bundle:
        raise BundleError("no archive is named: make rerun BUNDLE=<archive>")
    bundle = layout.meant(options.bundle)
    if bundle.is_dir():
        raise BundleError(f"{bundle} is a folder; name the archive that `make bundle` made")
    with images.with_guests(guests_of(bundle)):
        return rerun_with_guests(options, bundle)


def rerun_with_guests(options: argparse.Namespace, bundle: Path) -> int:
    """Do what the command line says; return the exit code."""
    bundles = layout.state(ROOT) / "bundles"
    bundles.mkdir(parents=True, exist_ok=True)
    with scratch(bundles, ".unpacked-") as aside:
        name, sums = unpack(bundle, aside, options.most_bytes)
        unpacked = aside / name
        print(f"{bundle.name}: {len(sums)} files match their digests")
        if "campaign/manifest.json" not in sums:
            raise BundleError(
                f"{bundle} holds no campaign that can be repeated; name an archive that `make "
                "bundle` made"
            )
        manifest = read_manifest(unpacked / "campaign")
        if manifest.campaign != name or not PLAIN.fullmatch(name):
            raise BundleError(f"{bundle} holds {manifest.campaign!r} in a folder {name!r}")
        if not CAMPAIGN.fullmatch(name):
            raise BundleError(
                f"{bundle} holds a campaign called {name}, and campaigns are called "
                "<UTC time>-<site>-<name>: in runs/ it could be taken for something else, as "
                "`latest` for the latest one"
            )
        if said := refuse_another_list(unpacked / "campaign", sums):
            print(said)
        print(bring_in(unpacked, sums, bundle, options.dry_run))
        # It can be read now; it is refused before images are built for it.
        refuse_unbounded(manifest, options.most_rounds)
        refuse_installations(manifest)
        for sentence in definition_differences(manifest):
            print(f"differs: {sentence}")
        prepare_images(options, unpacked, sums, manifest)
    if options.dry_run:
        print(f"would measure it again on {options.site}, {manifest.rounds} rounds, and compare")
        return 0
    # Before what the campaign prints for itself.
    sys.stdout.flush()
    again, code = repeat(options, name)
    return compare(layout.runs(ROOT) / name, again) or code


def refuse_installations(manifest: Manifest) -> None:
    """Raise BundleError for a campaign that measured what its site had installed."""
    for name, image in manifest.images.items():
        if image.runs == OUTSIDE or is_installation(name):
            raise BundleError(
                f"{manifest.campaign} measured {name}, an installation of site {manifest.site} "
                "outside of containers, which no bundle has: it cannot be repeated here; what it "
                "found can be read, and compared with a campaign of yours"
            )


def say_what_it_is(file: Path, implementation: str, digest: str, allow_unsigned: bool) -> None:
    """Print whose image of a bundle it is and what it may do, before anything of it runs.

    Raises BundleError where no key that counts has signed it and nobody has allowed that.
    """
    check_name(implementation)
    signers, why = [], ""
    try:
        signers = sorted(map(str, trust.signers(ROOT, file)))
    except (trust.TrustError, ProvisionError) as error:
        why = harmless(str(error)).removeprefix(f"{file} ")
    print(
        f"image {implementation}, sha256 {digest}: "
        + (f"signed by {', '.join(signers)}" if signers else "not signed by a key that counts here")
        + "; its programs would run as you, in containers without your home and with the network"
    )
    if not signers and not allow_unsigned:
        raise BundleError(
            f"the image {implementation} of the bundle {why}; if you know who made it, "
            "ALLOW_UNSIGNED=1 runs it all the same"
        )


def prepare_images(
    options: argparse.Namespace, unpacked: Path, sums: dict[str, str], manifest: Manifest
) -> None:
    """Put the measured images in place as far as allowed; print what differs.

    Raises BundleError if an image here is a different one and nobody asked to measure with it.
    """
    digests = {
        table.split_variant(name)[0]: image.sha256 for name, image in manifest.images.items()
    }
    for implementation, here in image_differences(manifest).items():
        digest = digests[implementation]
        if here is None and f"images/{implementation}.sif" in sums:
            file = unpacked / "images" / f"{implementation}.sif"
            say_what_it_is(file, implementation, digest, options.allow_unsigned)
            if not options.dry_run:
                put_image(unpacked, sums, implementation, digest, layout.meant(options.bundle))
            would = "would be" if options.dry_run else "is"
            print(
                f"the image {implementation} {would} replaced by the bundle's, for this rerun only"
            )
        elif here is None:
            print(
                f"differs: there is no image {implementation} here or in the bundle; build it: "
                f"{images.BUILD_COMMAND} IMAGES={implementation}"
            )
        else:
            print(
                f"differs: the image {implementation} is {here[:12]}… here, and {digest[:12]}… "
                "was measured"
            )
            if not options.keep_images and not options.dry_run:
                raise BundleError(
                    f"the image {implementation} here is not the one that was measured; measure "
                    "with the one here (KEEP_IMAGES=1), or remove it from .wyeast/images and "
                    f"{images.LOCK}"
                )


def main(words: list[str] | None = None) -> int:
    """Repeat a campaign; return the exit code."""
    options = arguments(words)
    act_for(ROOT)
    files.only_owner_writes()
    errors = (
        BundleError, CampaignError, base.CampaignError, images.ImageError, BuildError,
        RegistryError,
    )  # fmt: skip
    return exit_code("rerun", lambda: rerun(options), errors, "the same command continues")


if __name__ == "__main__":
    sys.exit(main())
