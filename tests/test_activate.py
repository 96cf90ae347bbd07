"""Every shell gets the same by its file, from a path with spaces, whatever it had before."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[1]
FOREIGN = {
    "PYTHONHOME": "/nowhere", "PYTHONOPTIMIZE": "2", "PYTHONWARNINGS": "error",
    "PYTHONIOENCODING": "ascii", "CDPATH": "/", "SITE": "virtual", "TIER": "paper",
}  # fmt: skip
SET = ("WYEAST_ROOT", "RFM_CONFIG_PATH", "RFM_SYSTEM", "WYEAST_TIER", "PYTHONPATH", "PYTHONUTF8",
       "PATH")  # fmt: skip
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
                 "campaign/bin/copied"):  # fmt: skip
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
    return {name: value for name, _, value in pairs if name in {*SET, *FOREIGN}}


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
