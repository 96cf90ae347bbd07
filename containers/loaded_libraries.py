"""Which libraries the programs of an image load, by the image's own loader, with digests.

Those of an installation of the machine are asked alike.
"""

import re
from typing import Any

#: Where images have their programs.
OF_IMAGES = "/opt/wyeast/bin"
#: Asked of a shell in the image: what each program loads, then what each MPI's library among that
#: loads, then the digests of all of it. What is no dynamic program loads nothing. A line is a path,
#: in which may be spaces; a library that is needed by its path has no arrow before it.
QUESTION = r"""
loaded() { printf '= %s\n' "$1"; ldd "$1" 2>/dev/null || true; }
said=$(for file in /opt/wyeast/bin/*; do loaded "$file"; done)
printf '%s\n' "$said"
files=$(printf '%s\n' "$said" | sed -n -e 's/^[[:space:]].* => \(\/.*\) (0x[0-9a-f]*)$/\1/p' \
    -e '/\/ld[^\/]* (0x/! s/^[[:space:]]\(\/.*\) (0x[0-9a-f]*)$/\1/p' | sort -u)
IFS='
'
set -f
for file in $files; do
    case ${file##*/} in libmpi*|libpmpi*|liblam*) loaded "$file" ;; esac
done
[ -z "$files" ] || sha256sum $files
"""
#: The loader itself, which has no arrow either, is none of them.
LOADED = re.compile(r"\s(?:.* => (?=/)|(?!.*/ld[^/]* \())(?P<path>/.+) \(0x[0-9a-f]+\)")
DIGEST = re.compile(r"(?P<sha256>[0-9a-f]{64})  (?P<path>/.+)")
#: In the loader's words, a library that a program needs and that is not there.
LACKING = re.compile(r"\s+(?P<name>\S.*) => not found")


def question_of(files: str) -> str:
    """Return the question for other files than an image's programs: words of a shell, quoted."""
    return QUESTION.replace(f"{OF_IMAGES}/*", files)


def read(said: str, folder: str = OF_IMAGES) -> dict[str, Any] | None:
    """Return what an image has answered, as a manifest has it; None where it did not.

    Programs are called by their names, and libraries of the MPI by their paths. `folder` is where
    the programs are.
    """
    by: dict[str, list[str]] = {}
    digests: dict[str, str] = {}
    now: list[str] = []
    for line in said.splitlines():
        if line.startswith("= "):
            path = line.removeprefix("= ")
            now = by.setdefault(path.removeprefix(f"{folder}/"), [])
        elif match := LOADED.fullmatch(line):
            now.append(match["path"])
        elif match := DIGEST.fullmatch(line):
            digests[match["path"]] = match["sha256"]
    loaded = {path for paths in by.values() for path in paths if path in digests}
    if not by or any(path not in digests for paths in by.values() for path in paths):
        return None
    groups: dict[tuple[str, ...], list[str]] = {}
    for name, paths in by.items():
        groups.setdefault(tuple(sorted(set(paths))), []).append(name)
    return {
        "sha256": {path: digests[path] for path in sorted(loaded)},
        "loaded": [{"by": names, "files": list(paths)} for paths, names in groups.items()],
    }
