"""Why ranks do not start or do not talk, by what launchers, libraries and schedulers say."""

from __future__ import annotations

import re

from records.ailments.known import Known

# --- How ranks are started.

NO_PMIX_LIBRARY = Known(
    re.compile(r"pmi/pmix: can not load PMIx library"),
    "Slurm's plugin is there, but the PMIx library that it was built with is missing or has no "
    "development link libpmix.so: have it installed on every node (Debian: libpmix-dev), or use "
    "`launch: mpirun`",
    (
        "srun: error:  mpi/pmix_v5: init: (null) [0]: mpi_pmix.c:193: pmi/pmix: can not load PMIx "
        "library",
    ),
    "https://github.com/openpmix/openpmix/issues/3038",
)

NO_PMI_PLUGIN = Known(
    re.compile(
        r"(?:find|load) (?:the )?specified plugin name for mpi/|cannot find mpi plugin for"
        r"|cannot create mpi context for|MPI: Unable to load any plugin|invalid MPI type"
    ),
    "this Slurm was built without the plugin for the image's PMI (`srun --mpi=list` shows the "
    "ones it has): have it installed, or use `launch: mpirun` with that MPI's own launcher",
    (
        "srun: error: Couldn't find the specified plugin name for mpi/pmix looking at all files",
        "srun: error: cannot find mpi plugin for mpi/pmix",
    ),
    "https://slurm.schedmd.com/mpi_guide.html",
)

NO_PMI = Known(
    re.compile(r"appears to have been direct launched using"),
    "the image's Open MPI and srun share no PMI: start it by srun --mpi=pmix, with Slurm's "
    "plugin for a PMIx that it understands, or use `launch: mpirun`",
    ('The application appears to have been direct launched using "srun"',),
    "https://github.com/open-mpi/ompi/pull/3778",
)

NO_PSEC = Known(
    re.compile(r"Framework:\s+psec\s+Component:\s+munge|pmix_psec_base_open failed"),
    "the scheduler's PMIx authenticates ranks by munge, which is not in the image: set "
    "PMIX_MCA_psec=native where campaigns are started and name it in the site's `variables`",
    ("Framework: psec Component: munge", "pmix_psec_base_open failed"),
    "https://github.com/open-mpi/ompi/issues/12571",
    may_be_harmless=True,
)

PMIX_VERSIONS = Known(
    re.compile(
        r"UNPACK-PMIX-VALUE: UNSUPPORTED TYPE|PMIX ERROR: (?:PMIX_ERR_)?(?:UNPACK|PACK|OUT-?_?OF)"
        r"|PMIX_ERR_PACK_MISMATCH|OPAL ERROR: Unreachable in file pmix"
    ),
    "the PMIx outside (of Slurm or of the launcher) and the image's do not understand each other: "
    "set PMIX_MCA_gds=hash and name it in the site's `variables`, or use an image whose PMIx is of "
    "the same major version",
    (
        "UNPACK-PMIX-VALUE: UNSUPPORTED TYPE 104",
        "PMIX ERROR: OUT-OF-RESOURCE in file base/bfrop_base_unpack.c at line 750",
    ),
    "https://github.com/open-mpi/ompi/issues/12146",
    may_be_harmless=True,
)

NO_MUNGE = Known(
    re.compile(
        r"Munge (?:en|de)code failed|munge failed to create credential"
        r"|(?:access|connect to) \"[^\"\n]*munge\.socket"
    ),
    "munge, which authenticates Slurm's and PMIx's messages, does not answer here, or its clock or "
    "key differs from the other nodes' (`munge -n | unmunge`): ask the administrators to start "
    "munged; inside a container bind /run/munge",
    (
        'Munge encode failed: Failed to access "/run/munge/munge.socket.2"',
        "psec: munge failed to create credential: Socket communication error",
    ),
    "https://github.com/openpmix/openpmix/issues/2357",
)

