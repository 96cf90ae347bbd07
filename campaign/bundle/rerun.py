"""`python -m campaign.bundle.rerun`: verify a bundle, repeat its campaign here and compare."""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from analysis.campaign import IMPORTED, CampaignError, is_imported, read_manifest
from campaign import folder
from campaign.bundle.archive import MOST_BYTES, BundleError, unpack
from campaign.provenance import sha256_of
from containers import images
from containers.ending import exit_code
from containers.locking import BuildError, only_build

ROOT = Path(os.environ.get("WYEAST_ROOT", Path(__file__).resolve().parents[2]))
#: What was measured; the rest of a campaign's folder is made from it again.
MEASURED = ("campaign/manifest.json", "campaign/launches/", "campaign/nodes/", "campaign/reframe/")


def arguments(words: list[str] | None = None) -> argparse.Namespace:
    """Return the parsed command line."""
    parser = argparse.ArgumentParser(
        prog="python -m campaign.bundle.rerun",
        description="Verify a bundle, put its campaign into runs/, repeat it with the same checks, "
        "images, tier, rounds and order, and compare. It runs the programs of the images: look "
        "first whom the bundle is from.",
    )
    parser.add_argument("bundle", help="an archive that `make bundle` made")
    parser.add_argument("--site", default="local", help="where to repeat it (%(default)s)")
    parser.add_argument("--dry-run", action="store_true", help="verify, and say what would be done")
    parser.add_argument(
        "--keep-images", action="store_true",
        help="measure with the images here where they differ from the bundle's",
    )  # fmt: skip
    parser.add_argument(
        "--again", action="store_true", help="measure once more where it was repeated already"
    )
    parser.add_argument("--host-mpi", metavar="PREFIX", help="stands for an MPI that was bound in")
    parser.add_argument(
        "--most-bytes", type=int, default=MOST_BYTES, help="of the bundle unpacked (%(default)s)"
    )
    parser.epilog = "What stands after -- are the words that start a command on the site."
    words = sys.argv[1:] if words is None else words
    end = words.index("--") if "--" in words else len(words)
    options = parser.parse_args(words[:end])
    options.submit = words[end + 1 :]
    return options


def definition_differences(manifest: dict[str, Any]) -> list[str]:
    """Return sentences on which definitions here are others than those that were used."""
    others = []
    for name, digest in sorted(manifest.get("inputs", {}).items()):
        # Digests of images are compared by themselves, and the site is another one.
        if name == images.LOCK or name.startswith("site_configs/"):
            continue
        here = ROOT / name
        if not here.resolve().is_relative_to(ROOT) or not here.is_file():
            others.append(f"{name} is not here")
        elif sha256_of(here) != digest:
            others.append(f"{name} is another here")
    commit = manifest["software"].get("wyeast_commit")
    sentences = others[:10]
    if others[10:]:
        sentences.append(f"and {len(others) - 10} more definitions are others")
    if others:
        sentences.append(f"its own ones: git checkout {commit}")
    return sentences


def image_differences(manifest: dict[str, Any]) -> dict[str, str | None]:
    """Return the implementations whose image here is not the one measured, with that digest."""
    locked = images.load_lock(ROOT)["images"]
    found: dict[str, str | None] = {}
    for name, image in manifest["images"].items():
        implementation, _ = images.split_variant(name)
        entry = locked.get(implementation)
        here = str(entry["sha256"]) if entry else None
        if here != image["sha256"]:
            found[implementation] = here
    return found


