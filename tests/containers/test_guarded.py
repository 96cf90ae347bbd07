"""For what root starts the machine is read-only: in namespaces, with devices made for it."""

import os
import shlex
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from containers import apptainer, guarded
from containers.apptainer import Admitted, command, exec_options, guard, mount_option, state_of
from records.causes import known_in, sentence_in

#: Root of a user namespace, where the tests' user is nobody special.
AS_ROOT = [] if os.geteuid() == 0 else ["unshare", "--user", "--map-root-user"]
GUARD = [sys.executable, "-IS", guarded.__file__]
#: Gives whoever runs it another /dev, with devices of fabrics and something mounted; then guards.
FABRICS = f"""
import os, sys
sys.path.insert(0, {str(Path(guarded.__file__).parents[1])!r})
from containers import guarded
guarded.own_namespace()
guarded.replace_devices()
guarded.mount("", guarded.DEV, flags=guarded.MS_REMOUNT | guarded.MS_BIND)
null = os.open("/dev/null", os.O_PATH)
for name in ("infiniband/uverbs0", "cxi0", "xpmem"):
    guarded.bind("/dev/" + name, null)
os.mkdir("/dev/mqueue")
guarded.mount("mqueue", "/dev/mqueue", "tmpfs")
open("/dev/mqueue/another's", "w").close()
open(guarded.MEMORY + "/another's", "w").close()
os.execv(sys.executable, {GUARD!r} + sys.argv[1:])
"""


def test_what_root_starts_writes_what_it_is_shown_and_nothing_else(tmp_path: Path) -> None:
    """Folders of tests are in /tmp, which stays writable: so another one stands for the machine."""
    work, stage = tmp_path / "a, b", tmp_path / "stage"
    for folder in (work, stage):
        folder.mkdir()
    words = [mount_option(str(work), "/mnt"), mount_option("/etc", "/mnt", writable=False),
             "--bind=/usr:/usr:ro"]  # fmt: skip
    script = (
        'mount -t tmpfs none "$1" && mkdir "$1/a, b" "$1/stage" && shift && cd "$1" && '
        'shift && exec "$@"'
    )
    tries = (
        'for path in "$PWD" "$0" "$0/.." /etc /usr /var /dev /sys; do '
        '[ ! -w "$path" ] || echo "$path"; done; touch here'
    )
    done = subprocess.run(
        [*AS_ROOT, "unshare", "--mount", "sh", "-c", script, "_", tmp_path, stage,
         *GUARD, ".", "sh", "-c", tries, work, *words],
        capture_output=True, text=True, check=False, env={"PATH": os.environ["PATH"]},
    )  # fmt: skip
    # Where the tests are, in another file system, only these two.
    assert done.stdout.splitlines() == [str(stage), str(work)], done.stderr
    assert done.returncode == 0


@pytest.mark.parametrize("name", ["a b", "a\vb", "a\rb", "a\fb", "a\u2028b", "a\\040b", "a\tb\n"])
def test_what_is_mounted_is_read_only_whatever_it_is_called(tmp_path: Path, name: str) -> None:
    """Python takes more letters for blanks and ends of lines than the kernel does."""
    work = tmp_path / "work"
    work.mkdir()
    script = (
        'mount -t tmpfs none "$1" && mkdir "$1/work" "$1/$2" && mount -t tmpfs none "$1/$2" && '
        'cd "$1/work" && shift 2 && exec "$@"'
    )
    tries = 'for path in "$PWD" "../$1"; do [ ! -w "$path" ] || echo "$path"; done'
    done = subprocess.run(
        [*AS_ROOT, "unshare", "--mount", "sh", "-c", script, "_", tmp_path, name,
         *GUARD, ".", "sh", "-c", tries, "_", name],
        capture_output=True, text=True, check=False, env={"PATH": os.environ["PATH"]},
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, f"{work}\n"), done.stderr


