"""What every experiment has in common: ranks of one program, in an image, at a site."""

from functools import cache
from pathlib import Path
from typing import Any

import reframe as rfm
import reframe.utility.typecheck as typ
import reframe.utility.udeps as udeps
from reframe.core.builtins import fixture, run_after, run_before, variable
from reframe.core.exceptions import SanityError

from containers import images, installations, table, trust
from records.counting import how_many
from records.environment import named
from records.limits.plausibility import moved_beyond_launch, time_below_clock_resolution
from records.program_output import ProgramOutput, read_program_output
from reframe_checks.mixins.guest import isolation
from reframe_checks.mixins.host_launching import (
    OutsideLauncher,
    request_flux_node,
    request_whole_nodes,
)
from reframe_checks.mixins.image import ROOT, ContainerImage
from reframe_checks.mixins.job_script import OnTheMachine, QuotedApptainer, quoted, work_folder
from reframe_checks.mixins.launching import CannotStart, Placement, Start, start_ranks
from reframe_checks.mixins.recording import RecordedCheck, Suspect
from reframe_checks.mixins.referenced import Referenced
from reframe_checks.mixins.tiers import TIER, VALIDATION
from site_configs.installation_entries import is_installation
from site_configs.site_file import WHOLE_NODES


def preflight_name(variant: int) -> str:
    """Return ReFrame's name of the preflight of an image, by the image's number.

    Preflight is an experiment itself, so it cannot be imported here; its variants are the images'.
    """
    number = ContainerImage.variant_name(variant).removeprefix(ContainerImage.__name__)
    return f"Preflight{number}"


@cache
def preflights() -> dict[str, str]:
    """Return ReFrame's names of the preflights by their images' implementations."""
    variants = range(ContainerImage.num_variants)
    infos = ((variant, ContainerImage.get_variant_info(variant)) for variant in variants)
    return {info["params"]["implementation"]: preflight_name(variant) for variant, info in infos}


@cache
def interface_of(implementation: str) -> str:
    """Return what the programs of an image call; raises ImageError.

    Read once per process: each of an image's hundreds of checks asks, and images.lock has every
    image.
    """
    return "mpi" if is_installation(implementation) else images.interface_of(ROOT, implementation)


