"""spack.yaml of one implementation, whole in any folder: `python -m containers.spack.standalone`.

spack.yaml names parts of the checkout by paths from its folder, and variables of the shell choose
the implementation and the site. Programs that copy such a file elsewhere, and call Spack for it
later from scripts of their own, as Ramble does with an `external_env`, have neither.
"""

import os
import re
import sys
from pathlib import Path
from typing import Any

import yaml

from containers.commands import StepError
from containers.programs import ProvisionError
from containers.spack import environment as spack_environment
from containers.spack import site as spack_site
from containers.spack import tool as spack
from containers.spack.recipes import RECIPES, SpackError
from containers.table import TableError, load_table
from records import layout
from records.command_words import CommandWords
from records.files import write_whole
from records.yaml_text import from_yaml

ROOT = Path(os.environ.get("WYEAST_ROOT", Path(__file__).resolve().parents[2]))
#: How conditions of spack.yaml ask for a variable, and what they are once that is known.
ASKED = re.compile(r'env\.get\("(WYEAST_IMPLEMENTATION|WYEAST_SITE)", "[^"]*"\)')
DECIDED = re.compile(r'"([^"]*)" (==|!=) "([^"]*)"')
#: Where Spack writes what it finds on a machine: in the checkout, and beside what is made here, of
#: which a copy alone has it in itself. The checkout may be somebody else's, who lets nobody write.
FOUND, FOUND_BESIDE = f"{RECIPES}/found", "found"
#: How Spack calls its link to where it builds our programs, which it would put among their sources.
STAGE_LINK = "build-{arch}-{hash:7}"
#: The beginning of what this has made.
MADE = "# Made by `make spack-environment`: "


class NotSaidError(SpackError):
    """No site says what an implementation is built with; the text is what to do about it."""


def environment_of(root: Path, name: str, site: str) -> dict[str, Any]:
    """Return spack.yaml's data for one implementation, at a site, or at none with an empty name.

    It has whole paths, but for what Spack finds there, and no variable. Raises SpackError for an
    implementation that it does not define, NotSaidError where it includes a site's folder that is
    not there, and ProvisionError for a site that has no configuration of Spack.
    """
    known = spack_environment.environment_names(root)
    if name not in known:
        raise SpackError(
            f"{spack_environment.ENVIRONMENT} does not define {name}; these are: {', '.join(known)}"
        )
    if site and not layout.site_file(root, site, "spack").is_dir():
        raise ProvisionError(
            f"{spack_site.VARIABLE} is {site}, which has no folder spack in {layout.SITES}/{site}; "
            f"make it, or unset {spack_site.VARIABLE}"
        )
    chosen = {"WYEAST_IMPLEMENTATION": name, spack_site.VARIABLE: site}
    data = from_yaml((root / spack_environment.ENVIRONMENT).read_text())
    found: dict[str, Any] = _settled(data, root, chosen)
    for entry in found["spack"].get("include") or ():
        path = "" if isinstance(entry, str) or entry.get("optional") else str(entry.get("path"))
        if Path(path).is_absolute() and not Path(path).exists():
            lacking = f"which {site} does not have" if site else "and no site is named"
            raise NotSaidError(
                f"{name} needs the folder spack/{spack_environment.OPTIONS}/{Path(path).name} of a "
                f"site, {lacking}: name one that has it with {spack_site.VARIABLE}, as "
                f"{spack_site.BASE}"
            )
    # Whoever activates it, as scripts of Ramble's do, has its programs on PATH by a view.
    found["spack"]["view"] = True
    return found


def _settled(value: Any, root: Path, chosen: dict[str, str]) -> Any:
    """Return data without what is not chosen, with whole paths."""
    if isinstance(value, dict):
        return {key: _settled(one, root, chosen) for key, one in value.items()}
    if isinstance(value, list):
        return [_settled(one, root, chosen) for one in _those_that_hold(value, chosen)]
    if value == FOUND:
        return FOUND_BESIDE
    if isinstance(value, str) and value.partition("/")[0] in spack_environment.PARTS:
        site = chosen[spack_site.VARIABLE]
        return str(layout.find(root, value.replace(f"${spack_site.VARIABLE}", site)))
    return value


