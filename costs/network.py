"""`python -m costs.network`: what MPI and the container cost on a cluster's network.

Run where jobs are submitted (`make cluster-performance` for the cluster in a box). Two ranks on two
nodes, started as the checks start them: the bandwidth of each implementation against what iperf3
moves by TCP over the same link, short messages inside an image against the same program outside,
and by what starts the ranks: Slurm's srun, a launcher outside of containers, or the one inside a
container. Each pair is measured side by side. docs/performance.md shows a run.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

from containers import images, programs, selection, table, trust
from containers.apptainer import Admitted, exec_options, launch_options
from containers.ending import exit_code
from costs.hiding import as_launched
from costs.inside_and_outside import alternate, round_trips, show
from costs.places import Place, inside, mpiexec_of, outside, set_in_launches
from reframe_checks.mixins.job_script import into_container
from reframe_checks.mixins.launching import Placement, start_ranks
from site_configs.entries import SiteError
from site_configs.settings import load_site

ROOT = Path(__file__).resolve().parent.parent
SHORT = ["--sizes", "0", "--sizes", "1024", "--iterations", "1000", "--warmup", "100"]
LONG_BYTES = 1_000_000
LONG = ["--sizes", str(LONG_BYTES), "--iterations", "10", "--warmup", "2"]
TCP_BYTES = 6_000_000
#: The site whose ranks a launcher outside of containers starts, on the same nodes.
OUTSIDE_LAUNCHER = "box-mpirun"
WITHIN_ALLOCATION = ["salloc", "--quiet", "--nodes=2", "--ntasks=2", "--ntasks-per-node=1"]
TWO_NODES = ["srun", "--quiet", "--nodes=2", "--ntasks=2", "--ntasks-per-node=1"]
# The first node sends to the second. iperf3 stalls now and then when its server has only just begun
# to listen, so there is a pause, and another attempt.
TCP = f"""
peer=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | tail -n 1)
if [ "$SLURM_NODEID" = 1 ]; then
    until [ -e done ]; do timeout 6 iperf3 --server --one-off >/dev/null; done
    exit 0
fi
for attempt in $(seq 20); do
    sleep 0.3
    timeout 5 iperf3 --client "$peer" --bytes {TCP_BYTES} --json >tcp.json || continue
    touch done
    exec cat tcp.json
done
cat tcp.json >&2
exit 1
"""


def started(implementation: str, site: dict[str, object], image: Admitted, folder: Path) -> Place:
    """Return the place of two ranks in their image on two nodes, as the checks start them."""
    words = WITHIN_ALLOCATION if site["launch"] == "mpirun" else TWO_NODES
    return entered(implementation, site, image, folder, Placement(2, 2), words)


def entered(
    implementation: str, site: dict[str, object], image: Admitted, folder: Path, world: Placement,
    before: list[str],
) -> Place:  # fmt: skip
    """Return the place of ranks of which each has a container, after what requests their nodes."""
    _, variant = table.split_variant(implementation)
    labels = images.read_labels(images.labels(image), image.path.name, variant)
    start = start_ranks(labels, site, world, ["PROGRAM"], variant)
    of_command, _ = start.command.split("PROGRAM")
    place = inside(image, folder)
    # The script has `apptainer exec` itself, looks for it in PATH, and is asked for no other /tmp.
    at = place.prefix.index("exec")
    own_mounts = place.prefix[at + 1 + len(exec_options()) : -1]
    handed_on = [word for name in start.handed_on for word in ("-x", name)]
    prefix = [
        *before, *start.launcher, *handed_on, *into_container(str(site["launch"])), "", "",
        *launch_options(alone=False, together=start.together), *own_mounts, *start.container,
        str(image),
    ]  # fmt: skip
    path = {"PATH": f"{Path(place.prefix[at - 1]).parent}:{os.environ['PATH']}"}
    return Place([*prefix, *shlex.split(of_command)], place.environment | path, folder)


def short_messages(place: Place, before: list[str]) -> dict[str, float]:
    """Return short messages' one-way times in seconds, after what starts the ranks."""
    medians = round_trips(place, [*before, "pingpong", *SHORT])
    return {f"one way, {size} bytes (s)": median / 2 for size, median in medians.items()}


