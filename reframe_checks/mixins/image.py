"""The image as a parameterised fixture: found, verified and opened before anything runs in it."""

import json
import os
import sys
from pathlib import Path

import reframe as rfm
import reframe.utility.sanity as sn
from reframe.core.builtins import parameter, run_before, sanity_function
from reframe.core.exceptions import SanityError

from campaign import choice
from containers import images, trust
from containers.apptainer import exec_options

ROOT = Path(os.environ.get("WYEAST_ROOT", Path(__file__).resolve().parents[2]))


def chosen_implementations() -> list[str]:
    """Return the implementations to measure: WYEAST_IMAGES, else the site's that are built."""
    site = os.environ.get("RFM_SYSTEM", "local").partition(":")[0]
    if not images.available(ROOT):
        print(f"no image is built yet; build them with: {images.BUILD_COMMAND}", file=sys.stderr)
    return choice.implementations(ROOT, site, os.environ.get("WYEAST_IMAGES", ""))


class ContainerImage(rfm.RunOnlyRegressionTest):
    """An image whose digest is the one in containers/images.lock and that Apptainer can open."""

    descr = "verified image"
    implementation = parameter(chosen_implementations(), loggable=True)
    valid_systems = ["+wyeast"]
    valid_prog_environs = ["+container"]
    local = True

    @run_before("run")
    def open_image(self) -> None:
        """Refuse an image that is missing, not the locked one, or not what the site allows."""
        try:
            site = self.current_partition.extras["site"]
            self.path = trust.admit(ROOT, self.implementation, site)
            self.signature = trust.signature_status(ROOT, self.implementation, site)
        except images.ImageError as error:
            raise SanityError(str(error)) from None
        self.sha256 = images.entry_of(ROOT, self.implementation)["sha256"]
        self.executable = "apptainer"
        self.executable_opts = ["inspect", "--json", "--labels", str(self.path)]

    @sanity_function
    def labels_are_ours(self) -> object:
        """Read the labels, which say what is inside and how its ranks start."""
        try:
            text = (Path(self.stagedir) / str(sn.evaluate(self.stdout))).read_text()
            labels = json.loads(text)["data"]["attributes"]["labels"]
        except (ValueError, KeyError) as error:
            raise SanityError(f"{self.path} cannot be inspected: {error}") from None
        name, variant = images.split_variant(self.implementation)
        self.labels = images.with_host_mpi(labels, variant)
        return sn.assert_eq(
            self.labels.get("org.wyeast.implementation"),
            name,
            msg=f"{self.path} says that it holds {{0}}, not {{1}}; rebuild it: "
            f"{images.BUILD_COMMAND}",
        )


def options_of_exec() -> list[str]:
    """Return the options with which `apptainer exec` isolates a launch."""
    return list(exec_options())
