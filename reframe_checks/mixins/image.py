"""The image as a parameterised fixture: found, verified and opened before anything runs in it.

An installation of the site takes an image's place.
"""

import os
import sys
from pathlib import Path

import reframe as rfm
import reframe.utility.sanity as sn
from reframe.core.builtins import parameter, run_before, sanity_function
from reframe.core.exceptions import SanityError

from containers import images, installations, selection, table, trust
from containers.apptainer import state_folder
from containers.installations import Installation
from records.manifest import OUTSIDE
from reframe_checks.mixins.job_script import found_on_nodes, quoted
from site_configs.installation_entries import any_image, is_installation

ROOT = Path(os.environ.get("WYEAST_ROOT", Path(__file__).resolve().parents[2]))


def chosen_implementations() -> list[str]:
    """Return the implementations to measure: WYEAST_IMAGES, else the site's that are built."""
    site = os.environ.get("RFM_SYSTEM", "local").partition(":")[0]
    chosen = selection.implementations(ROOT, site, os.environ.get("WYEAST_IMAGES", ""))
    if any_image(chosen) and not images.available(ROOT):
        print(f"no image is built yet; build them with: {images.BUILD_COMMAND}", file=sys.stderr)
    return chosen


class ContainerImage(rfm.RunOnlyRegressionTest):
    """An image whose digest is the one in containers/images.lock and that Apptainer can open.

    Or an installation of the site, whose programs find all that they load.
    """

    descr = "verified image"
    #: What is measured on the machine itself, None where it is an image.
    installation: Installation | None = None
    #: OUTSIDE for that, as records have it.
    runs: str | None = None
    implementation = parameter(chosen_implementations(), loggable=True)
    valid_systems = ["+wyeast"]
    valid_prog_environs = ["+container"]
    local = True

    @run_before("run")
    def open_image(self) -> None:
        """Refuse an image that is missing, not the locked one, or not what the site allows."""
        if is_installation(self.implementation):
            self.open_installation()
            return
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

    def open_installation(self) -> None:
        """Refuse an installation that is not there; ask the loader where the launch will be."""
        site = self.current_partition.extras["site"]
        try:
            found = installations.of_site(ROOT, site, self.implementation)
            known = installations.contents(found)
        except images.ImageError as error:
            raise SanityError(str(error)) from None
        self.installation, self.runs, self.labels = found, OUTSIDE, found.labels
        self.sha256, self.signature = known.sha256, installations.SIGNATURE
        first = found.folder / installations.FIRST
        # Which file this is, is noted just before and after each launch.
        self.path = Path(known.mpi[0]) if known.mpi else first
        self.mpi_files = known.mpi
        self.prerun_cmds = found.preparation
        self.executable = "ldd"
        self.executable_opts = [quoted(first)]

    @sanity_function
    def labels_are_ours(self) -> object:
        """Check the labels, which say what is inside and how its ranks start."""
        if self.installation:
            return sn.all([
                sn.assert_found(r"libc\.so", self.stdout, msg="the loader does not answer"),
                sn.assert_not_found(
                    r"not found", self.stdout,
                    msg=f"the loader does not find all that {self.executable_opts[0]} needs",
                ),
            ])  # fmt: skip
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
