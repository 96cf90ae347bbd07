"""Every shell gets the same by its file, from a path with spaces, whatever it had before."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.other_user import OTHER, needs_root, open_folder

__all__ = ["open_folder"]

PROJECT = Path(__file__).resolve().parents[1]
#: Of another Python, or for debugging: it would not start, say other things, or be slow.
OF_PYTHON = {
    "PYTHONHOME": "/nowhere", "PYTHONPLATLIBDIR": "nowhere", "PYTHONOPTIMIZE": "2",
    "PYTHONWARNINGS": "error", "PYTHONINSPECT": "1", "PYTHONIOENCODING": "ascii",
    "PYTHONDEVMODE": "1", "PYTHONTRACEMALLOC": "25", "PYTHONMALLOC": "nonsense",
    "PYTHONHASHSEED": "nonsense", "PYTHONVERBOSE": "1", "PYTHONDEBUG": "1",
    "PYTHONPROFILEIMPORTTIME": "1", "PYTHONWARNDEFAULTENCODING": "1",
}  # fmt: skip
FOREIGN = {**OF_PYTHON, "CDPATH": "/", "SITE": "virtual", "TIER": "paper"}
SET = ("WYEAST_ROOT", "RFM_CONFIG_PATH", "RFM_SYSTEM", "WYEAST_TIER", "PYTHONPATH", "PYTHONUTF8",
       "PATH", "WYEAST_HOME")  # fmt: skip
#: How each shell reads its file, with the options by which it reads none of the user's.
SHELLS = {
    "bash": ["bash", "--norc", "--noprofile", "-c", ". ./activate && env -0"],
    "dash": ["dash", "-c", ". ./activate && env -0"],
    "zsh": ["zsh", "-f", "-c", ". ./activate && env -0"],
    "fish": ["fish", "--no-config", "-c", "source activate.fish && env -0"],
    "tcsh": ["tcsh", "-f", "-c", "source activate.csh; env -0"],
}
#: From another folder, where the shell says which file it reads.
ELSEWHERE = {
    "bash": ["bash", "--norc", "--noprofile", "-c", '. "$0/activate" && env -0'],
    "zsh": ["zsh", "-f", "-c", '. "$0/activate" && env -0'],
    "fish": ["fish", "--no-config", "-c", "source $argv[1]/activate.fish && env -0"],
}


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout in which something is installed, by another name."""
    root = tmp_path_factory.mktemp("activate") / "a b & größe"
    for name in ("activate", "activate.csh", "activate.fish", "campaign/bin/activated",
                 "campaign/bin/copied", "campaign/bin/home", "records/__init__.py",
                 "records/acting_user.py", "records/layout.py"):  # fmt: skip
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(PROJECT / name, root / name)
    (root / "reframe_checks").mkdir()
    (root / "reframe_checks" / "point_to_point.py").touch()
    installed = root / ".wyeast" / "venv" / "bin" / "reframe"
    installed.parent.mkdir(parents=True)
    installed.touch(mode=0o755)
    (root.parent / "link").symlink_to(root.name)
    return root


