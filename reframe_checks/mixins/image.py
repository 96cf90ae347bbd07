"""The image as a parameterised fixture: found, verified and opened before anything runs in it."""

import os
import sys
from pathlib import Path

import reframe as rfm
import reframe.utility.sanity as sn
from reframe.core.builtins import parameter, run_before, sanity_function
from reframe.core.exceptions import SanityError

from containers import images, selection, table, trust
from containers.apptainer import state_folder
from reframe_checks.mixins.job_script import found_on_nodes, quoted

ROOT = Path(os.environ.get("WYEAST_ROOT", Path(__file__).resolve().parents[2]))


def chosen_implementations() -> list[str]:
    """Return the implementations to measure: WYEAST_IMAGES, else the site's that are built."""
    site = os.environ.get("RFM_SYSTEM", "local").partition(":")[0]
    if not images.available(ROOT):
        print(f"no image is built yet; build them with: {images.BUILD_COMMAND}", file=sys.stderr)
    return selection.implementations(ROOT, site, os.environ.get("WYEAST_IMAGES", ""))


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
            admitted, self.signature = trust.admit_by(ROOT, self.implementation, site)
            self.path = admitted.path
            _, variant = table.split_variant(self.implementation)
            words = images.labels_inside(self.path)
            self.labels = images.read_labels(words, str(self.path), variant)
        except images.ImageError as error:
            raise SanityError(str(error)) from None
        self.sha256 = images.entry_of(ROOT, self.implementation)["sha256"]
        self.prerun_cmds = found_on_nodes(state_folder() / "bin")
        self.executable = "apptainer"
        # This lists what is in the file, and runs nothing from it.
        self.executable_opts = [quoted("sif", "list", self.path)]

    @sanity_function
    def labels_are_ours(self) -> object:
        """Check the labels, which say what is inside and how its ranks start."""
        name, _ = table.split_variant(self.implementation)
        return sn.all([
            sn.assert_found(
                r"\|FS ", self.stdout, msg=f"Apptainer finds no file system in {self.path}"
            ),
            sn.assert_eq(
                self.labels.implementation,
                name,
                msg=f"{self.path} says that it holds {{0}}, not {{1}}; rebuild it: "
                f"{images.BUILD_COMMAND}",
            ),
        ])  # fmt: skip
