"""Which packages an image has that Spack built, from its own list of them."""

import json
from typing import Any

from pydantic import ValidationError

from records.manifest import SpackPackage

#: Asked of an image that Spack built.
LIST = "/opt/wyeast/spack/software.json"


def read(told: str) -> list[dict[str, Any]] | None:
    """Return the packages of an image's list, as a campaign's manifest has them.

    None for what is no such list.
    """
    try:
        packages = json.loads(told)
        called = {
            f"{one['name']}/{one['spack_hash'][:7]}": f"{one['name']}@{one['version']}"
            for one in packages
        }
        return [_package(one, called).model_dump(mode="json") for one in packages]
    except (ValueError, KeyError, TypeError, AttributeError, ValidationError):
        return None


def _package(told: dict[str, Any], called: dict[str, str]) -> SpackPackage:
    digests = {source["sha256"] for source in told.get("sources", []) if source["sha256"]}
    return SpackPackage(
        name=told["name"],
        version=told["version"],
        target=told["target"],
        variants=told["variants"],
        origin=told["from"],
        sources=sorted(digests),
        # They are told with their hashes, which say nothing beyond what is said here of each.
        dependencies=sorted({called[one] for one in told["dependencies"]}),
    )
