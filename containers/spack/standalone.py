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
from containers.spack.recipes import SpackError
from containers.table import TableError, load_table
from records import layout
from records.command_words import CommandWords
from records.files import write_whole
from records.yaml_text import from_yaml

ROOT = Path(os.environ.get("WYEAST_ROOT", Path(__file__).resolve().parents[2]))
#: How conditions of spack.yaml ask for a variable, and what they are once that is known.
ASKED = re.compile(r'env\.get\("(WYEAST_\w+)", "[^"]*"\)')
DECIDED = re.compile(r'"([^"]*)" (==|!=) "([^"]*)"')


def environment_of(root: Path, name: str, site: str) -> dict[str, Any]:
    """Return spack.yaml's data for one implementation, at a site, or at none with an empty name.

    It has whole paths and no variable. Raises SpackError for an implementation that it does not
    define, and ProvisionError for a site that has no configuration of Spack.
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
    # Whoever activates it, as scripts of Ramble's do, has its programs on PATH by a view.
    found["spack"]["view"] = True
    return found


def _settled(value: Any, root: Path, chosen: dict[str, str]) -> Any:
    """Return data without what is not chosen, with whole paths."""
    if isinstance(value, dict):
        return {key: _settled(one, root, chosen) for key, one in value.items()}
    if isinstance(value, list):
        return [_settled(one, root, chosen) for one in _those_that_hold(value, chosen)]
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


def write(root: Path, name: str, site: str, folder: Path) -> tuple[Path, bool]:
    """Write an implementation's spack.yaml into a folder of its name; return it, and if it changed.

    Raises what `environment_of` raises, and OSError.
    """
    where = f" at the site {site}" if site else ""
    text = (
        f"# Made by `make spack-environment`: {name}{where}, of {root}.\n"
        + yaml.safe_dump(environment_of(root, name, site), sort_keys=False, width=1000)
    )  # fmt: skip
    path = folder / name / spack_environment.ENVIRONMENT
    if path.is_file() and path.read_text() == text:
        return path, False
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, text)
    return path, True


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
        for name in names or load_table(ROOT).built_by("spack"):
            path, is_new = write(ROOT, name, os.environ.get(spack_site.VARIABLE, ""), folder)
            print(path.parent)
            if is_new and (path.parent / "spack.lock").exists():
                print(
                    f"spack-environment: {path} has changed, and spack.lock beside it is of the "
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
