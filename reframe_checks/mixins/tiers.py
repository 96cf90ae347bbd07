"""The tier decides how much a check measures.

`quick` is for every day, `paper` as in the report, and `site` as large as the site's cores and
memory allow.
"""

import os
from typing import Any

TIERS = ("quick", "paper", "site")
#: The tag of checks that a campaign runs only when they are named.
VALIDATION = "validation"
TIER = os.environ.get("WYEAST_TIER", "quick")

if TIER not in TIERS:
    raise SystemExit(f"TIER={TIER} is unknown; choose one of: {', '.join(TIERS)}")


def of_tier(**values: Any) -> Any:
    """Return the value that was given for the active tier.

    Only what depends on a node's memory, or fills the site's nodes, has a value of its own for
    `site`. All else is measured there as in `quick`, so that a campaign of HPL at full size has the
    messages beside it too.
    """
    return values["quick" if TIER == "site" and "site" not in values else TIER]