class Experiment(rfm.RunOnlyRegressionTest, Referenced, RecordedCheck):
    """Ranks of one program of an image, started, judged and kept in the same way for all."""

    #: The image, verified once a session.
    image = fixture(ContainerImage, scope="session")

    #: What the program calls, as the image's label says it: only such images have the program.
    interface = variable(str, value="mpi")

    #: The program of the image and its arguments.
    program = variable(str)
    program_arguments = variable(typ.List[str], value=[])

    #: How the program's output is written; see benchmarks/FORMAT.md.
    output_format = variable(str, value="wyeast-records-2")

    #: Whether the ranks go one to a node as far as the site has nodes (True), or fill the cores of
    #: one node before the next (False).
    spread = variable(bool, value=False)

    #: Whether the start itself is measured, including everything that MPI_Init waits for.
    measures_start = variable(bool, value=False)

    #: How many cores each rank needs: as many as it has threads that work at once.
    cores_of_a_rank = variable(int, value=1)

    #: Over how many nodes the ranks must be spread; follows from the site.
    nodes = variable(int, value=1)

    #: Whether the launch waits for the image's preflight to have passed.
    needs_preflight = variable(bool, value=True)

    #: Whether campaigns leave it out unless they name it: it is of no report, or compares nothing.
    only_when_named = variable(bool, value=False)

    #: Whether it measures what containers do, or what only images have.
    in_containers_only = variable(bool, value=False)

    #: The tier that fixed the parameters.
    tier = variable(str, value=TIER, loggable=True)

    valid_systems = ["+wyeast"]
    valid_prog_environs = ["+container"]
    num_tasks = 2
    time_limit = "5m"
    require_reference = True

    @run_after("init")
    def leave_out_other_interfaces(self) -> None:
        """Leave out images that do not have the program; ReFrame does not list these variants."""
        found = interface_of(self.implementation())
        self.skip_if(
            found != self.interface,
            f"{self.implementation()} is an image of {found}, and {type(self).__name__} measures "
            f"{self.interface}",
        )

    @run_after("init")
    def leave_out_what_containers_do(self) -> None:
        """Leave out installations of the site where containers are part of what is measured."""
        self.skip_if(
            self.in_containers_only and is_installation(self.implementation()),
            f"{self.implementation()} runs outside of containers, and {type(self).__name__} "
            "measures what is in them",
        )

    @run_after("setup")
    def leave_out_what_is_not_installed(self) -> None:
        """Leave out installations of the site that do not have the program."""
        found = self.image.installation
        self.skip_if(
            found is not None and not found.has(self.program),
            f"{self.implementation()} has no program {self.program}",
        )

    @run_after("init")
    def tag_tier(self) -> None:
        """Tag the check with its tier, so that `reframe -t quick` selects it."""
        self.tags |= {self.tier, VALIDATION} if self.only_when_named else {self.tier}

    @run_after("init")
    def wait_for_preflight(self) -> None:
        """Measure nothing in an image whose ranks do not form the world that was requested."""
        # Applies to MPI programs; a check of another interface verifies the world itself.
        if not self.needs_preflight or self.interface != "mpi":
            return
        if name := preflights().get(self.implementation()):
            self.depends_on(name, udeps.by_env)

    def implementation(self) -> str:
        """Return the implementation's name."""
        return str(self.image.implementation)

    def site(self) -> dict[str, Any]:
        """Return the site's data."""
        return dict(self.current_partition.extras["site"])

    def place_on(self, partition: Any) -> None:
        """Find the nodes of a partition before ReFrame sets the check up: they name its launch."""
        self._current_partition = partition
        self.spread_over_nodes()
        self._current_partition = None

    @run_after("setup")
    def spread_over_nodes(self) -> None:
        """Decide over how many of the site's nodes the ranks are spread."""
        site = self.site()
        self.nodes = min(-(-self.num_tasks // self.ranks_wanted_on_a_node()), site["nodes"])
        self.num_tasks_per_node = self.world().ranks_per_node
        # Launchers fill node by node, so the last ones may be left without any rank.
        self.nodes = -(-self.num_tasks // self.num_tasks_per_node)

    def prove_nodes(self, nodes: int) -> None:
        """Be told on how many nodes at most what waits for this is started: for a preflight."""

    def ranks_wanted_on_a_node(self) -> int:
        """Return how many ranks share a node if the site has enough nodes."""
        return 1 if self.spread else int(self.site()["cores_per_node"])

    def most_ranks(self) -> int:
        """Return how many ranks the site has a core for."""
        site = self.site()
        return int(site["cores_per_node"] * site["nodes"])

    def oversubscribed(self) -> bool:
        """Return whether ranks need more cores than there are processors, and wait for them.

        Where one machine plays several nodes, the site's data says how many processors it has.
        """
        site = self.site()
        on_a_node = self.world().ranks_per_node * self.cores_of_a_rank
        of_all = self.num_tasks * self.cores_of_a_rank
        return bool(
            on_a_node > site["cores_per_node"] or of_all > site.get("processors", self.most_ranks())
        )

    def peak_flops(self) -> float:
        """Return the peak rate of the ranks' cores, one each, in FLOP/s."""
        site = self.site()
        full_nodes = min(self.nodes, self.num_tasks / site["cores_per_node"])
        return float(site["peak_flops_per_node"] * full_nodes)

    def world(self) -> Placement:
        """Return the ranks and nodes of the launch."""
        return Placement(self.num_tasks, self.nodes, self.cores_of_a_rank)

    def has_container_alone(self) -> bool:
        """Return whether one container has all ranks, alike for all implementations of the site."""
        return bool(self.site()["launch"] == "mpiexec")

    def start_of(self, program: list[str]) -> Start:
        """Return how the ranks of a program of the image start; raises CannotStart."""
        found = self.image.installation
        variant = None if found else table.split_variant(self.implementation())[1]
        return start_ranks(
            self.image.labels, self.site(), self.world(), program, variant, self.measures_start
        )

    @run_before("run")
    def start_in_image(self) -> None:
        """Start the ranks in the image, in the way the site starts ranks."""
        try:
            start = self.start_of([self.program, *self.program_arguments])
            # The fixture did this already, but an image can be replaced during a campaign, and a
            # key expire.
            platform = self.platform_of(self.image.installation)
        except (CannotStart, images.ImageError) as error:
            raise SanityError(str(error)) from None
        # A program may leave one with its user's rights (setuid), which others would start.
        Path(self.stagedir).chmod(0o700)
        work_folder(self.stagedir).mkdir()
        alone = self.has_container_alone()
        if self.image.installation is None:
            platform.isolation = isolation(ROOT, Path(self.stagedir), alone, start.together)
        else:
            self.prerun_cmds = [*self.image.installation.preparation, *self.prerun_cmds]
            platform.workdir = str(work_folder(self.stagedir))
        platform.options = start.container
        platform.command = start.command
        platform.variables = named(self.site())
        platform.launch = self.site()["launch"]
        platform.has_own_folders = alone
        self.container_platform = platform
        # Only where the site says so, which is where a scheduler is told slots and not nodes.
        slots = self.nodes * self.site()["cores_per_node"]
        self.extra_resources = {**self.extra_resources, WHOLE_NODES: {"slots": slots}}
        if self.site()["launch"] == "mpirun":
            self.job.launcher = OutsideLauncher(start.launcher, start.handed_on)
            self.prerun_cmds = [*start.before, *self.prerun_cmds]
            on_a_node = self.world().ranks_per_node
            request_whole_nodes(self.job, self.site()["scheduler"], self.nodes, on_a_node)
        else:
            self.job.launcher.options = [quoted(word) for word in start.launcher]
        if self.site()["scheduler"] == "flux":
            request_flux_node(self.job, self.site()["cores_per_node"])

    def platform_of(self, installation: installations.Installation | None) -> QuotedApptainer:
        """Return what starts the launch: the image, admitted again, or what the site has installed.

        Raises ImageError, also for an installation that was replaced.
        """
        if installation is None:
            image, self.image.signature = trust.admit_by(ROOT, self.implementation(), self.site())
            platform = QuotedApptainer()
            platform.image = str(image.path)
            return platform
        if installations.contents(installation).sha256 != self.image.sha256:
            raise images.ImageError(
                f"{installation.name} was replaced since the campaign began; measure a new one"
            )
        return OnTheMachine(installation)

    def refuse_another_image(self) -> None:
        """Raise if the image was replaced: a job may wait for hours after its admission."""
        try:
            if self.image.installation:
                self.platform_of(self.image.installation)
                return
            found = images.verified(ROOT, self.implementation())[2]["sha256"]
        except images.ImageError as error:
            raise SanityError(f"it is uncertain which image ran: {error}") from None
        if found != self.image.sha256:
            raise SanityError(
                "it is uncertain which image ran: it was replaced after the launch was "
                "requested; start a new campaign"
            )

    def read_records(self, path: Path | None = None) -> ProgramOutput:
        """Return the program's records; refuse a world other than the requested one.

        They are read from the job's standard output, unless from another file.
        """
        output = read_program_output(path or self.output_path("stdout"))
        header = output.header
        if header.program != self.program:
            raise SanityError(f"the output is from {header.program}, not from {self.program}")
        if header.ranks != self.num_tasks:
            raise SanityError(
                f"{header.ranks} ranks formed the world, not the {self.num_tasks} requested"
            )
        hosts = sorted(set(header.hosts))
        if len(hosts) != self.nodes:
            raise SanityError(
                f"the ranks are on {how_many(len(hosts), 'node')}, {', '.join(hosts)}, and not on "
                f"{self.nodes} as requested"
            )
        for result in output.results:
            sentence = time_below_clock_resolution(header, result)
            if sentence:
                raise Suspect(sentence)
        began, ended = self.instants()
        wall_s = began.seconds_until(ended) if began and ended else None
        if wall_s and (s := moved_beyond_launch(output.results, wall_s, self.peak_flops())):
            raise Suspect(s)
        return output
