"""Where each image comes from and who vouches for it, according to its entry in images.lock.

An entry's `origin` says where its image comes from, and `admitted` who said that it may run.
An image built here needs nobody; one from elsewhere, or of unknown origin, runs only
if a person vouches for it or a trusted key has signed it.
"""

import os
import pwd
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from containers import images, store, table

COMMAND = "make admit"
BUILT = {"how": "built"}


def word(how: str) -> dict[str, str]:
    """Return what an entry records about who vouched for it: who, when, and with which command."""
    try:
        user = pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        user = str(os.getuid())
    return {"by": user, "utc": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"), "how": how}


def answered_for(entry: Mapping[str, Any]) -> bool:
    """Return whether an image was built here, or a person has vouched for it.

    An entry without an origin is of a time at which a bundle's entries were taken over as they
    were: that it looks like one of a build says nothing.
    """
    return entry.get("origin") == BUILT or isinstance(entry.get("admitted"), dict)


def told(entry: Mapping[str, Any]) -> str:
    """Return where an image comes from, as the middle of a sentence."""
    origin = entry.get("origin")
    if not isinstance(origin, dict):
        origin = {}
    where = str(origin.get("from") or entry.get("pulled_from") or "")
    if origin.get("how") == "built":
        return "built here"
    if origin.get("how") == "bundle":
        return f"from the bundle {where}"
    if where:
        lock = f" with the digest of {origin['lock']}" if origin.get("lock") else ""
        plain = ", without TLS" if origin.get("insecure") else ""
        signers = ", ".join(origin.get("signed_by") or [])
        return f"pulled from {where}{lock}{plain}{f', signed by {signers}' if signers else ''}"
    return "of unknown origin"


def question(root: Path, name: str) -> str:
    """Return the sentence that asks a person about an image that nobody vouches for."""
    implementation, _ = table.split_variant(name)
    entry = images.entry_of(root, name)
    path = store.path_of(root, entry)
    return (
        f"{implementation} is {told(entry)}, and nobody here has vouched for it (sha256 "
        f"{entry['sha256']}): if you know who made it, {COMMAND} IMAGES={implementation}; else "
        f"remove {path}, and {images.BUILD_COMMAND} IMAGES={implementation} builds it here"
    )
