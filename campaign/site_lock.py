"""Reserve a site for one campaign, and this machine with it where launches run here."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from containers import selection
from records import files, layout
from records.base import CampaignError
from records.locks import LockHeld, NoLocks, NotShared, exclusive, holder_of, on_machine
from site_configs.site_file import LOCAL


class SiteIsBusy(CampaignError):
    """Another campaign is using the site; the text is a sentence."""


@contextmanager
def only_campaign(root: Path, site: str, has_machine: bool = False) -> Iterator[None]:
    """Reserve the site for one campaign: two at once would disturb each other.

    Without a scheduler that separates jobs, the whole machine is reserved: checkouts share its
    processors. This is skipped for a caller that already `has_machine` through another site.
    Raises SiteIsBusy if another campaign is measuring, and CampaignError for an unknown site.
    """
    scheduler = selection.site_data(root, site)["scheduler"]
    note = f"process {os.getpid()} of {layout.home(root)} since {files.utc_now()}"
    lock = selection.campaign_lock(root, site)
    with ExitStack() as held:
        try:
            place = f"site {site}"
            held.enter_context(exclusive(lock, note))
            if selection.runs_here(root, site) and not has_machine:
                place = "this machine"
                refuse_beside_the_box(root, site)
                # The cluster in a box has its own folders, which nobody else looks into.
                if scheduler == LOCAL:
                    held.enter_context(on_machine(note))
        except LockHeld as holder:
            is_build = str(holder).startswith("build")
            who = "a build is under way" if is_build else "another campaign is measuring"
            raise SiteIsBusy(
                f"{who} on {place} ({holder}), and two at once would disturb each other; wait "
                "until it has ended"
            ) from None
        except NoLocks as error:
            raise CampaignError(f"{lock}: {error.strerror}") from None
        except OSError as error:
            raise CampaignError(
                f"{lock} cannot be opened: {error.strerror}; if this checkout belongs to another "
                "user, use one of your own"
            ) from None
        except NotShared as error:
            print(
                f"campaigns of other checkouts on this machine would not be noticed: {error}",
                file=sys.stderr,
            )
        yield


def refuse_beside_the_box(root: Path, site: str) -> None:
    """Raise LockHeld if this checkout builds, or measures on another site of this machine.

    One of them is the cluster in a box: others exclude each other by the machine's lock.
    """
    locks = [selection.campaign_lock(root, other)
             for other in selection.sites_here(root) if other != site]  # fmt: skip
    if holder := next(filter(None, map(holder_of, locks)), None):
        raise LockHeld(holder)
    if holder := holder_of(layout.state(root) / "locks" / "build"):
        raise LockHeld(f"build, process {holder}")