def started(command: list[str], place: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": os.environ["PATH"], "HOME": str(place), "PWD": str(place), **FOREIGN}
    return subprocess.run([*command, *words], cwd=place, env=environment, capture_output=True,
                          text=True, check=False)  # fmt: skip


def variables(done: subprocess.CompletedProcess[str]) -> dict[str, str]:
    assert done.returncode == 0 and not done.stderr, done.stderr
    pairs = (one.partition("=") for one in done.stdout.split("\0"))
    return {name: value for name, _, value in pairs if value and name in {*SET, *FOREIGN}}


def expected(root: Path) -> dict[str, str]:
    folders = [root / "reframe_checks" / "bin", root / ".wyeast" / "venv" / "bin",
               root / ".wyeast" / "bin", os.environ["PATH"]]  # fmt: skip
    return {
        "WYEAST_ROOT": str(root), "RFM_CONFIG_PATH": str(root / "site_configs"),
        "RFM_SYSTEM": "virtual", "WYEAST_TIER": "paper", "PYTHONPATH": str(root),
        "PYTHONUTF8": "1", "PATH": ":".join(map(str, folders)),
        "CDPATH": "/", "SITE": "virtual", "TIER": "paper",
    }  # fmt: skip


@pytest.mark.parametrize("shell", SHELLS)
def test_it_is_the_same_in_every_shell(shell: str, checkout: Path) -> None:
    for place in (checkout, checkout.parent / "link"):
        assert variables(started(SHELLS[shell], place)) == expected(checkout)


@pytest.mark.parametrize("shell", ELSEWHERE)
def test_it_may_be_read_from_elsewhere(shell: str, checkout: Path) -> None:
    done = started(ELSEWHERE[shell], checkout.parent, str(checkout))
    assert variables(done) == expected(checkout)


@pytest.mark.parametrize("shell", SHELLS)
def test_where_nothing_is_installed_it_says_so(shell: str, checkout: Path, tmp_path: Path) -> None:
    root = tmp_path / "copy"
    shutil.copytree(checkout, root)
    (root / ".wyeast" / "venv" / "bin" / "reframe").unlink()
    done = started(SHELLS[shell], root)
    assert "nothing is installed yet; run: make setup" in done.stderr
    assert shell == "tcsh" or done.returncode != 0
    assert "WYEAST_ROOT" not in done.stdout


@pytest.fixture
def anothers(checkout: Path, open_folder: Path) -> Path:
    """That checkout where another user may read it."""
    root = open_folder / "sw" / "a b & größe"
    shutil.copytree(checkout, root)
    own = open_folder / "own"
    own.mkdir()
    os.chown(own, OTHER, OTHER)
    return root


AS_ANOTHER = ["setpriv", f"--reuid={OTHER}", f"--regid={OTHER}", "--clear-groups"]


@needs_root
@pytest.mark.parametrize("shell", ELSEWHERE)
def test_in_anothers_checkout_ones_own_folder_is_the_home(
    shell: str, anothers: Path, open_folder: Path
) -> None:
    own = open_folder / "own"
    done = started([*AS_ANOTHER, *ELSEWHERE[shell]], own, str(anothers))
    assert variables(done) == expected(anothers) | {"WYEAST_HOME": str(own)}


@needs_root
@pytest.mark.parametrize("shell", ["bash", "dash", "zsh", "fish"])
def test_in_anothers_checkout_itself_the_way_is_named(
    shell: str, anothers: Path, open_folder: Path
) -> None:
    done = started([*AS_ANOTHER, *SHELLS[shell]], anothers)
    assert done.returncode != 0 and "WYEAST_ROOT" not in done.stdout
    assert f"nothing can be written in {anothers}" in done.stderr
    assert "measure with it from a folder of your own" in done.stderr
    named = {"WYEAST_HOME": str(open_folder / "own")}
    done = started([*AS_ANOTHER, "env", *(f"{k}={v}" for k, v in named.items()), *SHELLS[shell]],
                   anothers)  # fmt: skip
    assert variables(done) == expected(anothers) | named


@needs_root
@pytest.mark.parametrize("shell", ELSEWHERE)
def test_a_home_moves_along_unless_it_is_named(
    shell: str, anothers: Path, open_folder: Path
) -> None:
    """Whoever activates again in another folder, or calls `wyeast` there, means that one."""
    first, second = open_folder / "own", open_folder / "second"
    second.mkdir()
    os.chown(second, OTHER, OTHER)
    *options, script = ELSEWHERE[shell]
    again = script.replace("env -0", f"cd {second} && {script}")
    as_another = [*AS_ANOTHER, *options, again, str(anothers)]
    done = started(as_another, first)
    assert variables(done)["WYEAST_HOME"] == str(second)
    done = started([*AS_ANOTHER, "env", f"WYEAST_HOME={first}", *as_another[len(AS_ANOTHER) :]],
                   second)  # fmt: skip
    assert variables(done)["WYEAST_HOME"] == str(first)
    # A make that only says which home it has.
    played = anothers / "Makefile"
    played.write_text('all:\n\t@echo "$$WYEAST_HOME"\n')
    (anothers / "bin").mkdir()
    shutil.copy(PROJECT / "bin" / "wyeast", anothers / "bin")
    called = script.replace("env -0", f"cd {second} && '{anothers}/bin/wyeast' all")
    for before, home in ((first, second), (None, None)):
        words = ["env", f"WYEAST_HOME={first}"] if before is None else []
        done = started([*AS_ANOTHER, *words, *options, called, str(anothers)], first)
        assert done.stdout == f"{home or first}\n", done.stderr


@needs_root
def test_a_home_in_which_nothing_can_be_written_is_named(anothers: Path, open_folder: Path) -> None:
    """As on a read-only file system."""
    own = open_folder / "own"
    own.chmod(0o555)
    done = started([*AS_ANOTHER, *ELSEWHERE["bash"]], own, str(anothers))
    assert done.returncode != 0 and f"nothing can be written in {own}, where" in done.stderr
    assert "WYEAST_HOME=<folder>" in done.stderr and done.stdout == ""


@needs_root
@pytest.mark.parametrize("shell", ["fish", "tcsh"])
def test_a_home_is_not_left_for_ones_own_checkout(
    shell: str, checkout: Path, tmp_path: Path
) -> None:
    before = [f"WYEAST_HOME={tmp_path}", f"WYEAST_ACTIVATED={tmp_path}", "WYEAST_ROOT=/nowhere"]
    done = started(["env", *before, *SHELLS[shell]], checkout)
    assert variables(done) == expected(checkout)


def test_the_home_of_another_checkout_is_not_taken(checkout: Path, tmp_path: Path) -> None:
    """Whoever has activated one, and then another, does not write where the first one does."""
    command = [f"WYEAST_HOME={tmp_path}", f"WYEAST_ROOT={tmp_path}", *SHELLS["dash"]]
    assert variables(started(["env", *command], checkout)) == expected(checkout)
    command[1] = f"WYEAST_ROOT={checkout}"
    found = variables(started(["env", *command], checkout))
    assert found == expected(checkout) | {"WYEAST_HOME": str(tmp_path)}


def test_a_home_that_is_not_there_is_named(checkout: Path) -> None:
    command = ["env", "WYEAST_HOME=nowhere", *SHELLS["dash"]]
    done = started(command, checkout)
    assert done.returncode != 0
    assert f"there is no folder {checkout}/nowhere, which WYEAST_HOME names" in done.stderr


#: A real Lmod, which reads what Environment Modules read.
LMOD = Path("/usr/share/lmod/lmod/init/profile")


def test_a_module_has_the_command_on_path(tmp_path: Path) -> None:
    """By its own folder, and by a link among a centre's modules."""
    (tmp_path / "wyeast").mkdir()
    (tmp_path / "wyeast" / "1.0").symlink_to(PROJECT / "modulefiles" / "wyeast")
    for folder, name in ((PROJECT / "modulefiles", "wyeast"), (tmp_path, "wyeast/1.0")):
        done = subprocess.run(
            ["bash", "-c", f". {LMOD} && module use {folder} && module load {name} && "
             f"command -v wyeast && module unload {name} && ! command -v wyeast"],
            cwd=tmp_path, capture_output=True, text=True, check=False,
            env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)},
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert done.stdout.splitlines() == [str(PROJECT / "bin" / "wyeast")]
