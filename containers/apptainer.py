"""Call Apptainer: the machine's own or the project's, with what a container may see and do.

`containers.apptainer_setup` provides one. Standard library only: that runs before the virtual
environment exists.
"""

import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from containers.guarded import BEFORE_DEV, MEMORY, TERMINALS
from containers.programs import ProvisionError
from records import environment, layout
from records.causes import sentence_in

ROOT = Path(os.environ.get("WYEAST_ROOT", Path(__file__).resolve().parents[1]))

#: Commands that start nothing of a file that they are given. `build` runs a definition of ours.
STARTS_NOTHING = (
    "--version", "build", "buildcfg", "key", "pull", "push", "sif", "sign", "verify",
)  # fmt: skip
#: What is in /proc and root alone may write.
OF_THE_KERNEL = (
    "acpi",
    "asound",
    "bus",
    "dynamic_debug",
    "fs",
    "irq",
    "mtrr",
    "scsi",
    "sys",
    "sysrq-trigger",
)
#: A folder of every kernel in which there never is anything, and which nobody can write.
EMPTY = "/proc/tty/ldisc"
#: Options of `exec` that have no value; every other one is given as one word, `--name=value`.
FLAGS = (
    "--cleanenv", "--contain", "--ipc", "--no-home", "--pid", "--sharens", "--userns"
)  # fmt: skip


def state_folder() -> Path:
    """Return `.wyeast`, where everything is installed for the project."""
    return layout.installed(ROOT)


def private_command() -> Path:
    """Return where the project's own Apptainer is, if it was provided."""
    return state_folder() / "bin" / "apptainer"


def on_path() -> Path | None:
    """Return the machine's own Apptainer, found on PATH, or None."""
    own = str(state_folder() / "bin")
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    found = shutil.which("apptainer", path=os.pathsep.join(f for f in folders if f != own))
    return Path(found) if found else None


def apptainer_command() -> Path:
    """Return Apptainer's path.

    Raises ProvisionError if there is none yet.
    """
    found = on_path()
    if found:
        return found
    if private_command().exists():
        return private_command()
    raise ProvisionError("Apptainer is missing; provide it with: make setup")


def exec_options() -> list[str]:
    """Return the options with which `apptainer exec` isolates a measurement.

    - `--cleanenv`: no variable of the caller's reaches the ranks, so an OMPI_MCA_* or FI_* in
      somebody's profile cannot change a result. What must pass (a scheduler's PMI variables) is
      passed by name: Apptainer still passes APPTAINERENV_<NAME> on as <NAME>.
    - `--no-home`: nothing in the user's home (.openmpi/mca-params.conf, site Python) is visible.
    - `--no-mount=/opt`: a line `bind path = /opt` in the machine's apptainer.conf would hide the
      image's own /opt, where its MPI and programs are.
    - `--userns` as root: root may lack the capabilities of the privileged way (in a container or
      a restricted machine), and a launch then runs alike for root and for an ordinary user.
    - As root, what the kernel does for whoever writes in /proc is read-only: `guard` cannot make it
      so.
    """
    options = ["--cleanenv", "--no-home", "--no-mount=/opt"]
    if os.geteuid():
        return options
    places = (f"/proc/{name}" for name in OF_THE_KERNEL if os.path.exists(f"/proc/{name}"))
    return ["--userns", *options, *(mount_option(one, one, writable=False) for one in places)]


def guard(folder: str = "") -> list[str]:
    """Return the words before a command that starts containers: nothing, except as root.

    For what root starts the machine is read-only (containers/guarded.py), but for the folder. The
    command is to mount MEMORY at /dev/shm.
    """
    if os.geteuid():
        return []
    return [sys.executable, "-IS", str(Path(__file__).with_name("guarded.py")), folder]


