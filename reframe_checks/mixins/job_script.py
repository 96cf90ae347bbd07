"""Words for a job script, each quoted by one function.

ReFrame joins what it is given with spaces (the options of a launcher and of a container platform,
the image's path, commands) and writes it into a shell script. So all of it is quoted here, whoever
it comes from: a checkout's path may have spaces, and anybody may have written an image's labels.
"""

import shlex
from collections.abc import Sequence
from pathlib import Path

from reframe.core.containers import Apptainer
from reframe.core.exceptions import SanityError

from containers.apptainer import guard, mount_option
from containers.guarded import BEFORE_DEV, MEMORY
from containers.installations import Installation, command_of
from records import environment

LAUNCHERS = Path(__file__).resolve().parents[1] / "launchers"
INTO_CONTAINER = LAUNCHERS / "into_container"
#: How long the nodes of a job may take to say what is left on them, in seconds: one may be dead.
LEFT_WITHIN_S = 30
#: What the name of the note of that ends with where a node was not looked at.
UNSEEN = ".unseen"
#: The folder of the stage folder that programs work in.
WORK = "work"
#: The variables of a job's script with the folders that become a container's /tmp and /dev/shm.
OWN_TMP, OWN_MEMORY = "launch_tmp", "launch_memory"
#: The variable with the folder that a launch has on a file system of the site, for its files.
OWN_FILES = "launch_files"


def quoted(*words: str | Path | int) -> str:
    """Return the words of a command quoted for a shell: each stays one word and is never expanded.

    Raises SanityError for what no script can hold: a NUL, and names of files that are not text.
    """
    texts = [str(word) for word in words]
    for text in texts:
        if "\0" in text or not _is_text(text):
            raise SanityError(
                f"{text!a} cannot be written into a job script: it is not text; give the file "
                "or folder another name"
            )
    return shlex.join(texts)


def _is_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def found_on_nodes(programs: Path) -> list[str]:
    """Return the commands by which a job has what it needs wherever it begins.

    A job may have nothing of the variables of whoever submitted it (SBATCH_EXPORT=NONE), and srun
    would then hand none of the job's own to its ranks. `programs` is the folder of an Apptainer
    that is ours, found after the node's own.
    """
    return ["unset SLURM_EXPORT_ENV", f'PATH="$PATH":{quoted(programs)}', "export PATH"]


def own_folders(place: str = "/tmp", memory: str = "/dev/shm") -> list[str]:
    """Return the commands that make the folders of OWN_TMP and OWN_MEMORY, in the node's own.

    TMPDIR, as whoever submitted the job had it, may not exist on the node, or be on a parallel
    file system, where what MPI keeps there would be slow: it is taken where /tmp does not do. What
    killed launches have left is removed after a day: what has a process id of its own may look dead
    while it is measured. Root's containers have other memory (containers/guarded.py).
    """
    name = "wyeast.$$.XXXXXXXX"
    old = '-mindepth 1 -maxdepth 1 -type d -user "$(id -u)" -mmin +1440'
    own = guard() == []
    folders = [quoted(place), quoted(memory)] if own else [quoted(place)]
    places = " ".join(f"{folder}/" for folder in folders)
    remains = " ".join(f"{folder}/wyeast.[0-9]*.????????" for folder in folders)
    return [
        # Mostly there is none, and then no process is started for it.
        f"for any in {remains}; do",
        '    [ -d "$any" ] || continue',
        f"    find {places} {old} -name 'wyeast.[0-9]*.????????' 2>/dev/null | "
        "while IFS= read -r old; do",
        "        pid=${old##*/wyeast.} pid=${pid%.????????}",
        "        case $pid in *[!0-9]*) continue ;; esac",
        '        kill -0 "$pid" 2>/dev/null || rm -rf "$old"',
        "    done",
        "    break",
        "done",
        f"{OWN_TMP}=$(mktemp -d {quoted(place)}/{name} 2>/dev/null ||",
        f'    mktemp -d "${{TMPDIR:-/tmp}}/{name}") || exit 1',
        *([f"{OWN_MEMORY}=$(mktemp -d {quoted(memory)}/{name}) || exit 1"] if own else []),
    ]


def folder_for_files(place: str, name: str, program: str) -> list[str]:
    """Return the commands that make the folder of OWN_FILES, in a place that all nodes share.

    What launches have left that nothing could end is removed after a week: nobody can say from here
    whether the job of a younger one still runs.
    """
    old = "-mindepth 1 -maxdepth 1 -type d -user \"$(id -u)\" -mtime +7 -name 'wyeast-*'"
    words = (
        f"{program}: no folder can be made in {place}, the site's files_folder: make it, writable "
        "for whoever measures, on a file system that all nodes share"
    )
    return [
        f"find {quoted(place)} {old} -exec rm -rf {{}} + 2>/dev/null",
        # Before there is one: what is ended in between removes it all the same.
        f"{OWN_FILES}={quoted(f'{place}/{name}')}",
        f'mkdir "${OWN_FILES}" || {{ {OWN_FILES}=; echo {quoted(words)} >&2; exit 1; }}',
    ]


