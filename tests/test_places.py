"""Every path and every `python -m` that a page or the Makefile names is there; so is the house."""

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests import house

PROJECT = Path(__file__).resolve().parents[1]
ROOMS = ("analysis", "benchmarks", "campaign", "cluster", "containers", "costs", "documentation",
         "inference",
         "literature", "records", "reframe_checks", "site_configs", "spack_locks", "spack_repo",
         "tests")  # fmt: skip
#: A path of a room that ends in a file's name or in a slash.
PATH = re.compile(
    rf"(?<![\w./-])(?:\.\./)*((?:{'|'.join(ROOMS)})/(?:[\w.-]+/)*(?:[\w-][\w.-]*\.[a-z][a-z0-9]*)?)(?![\w<*])"
)
MODULE = re.compile(r"-m ((?:[a-z_0-9]+)(?:\.[a-z_0-9]+)*)")
DOTTED = re.compile(rf"`((?:{'|'.join(ROOMS)})(?:\.[a-z_][a-z_0-9]*)+)(?:\.[A-Z]\w*)?[`(]")
#: A test, or the class of a stateful one, in its file.
TEST = re.compile(r"\b(tests/[\w/]+\.py)::(\w+)")
#: What a site, a build or a user makes, and pages show as an example.
MADE = re.compile(
    r"site_configs/(mycluster|mine|yours|SITE|NAME)\b|references\.proposed|images\.lock$|/tmp/|^campaign/(?:launches|packs)|^literature/smith2030/"
    r"|^(benchmarks|reframe_checks)/ring_shift\b"
    r"|containers/trust/good\.asc"
)


def pages() -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "*.md", "Makefile", "*/Makefile"],
        cwd=PROJECT, text=True, capture_output=True, check=True,
    ).stdout.splitlines()  # fmt: skip
    return [PROJECT / name for name in listed if (PROJECT / name).exists()]


def lacking(text: str) -> list[str]:
    """Return what a page names and the project has not."""
    found = [
        path for path in PATH.findall(text)
        if not MADE.search(path) and not (PROJECT / path).exists()
    ]  # fmt: skip
    for module in dict.fromkeys(MODULE.findall(text)):
        if module.partition(".")[0] in ROOMS and not is_command(module):
            found.append(f"python -m {module}")
    for name in dict.fromkeys(DOTTED.findall(text)):
        if not (is_module(name) or is_module(name.rpartition(".")[0])):
            found.append(name)
    return found


def is_module(name: str) -> bool:
    path = PROJECT.joinpath(*name.split("."))
    return path.with_suffix(".py").is_file() or path.is_dir()


def is_command(name: str) -> bool:
    path = PROJECT.joinpath(*name.split("."))
    return path.with_suffix(".py").is_file() or (path / "__main__.py").is_file()


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(PROJECT)))
def test_what_a_page_names_is_there(page: Path) -> None:
    assert lacking(page.read_text()) == []


@pytest.mark.parametrize(
    "text",
    ["see `analysis/report.py`", "`../../analysis/metrics.yaml`", "python -m campaign.check_site",
     "`containers.no_such.exec_options()`"],
)  # fmt: skip
def test_what_has_moved_is_found(text: str) -> None:
    assert len(lacking(text)) == 1


def without_tests(text: str) -> list[str]:
    """Return which tests a page names and the project has not."""
    return [
        f"{path}::{name}"
        for path, name in TEST.findall(text)
        if not (PROJECT / path).is_file()
        or not re.search(rf"^(?:def|class) {name}\b", (PROJECT / path).read_text(), re.M)
    ]


def test_each_test_that_a_page_names_is_there() -> None:
    assert [name for page in pages() for name in without_tests(page.read_text())] == []
    assert without_tests("`tests/test_places.py::test_no_such` `tests/no.py::test_it`") == [
        "tests/test_places.py::test_no_such", "tests/no.py::test_it"
    ]  # fmt: skip
    rows = (PROJECT / "docs" / "method" / "faults.md").read_text().splitlines()
    rows = [row for row in rows if row.startswith("|")][2:]
    assert len(rows) > 20 and all(TEST.search(row.rpartition(" | ")[2]) for row in rows)


def test_the_house_is_drawn_as_it_is() -> None:
    """Renew it with `python -m tests.house`."""
    page = house.PAGE.read_text()
    assert house.with_drawing(page, house.drawing()) == page


def test_every_room_is_measured_typed_and_ordered() -> None:
    """A new room is not forgotten by coverage, types or the order of imports."""
    listed = subprocess.run(
        ["git", "ls-files", "*.py"], cwd=PROJECT, text=True, capture_output=True, check=True
    ).stdout.splitlines()
    apart = {"benchmarks", "spack_repo", "tests"}
    rooms = {name.partition("/")[0] for name in listed if "/" in name} - apart
    tools = tomllib.loads((PROJECT / "pyproject.toml").read_text())["tool"]
    assert set(tools["coverage"]["run"]["source"]) == rooms
    assert set(tools["mypy"]["packages"]) == rooms - {"reframe_checks"} | {"tests"}
    assert set(tools["importlinter"]["root_packages"]) == rooms
    [the_house] = [one for one in tools["importlinter"]["contracts"] if one["name"] == "The house"]
    placed = {room.strip() for layer in the_house["layers"] for room in layer.split("|")}
    assert placed == rooms


