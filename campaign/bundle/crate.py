"""A bundle's machine-readable descriptions: RO-Crate, Citation File Format 1.2.0, Zenodo.

The crate is one of RO-Crate 1.1 and of the profile Process Run Crate 0.5.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

import yaml

from campaign.bundle.people import DEVELOPERS, Creator
from records.manifest import Manifest
from records.program import Program

LICENSE = "Apache-2.0"
PROCESS_RUN = "https://w3id.org/ro/wfrun/process/0.5"
CRATE = "ro-crate-metadata.json"
FOLDERS = {
    "campaign/": "The campaign's folder: its manifest, raw output of every launch, tables, report",
    "campaign/launches/": "A folder for each launch: its record, standard output and error, script",
    "campaign/packs/": "A tar for each round: of each launch its record, output, script",
    "campaign/nodes/": "The facts of each node that measured",
    "campaign/reframe/": "ReFrame's messages and reports",
    "campaign/tables/": "Tables of launches, results and iterations (Parquet)",
    "definitions/": "The files the campaign was measured with: checks, site, containers, locks",
    "images/": "The images that the campaign ran, with their digests",
}
#: What became of an action, by whether it came to its end.
STATUS = {
    True: "http://schema.org/CompletedActionStatus",
    False: "http://schema.org/FailedActionStatus",
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


def citation(manifest: Manifest, creators: Sequence[Creator], program: Program) -> str:
    """Return CITATION.cff of a bundle."""
    software = {
        "type": "software",
        "title": "Wyeast",
        "authors": [{"name": DEVELOPERS}],
        "version": program.version,
        "commit": program.commit,
        "repository-code": program.repository,
    }
    data = {
        "cff-version": "1.2.0",
        "message": "If you use these measurements, please cite them as below.",
        "type": "dataset",
        "title": title(manifest),
        "abstract": description(manifest),
        "authors": [one.in_citation() for one in creators],
        "date-released": date_of(manifest),
        "license": LICENSE,
        "keywords": ["MPI", "benchmark", "reproducibility"],
        "references": [{key: value for key, value in software.items() if value}],
    }
    return str(yaml.safe_dump(data, sort_keys=False, allow_unicode=True, width=100))


def zenodo(manifest: Manifest, creators: Sequence[Creator], program: Program) -> dict[str, Any]:
    """Return .zenodo.json of a bundle."""
    from_where = {"identifier": program.repository, "relation": "isCompiledBy",
                  "resource_type": "software"}  # fmt: skip
    return {
        "upload_type": "dataset",
        "title": title(manifest),
        "description": description(manifest),
        "creators": [one.in_zenodo() for one in creators],
        "publication_date": date_of(manifest),
        "access_right": "open",
        "license": LICENSE,
        "keywords": ["MPI", "benchmark", "reproducibility"],
        **({"related_identifiers": [from_where]} if program.repository else {}),
    }


def metadata(
    manifest: Manifest, sizes: Mapping[str, int], creators: Sequence[Creator], program: Program
) -> dict[str, Any]:
    """Return ro-crate-metadata.json; `sizes` are the other files' in bytes, by name."""
    folders = [name for name in FOLDERS if any(file.startswith(name) for file in sizes)]
    named = [name for name in sizes if not name.startswith(BY_FOLDER)]
    parts: dict[str, list[str]] = {name: [] for name in ("./", *folders)}
    for name in sorted([*named, *folders]):
        holders = [folder for folder in folders if name.startswith(folder) and name != folder]
        parts[max(holders, key=len, default="./")].append(name)
    images = [
        {
            "@id": f"#image-{quote(name)}",
            "@type": "SoftwareApplication",
            "name": name,
            "description": "An Apptainer image with this MPI and the programs that were run",
            "identifier": f"sha256:{image.sha256}",
            "softwareVersion": f"sha256:{image.sha256}",
        }
        for name, image in manifest.images.items()
    ]
    measured: dict[str, Any] = {
        "@id": "#measurement",
        "@type": "CreateAction",
        "name": f"Measurement of {manifest.campaign}",
        "description": description(manifest),
        "agent": authors(creators),
        "actionStatus": STATUS[bool(manifest.finished_utc)],
        "startTime": offset(manifest.created_utc),
        "instrument": [{"@id": identifier(program)}, *({"@id": one["@id"]} for one in images)],
        "result": {"@id": "campaign/"},
    }
    if "definitions/" in folders:
        measured["object"] = {"@id": "definitions/"}
    if manifest.finished_utc:
        measured["endTime"] = offset(manifest.finished_utc)
    groups = [one for one in creators if not one.orcid]
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
            "author": authors(creators),
            **({"publisher": {"@id": groups[0].identifier}} if groups else {}),
            "conformsTo": {"@id": PROCESS_RUN},
            "mentions": {"@id": "#measurement"},
            "hasPart": references(parts["./"]),
        },
        *(one.in_crate() for one in creators),
        {
            "@id": license_id,
            "@type": "CreativeWork",
            "name": "Apache License 2.0",
            "description": "The license of the measurements and of the program",
        },
        {
            "@id": PROCESS_RUN,
            "@type": "CreativeWork",
            "name": "Process Run Crate",
            "version": "0.5",
        },
        software_of(program),
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


def authors(creators: Sequence[Creator]) -> dict[str, str] | list[dict[str, str]]:
    """Return references to people and groups of the crate; a single one is no list."""
    found = [{"@id": one.identifier} for one in creators]
    return found if len(found) > 1 else found[0]


def offset(utc: str) -> str:
    """Return a time of UTC with its offset in digits, as the profile has times."""
    return utc.removesuffix("Z") + "+00:00" if utc.endswith("Z") else utc


def identifier(program: Program) -> str:
    """Return what the crate calls the program: its address where that is known."""
    return program.repository or "#wyeast"


def software_of(program: Program) -> dict[str, Any]:
    """Return the entity of the program that measured, with where it is to be had."""
    found: dict[str, Any] = {
        "@id": identifier(program),
        "@type": "SoftwareApplication",
        "name": program.name,
        "description": "Measures MPI implementations in containers, reproducibly",
        "softwareVersion": " ".join(filter(None, (program.version, program.commit))) or "unknown",
    }
    if program.commit:
        found["identifier"] = f"git commit {program.commit}"
    if program.repository:
        found |= {"url": program.repository, "codeRepository": program.repository}
    return found


def references(names: list[str]) -> list[dict[str, str]]:
    """Return references to files and folders of the crate."""
    return [{"@id": quote(name)} for name in names]
