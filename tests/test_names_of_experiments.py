"""Experiments are known by name in their entries of data; elsewhere no data is by their names.

Checks and programs are what the names are of. What a site and a study say of single experiments,
floors and replayed tables, is data of theirs (site_configs/, literature/).
"""

import ast
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from analysis.comparison.caveats.comparability import rules
from records.base import RecordError
from records.experiments import FILE, compared, experiments, read_experiments
from records.profile import PREFIX, is_profiled

PROJECT = Path(__file__).resolve().parents[1]
ROOMS = ("analysis", "campaign", "cluster", "containers", "costs", "inference", "records")
#: Why a file may have names of experiments all the same.
ALLOWED = {
    "records/experiments.yaml": "the entries of data",
    "analysis/simulation/history.py": "campaigns that are made up have to be of some experiment",
    "analysis/simulation/nights.py": "so do nights",
    "costs/checkouts.py": "so have the rounds that two checkouts measure in turn",
    "costs/twins.py": "so have the campaigns of an image and its twin",
    "costs/hiding.py": "its programs have the arguments of experiments, and are judged as these",
}
NAMES = "|".join(experiments())
#: What most texts have not, which is told at once.
NAMED = re.compile(NAMES)
#: A name as a key: by itself, one of several in a pattern, with a parameter, or part of a name of
#: a table. Sentences that say what to measure (CHECKS=…) are no keys.
KEY = re.compile(rf"(?:^|[|(^]|[a-z]-)(?:{NAMES})(?:$|[|)^]|\.\*|\\| (?:suite|pair|ranks|\w+)=)")
#: The same in templates and data files, where it stands between quotes, colons and brackets.
WRITTEN = re.compile(
    rf"(?<!=)(?:['\"]|['\"][a-z]+-)(?:{NAMES})['\"]|\bmetrics\.(?:{NAMES})\b|^\s*-?\s*(?:{NAMES}):"
    rf"|[\[,]\s*(?:{NAMES})\s*[,\]]"
)


def keys_in_python(module: str) -> Iterator[int]:
    """Yield the lines of a module in which a text that is no docstring has a name as a key."""
    tree = ast.parse(module)
    documented = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef))
        and node.body and isinstance(node.body[0], ast.Expr)
    }  # fmt: skip
    for node in ast.walk(tree):
        if not isinstance(node, ast.Constant) or id(node) in documented:
            continue
        text = node.value if isinstance(node.value, str) else ""
        if NAMED.search(text) and "CHECKS=" not in text and KEY.search(text):
            yield node.lineno


def keys_in(name: str, text: str) -> list[int]:
    """Return the lines of a file that have a name of an experiment as a key."""
    if name.endswith(".py"):
        return sorted(set(keys_in_python(text)))
    lines = enumerate(text.splitlines(), 1)
    return [number for number, line in lines if WRITTEN.search(line.split("#")[0])]


def test_no_other_file_names_an_experiment_as_a_key() -> None:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", *ROOMS],
        cwd=PROJECT, text=True, capture_output=True, check=True,
    ).stdout.splitlines()  # fmt: skip
    read = [name for name in listed if name.endswith((".py", ".yaml", ".html"))
            and (PROJECT / name).is_file()]  # fmt: skip
    assert len(read) > 150
    found = {name: lines for name in read if (lines := keys_in(name, (PROJECT / name).read_text()))}
    assert found.keys() - ALLOWED.keys() == set(), found
    # What is allowed and no longer needed is taken out of the list.
    assert ALLOWED.keys() <= found.keys()


@pytest.mark.parametrize(
    "line",
    [
        'assert experiment == "StartUp"', 'METRICS = {"HaloExchange": "time"}',
        'A = ("Nas", "Su3")',
        'PLAIN = re.compile(r"EchoTest|Mpptest suite=(short|long)")', 'C = "^Preflight|^PvmEcho.*"',
        'cell = "Collectives suite=simulated ranks=2"', 'download("ratios-StartUp")',
    ],
)  # fmt: skip
def test_a_name_as_a_key_is_found(line: str) -> None:
    assert keys_in("a.py", line) == [1]


@pytest.mark.parametrize(
    "line",
    [
        '"""Dgemm"""', 'fail("measure with CHECKS=\'Linpack|Dgemm\'")',
        '"High Performance Linpack"', '"Linpack 100, Mflop/s"', "from records.su3 import Su3",
        "isinstance(result, Stream)",
    ],
)  # fmt: skip
def test_what_is_not_a_key_is_none(line: str) -> None:
    assert keys_in("a.py", line) == []


def test_a_name_in_a_template_or_a_data_file_is_found() -> None:
    assert keys_in("a.html", "{% set cells = comparison.experiment('Nas') %}") == [1]
    assert keys_in("a.html", "{{ metrics.Nas.formula }}{{ download('ratios-Nas') }}") == [1]
    assert keys_in("a.yaml", "  experiments: [Linpack]\n  # Linpack: no\nLinpack:\n") == [1, 3]
    assert keys_in("a.html", "<h2>Linpack</h2>") == []


