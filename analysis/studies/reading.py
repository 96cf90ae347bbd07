"""Read a report's folder of literature/; a mistake in it is a sentence with file and key."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from analysis.studies.declaration import Claim, Claims, Data, Study, StudyError
from records.yaml_text import from_yaml


class Paper(Data):
    """A folder of literature/, read."""

    name: str
    folder: Path
    study: Study
    claims: list[Claim]


def papers(root: Path) -> list[str]:
    """Return the names of the reports for which literature/ has a study."""
    return sorted(path.parent.name for path in (root / "literature").glob("*/study.yaml"))


def read_yaml(path: Path) -> Any:
    """Return a YAML file's content; raise StudyError with the line of a mistake."""
    try:
        return from_yaml(path.read_text())
    except OSError as error:
        raise StudyError(f"{path} cannot be read: {error.strerror}") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f":{mark.line + 1}" if mark else ""
        what = getattr(error, "problem", None) or "it is not YAML"
        raise StudyError(f"{path}{line}: {what}") from None


def explain(path: Path, data: Any, error: ValidationError) -> str:
    """Return file, claim, key and what is wrong with it."""
    first = error.errors()[0]
    where = list(first["loc"])
    words = []
    if where[:1] == ["claims"] and len(where) > 1 and isinstance(where[1], int):
        claim = data["claims"][where[1]]
        name = claim.get("id") if isinstance(claim, dict) else None
        words.append(f"claim {name or 'number ' + str(where[1] + 1)}")
        where = where[2:]
    if where:
        words.append(".".join(str(part).removesuffix("_") for part in where))
    words.append(first["msg"].removeprefix("Value error, "))
    return f"{path}: {': '.join(words)}"


def read_paper(root: Path, name: str) -> Paper:
    """Return a report's study and claims; raise StudyError with a sentence."""
    known = papers(root)
    if name not in known:
        raise StudyError(f"there is no study of {name}; literature/ has: {', '.join(known)}")
    folder = root / "literature" / name
    data: Any = None
    path = folder / "study.yaml"
    try:
        data = read_yaml(path)
        study = Study.model_validate(data)
        path = folder / "claims.yaml"
        data = read_yaml(path)
        claims = Claims.model_validate(data).claims
    except ValidationError as error:
        raise StudyError(explain(path, data, error)) from None
    seen: set[str] = set()
    for claim in claims:
        if claim.id in seen:
            raise StudyError(f"{path}: claim {claim.id}: the id appears twice")
        seen.add(claim.id)
        statements = [*claim.report, *(claim.here if isinstance(claim.here, list) else [])]
        for family in [name for one in statements for name in one.families or []]:
            if family not in study.stands_for:
                raise StudyError(
                    f"{path}: claim {claim.id}: families: {family} is not among stands_for "
                    f"({', '.join(study.stands_for)})"
                )
        for key, quantity in claim.quantities.items():
            try:
                study.known(quantity.of, f"quantities.{key}.of")
                study.steps_known(quantity.steps, f"quantities.{key}.steps")
            except ValueError as error:
                raise StudyError(f"{path}: claim {claim.id}: {error}") from None
    return Paper(name=name, folder=folder, study=study, claims=claims)
