"""A bundle's machine-readable descriptions: RO-Crate 1.1, Citation File Format 1.2.0, Zenodo."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import yaml

from records.manifest import Manifest

DEVELOPERS = "The Wyeast developers"
LICENSE = "Apache-2.0"
CRATE = "ro-crate-metadata.json"
FOLDERS = {
    "campaign/": "The campaign's folder: its manifest, raw output of every launch, tables, report",
    "campaign/launches/": "A folder for each launch: its record, standard output and error, script",
    "campaign/packs/": "A tar for each round: of each launch its record, output, script",
    "campaign/nodes/": "The facts of each node that measured",
    "campaign/reframe/": "ReFrame's messages and its last report",
    "campaign/tables/": "Tables of launches, results and iterations (Parquet)",
    "definitions/": "The files the campaign was measured with: checks, site, containers, locks",
    "images/": "The images that the campaign ran, with their digests",
}
#: What only its folder describes: too many files to name each.
BY_FOLDER = ("campaign/launches/", "campaign/nodes/", "campaign/reframe/", "definitions/")
FORMATS = {
    ".json": "application/json", ".html": "text/html", ".md": "text/markdown",
    ".parquet": "application/vnd.apache.parquet", ".lock": "application/json",
    ".cff": "application/yaml", ".sif": "application/octet-stream",
}  # fmt: skip


def title(manifest: Manifest) -> str:
    """Return a campaign's title."""
    return f"MPI measurements: Wyeast campaign {manifest.campaign}"


def description(manifest: Manifest) -> str:
    """Return a sentence that describes a campaign."""
    return (
        f"{', '.join(manifest.images)} measured on the site {manifest.site} "
        f"({manifest.machine.get('cpu_model') or 'an unknown processor'}) in "
        f"{manifest.rounds} rounds of the tier {manifest.tier}: raw output of every launch, "
        "provenance, tables and report."
    )


def date_of(manifest: Manifest) -> str:
    """Return the day that a campaign ended, or began."""
    return str(manifest.finished_utc or manifest.created_utc)[:10]


def citation(manifest: Manifest, creator: str) -> str:
    """Return CITATION.cff of a bundle."""
    data = {
        "cff-version": "1.2.0",
        "message": "If you use these measurements, please cite them as below.",
        "type": "dataset",
        "title": title(manifest),
        "abstract": description(manifest),
        "authors": [{"name": creator}],
        "date-released": date_of(manifest),
        "license": LICENSE,
        "keywords": ["MPI", "benchmark", "reproducibility"],
    }
    return str(yaml.safe_dump(data, sort_keys=False, allow_unicode=True, width=100))


def zenodo(manifest: Manifest, creator: str) -> dict[str, Any]:
    """Return .zenodo.json of a bundle."""
    return {
        "upload_type": "dataset",
        "title": title(manifest),
        "description": description(manifest),
        "creators": [{"name": creator}],
        "publication_date": date_of(manifest),
        "access_right": "open",
        "license": LICENSE,
        "keywords": ["MPI", "benchmark", "reproducibility"],
    }


def metadata(manifest: Manifest, sizes: Mapping[str, int], creator: str) -> dict[str, Any]:
    """Return ro-crate-metadata.json; `sizes` are the other files' in bytes, by name."""
    folders = [name for name in FOLDERS if any(file.startswith(name) for file in sizes)]
    named = [name for name in sizes if not name.startswith(BY_FOLDER)]
    parts: dict[str, list[str]] = {name: [] for name in ("./", *folders)}
    for name in sorted([*named, *folders]):
        holders = [folder for folder in folders if name.startswith(folder) and name != folder]
        parts[max(holders, key=len, default="./")].append(name)
    software = manifest.software
    images = [
        {
            "@id": f"#image-{quote(name)}",
            "@type": "SoftwareApplication",
            "name": name,
            "identifier": f"sha256:{image.sha256}",
        }
        for name, image in manifest.images.items()
    ]
    measured: dict[str, Any] = {
        "@id": "#measurement",
        "@type": "CreateAction",
        "name": f"Measurement of {manifest.campaign}",
        "startTime": manifest.created_utc,
        "instrument": [{"@id": "#wyeast"}, *({"@id": image["@id"]} for image in images)],
        "object": [{"@id": "definitions/"}] if "definitions/" in folders else [],
        "result": [{"@id": "campaign/"}],
    }
    if manifest.finished_utc:
        measured["endTime"] = manifest.finished_utc
    license_id = f"https://spdx.org/licenses/{LICENSE}"
    graph: list[dict[str, Any]] = [
        {
            "@id": CRATE,
            "@type": "CreativeWork",
            "conformsTo": {"@id": "https://w3id.org/ro/crate/1.1"},
            "about": {"@id": "./"},
        },
        {
            "@id": "./",
            "@type": "Dataset",
            "name": title(manifest),
            "description": description(manifest),
            "datePublished": date_of(manifest),
            "license": {"@id": license_id},
            "author": {"@id": "#creator"},
            "mentions": {"@id": "#measurement"},
            "hasPart": references(parts["./"]),
        },
        {"@id": "#creator", "@type": "Organization", "name": creator},
        {"@id": license_id, "@type": "CreativeWork", "name": "Apache License 2.0"},
        {
            "@id": "#wyeast",
            "@type": "SoftwareApplication",
            "name": "Wyeast",
            "softwareVersion": str(software.get("wyeast_commit") or "unknown"),
        },
        *images,
        measured,
    ]
    for name in folders:
        folder = {
            "@id": quote(name),
            "@type": "Dataset",
            "name": name.rstrip("/"),
            "description": FOLDERS[name],
        }
        graph.append({**folder, "hasPart": references(parts[name])} if parts[name] else folder)
    for name in sorted(named):
        suffix = name[name.rfind(".") :]
        graph.append(
            {
                "@id": quote(name),
                "@type": "File",
                "name": name.rpartition("/")[2],
                "contentSize": str(sizes[name]),
                "encodingFormat": FORMATS.get(suffix, "text/plain"),
            }
        )
    return {"@context": "https://w3id.org/ro/crate/1.1/context", "@graph": graph}


def references(names: list[str]) -> list[dict[str, str]]:
    """Return references to files and folders of the crate."""
    return [{"@id": quote(name)} for name in names]
