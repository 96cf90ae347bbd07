"""Find Spack or provide it, with its packages and its solver: `python -m containers.spack`.

In this order: SPACK_ROOT; `spack` on PATH; else the pinned releases from upstream, cloned into
`.wyeast/spack`. It runs inside the base that images are built on, so that a lock says what an image
is made of whatever the machine at hand has.
"""

import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from containers.programs import ProvisionError
from records import layout
from records.acting_user import git
from records.causes import sentence_in
from records.command_words import CommandWords

ROOT = Path(os.environ.get("WYEAST_ROOT", Path(__file__).resolve().parents[2]))

#: Where the repositories below are cloned from: an address or a folder that has them.
UPSTREAM_VARIABLE = "WYEAST_SPACK_UPSTREAM"
UPSTREAM = "https://github.com/spack"
#: Repository → release. Every combination of a core 1.x and later packages is Spack's promise; this
#: one is what the locks were made with.
RELEASES = {"spack": "v1.1.0", "spack-packages": "v2026.06.0", "compiler-wrapper": "v1.1.0"}
#: The commit that each release is: a tag can be moved.
COMMITS = {
    "spack": "0c2be44e4ece21eb091ad5de4c97716b7c6d4c87",
    "spack-packages": "d4f7c711a6a42f1c4d551c8fd10fce9a11340a81",
    "compiler-wrapper": "25b8a3c809632e480098cf17fd278bd82618ccf0",
}
#: The digest of the wrapper's archive, as its recipe has it: it is made from its repository.
WRAPPER_SHA256 = "a07b35081d14b0729090bc1e5790a5dda2d5b997e064c62da39a1224ee249b2a"
#: The oldest that knows where else than in spack.yaml it may write (`prefer_modify`).
OLDEST = (1, 1)
#: What spack.yaml and its locks are for, as the kernel calls it.
ARCHITECTURE = "x86_64"
#: How long Spack may take to tell something, in seconds: its first start on a network's file system
#: compiles all of its Python.
PATIENCE = 120.0
#: The solver, which Spack would otherwise download by itself; pinned in this file.
SOLVER = "containers/spack-solver.lock"
#: A server that sends less than a kilobyte a second for a minute has stopped answering.
GIVE_UP = ("-c", "http.lowSpeedLimit=1000", "-c", "http.lowSpeedTime=60")


@dataclass(frozen=True)
class Spack:
    """A Spack that can be used: its core, the repository of its packages, where both come from."""

    core: Path
    packages: Path
    version: str

    @property
    def command(self) -> Path:
        """Return the program's path."""
        return self.core / "bin" / "spack"


def folder(root: Path) -> Path:
    """Return where everything of Spack's lies that was provided or made here."""
    return layout.state(root) / "spack"


def version_of(core: Path) -> str:
    """Return what a Spack says is its version; raises ProvisionError where it does not run."""
    done = _ask(core, "--version")
    words = done.stdout.split()
    if done.returncode or not words:
        raise ProvisionError(f"{core}/bin/spack does not run: {done.stderr.strip()[-300:]}")
    return words[0]


