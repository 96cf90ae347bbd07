"""What is mounted where, as processes in a namespace of mounts see it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[2]
AS_ROOT = [] if os.geteuid() == 0 else ["unshare", "--user", "--map-root-user"]
SCRIPT = """
set -e
mkdir "$1/open" "$1/covered" "$1/open/a b" "$1/covered/gone"
mount -t tmpfs none "$1/open/a b"
mount -t tmpfs none "$1/covered/gone"
mount -t tmpfs none "$1/covered"
shift
exec "$@"
"""
#: Their places' names have what Python takes for blanks and ends of lines, and the kernel does not.
ODD = (
    "no\u00a0break", "line\u2028end", "re\rturn", "ver\x0btical", "tab\tline\n", "back\\040",
    "raw\udcff",
)  # fmt: skip
ASKING = """
import sys
from pathlib import Path
from records.mounts import mount_points
print(*(path.name for path in mount_points(Path(sys.argv[1]))), sep="|")
"""


def test_a_mount_below_a_covered_folder_is_passed_over(tmp_path: Path) -> None:
    done = subprocess.run(
        [*AS_ROOT, "unshare", "--mount", "--propagation=private", "sh", "-c", SCRIPT, "sh",
         tmp_path, sys.executable, "-c", ASKING, tmp_path],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        timeout=60,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, "a b|covered\n", "")


def in_namespace(script: str, *words: Path | str) -> subprocess.CompletedProcess[str]:
    """Run a script of Python as the root of a namespace of mounts."""
    return subprocess.run(
        [*AS_ROOT, "unshare", "--mount", "--propagation=private", sys.executable, "-c", script,
         *words],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        timeout=60,
    )  # fmt: skip


MOUNTING = """
import os, subprocess, sys
from pathlib import Path
from records.mounts import mount_points
for name in sys.argv[2:]:
    place = Path(sys.argv[1], name)
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "none", place], check=True)
print([path.name for path in mount_points(Path(sys.argv[1]))] == sys.argv[2:])
"""


def test_a_mount_may_have_any_name(tmp_path: Path) -> None:
    done = in_namespace(MOUNTING, tmp_path, *ODD)
    assert (done.returncode, done.stdout, done.stderr) == (0, "True\n", "")


LOSING = """
import ctypes, os, sys
from pathlib import Path
from records.mounts import mount_points
server = os.open("/dev/fuse", os.O_RDWR)
options = f"fd={server},rootmode=40000,user_id=0,group_id=0"
place = os.fsencode(sys.argv[1]) + b"/lost"
os.mkdir(place)
assert not ctypes.CDLL(None).mount(b"none", place, b"fuse", 0, options.encode())
os.close(server)
try:
    os.stat(place)
except OSError as error:
    print(error.strerror)
print(mount_points(Path(sys.argv[1])))
"""


@pytest.mark.skipif(not os.access("/dev/fuse", os.R_OK | os.W_OK), reason="there is no FUSE")
def test_a_mount_whose_server_has_died_is_passed_over(tmp_path: Path) -> None:
    """As an image that a killed process had opened."""
    done = in_namespace(LOSING, tmp_path)
    said = "Transport endpoint is not connected\n[]\n"
    assert (done.returncode, done.stdout, done.stderr) == (0, said, "")


COVERING = """
import os, socket, subprocess, sys
from pathlib import Path
from records.mounts import cover, mount_points
source, place = Path(sys.argv[1], "source"), Path(sys.argv[1], "place")
for folder in (source, place):
    folder.mkdir()
(source / "file").write_text("content")
(source / "file").chmod(0o644)
os.mkfifo(source / "pipe", 0o755)
with socket.socket(socket.AF_UNIX) as server:
    os.chdir(source)
    server.bind("socket")
os.chmod("socket", 0o755)
for name in ("file", "pipe", "socket"):
    (place / name).touch()
    subprocess.run(["mount", "--bind", source / name, place / name], check=True)
(place / "hidden").touch()
cover(mount_points(place), {place: "mode=1777"})
print(sorted(os.listdir(place)), (place / "file").read_text(), (place / "pipe").is_fifo(),
      (place / "socket").is_socket())
"""


def test_what_is_no_folder_is_kept_where_a_folder_is_covered(tmp_path: Path) -> None:
    """Whoever opens a pipe waits for its other end, and a socket cannot be opened."""
    done = in_namespace(COVERING, tmp_path)
    said = "['file', 'pipe', 'socket'] content True True\n"
    assert (done.returncode, done.stdout, done.stderr) == (0, said, "")