def _those_that_hold(entries: list[Any], chosen: dict[str, str]) -> list[Any]:
    """Return entries of a list without those whose condition is known not to hold.

    Of the others it is left out if it holds, and left to Spack if it is not a plain comparison.
    """
    kept = []
    for entry in entries:
        if isinstance(entry, dict) and isinstance(when := entry.get("when"), str):
            said = ASKED.sub(lambda match: f'"{chosen[match[1]]}"', when)
            others = {key: one for key, one in entry.items() if key != "when"}
            if plain := DECIDED.fullmatch(said):
                if (plain[1] == plain[3]) == (plain[2] == "=="):
                    kept.append(others)
            else:
                kept.append({**others, "when": said})
        else:
            kept.append(entry)
    return kept


def write(root: Path, name: str, site: str, folder: Path) -> Path:
    """Write an implementation's spack.yaml into a folder of its name; return it.

    What it is already keeps its time. Raises what `environment_of` raises, OSError, and SpackError
    where something else is there that this has not made.
    """
    where = f" at the site {site}" if site else ""
    path = folder / name / spack_environment.ENVIRONMENT
    data = environment_of(root, name, site)
    link = path.parent.absolute() / FOUND_BESIDE / STAGE_LINK
    data["spack"].setdefault("config", {})["develop_stage_link"] = str(link)
    content = (
        f"{MADE}{name}{where}, of {root}.\n"
        + yaml.safe_dump(data, sort_keys=False, width=1000)
    ).encode()  # fmt: skip
    before = path.read_bytes() if path.exists() else None
    if before is not None and not before.startswith(MADE.encode()):
        raise SpackError(
            f"{path} was not made by this command; name another folder with OUT, or remove it"
        )
    if before != content:
        (path.parent / FOUND_BESIDE).mkdir(parents=True, exist_ok=True)
        write_whole(path, content)
    return path


def those_that_can_be(root: Path, names: list[str], site: str) -> list[str]:
    """Return the implementations that can be written, of those that are asked for.

    With none asked for, of all: what the others lack is printed. Raises what `environment_of`
    raises, before anything is written.
    """
    found = []
    for name in names or load_table(root).built_by("spack"):
        try:
            environment_of(root, name, site)
        except NotSaidError as error:
            if names:
                raise
            print(f"spack-environment: left out: {error}", file=sys.stderr)
        else:
            found.append(name)
    return found


def main(words: list[str] | None = None) -> int:
    """Write the environments that are asked for, or print a sentence on why not."""
    parser = CommandWords(
        prog="python -m containers.spack.standalone",
        description="Write spack.yaml of one implementation, which may be copied anywhere: with "
        f"whole paths, and at the site that {spack_site.VARIABLE} names now.",
    )
    parser.add_argument("--implementations", default="", metavar="a,b", help="default: all")
    parser.add_argument(
        "--out", default="", metavar="folder", help="default: .wyeast/spack/standalone"
    )
    options = parser.parse_args(words)
    try:
        folder = (
            Path(layout.meant_anywhere(options.out))
            if options.out
            else spack.folder(ROOT) / "standalone"
        )
        names = spack_environment.asked_for(options.implementations)
        site = os.environ.get(spack_site.VARIABLE, "")
        for name in those_that_can_be(ROOT, names, site):
            path = write(ROOT, name, site, folder)
            print(path.parent)
            lock = path.with_name("spack.lock")
            if lock.exists() and lock.stat().st_mtime_ns < path.stat().st_mtime_ns:
                print(
                    f"spack-environment: {path} is newer than spack.lock beside it, which is of an "
                    f"older one; renew it: spack -e {path.parent} concretize --force",
                    file=sys.stderr,
                )
    except (SpackError, ProvisionError, TableError, StepError) as error:
        print(f"spack-environment: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        print(
            f"spack-environment: {error.filename} cannot be written: {error.strerror}; name "
            "another folder with OUT",
            file=sys.stderr,
        )
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