def end_what_is_left(job: str, by_slurm: bool, nodes: int, note: str) -> list[str]:
    """Return the commands that mark a launch, and a function that ends what is left of it.

    `job` is what the scheduler calls it. The function `end_left` notes the names of the programs.
    It looks on all nodes where Slurm starts ranks, which then starts it too; else on the first one.
    """
    each = f'{quoted(LAUNCHERS / "end_what_is_left")} "$left"'
    if by_slurm and nodes > 1:
        each = (
            f"timeout -k 1 {LEFT_WITHIN_S} srun --nodes={nodes} --ntasks={nodes} "
            f"--ntasks-per-node=1 --mpi=none {each}"
        )
    name = environment.OF_LAUNCH
    return [
        # No other launch of the node has the same word.
        f"{name}={quoted(job)}.$$; export {name}",
        # What looks is not of the launch.
        f'end_left() {{ left="{name}=${name}"; unset {name};',
        f"    {each} >{note} 2>/dev/null </dev/null || : >{note}{UNSEEN}; }}",
    ]


class QuotedApptainer(Apptainer):  # type: ignore[misc]
    """ReFrame's way to start a container by Apptainer, with options, image and paths as words.

    `options` and `image` are unquoted, and `command` is the result of quoted(). Of the stage folder
    a container has no more than the work folder, which is its working folder, and `inputs`. Its
    environment is made where it starts (records/environment.py).
    """

    #: The options that hide the machine; `options` are a launch's other ones.
    isolation: tuple[str, ...] = ()
    #: Names of files of the stage folder that are in the work folder too, read-only.
    inputs: tuple[str, ...] = ()
    #: The variables from outside that the site names.
    variables: tuple[str, ...] = ()
    #: How the site starts ranks: what a rank is told by variables depends on it.
    launch = "mpiexec"
    #: Whether the container has the folders of OWN_TMP and OWN_MEMORY.
    has_own_folders = False

    @property
    def name(self) -> str:
        """Return what the platform is called in a site's configuration."""
        return "Apptainer"

    def launch_command(self, stagedir: str) -> str:
        """Return the command for a job script."""
        mounts = [mount_option(str(work_folder(stagedir)), self.workdir)]
        mounts += [mount_option(f"{stagedir}/{name}", f"{self.workdir}/{name}", writable=False)
                   for name in self.inputs]  # fmt: skip
        for name in self.inputs:
            # Over which it is mounted.
            (work_folder(stagedir) / name).touch()
        words = into_container(self.launch, self.variables)
        tmp, memory = "''", "''"
        if self.has_own_folders:
            tmp, memory = f'"${OWN_TMP}"', f'{BEFORE_DEV}"${OWN_MEMORY}"'
        own = f"{tmp} {quoted(BEFORE_DEV + MEMORY) if guard() else memory}"
        options = [*self.isolation, *mounts, *self.options, "--pwd", self.workdir, self.image]
        # Split and quoted again, so that nothing but words gets through.
        return f"{quoted(*words)} {own} {quoted(*options, *shlex.split(self.command))}"


class OnTheMachine(QuotedApptainer):
    """A launch of what a site has installed: the same words, without any container.

    `command` is the result of quoted() and `options` are those of a container, of which only
    variables mean something here. `inputs` are links in the work folder.
    """

    def __init__(self, installation: Installation) -> None:
        super().__init__()
        self.installation = installation
        self.image = str(installation.folder)

    def launch_command(self, stagedir: str) -> str:
        """Return the command for a job script; raises SanityError for another option."""
        spared = [word.removeprefix("--env=") for word in self.options]
        if others := [word for word in self.options if not word.startswith("--env=")]:
            raise SanityError(f"{others[0]} has no meaning outside of a container")
        for name in self.inputs:
            place = work_folder(stagedir) / name
            place.unlink(missing_ok=True)
            place.symlink_to(f"../{name}")
        words = command_of(self.installation, spared, shlex.split(self.command))
        tmp = f'"${OWN_TMP}"' if self.has_own_folders else "''"
        table = _table(environment.for_shell(self.launch, outside=True), self.variables)
        return f"{quoted(str(INTO_CONTAINER), table)} {tmp} '' {quoted(*words)}"


def into_container(launch: str, variables: Sequence[str] = ()) -> list[str]:
    """Return the command that starts a container on its node, with the table that it goes by.

    What follows are the folders for the container's /tmp and /dev/shm, each or an empty word, and
    then the options of `apptainer exec`. `launch` is how ranks start, and `variables` are those
    that the site names.
    """
    # In its working folder, which is the stage folder, the script notes what it has removed.
    table = _table(environment.for_shell(launch), variables)
    return [*guard("."), str(INTO_CONTAINER), table]


def _table(rows: str, variables: Sequence[str]) -> str:
    # No variable has that name, and a shell needs some pattern.
    return f"named:{'|'.join(variables) or '-'} {rows}"


def work_folder(stagedir: str | Path) -> Path:
    """Return the folder of a launch that its programs work in, and that they may write."""
    return Path(stagedir) / WORK
