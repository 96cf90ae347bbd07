"""What the packages of a lock are made of, by Spack's recipes.

Run by Spack, `spack python lock_sources.py LOCK`: it prints in JSON, for each package that is
built, the archives and patches that its recipe asks for, each with its digest, its address and
where a mirror has it.
"""

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import spack.environment
import spack.repo
from spack.fetch_strategy import URLFetchStrategy
from spack.patch import FilePatch
from spack.spec import Spec


def specs_of(lock: str) -> list[Spec]:
    """Return the packages of a lock."""
    asked = [root["spec"] for root in json.loads(lock)["roots"]]
    with tempfile.TemporaryDirectory() as folder:
        text = json.dumps({"spack": {"specs": asked, "view": False}})
        (Path(folder) / "spack.yaml").write_text(text)
        (Path(folder) / "spack.lock").write_text(lock)
        return list(spack.environment.Environment(folder).all_specs())


def sources_of(spec: Spec) -> list[dict[str, Any]]:
    """Return what is fetched for a package, and the patches that lie beside its recipe."""
    if spec.is_develop or not spec.package.has_code:
        return []
    found = []
    for number, stage in enumerate(spec.package.stage):
        fetcher = getattr(stage, "default_fetcher", None)
        # A package from a folder of the checkout fetches nothing.
        if fetcher is None or not fetcher.url_attr:
            continue
        address = getattr(fetcher, "url", None) or str(fetcher)
        plain = isinstance(fetcher, URLFetchStrategy) and not fetcher.expand_archive
        found.append({
            "kind": "patch" if plain and number else "archive",
            "address": address,
            "others": list(getattr(fetcher, "mirrors", None) or []),
            "sha256": fetcher.digest if isinstance(fetcher, URLFetchStrategy) else None,
            "place": stage.mirror_layout.path,
        })  # fmt: skip
    for patch in spec.patches:
        if isinstance(patch, FilePatch):
            found.append({
                "kind": "patch",
                "address": f"{patch.owner}/{patch.relative_path}",
                "others": [],
                "sha256": patch.sha256,
                # Beside the recipe, wherever that is: there is nothing to fetch.
                "place": None,
            })  # fmt: skip
    return found


def main() -> int:
    """Print the sources of a lock's packages."""
    lock = Path(sys.argv[1]).read_text()
    found = [
        {
            "package": spec.name,
            "version": str(spec.version),
            "recipe": spec.namespace,
            "hash": spec.dag_hash(),
            "sources": sources_of(spec),
        }
        for spec in specs_of(lock)
        if not spec.external
    ]
    json.dump(sorted(found, key=lambda one: (one["package"], one["version"], one["hash"])),
              sys.stdout)  # fmt: skip
    return 0


if __name__ == "__main__":
    sys.exit(main())
