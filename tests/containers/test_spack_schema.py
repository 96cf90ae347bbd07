"""spack.yaml and the base's packages.yaml have no key that Spack would pass over in silence."""

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator, ValidationError

from tests.containers.test_spack import OPTIONS, PROJECT, SITE

SCHEMA = json.loads((PROJECT / "tests/containers/spack.schema.json").read_text())
Draft202012Validator.check_schema(SCHEMA)
FILES = {"environment": PROJECT / "spack.yaml", "site": SITE}
DATA = {kind: yaml.safe_load(path.read_text()) for kind, path in FILES.items()}
Change = Callable[[Any], object]


def validate(kind: str, data: Any) -> None:
    Draft202012Validator({**SCHEMA, "$ref": f"#/$defs/{kind}"}).validate(data)


@pytest.mark.parametrize("kind", FILES)
def test_files_are_of_the_schema(kind: str) -> None:
    validate(kind, DATA[kind])


@pytest.mark.parametrize("path", OPTIONS, ids=lambda path: path.parent.name)
def test_what_a_site_says_of_an_option_is_of_the_schema_too(path: Path) -> None:
    validate("site", yaml.safe_load(path.read_text()))


def renamed(mapping: Any, old: str, new: str) -> None:
    mapping[new] = mapping.pop(old)


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        ("environment", lambda d: renamed(d["spack"], "concretizer", "concretiser")),
        ("environment", lambda d: renamed(d["spack"]["concretizer"], "unify", "unity")),
        ("environment", lambda d: d["spack"]["include"][0].update(optional=True)),
        ("environment", lambda d: d["spack"]["definitions"][0].pop("when")),
        ("environment", lambda d: d["spack"]["definitions"][0].update(mpi=["openmpi@5"])),
        ("environment", lambda d: d["spack"].update(view=True)),
        ("site", lambda d: renamed(d["packages"]["gcc"], "buildable", "buildabel")),
        ("site", lambda d: renamed(d["packages"]["gcc"]["externals"][0], "prefix", "path")),
        ("site", lambda d: d["packages"]["cmake"]["externals"][0].update(spec="cmake")),
        ("site", lambda d: d["packages"]["all"].update(requires=["target=x"])),
        ("site", lambda d: renamed(d, "packages", "package")),
    ],
)
def test_a_wrong_key_is_refused(kind: str, change: Change) -> None:
    wrong = copy.deepcopy(DATA[kind])
    change(wrong)
    with pytest.raises(ValidationError):
        validate(kind, wrong)


@pytest.mark.parametrize(("site", "included"), [(None, False), ("", False), ("virtual", True)])
def test_a_site_is_included_where_one_is_named(site: str | None, included: bool) -> None:
    *_, entry, _ = DATA["environment"]["spack"]["include"]
    variables = {} if site is None else {"WYEAST_SITE": site}
    assert eval(entry["when"], {"env": variables}) is included
    # Without `optional`, Spack says that a folder is not there.
    assert "optional" not in entry