RANKS_AS_ROOT = Known(
    re.compile(r"has detected an attempt to run as root"),
    "Open MPI's launcher refuses root: measure as an ordinary user, or add --allow-run-as-root to "
    "the site's `launch_options`",
    ("mpirun has detected an attempt to run as root.",),
    "https://github.com/open-mpi/ompi/issues/4451",
)

MORE_THAN_CORES = Known(
    re.compile(r"bind(?:ing)? (?:more processes than|to that would require binding)"),
    "there are fewer cores than ranks to bind: `cores_per_node` of the site is more than a job is "
    "given (`nproc` in a job says how many that are)",
    ("This would result in binding more processes than cpus on a resource:",),
    "https://docs.open-mpi.org/en/v5.0.x/man-openmpi/man1/mpirun.1.html",
)

NO_SSH = Known(
    re.compile(r"Host key verification failed|Permission denied \((?:[\w-]+,)*publickey"),
    "the launcher reaches other nodes by ssh, which asks for something: set up keys between nodes "
    "that need no password, or have the launcher use the scheduler (`launch_options`)",
    ("Host key verification failed.", "Permission denied (publickey,password)."),
    "https://docs.open-mpi.org/en/v5.0.x/launching-apps/ssh.html",
)

# --- What ranks talk by.

UCX_PROC_LINK = Known(
    re.compile(r"mm_posix\.c.{0,200}/proc/\d+/fd/\d+"),
    "UCX opens the other rank's memory through /proc, which the kernel forbids between containers "
    "with user namespaces of their own: set UCX_POSIX_USE_PROC_LINK=n and name it in the site's "
    "`variables`",
    (
        "mm_posix.c:195  UCX  ERROR open(file_name=/proc/2019618/fd/20 flags=0x0) failed: "
        "Permission "
        "denied",
    ),
    "https://github.com/openucx/ucx/issues/4224",
)

NO_CMA = Known(
    re.compile(
        r"Read -1, expected \d+, errno ?= ?1\b"
        r"|process_vm_(?:read|write)v.{0,200}(?:[Oo]peration not permitted|errno ?= ?1\b)"
    ),
    "the kernel does not let a rank copy from another's memory (CMA), as between containers' user "
    "namespaces or with kernel.yama.ptrace_scope above 1: disable CMA by UCX_TLS=^cma, "
    "OMPI_MCA_btl_vader_single_copy_mechanism=none (Open MPI 4) or OMPI_MCA_smsc=^cma (5), named "
    "in the site's `variables`",
    (
        "[de44f6097ee6:39278] Read -1, expected 5285, errno = 1",
        "process_vm_readv(pid=17 length=4000) returned -1: Operation not permitted",
    ),
    "https://github.com/open-mpi/ompi/issues/4948",
)

LOCKED_MEMORY = Known(
    re.compile(
        r"(?i)max locked memory|RLIMIT_MEMLOCK|allocate some locked memory"
        r"|ibv_(?:create_cq|create_qp|reg_mr)\(.{0,200}cannot allocate memory"
    ),
    "a network adapter needs locked memory, and the limit of a process may be too low "
    "(`ulimit -l` in a job): ask the administrators to lift it, also for the scheduler's "
    "daemons (Slurm: LimitMEMLOCK=infinity of slurmd, PropagateResourceLimitsExcept=MEMLOCK)",
    (
        "mlx5_0: ibv_create_cq() failed: Cannot allocate memory. Please set max locked memory "
        "(ulimit "
        "-l) to 'unlimited' (current: 64 kbytes)",
        "libibverbs: Warning: RLIMIT_MEMLOCK is 65536 bytes.",
    ),
    "https://github.com/openucx/ucx/issues/8229",
    may_be_harmless=True,
)

SHARED_MEMORY_SEGMENTS = Known(
    re.compile(r"shmget\(.{0,200}No space left on device"),
    "no more System V shared memory segments can be created: remove those that dead processes "
    "have left (`ipcs -m`, `ipcrm`), or have kernel.shmmni raised",
    (
        "sys.c:915  UCX  ERROR   shmget(size=134221824 flags=0x7b0) for mm_recv_desc failed: No "
        "space "
        "left on device, please check shared memory limits by 'ipcs -l'",
    ),
    "https://github.com/openucx/ucx/issues/9347",
)