def put_image(unpacked: Path, sums: dict[str, str], implementation: str, digest: str) -> None:
    """Put an image of the bundle in its place; raises BundleError unless it is the one measured."""
    name = f"images/{implementation}.sif"
    try:
        lock = json.loads((unpacked / "images" / "images.lock").read_text())
        entry = dict(lock["images"][implementation])
        labels = {str(key): str(value) for key, value in entry["labels"].items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        raise BundleError(
            f"the bundle's images/images.lock does not have {implementation}"
        ) from None
    if not folder.PLAIN.fullmatch(implementation) or {sums[name], entry.get("sha256")} != {digest}:
        raise BundleError(f"{name} of the bundle is not the image that was measured ({digest})")
    target = images.folder(ROOT) / f"{implementation}.sif"
    target.parent.mkdir(parents=True, exist_ok=True)
    if target.exists() and sha256_of(target) != digest:
        raise BundleError(f"{target} is there, but not in {images.LOCK}; move it away first")
    aside = target.with_name(f".{target.name}.{os.getpid()}")
    with only_build(ROOT):
        try:
            shutil.copyfile(unpacked / name, aside)
            aside.chmod(0o755)
            entry = {**entry, "file": target.name, "labels": labels}
            images.install(ROOT, implementation, aside, entry, f"{name} of the bundle")
        finally:
            aside.unlink(missing_ok=True)


def measured_sums(sums: dict[str, str]) -> dict[str, str]:
    """Return the digests of what of a campaign was measured."""
    return {name: digest for name, digest in sums.items() if name.startswith(MEASURED)}


def same_as_here(target: Path, sums: dict[str, str]) -> bool:
    """Return whether a campaign's folder here has what was measured, and nothing else of it."""
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
    """Put the campaign of a bundle into runs/ under its name; return a sentence on that.

    Raises BundleError where another campaign has the name.
    """
    target = ROOT / "runs" / unpacked.name
    if target.exists():
        if not same_as_here(target, sums):
            raise BundleError(
                f"{target} is there with another content, and no campaign is overwritten; move it "
                "away first"
            )
        return f"runs/{target.name} is here already"
    if dry_run:
        return f"would put the campaign into runs/{target.name}"
    aside = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        shutil.copytree(unpacked / "campaign", aside)
        digest = hashlib.sha256(json.dumps(measured_sums(sums), sort_keys=True).encode())
        mark = {
            "schema": "wyeast-imported-1",
            "imported_utc": folder.utc_now(),
            "bundle": bundle.name,
            "bundle_sha256": sha256_of(bundle),
            "measured_sha256": digest.hexdigest(),
        }
        folder.write_json(aside / IMPORTED, mark)
        aside.rename(target)
    finally:
        shutil.rmtree(aside, ignore_errors=True)
    return f"runs/{target.name} is imported"


def repetitions(name: str, site: str) -> list[tuple[Path, bool]]:
    """Return the campaigns of a site that repeat another one, and whether they are finished."""
    found = []
    for path in sorted((ROOT / "runs").glob(f"*-{site}-*/manifest.json")):
        if is_imported(path.parent):
            continue
        try:
            manifest = read_manifest(path.parent)
        except CampaignError:
            continue
        if manifest.get("like") == name and manifest["site"] == site:
            found.append((path.parent, bool(manifest["finished_utc"])))
    return found


def repeat(options: argparse.Namespace, name: str) -> tuple[Path, int]:
    """Measure a campaign like another, or go on with one that was cut short; return it and a code.

    Raises BundleError where nothing was measured.
    """
    done = repetitions(name, options.site)
    command = ["--site", options.site, "--like", name]
    if done and not done[-1][1]:
        command = ["--resume", done[-1][0].name]
        print(f"going on with runs/{done[-1][0].name}", flush=True)
    elif done and not options.again:
        print(f"runs/{done[-1][0].name} repeats it already; AGAIN=1 measures once more", flush=True)
        return done[-1][0], 0
    if options.host_mpi:
        command += ["--host-mpi", options.host_mpi]
    python = [*options.submit, sys.executable, "-m", "campaign"]
    code = subprocess.run([*python, *command], cwd=ROOT, check=False).returncode
    now = repetitions(name, options.site)
    if not now or not now[-1][1] or (now == done):
        raise BundleError("the campaign was not repeated to its end; the sentences above say why")
    return now[-1][0], code


def compare(before: Path, after: Path) -> int:
    """Print how two campaigns compare and why they may differ; return the exit code."""
    words = [sys.executable, "-m", "analysis", "compare", str(before), str(after), "--why"]
    return subprocess.run(words, cwd=ROOT, check=False).returncode


def rerun(options: argparse.Namespace) -> int:
    """Do what the command line says; return the exit code.

    Raises BundleError, CampaignError and ImageError.
    """
    bundle = Path(options.bundle)
    bundles = ROOT / ".wyeast" / "bundles"
    bundles.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=bundles, prefix=".unpacked-") as aside:
        name, sums = unpack(bundle, Path(aside), options.most_bytes)
        unpacked = Path(aside) / name
        print(f"{bundle.name}: {len(sums)} files have the digests that it says")
        manifest = read_manifest(unpacked / "campaign")
        if manifest["campaign"] != name or not folder.PLAIN.fullmatch(name):
            raise BundleError(f"{bundle} holds {manifest['campaign']!r} in a folder {name!r}")
        print(bring_in(unpacked, sums, bundle, options.dry_run))
        for sentence in definition_differences(manifest):
            print(f"differs: {sentence}")
        prepare_images(options, unpacked, sums, manifest)
    if options.dry_run:
        print(f"would measure it again on {options.site}, {manifest['rounds']} rounds, and compare")
        return 0
    # Before what the campaign prints for itself.
    sys.stdout.flush()
    again, code = repeat(options, name)
    return compare(ROOT / "runs" / name, again) or code


def prepare_images(
    options: argparse.Namespace, unpacked: Path, sums: dict[str, str], manifest: dict[str, Any]
) -> None:
    """Have the images that were measured in place as far as may be; say what differs.

    Raises BundleError where an image here is another one and nobody said to measure with it.
    """
    digests = {
        images.split_variant(name)[0]: image["sha256"] for name, image in manifest["images"].items()
    }
    for implementation, here in image_differences(manifest).items():
        digest = digests[implementation]
        if here is None and f"images/{implementation}.sif" in sums:
            if not options.dry_run:
                put_image(unpacked, sums, implementation, digest)
            would = "would be" if options.dry_run else "is"
            print(f"the image {implementation} {would} put in its place from the bundle")
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
                    f"the image {implementation} here is another than the one measured; measure "
                    "with the one here by KEEP_IMAGES=1, or take it out of .wyeast/images and "
                    f"{images.LOCK}"
                )


def main(words: list[str] | None = None) -> int:
    """Repeat a campaign; return the exit code."""
    folder.only_owner_writes()
    options = arguments(words)
    errors = (BundleError, CampaignError, folder.CampaignError, images.ImageError, BuildError)
    return exit_code("rerun", lambda: rerun(options), errors, "the same command goes on")


if __name__ == "__main__":
    sys.exit(main())
