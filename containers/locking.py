"""One at a time: a process that changes images keeps others out."""

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from containers import images
from containers.selection import campaign_lock, sites_here
from records import layout
from records.acting_user import hand_over, unsafe_home, untrusted
from records.locks import LockHeld, NotShared, exclusive, holder_of, on_machine


class BuildError(Exception):
    """A build cannot be done; the text is a sentence with the next step."""


@contextmanager
def only_build(root: Path) -> Iterator[None]:
    """Keep a second build out, and campaigns whose launches run on this machine.

    Raises BuildError where one is under way.
    """
    remains = layout.state(root) / "build"
    sentence = untrusted(root) if os.geteuid() == 0 else None
    if sentence := sentence or unsafe_home(root):
        raise BuildError(sentence)
    hand_over(layout.home(root))
    place = layout.state(root) / "locks" / "build"
    with ExitStack() as held:
        try:
            held.enter_context(exclusive(place, str(os.getpid())))
        except LockHeld as holder:
            raise BuildError(
                f"another build is under way (process {holder}); wait for it to end, then run this "
                "one again"
            ) from None
        held.enter_context(beside_no_campaign(root))
        # Leftovers of an interrupted build; nobody else is at work here.
        shutil.rmtree(remains, ignore_errors=True)
        held.callback(shutil.rmtree, remains, ignore_errors=True)
        yield


def prune(root: Path) -> None:
    """Remove the images that no lock names any more, unless a campaign of the checkout may run one.

    No build may be under way. If a bundle's lock cannot be read, nothing is removed, and that is
    printed.
    """
    sites = [path.parent.name for path in layout.site_files(root)]
    if not any(holder_of(campaign_lock(root, site)) for site in sites):
        try:
            images.prune(root)
        except images.ImageError as error:
            print(f"unused images are not removed: {error}", file=sys.stderr)


@contextmanager
def beside_no_campaign(root: Path) -> Iterator[None]:
    """Keep campaigns from beginning whose launches run on this machine, of any checkout.

    Builds of several checkouts may go on side by side. Raises BuildError where a campaign measures.
    """
    with ExitStack() as held:
        try:
            # The cluster in a box has its own folders, and does not see the machine's lock.
            locks = [campaign_lock(root, site) for site in sites_here(root)]
            if holder := next(filter(None, map(holder_of, locks)), None):
                raise LockHeld(holder)
            held.enter_context(
                on_machine(f"build, process {os.getpid()} of {layout.home(root)}", shared=True)
            )
        except LockHeld as held_by:
            raise BuildError(
                f"a campaign is measuring on this machine ({held_by}), and whatever builds would "
                "disturb it; wait until it has ended, then run this again"
            ) from None
        except NotShared as error:
            print(f"campaigns on this machine would not be noticed: {error}", file=sys.stderr)
        yield