def test_what_is_mounted_below_proc_is_read_only() -> None:
    """Whoever writes there has the machine start programs (binfmt_misc)."""
    place = "/proc/sys/fs/binfmt_misc" if os.path.isdir("/proc/sys/fs/binfmt_misc") else "/proc/fs"
    script = f'mount -t tmpfs none {place} && touch {place}/before && exec "$@"'
    tries = f"ls {place}; touch {place}/mine"
    done = subprocess.run(
        [*AS_ROOT, "unshare", "--mount", "sh", "-c", script, "_", *GUARD, "", "sh", "-c", tries],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stdout == "before\n" and "Read-only file system" in done.stderr


def test_what_is_mounted_later_is_not_seen(tmp_path: Path) -> None:
    """It would be writable."""
    waits = 'echo began; while [ ! -e go ]; do sleep 0.05; done; ls "$0"'
    # Whatever fails, neither waits for the other for ever.
    script = (
        'cd "$1" && mkdir late || exit; trap "touch go" EXIT; '
        "{ GUARD sh -c '" + waits + '\' "$PWD/late" >said; touch ended; } & '
        "until [ -s said ] || [ -e ended ]; do sleep 0.05; done; "
        "mount -t tmpfs none late && touch late/mounted && touch go && wait && cat said"
    )
    script = script.replace("GUARD", " ".join(GUARD) + " .")
    done = subprocess.run(
        [*AS_ROOT, "unshare", "--mount", "--propagation", "shared", "sh", "-c", script, "_",
         tmp_path], capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stdout == "began\n", done.stderr


@pytest.mark.parametrize(
    ("options", "has_one"),
    [([], False), (["--sharens"], True), (["/opt/wyeast/bin/lam_ranks"], True)],
)
def test_a_program_has_no_further_user_namespace(options: list[str], has_one: bool) -> None:
    """Where ranks in several containers share one, the containers have to find it.

    LAM's and PVM's daemons refuse to run as root.
    """
    words = ["apptainer", "exec", *options]
    started = 'exec unshare --user --map-root-user unshare --user "$0" tried'
    done = subprocess.run(
        [*AS_ROOT, *GUARD, "", "sh", "-c", started, "echo", *words],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.stdout == "tried\n") == has_one, done.stderr


def test_where_namespaces_cannot_be_limited_that_is_said() -> None:
    """As in a container of somebody's, in which the kernel's settings are read-only."""
    script = (
        "mount --bind /proc/sys /proc/sys && mount -o remount,bind,ro,nosuid,nodev,noexec "
        '/proc/sys && exec "$@"'
    )
    done = subprocess.run(
        [*AS_ROOT, "unshare", "--mount", "sh", "-c", script, "_", *GUARD, "", "echo", "ran"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stdout == "ran\n", done.stderr
    [said] = done.stderr.splitlines()
    assert "can make user namespaces" in said and "Read-only file system" in said
    # Whoever looks for why a launch failed passes it over.
    assert sentence_in(f"{said}\nno licence") == "no licence"
    assert known_in(said) is None


def test_what_follows_the_image_opens_no_folder() -> None:
    """An image names its launcher's options itself."""
    launch = ["into_container", "named:- x", "", "", "--userns", "--bind=/data", "--pwd", "/work"]
    launch += ["--bind=/scratch:/s:ro", "image", "mpiexec", "--bind=/sys", "--bind=/etc"]
    assert list(guarded.shown(launch)) == [("/data", True), ("/scratch", False)]
    reading = ["apptainer", "exec", "--userns", "image.sif", "cat", "--bind=/etc"]
    assert list(guarded.shown(reading)) == []


def test_what_a_command_names_is_looked_at_before_it_has_a_namespace(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The machine may mount it for that alone (autofs), and not in the namespace."""
    seen: list[str] = []
    looked: list[str] = []
    real = os.stat

    def stat(path: str, **more: bool) -> os.stat_result:
        seen.append(path)
        return real("/", **more)

    def own_namespace(_: int) -> None:
        looked.extend(seen)
        raise OSError(1, "there is none")

    monkeypatch.setattr(os, "stat", stat)
    monkeypatch.setattr(guarded, "own_namespace", own_namespace)
    monkeypatch.setenv("PATH", "/sw/bin:/bin")
    monkeypatch.setenv("TMPDIR", "/fast")
    words = [
        "/sw/wyeast/into_container",
        "named:-",
        "",
        "",
        "--userns",
        "--bind=/data:/data:ro",
        mount_option("/a, b", "/mnt"),
        "--pwd=/mnt",
        "/images/x.sif",
        "mpiexec",
        "/own/word",
    ]
    assert guarded.main(["", *words]) == 1
    named = {"/sw/wyeast/into_container", "/data", "/a, b", "/images/x.sif", "/sw/bin", "/bin"}
    assert named | {f"{one}/." for one in named} | {"/fast/."} <= set(looked)
    assert not any(one.startswith("/own") for one in looked)


def test_what_is_mounted_in_the_folder_that_is_written_is_written_too(tmp_path: Path) -> None:
    """And in no other that stays as it is, such as /tmp, where the tests' folders are."""
    shown = tmp_path / "shown"
    for name in ("stage/own", "shown/own", "else"):
        (tmp_path / name).mkdir(parents=True)
    places = [tmp_path / "stage" / "own", shown / "own", tmp_path / "else"]
    script = 'for place in "$1" "$2" "$3"; do mount -t tmpfs none "$place" || exit; done; ' \
        'cd "$1/.." && exec sh -c "$4"'  # fmt: skip
    tries = f"for place in {' '.join(map(str, places))}; do [ ! -w $place ] || echo $place; done"
    command = shlex.join([*GUARD, ".", "sh", "-c", tries, "_", mount_option(str(shown), "/mnt")])
    done = subprocess.run(
        [*AS_ROOT, "unshare", "--mount", "sh", "-c", script, "_", *places, command],
        capture_output=True, text=True, check=False, env={"PATH": os.environ["PATH"]},
    )  # fmt: skip
    assert done.stdout.splitlines() == list(map(str, places[:2])), done.stderr


def test_of_dev_it_has_what_any_user_may_use_and_fabrics() -> None:
    script = (
        "for f in zero null urandom tty ptmx infiniband/uverbs0 cxi0 xpmem; do "
        '[ -c "/dev/$f" ] || echo "lacks $f"; done; find /dev -type b; '
        "rm -rf /dev/infiniband /dev/null /dev/mqueue/* 2>/dev/zero; "
        "[ -c /dev/null ] && [ -c /dev/infiniband/uverbs0 ] || echo gone; "
        "ls /dev/shm.own; ls /dev/mqueue; echo x >/dev/null && echo x >/dev/cxi0 && echo used; "
        "touch /dev/shm.own/own && echo shared; [ /dev/fd -ef /proc/self/fd ] && echo linked"
    )
    done = subprocess.run(
        [*AS_ROOT, sys.executable, "-c", FABRICS, "", "sh", "-c", script],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stdout.splitlines() == ["another's", "used", "shared", "linked"], done.stderr


@pytest.mark.parametrize(
    ("name", "mode", "allowed"),
    [
        ("null", stat.S_IFCHR | 0o666, True),
        ("infiniband/uverbs0", stat.S_IFCHR | 0o660, True),
        ("dri/renderD128", stat.S_IFCHR | 0o660, True),
        ("fuse", stat.S_IFCHR | 0o600, True),
        ("infiniband/rdma_cm", stat.S_IFCHR | 0o660, True),
        ("infiniband/umad0", stat.S_IFCHR | 0o600, False),
        ("infiniband/issm0", stat.S_IFCHR | 0o600, False),
        ("hfi1_0", stat.S_IFCHR | 0o660, True),
        ("hfi1_diagpkt", stat.S_IFCHR | 0o600, False),
        ("ipmi0", stat.S_IFCHR | 0o600, False),
        ("kmsg", stat.S_IFCHR | 0o644, False),
        ("sda", stat.S_IFBLK | 0o660, False),
        ("nvidia-disk", stat.S_IFBLK | 0o666, False),
    ],
)
def test_devices_that_only_root_may_use_are_left_out(name: str, mode: int, allowed: bool) -> None:
    assert guarded.is_allowed(name, mode) == allowed


def test_what_cannot_be_guarded_does_not_start() -> None:
    """Nobody without capabilities has namespaces of his own where user namespaces are used up."""
    none = 'echo 0 >/proc/sys/user/max_mnt_namespaces && exec "$@"'
    done = subprocess.run(
        ["unshare", "--user", "--map-root-user", "sh", "-c", none, "_", *GUARD, "", "echo", "ran"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1 and not done.stdout
    assert "measure as an ordinary user" in done.stderr and len(done.stderr.splitlines()) == 1


def test_only_root_s_containers_need_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.sif"
    path.touch()
    monkeypatch.setattr(apptainer, "apptainer_command", lambda: Path("/bin/apptainer"))
    for uid in (0, 1000):
        monkeypatch.setattr(os, "geteuid", lambda uid=uid: uid)
        words = command("exec", *exec_options(), Admitted(path, state_of(path)), "true")
        assert words[: words.index("/bin/apptainer")] == guard()
        assert (guard() == []) == (uid != 0)
        assert any("destination=/proc/sys,ro" in word for word in words) == (uid == 0)