def by_launchers(implementation: str, by_srun: Place, image: Admitted, rounds: int) -> None:
    """Print short messages' times by what starts the ranks, measured alternately.

    On two nodes srun and the launcher outside; on this one that launcher, each rank in a container
    of its own, and the image's own launcher inside one container.
    """
    site = load_site(OUTSIDE_LAUNCHER) | {"name": OUTSIDE_LAUNCHER}
    outside_launcher = started(implementation, site, image, by_srun.folder)
    pairs = alternate(by_srun, outside_launcher, [], short_messages, rounds)
    show(implementation, {f"srun over mpirun: {name}": own for name, own in pairs.items()})
    here = site | {"nodes": 1, "cores_per_node": 2, "hostfile": False}
    variables = set_in_launches(image, site)
    container = as_launched(image, by_srun.folder, alone=True, variables=variables)
    container.prefix += [*mpiexec_of(image), "-n", "2"]
    each = entered(implementation, here, image, by_srun.folder, Placement(2, 1), [])
    pairs = alternate(container, each, [], short_messages, rounds)
    show(
        implementation, {f"in a container over mpirun: {name}": own for name, own in pairs.items()}
    )


def tcp_bandwidth(folder: Path) -> float:
    """Return the payload that TCP moves between two nodes, in B/s."""
    (folder / "done").unlink(missing_ok=True)
    done = subprocess.run(
        [*TWO_NODES, "--mpi=none", "--kill-on-bad-exit=1", "sh", "-c", TCP],
        cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        raise SystemExit(f"cluster_performance: iperf3 failed: {done.stderr.strip()}")
    return float(json.loads(done.stdout)["end"]["sum_received"]["bits_per_second"]) / 8


def against_tcp(implementation: str, place: Place, rounds: int) -> None:
    """Print an implementation's bandwidth at 1 MB over TCP's, measured alternately."""
    pairs = []
    for _ in range(rounds):
        round_trip = round_trips(place, ["pingpong", *LONG])[LONG_BYTES]
        pairs.append((2 * LONG_BYTES / round_trip, tcp_bandwidth(place.folder)))
    show(implementation, {"MPI at 1 MB over TCP (B/s)": pairs})


def container_against_bare(
    implementation: str, container: Place, site: dict[str, object], image: Admitted, rounds: int
) -> None:
    """Print short messages' one-way times inside the image over those outside."""
    pmi = images.read_labels(images.labels(image), image.path.name).pmi
    bare = outside(image, container.folder)
    bare.prefix = [*TWO_NODES, f"--mpi={pmi}"]
    # Slurm's own, by which its commands find the cluster.
    bare.environment |= {
        name: value for name, value in os.environ.items() if name.startswith("SLURM_")
    }

    show(implementation, alternate(container, bare, [], short_messages, rounds))


def main() -> int:
    """Measure every MPI of the site; print Markdown."""
    parser = argparse.ArgumentParser(prog="python -m costs.network", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="alternations (%(default)s)")
    parser.add_argument("--site", default="virtual", help="a folder of site_configs/ (%(default)s)")
    parser.add_argument(
        "--images", default="", help="implementations, separated by commas (default: the site's)"
    )
    parser.add_argument(
        "--launchers", action="store_true", help="compare what starts the ranks alone"
    )
    options = parser.parse_args()
    rounds = max(2, options.rounds)
    site = load_site(options.site) | {"name": options.site}
    print(
        "| image | quantity | one | other | ratio | 95% interval |\n|---|---|---|---|---|---|",
        flush=True,
    )
    for implementation in selection.implementations(ROOT, options.site, options.images):
        if images.interface_of(ROOT, implementation) != "mpi":
            continue
        image = trust.admit(ROOT, implementation, site)
        # The nodes share the home folder.
        with tempfile.TemporaryDirectory(dir=os.environ["HOME"]) as folder:
            place = started(implementation, site, image, Path(folder))
            if not options.launchers:
                against_tcp(implementation, place, rounds)
            if implementation in images.default_implementations(ROOT):
                if not options.launchers:
                    container_against_bare(implementation, place, site, image, rounds)
                by_launchers(implementation, place, image, rounds)
    return 0


if __name__ == "__main__":
    sys.exit(
        exit_code(
            "cluster_performance",
            main,
            (images.ImageError, programs.ProvisionError, SiteError),
            "nothing was kept",
        )
    )
