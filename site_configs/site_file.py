"""What site.yaml may contain; anything else gets a sentence with file and line.

Every start of ReFrame reads it, so this is plain Python over libyaml, without a schema library.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from records import layout
from site_configs import installation_entries
from site_configs.entries import (
    SiteEntry,
    SiteError,
    are_texts,
    is_positive,
    is_text,
    nearest,
    read_entries,
)
from site_configs.launch_options import collisions
from site_configs.launchers import STARTED

#: ReFrame's name of the scheduler by which launches are processes of this machine.
LOCAL = "local"
#: ReFrame's resource by which a check requests nodes where the scheduler is told slots.
WHOLE_NODES = "whole_nodes"
#: ReFrame's schedulers and the commands that it calls on the machine where jobs are submitted.
SCHEDULERS: dict[str, tuple[str, ...]] = {
    "local": (),
    "slurm": ("sbatch", "sacct", "squeue", "scancel"),
    "squeue": ("sbatch", "squeue", "scancel"),
    "pbs": ("qsub", "qstat", "qdel"),
    "pbspro": ("qsub", "qstat", "qdel"),
    "torque": ("qsub", "qstat", "qdel"),
    "lsf": ("bsub", "bjobs", "bkill"),
    "sge": ("qsub", "qstat", "qdel"),
    "oar": ("oarsub", "oarstat", "oardel"),
    "flux": (),
    "ssh": ("ssh", "scp"),
}
#: What ReFrame can load modules by.
MODULES_SYSTEMS = ("lmod", "tmod4", "envmod", "spack")
# Where `srun` can start ranks: in Slurm's jobs, or in an allocation that somebody has made.
UNDER_SLURM = ("slurm", "squeue", "local")
#: What ReFrame takes for the name of a system or a partition.
NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_-]*")
#: What a site says must carry messages where its ranks share memory; the kernel's names of devices.
MEMORY = "memory"
DEVICE = re.compile(r"[A-Za-z0-9][\w.:@-]{0,62}", re.ASCII)
#: What stands in an example in the place of a value that only its site has.
FILL_IN = re.compile(r"<fill in ([^<>]+)>")


@dataclass(frozen=True)
class KeyRule:
    """What a key's value must be, in words and as a test."""

    words: str
    fits: Callable[[Any], bool]
    needed: bool = False
    choices: tuple[str, ...] = ()


#: The longest time that can be given for a campaign, in seconds: some thirty years.
MOST_S = 1e9


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def _patterns(value: Any) -> bool:
    try:
        return are_texts(value) and bool(value) and all(re.compile(text) for text in value)
    except re.error:
        return False


