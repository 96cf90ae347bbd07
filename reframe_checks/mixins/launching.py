"""The one place that decides how an image's ranks start on a site."""

import shlex
from typing import Any


class CannotStart(Exception):
    """The ranks cannot be started as asked; the text is a sentence."""


def start_ranks(
    labels: dict[str, str], site: dict[str, Any], ranks: int, program: str, arguments: list[str]
) -> str:
    """Return the command that, run inside the image, starts the ranks of a program at the site.

    Ranks are bound to one core each where the cores suffice, for every implementation alike;
    where they do not, the launch is told so instead of being left to find out.
    """
    if site["launch"] != "mpiexec":
        raise CannotStart(
            f"site {site['name']}: launch: {site['launch']} is unknown; use `mpiexec`"
        )
    placement = "pinned" if ranks <= site["cores_per_node"] else "oversubscribed"
    try:
        mpiexec = labels["org.wyeast.mpiexec"]
        options = labels[f"org.wyeast.mpiexec.{placement}"]
    except KeyError as error:
        raise CannotStart(
            f"the image has no label {error}, so it is unknown how its ranks start; rebuild it"
        ) from None
    return f"{mpiexec} {options} -n {ranks} {shlex.join([program, *arguments])}"
