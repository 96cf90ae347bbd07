"""Which folders of the machine no measured container may see.

A campaign asks before it begins, without loading ReFrame.
"""

from collections.abc import Iterable
from pathlib import Path

from records import layout

#: Where images keep what they run, and the kernel its files: nothing can be mounted over these.
OF_IMAGES = ("/bin", "/dev", "/etc", "/lib", "/opt/mpi", "/opt/wyeast", "/proc", "/sbin", "/sys",
             "/usr/bin", "/usr/lib", "/usr/sbin")  # fmt: skip
#: The parts of a checkout that people move elsewhere by a link: records, and keys and images.
LINKED = ("runs", ".wyeast", ".wyeast/images")


def places_of(checkout: Path, stage: Path) -> list[Path]:
    """Return the folders that no container may see, by all their names, none inside another."""
    # Parts of a checkout may be links to a larger disk.
    own = layout.home(checkout)
    parts = [part for name in LINKED if (part := own / name).exists()]
    all_of_them = (checkout, own, stage, *parts)
    named = {path for one in all_of_them for path in (one.absolute(), one.resolve())}
    return sorted(path for path in named if not named.intersection(path.parents))


def why_seen(places: Iterable[Path]) -> str | None:
    """Return why a container would see one of these: images keep what they run there."""
    for place in places:
        for own in map(Path, OF_IMAGES):
            if place == own or own in place.parents or place in own.parents:
                return (
                    f"{place} cannot be hidden from containers, since images need {own} for "
                    "themselves"
                )
    return None