def test_every_check_has_its_entry() -> None:
    """By the classes that ReFrame takes for checks; a profile's is one of another check."""
    checks = {
        node.name
        for file in (PROJECT / "reframe_checks").glob("*.py")
        for node in ast.parse(file.read_text()).body
        if isinstance(node, ast.ClassDef)
        and any(isinstance(one, ast.Attribute) and one.attr == "simple_test"
                for one in node.decorator_list)
    }  # fmt: skip
    profiles = {name for name in experiments() if is_profiled(name)}
    assert checks and checks == experiments().keys() - profiles
    assert {name.removeprefix(PREFIX) for name in profiles} <= checks


def test_entries_name_rules_that_exist() -> None:
    named = {rule for one in experiments().values() for rule in one.concerned_by}
    assert named and named <= {rule.name for rule in rules()}
    assert {rule.name for rule in rules() if rule.experiments} == named


ENTRY = """\
default: {margin: 0.02}
better: {s: lower}
experiments:
  Shift:
    metric: time
    label: time
    unit: s
    formula: the median shift
    values: time
    order: {ranks: number, way: [left, right], grid: grid}
    group: "shifts to the {way}"
    apart: {speed: usual}
"""


def test_cells_are_ordered_and_grouped_by_what_the_entry_says(tmp_path: Path) -> None:
    file = tmp_path / "experiments.yaml"
    file.write_text(ENTRY)
    one = read_experiments(file).experiments["Shift"]
    cells: list[dict[str, Any]] = [
        {"ranks": ranks, "way": way, "grid": grid}
        for ranks in (2, 16) for way in ("left", "right") for grid in ("1x2", "1x10", "5x2")
    ]  # fmt: skip
    assert sorted(reversed(cells), key=one.order_of) == cells
    assert one.group_of(cells[0]) == "Shifts to the left"
    assert one.group_of(cells[0] | {"speed": "usual"}) == "Shifts to the left"
    assert one.group_of(cells[0] | {"speed": "slow"}) == "Shifts to the left, slow speed"
    assert one.group_parameters(cells[0]) == (("way", "left"),)
    assert one.group_parameters(cells[0] | {"speed": "usual"}) == (("way", "left"),)
    assert one.group_parameters(cells[0] | {"speed": "slow"}) == (
        ("way", "left"), ("speed", "slow"),
    )  # fmt: skip
    assert one.wrong_parameter(cells[0]) is None
    for wrong, words in (
        ({"ranks": "many"}, "ranks is 'many'"), ({"way": "up"}, "way is 'up'"),
        ({"grid": "2"}, "grid is '2'"),
    ):  # fmt: skip
        assert one.wrong_parameter(cells[0] | wrong) == words
    assert one.wrong_parameter({"ranks": 2, "way": "left"}) == "Shift lacks 'grid'"


@pytest.mark.parametrize(
    ("before", "after", "sentence"),
    [
        ("    unit: s\n", "", "Shift: lacks unit; or say why it is not_compared"),
        ("unit: s\n", "unit: B/s\n", "values: time is in s, not in B/s"),
        ("values: time", "values: guessed", "experiments.Shift.values: Input should be 'time'"),
        ("{way}", "{side}", "group: side is not a parameter of order"),
        ("    apart:", "    aprt:", "experiments.Shift.aprt: Extra inputs are not permitted"),
        (
            "    apart:",
            "    caption: side\n    apart:",
            "caption: side is not a parameter of order",
        ),
        ("    apart:", "    sample: ['(']\n    apart:", "'(' is not a valid pattern"),
        ("default:", "default", "it lacks default, better or experiments with entries"),
        ("[left, right]", "[left, right", "is not YAML"),
    ],
)
def test_an_entry_that_cannot_be_is_refused_with_a_sentence(
    tmp_path: Path, before: str, after: str, sentence: str
) -> None:
    file = tmp_path / "experiments.yaml"
    assert before in ENTRY
    file.write_text(ENTRY.replace(before, after))
    with pytest.raises(RecordError) as error:
        read_experiments(file)
    assert str(error.value).startswith(str(file)) and sentence in str(error.value)


def test_an_operation_of_two_experiments_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "experiments.yaml"
    other = ENTRY[ENTRY.index("  Shift:") :].replace("Shift:", "Other:")
    both = (ENTRY + "    operations: [shift]\n", other + "    operations: [shift]\n")
    file.write_text("".join(both))
    with pytest.raises(RecordError, match="operations: shift is in two entries"):
        read_experiments(file)
    assert all(not one.not_compared for one in compared().values()) and FILE.is_file()
