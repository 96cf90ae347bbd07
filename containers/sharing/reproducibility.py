"""Build images again from the same inputs, and say what differs."""

import hashlib
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

from containers import apt, build, images, programs
from containers.apptainer import CallError, call, command
from containers.apptainer_setup import provide
from containers.commands import BuildProgress, StepError, log_path
from containers.ending import exit_code
from containers.locking import BuildError, only_build
from containers.programs import ProvisionError
from containers.sources import SourceError, sha256_of
from containers.spack.recipes import SpackError
from containers.table import TableError
from records import layout
from records.command_words import CommandWords

ROOT = Path(os.environ.get("WYEAST_ROOT", Path(__file__).resolve().parents[2]))
#: How many differing files of an image are named on the terminal; the log has all.
SHOWN = 20


class ReproducibilityError(Exception):
    """Two builds cannot be compared; the text is a sentence with the next step."""


def objects(image: Path) -> list[tuple[str, str]]:
    """Return number and type of each object in a SIF file, except signatures."""
    rows = [line.split("|") for line in call("sif", "list", image).splitlines()]
    found = [(row[0].strip(), row[4].strip()) for row in rows if len(row) == 5]
    return [(n, kind) for n, kind in found if n.isdigit() and not kind.startswith("Signature")]


def dump(image: Path, number: str, target: Path) -> str:
    """Write an object of a SIF file to a file, and return its SHA-256."""
    with target.open("wb") as file:
        done = subprocess.run(
            command("sif", "dump", number, image), stdout=file, stderr=subprocess.PIPE
        )
    if done.returncode:
        raise ReproducibilityError(f"{image} cannot be opened: {done.stderr.decode().strip()}")
    return sha256_of(target)


def described(tree: Path) -> dict[str, dict[str, str]]:
    """Return the type, mode, time, size and content of each file in a folder, by path."""
    found = {}
    for path in sorted(tree.rglob("*")):
        status = path.lstat()
        facts = {
            "type": stat.filemode(status.st_mode)[0],
            "mode": oct(stat.S_IMODE(status.st_mode)),
            "modification time": str(int(status.st_mtime)),
        }
        if os.geteuid() == 0:
            facts["owner"] = f"{status.st_uid}:{status.st_gid}"
        if path.is_symlink():
            facts["content"] = str(path.readlink())
        elif path.is_file():
            with path.open("rb") as file:
                facts["content"] = hashlib.file_digest(file, "sha256").hexdigest()
        found[path.relative_to(tree).as_posix()] = facts
    return found


def differing_files(first: Path, second: Path) -> list[str]:
    """Return a line for each file that differs between two folders, and how."""
    one, two = described(first), described(second)
    lines = []
    for path in sorted(one.keys() | two.keys()):
        if path not in two or path not in one:
            lines.append(f"{path}: only in the {'first' if path in one else 'second'}")
        elif one[path] != two[path]:
            keys = sorted(one[path].keys() | two[path].keys())
            what = [key for key in keys if one[path].get(key) != two[path].get(key)]
            lines.append(f"{path}: {', '.join(what)}")
    return lines


def compare(first: Path, second: Path, scratch: Path) -> list[str]:
    """Return what differs between two images, one line each; empty if they are identical.

    Signatures do not count: they are put into a copy after the build.
    """
    if sha256_of(first) == sha256_of(second):
        return []
    one, two = objects(first), objects(second)
    if [kind for _, kind in one] != [kind for _, kind in two]:
        return [f"the objects: {', '.join(k for _, k in one)}; {', '.join(k for _, k in two)}"]
    lines: list[str] = []
    for (number, kind), (other, _) in zip(one, two, strict=True):
        files = scratch / f"first-{number}", scratch / f"second-{number}"
        if dump(first, number, files[0]) == dump(second, other, files[1]):
            continue
        if not kind.startswith("FS"):
            lines.append(f"the object {kind}: content")
            continue
        trees = [unpack(file) for file in files]
        found = differing_files(*trees)
        lines += [f"the file system: {line}" for line in found]
        if not found:
            lines.append("the file system: order or compression only; every file is the same")
    signed = len(call("sif", "list", first).splitlines()) != len(
        call("sif", "list", second).splitlines()
    )
    if not lines and not signed:
        lines.append("the header: identity or times; every object is the same")
    return lines


def unpack(file: Path) -> Path:
    """Unpack a squashfs into a folder next to it; raises ReproducibilityError."""
    tree = file.with_name(f"{file.name}-files")
    program = programs.find("unsquashfs", layout.state(ROOT))
    done = subprocess.run(
        [program or "unsquashfs", "-no-progress", "-quiet", "-no-xattrs", "-d", tree, file],
        capture_output=True, text=True,
    )  # fmt: skip
    if not tree.is_dir():
        raise ReproducibilityError(f"{file} cannot be unpacked: {done.stderr.strip()}")
    return tree


def build_again(root: Path, name: str, log: Path) -> bool:
    """Build an image once more, elsewhere and as of the same time, and say what differs.

    Returns whether the two are the same. Raises the errors of this package.
    """
    first = images.verify(root, name)
    entry = images.entry_of(root, name)
    known = build.inputs_here(root, name)
    found = [kind for kind, inputs in known.items() if inputs == entry.get("inputs_sha256")]
    if not found or "built_utc" not in entry:
        raise ReproducibilityError(
            f"the inputs of {name} have changed since it was built, so a different image is to be "
            f"expected; build it first: {images.BUILD_COMMAND} IMAGES={name}"
        )
    provide(builds=True, bootstrap=found[0])
    recipe = build.recipe_of(root, name, found[0])
    with tempfile.TemporaryDirectory(dir=layout.state(root), prefix="again-") as folder:
        second = Path(folder) / "again.sif"
        build.make_image(recipe, second, Path(folder) / name, entry["built_utc"], BuildProgress())
        scratch = Path(folder) / "compared"
        scratch.mkdir()
        try:
            lines = compare(first, second, scratch)
        finally:
            # What an image has may not be for its owner to write, as folders under /var.
            subprocess.run(["chmod", "-R", "u+rwX", scratch], capture_output=True)
            shutil.rmtree(scratch, ignore_errors=True)
        digest = sha256_of(second)
    if not lines:
        as_well = "" if digest == entry["sha256"] else " except for the signatures"
        print(f"{name} is the same when built again{as_well}: sha256 {digest}")
        return True
    log.write_text("".join(f"{line}\n" for line in lines))
    print(f"{name} differs when built again, in {len(lines)} places:")
    for line in lines[:SHOWN]:
        print(f"  {line}")
    if len(lines) > SHOWN:
        print(f"  … the full list is in {log}")
    return False


def main() -> int:
    """Rebuild the requested images; 0 if all are the same."""
    parser = CommandWords(
        prog="python -m containers.sharing.reproducibility",
        description="Build images again from the same inputs, and list what differs.",
    )
    parser.add_argument(
        "--images", default="", metavar="a,b|all", help="which images (default: all)"
    )
    options = parser.parse_args()

    def work() -> int:
        names = images.chosen(ROOT, options.images)
        with only_build(ROOT):
            same = [
                build_again(ROOT, name, log_path(ROOT, f"{name}-reproducibility")) for name in names
            ]
        return 0 if all(same) else 1

    errors = (
        ReproducibilityError, images.ImageError, BuildError, StepError, ProvisionError, TableError,
        SourceError, CallError, apt.AptError, SpackError,
    )  # fmt: skip
    return exit_code("reproducibility", work, errors, "the images are unchanged")


if __name__ == "__main__":
    sys.exit(main())
