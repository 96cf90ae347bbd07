"""Reading and writing one file by all ranks, where the site keeps files."""

from collections.abc import Iterable
from itertools import product
from uuid import uuid4

import reframe as rfm
from reframe.core.builtins import parameter, run_before

from containers.apptainer import mount_option
from reframe_checks.mixins.communicating import AskedPoint, Communicating
from reframe_checks.mixins.job_script import folder_for_files
from reframe_checks.mixins.tiers import of_tier

OPERATIONS = ("write", "read", "write-all", "read-all")
ARRANGEMENTS = ("segments", "interleaved")
SIZES = of_tier(quick=(1024, 1_048_576), paper=(1024, 65_536, 1_048_576, 16_777_216))
RANKS = of_tier(quick=2, paper=8)
ITERATIONS = of_tier(quick=20, paper=100)
#: What a container calls the folder in which the file is made.
INSIDE = "/files"


@rfm.simple_test
class Files(Communicating):
    """Parts of one file, one after the other or interleaved, by each rank or by all together."""

    descr = "reading and writing one file by all ranks"
    program = "files"
    only_when_named = True
    # A folder of the site's is lent to a container.
    in_containers_only = True
    #: Where an iteration ends: in the system's memory, or on the storage.
    end = parameter(("memory", "storage"), loggable=True)

    def ranks_wanted(self) -> int:
        """Return how many ranks there are where the site has cores for them."""
        return int(RANKS)

    def cell_parameters(self) -> dict[str, str | int]:
        """Return what identifies the cell."""
        return {"end": self.end, "ranks": self.num_tasks}

    def iterations_wanted(self) -> int:
        """Return how often each point is timed."""
        return int(ITERATIONS)

    def bytes_of_a_rank(self) -> int:
        """Return what a rank's part takes in two buffers and in the system's memory."""
        return 3 * int(max(SIZES))

    def operations(self) -> tuple[str, ...]:
        """Return what is timed: what is read is in the system's memory, whatever was written."""
        return OPERATIONS if self.end == "memory" else ("write", "write-all")

    def arguments(self) -> list[str]:
        """Return the operations, the sizes, and the folder if the site names one."""
        return [
            *(word for name in self.operations() for word in ("--operation", name)),
            *(word for size in SIZES for word in ("--sizes", str(size))),
            *(("--sync",) if self.end == "storage" else ()),
            *(("--folder", INSIDE) if "files_folder" in self.site() else ()),
        ]

    @run_before("run")
    def lend_a_folder(self) -> None:
        """Give the ranks a new folder in the one that the site names, and nothing else of it."""
        if "files_folder" not in self.site():
            return
        place, name = str(self.site()["files_folder"]), f"wyeast-{uuid4().hex}"
        self.container_platform.options += [mount_option(f"{place}/{name}", INSIDE)]
        self.lends_for_files = folder_for_files(place, name, self.program)

    def asked_points(self) -> Iterable[AskedPoint]:
        """Return the points in the program's order."""
        end = " synchronised" if self.end == "storage" else ""
        for arrangement, operation, size in product(ARRANGEMENTS, self.operations(), SIZES):
            yield AskedPoint(f"file-{operation}", f"{arrangement}{end}", "world", size)
