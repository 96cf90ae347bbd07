"""What the cluster's processes see of the machine's files: everything, except their own files.

These are mounts in namespaces of the cluster, which vanish with its last process; the machine
itself is left as it is.
"""

import os
import stat
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

from cluster import accounts, programs
from cluster.description import (
    CONTROLLER,
    CONTROLLER_ADDRESS,
    Cluster,
    ClusterError,
    address_of,
)
from records.acting_user import give
from records.mounts import bind, cover, handle_of, mount, mount_points

FUSE_DEVICE = os.makedev(10, 229)


def write_accounts(project: Path, homes: Path, folder: Path) -> None:
    """Add the cluster's users, groups and subordinate ids to the machine's in a copy of /etc."""
    users, daemons = accounts.users(project), accounts.daemons(project)
    for user, number in users.items():
        give(homes / user, number, number, 0o700)
    # First, so that an id or name which the machine has too is the cluster's.
    lines = {
        "passwd": [
            *(f"{user}:x:{n}:{n}::{homes / user}:/bin/sh" for user, n in users.items()),
            *(f"{user}:x:{n}:{n}::/nonexistent:/usr/sbin/nologin" for user, n in daemons.items()),
        ],
        "group": [f"{user}:x:{n}:" for user, n in {**users, **daemons}.items()],
        # Without a line here `su` to the user fails, which Slurm does for scrontab's jobs.
        "shadow": [f"{user}:*:::::::" for user in users],
        "subuid": [],
        "subgid": [],
    }
    for place, own in lines.items():
        path = folder / place
        text = path.read_text() if path.exists() else ""
        ours = users.keys() | daemons.keys()
        rest = [line for line in text.splitlines() if line.partition(":")[0] not in ours]
        path.write_text("\n".join([*own, *rest]) + "\n")


def write_hosts(cluster: Cluster, folder: Path) -> None:
    """Write the names of the cluster's hosts."""
    lines = ["127.0.0.1 localhost", f"{CONTROLLER_ADDRESS} {CONTROLLER}"]
    lines += [f"{address_of(k)} {name}" for k, name in enumerate(cluster.node_names(), start=1)]
    (folder / "hosts").write_text("\n".join(lines) + "\n")


def own_sysfs() -> None:
    """Show the namespace's own network interfaces in /sys, and its control groups as before."""
    groups = Path("/sys/fs/cgroup")
    handle = handle_of(groups)
    mount("-t", "sysfs", "none", "/sys")
    bind(handle, groups)
    os.close(handle)


def open_fuse(folder: Path) -> None:
    """Let ordinary users open images by FUSE: as usual elsewhere, and here for the cluster only."""
    if not Path("/dev/fuse").exists():
        return
    folder.mkdir()
    mount("-t", "tmpfs", "-o", "mode=0755,size=4k", "none", folder)
    os.mknod(folder / "fuse", stat.S_IFCHR | 0o666, FUSE_DEVICE)
    (folder / "fuse").chmod(0o666)
    mount("--bind", folder / "fuse", "/dev/fuse")


def own_usr(programs: Path, kept: list[Path]) -> None:
    """Lay the cluster's programs over /usr; what is kept stays as it was, also where it is there.

    So do file systems that are mounted below /usr.
    """
    usr = Path("/usr")
    inner = sorted({*mount_points(usr), *(path for path in kept if usr in path.parents)})
    outer = [path for path in inner if not any(other in path.parents for other in inner)]
    with ExitStack() as stack:
        handles = {}
        for path in outer:
            handles[path] = handle_of(path)
            stack.callback(os.close, handles[path])
        # By a path that needs no quoting among the mount's options.
        place = Path("/run/unpacked")
        place.mkdir()
        mount("--bind", programs / "usr", place)
        try:
            mount("-t", "overlay", "-o", f"ro,lowerdir={place}:/usr", "none", usr)
        except subprocess.CalledProcessError:
            raise ClusterError(
                "the cluster's programs cannot be laid over /usr: this kernel, or the file system "
                "of /usr, does not allow an overlay"
            ) from None
        for path, handle in handles.items():
            bind(handle, path)


def own_etc(cluster: Cluster, project: Path, homes: Path) -> None:
    """Show a copy of /etc with the cluster's users and hosts.

    Not single files over the machine's: such a mount is gone as soon as the machine replaces its
    own file, as every installation of a package with a user does.
    """
    copy = Path("/run/etc")
    copy.mkdir()
    mount("-t", "tmpfs", "-o", "mode=0755", "none", copy)
    subprocess.run(["cp", "--archive", "/etc/.", str(copy)], check=True)
    write_accounts(project, homes, copy)
    write_hosts(cluster, copy)
    mount("--bind", copy, "/etc")


def lay_out_box(cluster: Cluster, project: Path, state: Path) -> None:
    """Arrange the files for the controller and for users who submit jobs."""
    interpreter = [Path(sys.prefix).resolve(), Path(sys.base_prefix).resolve()]
    kept = [project, *(path for path in interpreter if project not in path.parents)]
    cover(kept, {Path("/tmp"): "mode=1777"})
    mount("--bind", state / "run", "/run")
    own_usr(programs.folder_of(state), [project, *interpreter])
    open_fuse(Path("/run/device"))
    own_sysfs()
    own_etc(cluster, project, state / "home")


def lay_out_node(cluster: Cluster) -> None:
    """Arrange the files for one node; shared files come from the box."""
    size = f"size={cluster.scratch_bytes_per_node}"
    cover(mount_points(Path("/tmp")), {Path("/tmp"): f"mode=1777,{size}"})
    own_sysfs()
    mount("-t", "tmpfs", "-o", f"mode=1777,{size}", "none", "/dev/shm")
