"""The tier decides how much a check measures: `quick` for every day, `paper` as in the report."""

import os
from typing import Any

TIERS = ("quick", "paper")
#: The tag of checks that a campaign runs only when they are named.
VALIDATION = "validation"
TIER = os.environ.get("WYEAST_TIER", "quick")

if TIER not in TIERS:
    raise SystemExit(f"TIER={TIER} is unknown; choose one of: {', '.join(TIERS)}")


def of_tier(**values: Any) -> Any:
    """Return the value that was given for the active tier."""
    return values[TIER]
