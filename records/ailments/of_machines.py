"""What a machine lacks for containers, by what Apptainer and the kernel say of it."""

from __future__ import annotations

import re

from records.ailments.known import Known

FULL_DISK = Known(
    re.compile(r"(?i)no space left on device|disk quota exceeded"),
    "the disk is full; free some space and run it again",
    ("No space left on device", "Disk quota exceeded"),
    "https://man7.org/linux/man-pages/man3/errno.3.html",
)

#: What programs, Go's runtime and shells say of a limit for files.
FILE_LIMIT = Known(
    re.compile(r"(?i)file too large|file size limit exceeded"),
    "a file became larger than it may (ulimit -f)",
    ("File too large", "File size limit exceeded"),
    "https://man7.org/linux/man-pages/man2/getrlimit.2.html",
)

#: What Go's runtime, in which Apptainer is written, and the loader say of a limit for memory.
ADDRESS_SPACE = Known(
    re.compile(
        r"failed to reserve page summary memory|cannot reserve arena virtual address space"
        r"|runtime: (?:out of memory: )?cannot (?:allocate|map pages)"
        r"|failed to map segment from shared object: Cannot allocate memory"
        r"|run session stopped: memory error"
    ),
    "the memory limit of a process is too low (`ulimit -v`, in kB; Apptainer alone reserves more "
    "than 1 GB): raise the limit, or have it raised",
    (
        "fatal error: failed to reserve page summary memory",
        "libm.so.6: failed to map segment from shared object: Cannot allocate memory",
    ),
    "https://man7.org/linux/man-pages/man2/getrlimit.2.html",
)

#: A program that is in the image, and is not seen there.
HIDDEN_PROGRAM = Known(
    re.compile(r'"[^"\n]+": executable file not found in \$PATH'),
    "if the image has it, something is mounted over the image's /opt: a line `bind path` of "
    "the machine's apptainer.conf, or a variable such as APPTAINER_BIND that the site names",
    ('"preflight": executable file not found in $PATH',),
    "https://apptainer.org/docs/user/latest/bind_paths_and_mounts.html",
)

#: Where launches have what covers the machine's terminals.
NO_TERMINALS = Known(
    re.compile(r"destination /dev/pts doesn't exist in container"),
    "the machine's apptainer.conf has `mount dev = minimal` without `mount devpts = yes`: have the "
    "latter set",
    (
        "mount /proc/tty/ldisc->/dev/pts error: while mounting /proc/tty/ldisc: destination "
        "/dev/pts doesn't exist in container",
    ),
    "https://apptainer.org/docs/admin/latest/configfiles.html",
)

OTHER_PROCESSORS = Known(
    re.compile(r"image's architecture \(\w+\) could not run on the host's"),
    "the image was built for another kind of processor than this node's: build or pull one on such "
    "a node, in a checkout or a home of its own",
    ("the image's architecture (arm64) could not run on the host's (amd64)",),
    "https://apptainer.org/docs/user/latest/build_a_container.html",
)

NO_PROC = Known(
    re.compile(r"(?i)can't mount proc filesystem|mount proc->/proc error"),
    "a launch has process ids of its own, for which the kernel mounts no /proc where parts of "
    "that are covered, as in a container of Docker, Podman or Kubernetes: run this outside, or "
    "uncover it (--security-opt systempaths=unconfined; Podman: unmask=ALL; Kubernetes: "
    "procMount: Unmasked)",
    ("can't mount proc filesystem to /proc", "mount proc->/proc error: operation not permitted"),
    "https://man7.org/linux/man-pages/man7/user_namespaces.7.html",
)

#: Without them an ordinary user's Apptainer starts nothing.
NO_NAMESPACES = Known(
    re.compile(
        r"(?i)(?:failed to create|not allowed to create|requires|cannot create) user namespaces?"
        r"|create user namespace|user namespaces may not be enabled"
        r"|user namespaces? (?:is|are) (?:not|disabled)|max_user_namespaces"
        # mmdebstrap's words.
        r"|unshare syscall failed|failed to unshare the user namespace"
    ),
    "containers need user namespaces: ask those who run the machine to allow them "
    "(user.max_user_namespaces above 0; where there are such settings, "
    "kernel.unprivileged_userns_clone=1 and kernel.apparmor_restrict_unprivileged_userns=0), or "
    "for an Apptainer with its setuid part; inside a container of Docker or Podman it is its "
    "seccomp profile that refuses them: --security-opt seccomp=unconfined",
    ("Failed to create user namespace", "user namespaces are disabled"),
    "https://apptainer.org/docs/admin/latest/user_namespace.html",
)

#: What unshare(1) says, which makes the namespaces of the cluster in a box, as root.
NO_NAMESPACES_FOR_ROOT = Known(
    re.compile(r"unshare: unshare failed"),
    "not even root is given namespaces here: a container of Docker or Podman gives them with "
    "--privileged; elsewhere see the limits in /proc/sys/user",
    ("unshare: unshare failed",),
    "https://man7.org/linux/man-pages/man7/namespaces.7.html",
)

NO_FUSE = Known(
    re.compile(
        r"(?i)(?:open|find|access)(?:ing)? /dev/fuse|/dev/fuse: |fuse: device not found"
        r"|(?:squashfuse|fusermount3?)\b.{0,200}not found"
    ),
    "images are mounted through /dev/fuse: ask those who run the machine to provide it, open to "
    "all (mode 0666), or an Apptainer with its setuid part",
    ("fuse: device not found, try 'modprobe fuse' first", "squashfuse not found"),
    "https://apptainer.org/docs/admin/latest/installation.html",
)

#: What Apptainer says, in any mode.
NO_NAME = Known(
    re.compile(r"(?i)unknown userid \d+"),
    "Apptainer starts nothing for a user whose name this machine does not know (getent passwd "
    "$(id -u)): ask those who run it to add the user",
    ("user: unknown userid 54321",),
    "https://man7.org/linux/man-pages/man3/getpwnam.3.html",
)

NO_SUBORDINATE_IDS = Known(
    re.compile(r"(?i)/etc/sub[ug]id|newuidmap.{0,200}(?:not found|not allowed|failed)"),
    "building needs a range of subordinate ids, which an administrator gives; images that others "
    "have built need none: make pull",
    ("no range of ids for this user in /etc/subuid", "newuidmap was not found in PATH"),
    "https://apptainer.org/docs/user/latest/fakeroot.html",
)
