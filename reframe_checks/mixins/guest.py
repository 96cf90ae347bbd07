"""What a measured container sees of the machine, and how the files it leaves are collected."""

from collections.abc import Iterable
from pathlib import Path

from reframe.core.exceptions import SanityError

from containers.apptainer import launch_options, mount_option
from records.left_behind import collect
from reframe_checks.mixins.hidden_places import places_of, why_seen
from reframe_checks.mixins.job_script import work_folder

#: The empty folder in the stage folder that is mounted over what containers must not see.
NOTHING = "nothing"


def isolation(
    checkout: Path, stage: Path, alone: bool, together: bool = False
) -> tuple[str, ...]:  # fmt: skip
    """Return the options of `apptainer exec` that hide the machine from what is measured.

    Checkout and stage folder are hidden even if the machine shows its containers the folders
    that they are in, such as /tmp or a parallel file system. `alone` and `together` are as for
    `launch_options`.
    Raises SanityError if they cannot be hidden.
    """
    nothing = stage / NOTHING
    nothing.mkdir(exist_ok=True)
    places = places_of(checkout, stage.parent)
    if reason := why_seen(places):
        raise SanityError(f"{reason}: move the checkout elsewhere, such as to a home folder")
    covers = [mount_option(str(nothing), str(place), writable=False) for place in places]
    return (*launch_options(alone, together), *covers)


def collect_outputs(stage: Path, names: Iterable[str]) -> None:
    """Copy what programs left in their work folder next to it, where no program can write.

    Raises RecordError for what is not a file, or is too large, and OSError where the disk
    gives none or takes no copy.
    """
    for name in names:
        collect(work_folder(stage) / name, stage / name)
