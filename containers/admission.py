"""List the images here and who vouches for them: `python -m containers.admission`."""

import os
import sys
from pathlib import Path

from containers import images, store, trust
from containers.ending import exit_code
from containers.locking import BuildError, only_build
from containers.origin import COMMAND, answered_for, told, word
from containers.programs import ProvisionError
from records import layout
from records.command_words import CommandWords

ROOT = Path(os.environ.get("WYEAST_ROOT", Path(__file__).resolve().parents[1]))


def admit(root: Path, words: str) -> None:
    """Note in images.lock that the caller vouches for the named images; raises ImageError."""
    for name in images.chosen(root, words):
        images.verify(root, name)
        entry = images.entry_of(root, name)
        said = f"{name}, {told(entry)}, sha256 {entry['sha256']}"
        if answered_for(entry):
            print(f"may run already: {said}")
            continue
        with only_build(root):
            images.write_entry(root, name, {**entry, "admitted": word(COMMAND)})
        print(f"may run from now on: {said}")


def listed(root: Path) -> list[str]:
    """Return a line for each image in a checkout: where it comes from, whether it may run."""
    lines = []
    locked = images.load_lock(root)["images"]
    for name, entry in locked.items():
        if not store.path_of(root, entry).is_file():
            continue
        runs = "runs" if trust.vouched(root, name) else f"is kept out; {COMMAND} IMAGES={name}"
        if isinstance(given := entry.get("admitted"), dict):
            runs += f" on the word of {given.get('by')} ({given.get('how')}, {given.get('utc')})"
        lines.append(f"{name} is {told(entry)}: it {runs}")
    files = {store.path_of(root, entry) for entry in locked.values()}
    for lock in sorted((layout.state(root) / "guests").glob(f"*/{images.LOCK}")):
        for name, entry in images.load_own_lock(lock.parents[1])["images"].items():
            lines.append(f"{name} is {told(entry)}: only the rerun of that bundle uses it")
            files.add(store.path_of(root, entry))
    named = (path for path in store.folder(root).glob("*.sif") if not path.is_symlink())
    for path in sorted((*named, *store.by_digest(root).glob("*.sif"))):
        if path not in files:
            lines.append(f"{path} is not in any lock, so nothing runs it")
    return lines


def main() -> int:
    """List the images and where they come from, or admit some on the caller's word."""
    parser = CommandWords(
        prog="python -m containers.admission",
        description="List where the images here come from and which may run, or vouch for some "
        "so that they may run.",
    )
    parser.add_argument("--images", default="", metavar="a,b|all", help="images to vouch for")
    options = parser.parse_args()

    def work() -> int:
        if options.images:
            admit(ROOT, options.images)
        else:
            print("\n".join(listed(ROOT)) or "there are no images here")
        return 0

    errors = (images.ImageError, BuildError, ProvisionError)
    return exit_code("admit", work, errors, "the images are unchanged")


if __name__ == "__main__":
    sys.exit(main())