def _ask(core: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a command of Spack's that only tells something; raises ProvisionError if it cannot.

    The user's own `~/.spack` and the system's configuration are not read.
    """
    try:
        return subprocess.run(
            [core / "bin" / "spack", *words], capture_output=True, text=True,
            stdin=subprocess.DEVNULL, timeout=PATIENCE,
            env={**os.environ, "SPACK_DISABLE_LOCAL_CONFIG": "1"},
        )  # fmt: skip
    except OSError as error:
        raise ProvisionError(
            f"{core} is not a Spack installation: bin/spack: {error.strerror}"
        ) from None
    except subprocess.TimeoutExpired:
        raise ProvisionError(
            f"{core}/bin/spack {' '.join(words)} did not finish within {PATIENCE:g} s: check "
            "whether its file system responds, or set SPACK_ROOT to another Spack"
        ) from None


def check_version(version: str, core: Path) -> None:
    """Raise ProvisionError for a Spack that is too old for spack.yaml."""
    numbers = tuple(int(number) for number in re.findall(r"\d+", version)[:2])
    if numbers < OLDEST:
        oldest = ".".join(map(str, OLDEST))
        raise ProvisionError(
            f"{core} is Spack {version}, but spack.yaml and the recipes need {oldest} or newer: "
            "set SPACK_ROOT to one, or unset it and run make spack"
        )


def of_the_machine() -> Path | None:
    """Return the core of the Spack that SPACK_ROOT names, or of the one on PATH; None without."""
    named, on_path = os.environ.get("SPACK_ROOT"), shutil.which("spack")
    if named:
        return Path(named)
    return Path(on_path).resolve().parents[1] if on_path else None


def refuse_architecture(architecture: str = "") -> None:
    """Raise ProvisionError on a machine for which spack.yaml and its locks have nothing."""
    architecture = architecture or platform.machine()
    if architecture != ARCHITECTURE:
        raise ProvisionError(
            f"images are built by Spack for {ARCHITECTURE} alone, as spack.yaml and its locks say, "
            f"and this machine is {architecture}; build them from wheels or packages: make images"
        )


def find(root: Path) -> Spack | None:
    """Return SPACK_ROOT's Spack, the one on PATH, or the one that was provided; None without.

    Raises ProvisionError for one that does not run or is too old.
    """
    core, own = of_the_machine(), folder(root) / "spack"
    packages = folder(root) / "spack-packages"
    if core is None:
        if not ((own / "bin" / "spack").exists() and packages.exists()):
            return None
        core = own
    version = version_of(core)
    check_version(version, core)
    if core != own:
        packages = _packages_of(core)
    return Spack(core, packages, version)


def _packages_of(core: Path) -> Path:
    """Return the folder of the repository of packages that a Spack is configured with."""
    done = _ask(core, "location", "--repo", "builtin")
    place = Path(done.stdout.strip() or "/nowhere")
    if done.returncode or not (place / "repo.yaml").exists():
        raise ProvisionError(
            f"{core} does not have its packages ({done.stderr.strip()[-200:]}): run `spack repo "
            "update` where there is a network, or set `repos: builtin:` in its own etc/spack"
        )
    # …/repos/spack_repo/builtin
    return place.parents[2]


def provide(root: Path) -> Spack:
    """Return a Spack with its solver; without one of the machine's, the pinned release's clone.

    A clone of another release than the pinned one is replaced. Raises ProvisionError with a
    sentence that says what is missing and what to set.
    """
    refuse_architecture()
    if of_the_machine() is None:
        for name in ("spack", "spack-packages"):
            clone(root, name)
    found = find(root)
    assert found is not None, "what was cloned is kept"
    solver(root)
    return found


def clone(root: Path, name: str) -> Path:
    """Return the folder of a repository at its pinned commit, cloned if it is not there.

    Raises ProvisionError, also where the release has become another commit.
    """
    target = folder(root) / name
    release, commit = RELEASES[name], COMMITS[name]
    if target.is_dir() and head_of(target) == commit:
        return target
    if shutil.which("git") is None:
        raise ProvisionError(f"git, which clones {name}, is missing: install the package git")
    upstream = os.environ.get(UPSTREAM_VARIABLE, UPSTREAM).rstrip("/")
    # Only a protocol, unlike a path, makes git take the last commit alone from a folder.
    if "://" not in upstream and not re.match(r"[\w.-]+@", upstream):
        upstream = f"file://{Path(upstream).absolute()}"
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix="incoming-") as aside:
        done = subprocess.run(
            ["git", "-c", "advice.detachedHead=false", *GIVE_UP, "clone", "-q", "--depth", "1",
             "--branch", release, f"{upstream}/{name}.git", f"{aside}/{name}"],
            capture_output=True, text=True, env={**os.environ, "GIT_TERMINAL_PROMPT": "0"},
        )  # fmt: skip
        if done.returncode:
            reason = sentence_in(done.stderr) or "git failed"
            raise ProvisionError(
                f"{name} {release} is missing and cannot be cloned from {upstream} ({reason}): "
                f"set SPACK_ROOT to a Spack on this machine, or {UPSTREAM_VARIABLE} to a folder "
                "or an "
                f"address that has {', '.join(f'{n}.git' for n in RELEASES)}"
            )
        found = head_of(Path(aside) / name)
        if found != commit:
            raise ProvisionError(
                f"{name} {release} of {upstream} is commit {found}, but {commit} is pinned: the "
                "release was moved, or this is another repository; ask its maintainers, or set "
                "SPACK_ROOT to a Spack that you trust"
            )
        shutil.rmtree(target, ignore_errors=True)
        (Path(aside) / name).rename(target)
    return target


def head_of(folder: Path) -> str | None:
    """Return the commit that is checked out in a folder, or None where there is none."""
    head = git(folder, "rev-parse", "HEAD", config={"safe.directory": "*"})
    return None if head is None else head.decode().strip()


def commit_of(folder: Path) -> str | None:
    """Return the commit that a folder is a checkout of, with `-dirty` where files were changed.

    None where it is none, as an unpacked archive.
    """
    anybodys = {"safe.directory": "*"}
    top = git(folder, "rev-parse", "--show-toplevel", config=anybodys)
    asked = ("describe", "--always", "--dirty", "--abbrev=40", "--exclude=*")
    commit = git(folder, *asked, config=anybodys)
    # An archive may have been unpacked inside a checkout of something else.
    if top is None or commit is None or Path(os.fsdecode(top).strip()) != folder.resolve():
        return None
    return commit.decode().strip()


def solver(root: Path) -> Path:
    """Return the folder of the solver's Python packages, for the base's Python; pip brings them."""
    target = folder(root) / "solver"
    lock = root / SOLVER
    stamp = target / "complete"
    if stamp.is_file() and stamp.read_text() == lock.read_text():
        return target
    shutil.rmtree(target, ignore_errors=True)
    done = subprocess.run(
        [sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-deps",
         "--require-hashes", "--only-binary", ":all:", "--python-version", "3.11",
         "--implementation", "cp", "--platform", "manylinux_2_28_x86_64", "--platform",
         "manylinux_2_17_x86_64", "--platform", "manylinux2014_x86_64",
         "--target", str(target), "-r", str(lock)],
        capture_output=True, text=True,
    )  # fmt: skip
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
        raise ProvisionError(
            f"the solver of {SOLVER} cannot be installed ({lines[0] if lines else 'pip failed'}): "
            "check the network, or set PIP_INDEX_URL or PIP_FIND_LINKS to where its wheels are"
        )
    stamp.write_text(lock.read_text())
    return target


def main() -> int:
    """Provide Spack and say which."""
    parser = CommandWords(
        prog="python -m containers.spack",
        description="Find Spack (SPACK_ROOT, PATH), or clone its pinned release into "
        f".wyeast/spack from {UPSTREAM}, or from {UPSTREAM_VARIABLE}.",
    )
    parser.parse_args()
    try:
        found = provide(ROOT)
    except ProvisionError as error:
        print(f"spack: {error}", file=sys.stderr)
        return 1
    print(f"Spack {found.version}: {found.core}, packages: {found.packages}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