def _variables(value: Any) -> bool:
    return are_texts(value) and all(re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", one) for one in value)


def _launcher(value: Any) -> bool:
    # A program of PATH, or a whole path: another would be meant from elsewhere in a job.
    part = "[A-Za-z0-9_][A-Za-z0-9_.+-]*"
    return is_text(value) and bool(re.fullmatch(rf"{part}|(?:/[A-Za-z0-9_.+-]+)+", value))


def _by_family(fits: Callable[[Any], bool]) -> Callable[[Any], bool]:
    """Return the test of a value that may be another one for each family of MPIs."""
    return lambda value: fits(value) or (
        isinstance(value, dict) and bool(value) and all(key in STARTED for key in value)
        and all(map(fits, value.values()))
    )  # fmt: skip


def _switches(value: Any) -> bool:
    return isinstance(value, dict) and bool(value) and all(map(is_text, value)) and all(
        map(_patterns, value.values())
    )  # fmt: skip


def _or(other: Any, fits: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: value == other or fits(value)


def _one_of(choices: Iterable[str], needed: bool = True) -> KeyRule:
    known = tuple(choices)
    return KeyRule(f"one of: {', '.join(known)}", lambda value: value in known, needed, known)


def _detected(words: str, fits: Callable[[Any], bool], needed: bool = True) -> KeyRule:
    return KeyRule(f"{words}, or `detect`", _or("detect", fits), needed)


def seconds_of(words: str) -> float | None:
    """Return a time of at most MOST_S given in s, m or h, in seconds; None for anything else."""
    found = re.fullmatch(r"([0-9]{1,9}(?:\.[0-9]{1,3})?)([smh])", words)
    seconds = float(found[1]) * {"s": 1, "m": 60, "h": 3600}[found[2]] if found else 0.0
    return seconds if 0 < seconds <= MOST_S else None


#: Every key of site.yaml; docs/how-to/add-a-site.md says what each means.
KEYS: dict[str, KeyRule] = {
    "description": KeyRule("text", is_text, True),
    "hostnames": KeyRule("a list of regular expressions", _patterns, True),
    "scheduler": _one_of(SCHEDULERS),
    "partition": KeyRule(
        "a name of letters, digits, - and _, that begins with a letter",
        lambda value: is_text(value) and bool(NAME.fullmatch(value)), True,
    ),
    "access": KeyRule("a list of options", are_texts),
    "launch": _one_of(("mpiexec", "srun", "mpirun")),
    # Of `srun`, or of the machine's launcher, which is another one for each family of MPIs.
    "launch_options": KeyRule(
        f"a list of options, or one for each of {', '.join(STARTED)}", _by_family(are_texts)
    ),
    "launcher": KeyRule(
        "the name or the path of a launcher, with only letters, digits and _.+-, or one for each "
        f"of {', '.join(STARTED)}",
        _by_family(_launcher),
    ),
    "hostfile": KeyRule("true or false", lambda value: isinstance(value, bool)),
    "variables": KeyRule("a list of names of variables", _variables),
    # What a job does before anything else, and what it loads then.
    "prepare": KeyRule("a list of commands of a shell", are_texts),
    "modules_system": _one_of(MODULES_SYSTEMS, needed=False),
    "modules": KeyRule("a list of modules", are_texts),
    "implementations": KeyRule(
        "a list of implementations", lambda value: are_texts(value) and value
    ),
    # Our programs on the machine itself (site_configs/installation_entries.py).
    "installations": KeyRule(
        "installations by their names", lambda value: isinstance(value, dict) and bool(value)
    ),
    # From where images are pulled before any is built (containers/sharing/obtain.py).
    "images_from": KeyRule("the address of a registry, oras://host/path", is_text),
    "budget": KeyRule(
        "a time in seconds, minutes or hours, such as 900s, 15m or 2h",
        lambda value: is_text(value) and seconds_of(value) is not None,
    ),
    "nodes": KeyRule("a whole number of at least 1", _whole, True),
    "cores_per_node": _detected("a whole number of at least 1", _whole),
    "memory_bytes_per_node": _detected("a number of bytes above 0", is_positive),
    "peak_flops_per_node": _detected("a number of FLOP/s above 0", is_positive),
    "memory_bytes_per_s_per_node": KeyRule("a number of B/s above 0", is_positive),
    "hpl_memory_share": KeyRule(
        "a fraction above 0 and at most 1", lambda value: is_positive(value) and value <= 1
    ),
    # Where Files has ranks write and read (reframe_checks/files.py).
    "files_folder": KeyRule(
        "the whole path of a folder", lambda value: is_text(value) and value.startswith("/")
    ),
    "hpl_block_size": KeyRule("a whole number of at least 1", _whole),
    "link_bytes_per_s": KeyRule("a number of B/s above 0, or null", _or(None, is_positive), True),
    # What must carry messages (records/limits/fabric.py).
    "fabric": KeyRule(
        "`memory`, or a list of network devices, such as [mlx5_0], as in /sys/class/infiniband, "
        "/sys/class/cxi or /sys/class/net",
        _or(
            MEMORY,
            lambda value: are_texts(value) and value and all(map(DEVICE.fullmatch, value)),
        ),
    ),
    # What `make cluster-up` found on each of its links, for the record.
    "measured_links_bit_per_s": KeyRule(
        "a list of bit/s above 0",
        lambda value: isinstance(value, list) and all(is_positive(rate) for rate in value),
    ),
    # By which heat maps of pairs of nodes are ordered, and pairs under one switch told from others.
    "topology": KeyRule(
        "switches, each with a list of regular expressions of its nodes' names", _switches
    ),
    "shared_page_cache": KeyRule("true or false", lambda value: isinstance(value, bool)),
    "processors": _detected("a whole number of at least 1", _whole, needed=False),
    "spare_init_wait": _detected(
        "true or false", lambda value: isinstance(value, bool), needed=False
    ),
    "longest_wait_s": KeyRule("a number of seconds above 0", is_positive),
    "image_policy": _one_of(("known", "signed"), needed=False),
    "image_group": KeyRule("a group's name", is_text),
    # How the job of a campaign's driver is submitted (campaign/driver.py).
    "driver_time_s": KeyRule("a number of seconds above 0", is_positive),
    "driver_options": KeyRule("a list of options", are_texts),
    "overrides": KeyRule("a path relative to the checkout", is_text),
}  # fmt: skip


def read_site_entries(path: Path, root: Path) -> dict[str, SiteEntry]:
    """Return the keys of a site's file, or of its overrides, with their lines; raises SiteError."""
    entries = read_entries(path, root)
    overrides = entries.get("overrides")
    if overrides and is_text(overrides.value):
        other = layout.find(root, overrides.value)
        if other.is_file():
            entries |= read_entries(other, root)
    return entries


def _wrong_value(name: str, entry: SiteEntry) -> str:
    """Return the sentence about an invalid value of a key."""
    key, value = KEYS[name], entry.value
    said = "null" if value is None else str(value)
    hint = nearest(said, key.choices)
    if isinstance(value, str) and re.fullmatch(r"[\d.]+[eE][+-]?\d+", value):
        hint = f"; YAML reads {value} as text: write a decimal point and a sign, as in 12.5e+6"
    return f"{entry.place}: `{name}` must be {key.words}, not {said}{hint}"


def _problems(entries: dict[str, SiteEntry], file: str) -> Iterator[str]:
    """Yield a sentence for all that is wrong with a site's keys."""
    unknown = [name for name in entries if name not in KEYS]
    meant = set()
    for name in unknown:
        missing = [key for key in KEYS if key not in entries]
        hint = nearest(name, missing) or nearest(name, KEYS)
        meant |= {key for key in missing if f"`{key}`" in hint}
        yield f"{entries[name].place}: unknown key `{name}`{hint}"
    for name, entry in entries.items():
        if name in KEYS and (lacking := FILL_IN.findall(str(entry.value))):
            yield f"{entry.place}: `{name}` is not filled in yet: {', '.join(lacking)}"
        elif name in KEYS and not KEYS[name].fits(entry.value):
            yield _wrong_value(name, entry)
    for name, key in KEYS.items():
        if key.needed and name not in entries and name not in meant:
            yield f"{file}: the key `{name}` is missing; it must be {key.words}"
    value = {name: entry.value for name, entry in entries.items()}
    nodes = value.get("nodes", 1)
    if value.get("launch") == "mpiexec" and _whole(nodes) and nodes > 1:
        yield (
            f"{entries['nodes'].place}: `nodes` must be 1, not {nodes}, with `launch: mpiexec`: "
            "the launcher inside an image cannot reach other nodes; one of the machine can, with "
            "`launch: mpirun`"
        )
    if "fabric" in entries and _whole(nodes) and (value["fabric"] == MEMORY) != (nodes == 1):
        should = "be `memory`" if nodes == 1 else "name devices"
        yield (
            f"{entries['fabric'].place}: `fabric` must {should} where `nodes` is {nodes}: it is "
            "proven by the preflight, whose ranks are on a node each as far as there are nodes"
        )
    yield from _problems_of_launcher(entries, value, file)
    if (found := entries.get("installations")) and KEYS["installations"].fits(found.value):
        yield from installation_entries.problems(
            found, value.get("launch"), value.get("image_policy")
        )
    if value.get("modules") and "modules_system" not in value:
        yield (
            f"{entries['modules'].place}: `modules` needs the key `modules_system`: one of "
            f"{', '.join(MODULES_SYSTEMS)}"
        )
    scheduler = value.get("scheduler")
    if value.get("launch") == "srun" and scheduler in SCHEDULERS and scheduler not in UNDER_SLURM:
        yield (
            f"{entries['launch'].place}: `launch: srun` needs Slurm, and the scheduler is "
            f"{scheduler}; use `mpirun` or `mpiexec`"
        )
    if scheduler == "sge" and "{slots}" not in " ".join(map(str, value.get("access") or [])):
        yield (
            f"{entries['scheduler'].place}: `access` must request a parallel environment with "
            'whole nodes, as in ["-pe mpi {slots}"], where {slots} stands for the cores of a '
            "launch's nodes: without it a job has one core"
        )
    if scheduler == "flux" and _whole(nodes) and nodes > 1:
        yield (
            f"{entries['nodes'].place}: `nodes` must be 1, not {nodes}, with `scheduler: flux`: "
            "ReFrame requests one node of Flux"
        )


def _problems_of_launcher(
    entries: dict[str, SiteEntry], value: dict[str, Any], file: str
) -> Iterator[str]:
    """Yield a sentence for each key of launchers that is missing, has no use or is not a site's."""
    options = value.get("launch_options") or []
    lists = options.values() if isinstance(options, dict) else [options]
    for words in filter(are_texts, lists):
        for word, instead in collisions(str(value.get("launch")), words):
            yield (
                f"{entries['launch_options'].place}: `launch_options` must not have {word}: "
                f"{instead}"
            )
    if value.get("launch") == "mpirun":
        if "launcher" not in entries:
            yield (
                f"{file}: the key `launcher` is missing, by which `launch: mpirun` starts ranks: "
                f"it must be {KEYS['launcher'].words}"
            )
        return
    for key in ("launcher", "hostfile"):
        if key in entries:
            yield f"{entries[key].place}: `{key}` has no use without `launch: mpirun`"
    if isinstance(value.get("launch_options"), dict):
        yield (
            f"{entries['launch_options'].place}: `launch_options` must be a list of options, of "
            "`srun`; only with `launch: mpirun` there may be one for each family of MPIs"
        )


def read_site(path: Path, root: Path) -> dict[str, Any]:
    """Return a site's data with its overrides; raise SiteError with a sentence for each mistake.

    `root` is the checkout: overrides, and the files in sentences, are relative to it.
    """
    entries = read_site_entries(path, root)
    shown = layout.name_of(root, path)
    problems = list(_problems(entries, shown))
    if problems:
        raise SiteError("\n".join(problems))
    return {name: entry.value for name, entry in entries.items()}