def launch_options(alone: bool, together: bool = False) -> list[str]:
    """Return the options of `apptainer exec` for what is measured: it sees less of the machine.

    They are the same for all implementations of a site.

    - The caller's working folder is not shown, and neither is what a folder is mounted over: root
      of a container may not unmount. Where it has the machine's process ids it may not look into
      those of Apptainer either, which see all that is hidden.
    - `alone`, where one container has all ranks: it has process ids and System V's IPC of its own,
      and not the machine's /tmp and /var/tmp; whoever starts it gives it a /tmp. Ranks that a
      scheduler starts each in a container share these, and copy from each other's memory through
      the process ids.
    - `together`, where several containers on a node have a rank each: they have one user namespace,
      which the first one makes and those of the same parent join. Across two of them no rank may
      copy from another's memory, and MPICH 5 does not look whether it may before it aborts.
    - No `--contain`: it hides /dev with the devices of fabrics.
    """
    options = [*exec_options(), "--no-mount=cwd"]
    if os.geteuid() == 0:
        options.append(f"--drop-caps=CAP_SYS_ADMIN{'' if alone else ',CAP_SYS_PTRACE'}")
    if together:
        options.append("--sharens")
    return [*options, "--no-mount=tmp", "--pid", "--ipc"] if alone else options


def mount_option(source: str, place: str, writable: bool = True) -> str:
    """Return the option of `apptainer exec` that shows a folder in the container, as one word.

    Apptainer reads the fields as those of a CSV file, so any path can be quoted; those of `--bind`
    end at a comma or a colon.
    """
    fields = ["type=bind", f"source={source}", f"destination={place}"]
    quoted = [
        '"{}"'.format(text.replace('"', '""')) if re.search(r'[",\s]', text) else text
        for text in fields + ([] if writable else ["ro"])
    ]
    return f"--mount={','.join(quoted)}"


class ImageError(Exception):
    """An image cannot be used; the text is a sentence with the next step."""


class NotAdmitted(ImageError):
    """Something that was not admitted would be run; the text is a sentence."""


def state_of(path: Path) -> tuple[int, ...]:
    """Return what distinguishes a file from one that replaced it, or was written, later.

    It is opened for that: NFS asks its server then, and else says what it knew before. Raises
    OSError.
    """
    # What is no file at all does not block.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        status = os.fstat(descriptor)
    finally:
        os.close(descriptor)
    return (
        status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns,
    )  # fmt: skip


@dataclass(frozen=True)
class Admitted:
    """An image that may run here, in the state in which that was established.

    It is made only where that is established: by `containers.trust.admit`, for what a build
    has just made, and for the bases. Code that takes one cannot be given a path that was never
    checked, and Apptainer is not given a file that was replaced since.
    """

    path: Path
    state: tuple[int, ...]

    def __fspath__(self) -> str:
        """Return the path, which makes this path-like."""
        return str(self.path.absolute())

    def __str__(self) -> str:
        """Return the path, as a command has it."""
        return str(self.path.absolute())


def command(*words: str | Path | Admitted) -> list[str]:
    """Return the command that calls Apptainer: all calls of this project are made through this.

    Raises NotAdmitted for a call that would run code from a file that is not admitted, or was
    replaced since, or that would give it more than `exec_options` does: the caller's variables,
    or, where the caller is root, root outside of a user namespace.
    """
    verb = str(words[0])
    if verb == "exec":
        _check_exec(words[1:])
    elif verb not in STARTS_NOTHING:
        raise NotAdmitted(f"`apptainer {verb}` may run code from an image, so it is not used here")
    if verb != "exec":
        return [str(apptainer_command()), *map(str, words)]
    if guarded := guard():
        words = (verb, mount_option(BEFORE_DEV + MEMORY, "/dev/shm"), *words[1:])
    else:
        words = (verb, *without_terminals(), *words[1:])
    return [*guarded, str(apptainer_command()), *map(str, words)]