FULL_SHARED_MEMORY = Known(
    re.compile(
        r"Please check that /dev/shm|shared[- ]memory backing file|not enough space for /dev/shm"
    ),
    "/dev/shm of the node is too small or full (`df /dev/shm`): remove what dead processes have "
    "left there, have it mounted larger, and start a Docker container with --shm-size",
    (
        "mm_posix.c:88 UCX  ERROR Not enough memory to write total of 4208440835 bytes. Please "
        "check "
        "that /dev/shm or the directory you specified has more available memory.",
    ),
    "https://github.com/openucx/ucx/pull/475",
)

DEVICE_NOT_THERE = Known(
    re.compile(r"network devices? '[^\n]{1,200} (?:is|are) not available, please use"),
    "UCX_NET_DEVICES names a device that UCX does not see: that node has none, or its provider "
    "(libuct_ib, rdma-core) or /dev/infiniband is missing in the container",
    (
        "UCX  WARN  network device 'mlx5_bond_0:1' is not available, please use one or more of: "
        "'bond0'(tcp), 'lo'(tcp)",
    ),
    "https://github.com/ai-dynamo/dynamo/issues/1209",
    may_be_harmless=True,
)

RETRIES = Known(
    re.compile(r"(?i)transport retry count exceeded|IBV_WC_RETRY_EXC_ERR|retry counter exceeded"),
    "an adapter got no answer from that of another node: a cable, a port or the fabric's manager "
    "is at fault, or RoCE is not lossless; look at the links of the two nodes (ibstat, perfquery), "
    "and "
    "measure them: make run CHECKS=NodePairs",
    ("ib_mlx5_log.c:143  Transport retry count exceeded on mlx5_0:1/RoCE (synd 0x15 vend 0x81)",),
    "https://github.com/openucx/ucx/issues/6000",
)

NO_CONNECTION = Known(
    re.compile(
        r"failed to TCP connect to a peer MPI process|unable to complete a TCP connection"
        r"|No route to host"
    ),
    "a rank or a launcher's daemon cannot connect to another node: a firewall between the nodes, "
    "which have to reach each other on all ports, or an interface that leads nowhere, such as "
    "docker0 (leave that out by OMPI_MCA_btl_tcp_if_include or FI_TCP_IFACE)",
    (
        "WARNING: Open MPI failed to TCP connect to a peer MPI process.",
        "A process or daemon was unable to complete a TCP connection",
    ),
    "https://github.com/open-mpi/ompi/issues/46",
)

WRONG_INTERFACES = Known(
    re.compile(
        r"detected an inbound MPI TCP connection request|Unable to find reachable pairing between"
        r"|MPI processes are unable to reach each other"
    ),
    "nodes have several networks, and ranks chose different ones: name one for all by "
    "OMPI_MCA_btl_tcp_if_include=<device or network> in the site's `variables`",
    (
        "Open MPI detected an inbound MPI TCP connection request from a peer",
        "At least one pair of MPI processes are unable to reach each other for MPI communications.",
    ),
    "https://github.com/open-mpi/ompi/issues/12232",
    may_be_harmless=True,
)

NO_PROVIDER = Known(
    re.compile(r"OFI (?:call )?fi_getinfo(?:\(\))? ?fail|fi_getinfo\(\) failed"),
    "libfabric has no suitable provider: FI_PROVIDER names one that the image lacks, or that "
    "finds no device here; unset it, set FI_PROVIDER=tcp, or bind the machine's own MPI (HOST_MPI)",
    ("MPIDI_OFI_mpi_init_hook(1552): OFI fi_getinfo() failed (ofi_init.c:1552:No data available)",),
    "https://github.com/pmodels/mpich/issues/6612",
)

# --- What a process may have, and what it finds.

