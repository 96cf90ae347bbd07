"""`python -m costs.twins`: how often an image is found to differ from itself.

Campaigns measure an image and its twin, which has another name and nothing else of its own. Each
verdict that they differ is false. An experiment may have one in 5% of campaigns, however many
series it has (docs/method/designs.md). The campaigns are removed once they are read.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from analysis.comparison.compare import compare
from analysis.comparison.confirmed import verdicts_of
from analysis.comparison.result import Cell, Comparison
from containers import images, store
from containers.ending import exit_code
from records import layout
from records.base import CampaignError
from records.campaign import read_campaign
from records.causes import one_line

ROOT = Path(__file__).resolve().parent.parent
LABEL = "org.wyeast.implementation"
CHECKS = "^EchoTest|^HaloExchange"


@dataclass(frozen=True)
class TwinsCampaign:
    """What a campaign of twins judged: series by experiment, and what it says differs.

    That is of series and of groups: both are of the family that may have a false verdict.
    """

    series: dict[str, int]
    different: dict[str, list[str]]

    def line(self) -> str:
        """Return what it found, in one line."""
        number = sum(self.series.values())
        found = [name for names in self.different.values() for name in names]
        return f"{number} series of {len(self.series)} experiments: " + (
            f"{len(found)} differ ({'; '.join(found)})" if found else "none differs"
        )


@contextmanager
def twins(root: Path, image: str) -> Iterator[tuple[str, str]]:
    """Make an image's twin: yield its name, and what a process has to name in `images.GUESTS`.

    Only such a process sees the twin, as a bundle's rerun sees the bundle's images. Raises
    ImageError where the image has no name that could be changed within its length.
    """
    name = f"twin{os.getpid()}"
    twin = image[:-1] + ("8" if image.endswith("9") else "9")
    entry = images.load_own_lock(root)["images"].get(image)
    if entry is None:
        raise images.ImageError(f"{image} is not built; run `make images IMAGES={image}`")
    data = store.path_of(root, entry).read_bytes()
    before, after = (f'"{LABEL}":"{one}"'.encode() for one in (image, twin))
    if data.count(before) != 1:
        raise images.ImageError(f"{image} does not have its name on its label once; build it anew")
    guests = images.guest_root(root, name)
    try:
        store.folder(guests).mkdir(parents=True)
        (guests / images.LOCK).parent.mkdir(parents=True)
        file = store.folder(guests) / f"{twin}.sif"
        file.write_bytes(data.replace(before, after))
        facts = {
            "file": file.name, "sha256": hashlib.sha256(file.read_bytes()).hexdigest(),
            "labels": {**entry["labels"], LABEL: twin},
        }  # fmt: skip
        lock = {**images.load_own_lock(root), "images": {twin: {**entry, **facts}}}
        (guests / images.LOCK).write_text(json.dumps(lock))
        yield twin, name
    finally:
        shutil.rmtree(guests, ignore_errors=True)


def measure(pair: tuple[str, str], guests: str, budget: str, checks: str) -> TwinsCampaign:
    """Measure a campaign of an image and its twin; remove it. Raises CampaignError if it fails."""
    words = ["python", "-m", "campaign", f"--images={','.join(pair)}", f"--budget={budget}",
             f"--checks={checks}", f"--name={guests}"]  # fmt: skip
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("COVERAGE")
    }
    try:
        done = subprocess.run(
            ["bash", "-c", f". ./activate && exec {shlex.join(words)}"],
            cwd=ROOT, env={**environment, images.GUESTS: guests}, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
            check=False,
        )  # fmt: skip
        if done.returncode:
            last = one_line(" ".join(done.stdout.splitlines()[-3:]))
            raise CampaignError(f"a campaign of {' and '.join(pair)} failed: {last}")
        [path] = folders(guests)
        return judged(compare(read_campaign(path)))
    finally:
        for path in folders(guests):
            shutil.rmtree(path, ignore_errors=True)


def judged(comparison: Comparison) -> TwinsCampaign:
    """Return what was judged, and what is said to differ: series, and groups of several."""
    series: dict[str, int] = {}
    different: dict[str, list[str]] = {}
    for on, verdict in verdicts_of(comparison):
        series[on.experiment] = series.get(on.experiment, 0) + isinstance(on, Cell)
        if verdict.is_different:
            different.setdefault(on.experiment, []).append(on.name)
    return TwinsCampaign(series, different)


def folders(guests: str) -> list[Path]:
    """Return the folders of the twins' campaigns."""
    return list(layout.runs(ROOT).glob(f"*-local-{guests}"))


def main() -> int:
    """Measure campaigns, a line each, and print how many found a difference."""
    parser = argparse.ArgumentParser(prog="python -m costs.twins", description=__doc__)
    parser.add_argument("--campaigns", type=int, default=20, help="their number (%(default)s)")
    parser.add_argument("--budget", default="60s", help="as BUDGET of each (%(default)s)")
    parser.add_argument("--checks", default=CHECKS, help="as CHECKS of each (%(default)s)")
    parser.add_argument("--image", default="mpich-5.0.2", help="its name (%(default)s)")
    options = parser.parse_args()
    found: list[TwinsCampaign] = []
    with twins(ROOT, options.image) as (twin, guests):
        for number in range(max(1, options.campaigns)):
            pair = (options.image, twin)
            found.append(measure(pair, guests, options.budget, options.checks))
            print(f"{number + 1} of {options.campaigns}: {found[-1].line()}", flush=True)
    false = sum(bool(one.different) for one in found)
    families = sum(len(one.series) for one in found)
    of_families = sum(len(one.different) for one in found)
    print(
        f"{len(found) - false} of {len(found)} campaigns show no difference; "
        f"{of_families} of {families} experiments have a false one, 5% may"
    )
    return 0


if __name__ == "__main__":
    errors = (CampaignError, images.ImageError)
    sys.exit(exit_code("twins", main, errors, "campaigns are removed"))