def without_terminals() -> list[str]:
    """Return the option that takes all terminals away, as for a launch (into_container).

    What a program read there would be missing at the terminal, and what it wrote be obeyed by it.
    One by one they could not be covered: they open and close at any time.
    """
    return [mount_option(EMPTY, TERMINALS)] if os.path.isdir(TERMINALS) else []


def _check_exec(words: tuple[str | Path | Admitted, ...]) -> None:
    options: list[str] = []
    for word in words:
        if isinstance(word, Admitted):
            image = word
            break
        # Only so is it certain which word Apptainer takes for the image.
        if str(word) not in FLAGS and not (str(word).startswith("--") and "=" in str(word)):
            raise NotAdmitted(f"{word} was not admitted, so nothing in it is started")
        options.append(str(word))
    else:
        raise NotAdmitted("no image was admitted, so nothing is started")
    needed = {"--cleanenv", *(["--userns"] if os.geteuid() == 0 else [])}
    if lacking := needed - set(options):
        raise NotAdmitted(f"{image} is not started without {' and '.join(sorted(lacking))}")
    try:
        same = state_of(image.path) == image.state
    except OSError:
        same = False
    if not same:
        raise NotAdmitted(
            f"{image} is not the file that was admitted, so it is not started; run this again to "
            "have the new file checked"
        )


def run_apart(
    words: Sequence[str], patience_s: float | None = None, cwd: str | Path | None = None,
    env: Mapping[str, str] | None = None, text: str = "", most_bytes: int | None = None,
) -> subprocess.CompletedProcess[str]:  # fmt: skip
    """Run a command that may run something of an image, and return how it ended.

    It reads the `text`. It has no terminal: a program can type into that of its user's shell,
    outside of the container. No file that it writes becomes larger than `most_bytes`, and neither
    does what it prints. Raises OSError, and TimeoutExpired after some time in seconds.
    """
    if most_bytes is None:
        return subprocess.run(
            words, input=text, start_new_session=True, capture_output=True, text=True,
            errors="replace", check=False, timeout=patience_s, cwd=cwd, env=env,
        )  # fmt: skip

    def limit() -> None:
        soft, _ = resource.getrlimit(resource.RLIMIT_FSIZE)
        # No limit is below 0. One that a program may raise itself would be none.
        most = min(most_bytes, soft if soft >= 0 else sys.maxsize)
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))

    # Of files the kernel ends what writes too much; of a pipe all would be kept in memory.
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors:
        done = subprocess.run(
            words, input=text.encode(), start_new_session=True, stdout=out, stderr=errors,
            check=False, timeout=patience_s, cwd=cwd, env=env, preexec_fn=limit,
        )  # fmt: skip
        out.seek(0)
        errors.seek(0)
        return subprocess.CompletedProcess(
            done.args, done.returncode,
            stdout=out.read(most_bytes).decode(errors="replace"),
            stderr=errors.read(most_bytes).decode(errors="replace"),
        )  # fmt: skip


class CallError(Exception):
    """Apptainer has failed; the text is its sentence on why."""


def call(
    *words: str | Path | Admitted, patience_s: float | None = None, most_bytes: int | None = None,
    **more: str,
) -> str:  # fmt: skip
    """Run Apptainer without a terminal and return its standard output.

    The variables are added to the caller's, without those that change what is in a container;
    `patience_s` is how long it may take, `most_bytes` how large a file may be that it writes.
    Raises CallError, and NotAdmitted as `command` does.
    """
    variables = {**environment.environment(os.environ), "APPTAINER_QUIET": "1", **more}
    try:
        done = run_apart(command(*words), patience_s, env=variables, most_bytes=most_bytes)
    except subprocess.TimeoutExpired:
        raise CallError(
            f"`apptainer {words[0]}` has not ended within {patience_s:.0f} s and was stopped"
        ) from None
    if done.returncode:
        raise CallError(sentence_in(done.stderr) or "it said nothing")
    return done.stdout