NEWER_C_LIBRARY = Known(
    re.compile(r"version `GLIBC_[\d.]+' not found"),
    "a library of the machine that was bound into the image needs a newer C library than the image "
    "has: bind one that was built for an older system, or take an image with a newer one",
    ("/lib/x86_64-linux-gnu/libc.so.6: version `GLIBC_2.38' not found",),
    "https://apptainer.org/docs/user/latest/mpi.html",
)

MISSING_LIBRARY = Known(
    re.compile(r"error while loading shared libraries: "),
    "a library is missing where the program runs: if the machine's own MPI is bound, its folder or "
    "one that it needs is not bound too; else rebuild the image",
    ("error while loading shared libraries: libpmix.so.2: cannot open shared object file",),
    "https://apptainer.org/docs/user/latest/mpi.html",
)

OLD_PROCESSOR = Known(
    re.compile(r"CPU ISA level is lower than required"),
    "a library was built for a newer processor than this node's (x86-64-v2, v3 or v4): measure on "
    "other nodes, or use an image that was built for this one",
    ("libm.so.6: CPU ISA level is lower than required",),
    "https://sourceware.org/glibc/manual/latest/html_node/Tunables.html",
)

PROCESS_LIMIT = Known(
    re.compile(
        r"fork: (?:retry: )?Resource temporarily unavailable|can't start new thread"
        r"|pthread_create.{0,80}Resource temporarily unavailable|failed to create new OS thread"
    ),
    "no more processes or threads can be started: the user's limit (`ulimit -u`) or that of the "
    "job's control group (pids.max) is reached, or that of memory (`ulimit -v`)",
    (
        "bash: fork: retry: Resource temporarily unavailable",
        "runtime: failed to create new OS thread (have 5 already; errno=11)",
    ),
    "https://man7.org/linux/man-pages/man2/getrlimit.2.html",
)

OPEN_FILES = Known(
    re.compile(r"(?i)too many open files"),
    "a process may not open any more files (`ulimit -n`): ranks on one node need about one for "
    "each rank they talk to; raise the limit in a job, or have it raised",
    ("socket: Too many open files",),
    "https://man7.org/linux/man-pages/man2/getrlimit.2.html",
)

NO_WORK_FOLDER = Known(
    re.compile(r"couldn't chdir to"),
    "the node does not have the folder that the job was submitted from: measure from one that "
    "every node mounts (WYEAST_HOME=<folder>)",
    ("slurmstepd: error: couldn't chdir to `/home/carol/wyeast': No such file or directory",),
    "https://slurm.schedmd.com/sbatch.html",
)

NO_ACCOUNT = Known(
    re.compile(r"Invalid account or account/partition combination|Invalid qos specification"),
    "Slurm does not let this user submit there: name an account and a partition that belong "
    "together in the site's `access` (`sacctmgr show associations user=$USER`)",
    ("Batch job submission failed: Invalid account or account/partition combination specified",),
    "https://slurm.schedmd.com/sbatch.html",
)

NOT_THAT_MANY = Known(
    re.compile(r"Requested node configuration is not available|More processors requested than"),
    "no node has what was requested: compare `nodes`, `cores_per_node` and `access` of the site "
    "with `sinfo -Nel`; make check-site does so",
    ("Batch job submission failed: Requested node configuration is not available",),
    "https://slurm.schedmd.com/sbatch.html",
)

NO_OVERLAY = Known(
    re.compile(
        r"(?i)(?:mounting|mount) (?:\S+ )?(?:fuse-)?overlay\S*.{0,200}"
        r"(?:not permitted|not supported|no such device|invalid argument|not found)"
        r"|fuse-overlayfs not found"
    ),
    "this kernel or file system has no overlay for an ordinary user: have fuse-overlayfs "
    "installed, or Apptainer's temporary folder (APPTAINER_TMPDIR) moved to a local disk",
    (
        "FATAL: container creation failed: while mounting overlay: operation not permitted",
        "fuse-overlayfs not found, will not be able to use overlay",
    ),
    "https://apptainer.org/docs/admin/latest/installation.html",
)