#: What a test may have of a module that was renamed or changed, and the kind of mypy's complaint.
GONE = {
    "from records.names import gone\n": "attr-defined",
    "import records.nothing\n": "import-not-found",
    "print(names.gone)\n": "attr-defined",
    "print(lost)\n": "name-defined",
    "names.known(1, 2)\n": "call-arg",
    "names.known('1')\n": "arg-type",
}


def test_what_a_test_names_and_nobody_has_is_found_without_running_it(tmp_path: Path) -> None:
    """By the settings of this project, in a small one: `make lint` says so in seconds."""
    settings = (PROJECT / "pyproject.toml").read_text()
    packages = tomllib.loads(settings)["tool"]["mypy"]["packages"]
    for room in packages:
        (tmp_path / room).mkdir()
        (tmp_path / room / "__init__.py").touch()
    (tmp_path / "pyproject.toml").write_text(re.sub(r"(?m)^modules = .*$", "", settings))
    (tmp_path / "records" / "names.py").write_text("def known(number: int) -> None: ...\n")
    # As most rooms of tests are: a folder that says nothing of being a package.
    (tmp_path / "tests" / "campaign").mkdir()
    file = tmp_path / "tests" / "campaign" / "test_one.py"
    file.write_text("from records import names\n" + "".join(GONE))
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--cache-dir=/dev/null"], cwd=tmp_path,
        capture_output=True, text=True, check=False,
        env={"PATH": "/usr/bin:/bin"},
    )  # fmt: skip
    said = re.findall(r"test_one\.py:(\d+): error: .*\[([\w-]+)\]$", done.stdout, re.M)
    assert done.returncode == 1, done.stdout + done.stderr
    assert said == [(str(line), kind) for line, kind in enumerate(GONE.values(), 2)], done.stdout


BROKEN = {
    "upwards": ("records/base.py", "from analysis.tables import units"),
    "upwards in a function": ("records/base.py", "def late():\n    from campaign import choice"),
    "checks and analysis": ("reframe_checks/nas.py", "from analysis.tables import units"),
    "inside analysis": ("analysis/tables/units.py", "from analysis.comparison import compare"),
    "in a circle": ("records/files.py", "import records.launch"),
    "not placed": ("analysis/anywhere.py", ""),
}


@pytest.mark.parametrize("what", [None, *BROKEN])
def test_the_order_of_imports_is_held(what: str | None, tmp_path: Path) -> None:
    """In a copy, since each break is written into a file."""
    tools = tomllib.loads((PROJECT / "pyproject.toml").read_text())["tool"]
    listed = subprocess.run(
        ["git", "ls-files", "pyproject.toml", *(f"{room}/*.py" for room in
                                               tools["importlinter"]["root_packages"])],
        cwd=PROJECT, text=True, capture_output=True, check=True,
    ).stdout.splitlines()  # fmt: skip
    for name in listed:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes((PROJECT / name).read_bytes())
    if what:
        name, line = BROKEN[what]
        with (tmp_path / name).open("a") as file:
            file.write(f"\n{line}\n")
    done = subprocess.run(
        [Path(sys.executable).with_name("lint-imports"), "--no-cache"], cwd=tmp_path,
        capture_output=True, text=True, check=False,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(tmp_path)},
    )  # fmt: skip
    assert (done.returncode == 0) == (what is None), done.stdout + done.stderr


#: How many files a room of analysis has at most; one of more is a corridor.
MOST_FILES = 15


def test_no_room_of_analysis_is_crowded() -> None:
    rooms = [path.parent for path in (PROJECT / "analysis").rglob("__init__.py")]
    files = {room: sum(path.is_file() for path in room.iterdir()) for room in rooms}
    crowded = {str(room): count for room, count in files.items() if count > MOST_FILES}
    assert len(rooms) > 10 and crowded == {}


def is_camel(name: str) -> bool:
    """Return whether a name is written as a class's is."""
    return len(name) > 1 and name[0].isupper() and not name.isupper()


def twice_named(sources: dict[str, str]) -> list[str]:
    """Return each name of a class that another file gives a class or a type, with the files."""
    classes: dict[str, list[str]] = {}
    types: dict[str, list[str]] = {}
    for name, text in sources.items():
        for node in ast.parse(text).body:
            if isinstance(node, ast.ClassDef):
                classes.setdefault(node.name, []).append(name)
            for target in node.targets if isinstance(node, ast.Assign) else ():
                if isinstance(target, ast.Name) and is_camel(target.id):
                    types.setdefault(target.id, []).append(name)
    return [
        f"{name}: {', '.join(files + types.get(name, []))}"
        for name, files in classes.items()
        if len(files) + len(types.get(name, [])) > 1
    ]


def test_no_two_modules_define_a_class_of_one_name() -> None:
    """Who meets a name in a message of mypy or a traceback knows which class it is."""
    listed = subprocess.run(
        ["git", "ls-files", "*.py"], cwd=PROJECT, text=True, capture_output=True, check=True
    ).stdout.splitlines()
    product = [PROJECT / name for name in listed if not name.startswith("tests/")]
    texts = {str(path.relative_to(PROJECT)): path.read_text() for path in product if path.exists()}
    assert sum(text.count("class ") for text in texts.values()) > 100
    assert twice_named(texts) == []


def test_classes_of_one_name_are_found() -> None:
    one = "class Row:\n    pass\n"
    assert twice_named({"a.py": one, "b.py": "Row = tuple[int, int]\n"}) == ["Row: a.py, b.py"]
    assert twice_named({"a.py": one, "b.py": "class Line(Row): ...\n", "c.py": one}) == [
        "Row: a.py, c.py"
    ]
