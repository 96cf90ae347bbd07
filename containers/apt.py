"""Debian packages through a private apt configuration made from the machine's own.

The machine's mirror and keyring are used, but its lists, its hooks and its third-party sources are
left alone: a broken third-party source does not matter here, and nothing here shows there.
Standard library only: this runs before the virtual environment exists.
"""

import os
import re
import subprocess
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

DEBIAN_KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
# Lists older than this are fetched again before something is installed from them.
LISTS_ARE_FRESH_S = 24 * 3600.0


class AptError(Exception):
    """Packages cannot be obtained; the text is a sentence with the next step."""


@dataclass(frozen=True)
class AptEntry:
    """One entry of an apt configuration: `deb` archives at `uris`, of `suites`."""

    uris: tuple[str, ...]
    suites: tuple[str, ...]
    components: tuple[str, ...]
    signed_by: str | None = None
    trusted: bool = False

    def stanza(self, types: str = "deb") -> str:
        """Return the entry in the deb822 format."""
        lines = [
            f"Types: {types}",
            f"URIs: {' '.join(self.uris)}",
            f"Suites: {' '.join(self.suites)}",
            f"Components: {' '.join(self.components)}",
        ]
        if self.signed_by:
            lines.append(f"Signed-By: {self.signed_by}")
        if self.trusted:
            lines.append("Trusted: yes")
        return "\n".join(lines) + "\n"


def parse_deb822(text: str) -> list[AptEntry]:
    """Return the binary-package entries of a `.sources` file."""
    found = []
    for paragraph in re.split(r"\n[ \t]*\n", "\n".join(_without_comments(text))):
        fields: dict[str, str] = {}
        name = ""
        for line in paragraph.splitlines():
            if line[:1] in " \t" and name:
                fields[name] += "\n" + line
            elif ":" in line:
                name, _, value = line.partition(":")
                name = name.strip().lower()
                fields[name] = value.strip()
        if fields.get("enabled", "yes").lower() in ("no", "false", "0"):
            continue
        if "deb" not in fields.get("types", "").split():
            continue
        found.append(
            AptEntry(
                tuple(fields.get("uris", "").split()),
                tuple(fields.get("suites", "").split()),
                tuple(fields.get("components", "").split()),
                fields.get("signed-by") or None,
                fields.get("trusted", "").lower() in ("yes", "true", "1"),
            )
        )
    return found


def _without_comments(text: str) -> Iterable[str]:
    # A comment may stand between the fields of a paragraph; it does not end the paragraph.
    return (line for line in text.splitlines() if not line.startswith("#"))


ONE_LINE = re.compile(r"deb[ \t]+(?:\[(?P<options>[^]]*)\][ \t]*)?(?P<rest>\S.*)$")


def parse_one_line(text: str) -> list[AptEntry]:
    """Return the binary-package entries of a `sources.list` file."""
    found = []
    for line in text.splitlines():
        match = ONE_LINE.match(line.partition("#")[0].strip())
        if not match:
            continue
        words = match["rest"].split()
        options = dict(
            (name.lower(), value)
            for name, _, value in (word.partition("=") for word in (match["options"] or "").split())
        )
        if len(words) > 1:
            found.append(
                AptEntry(
                    (words[0],),
                    (words[1],),
                    tuple(words[2:]),
                    options.get("signed-by"),
                    options.get("trusted", "").lower() in ("yes", "true", "1"),
                )
            )
    return found


def machine_sources(etc: Path = Path("/etc/apt")) -> list[AptEntry]:
    """Return the entries of the machine's apt configuration, in apt's order of files."""
    found = []
    parts = sorted((etc / "sources.list.d").glob("*"))
    for path in [etc / "sources.list", *parts]:
        try:
            text = path.read_text(errors="replace")
        except OSError:
            continue
        if path.suffix == ".sources":
            found += parse_deb822(text)
        elif path.suffix == ".list":
            found += parse_one_line(text)
    return found


def machine_codename(os_release: Path = Path("/etc/os-release")) -> str:
    """Return the codename of the machine's distribution, such as `bookworm`, or ``""``."""
    try:
        match = re.search(r'^VERSION_CODENAME="?([\w.-]+)', os_release.read_text(), re.M)
    except OSError:
        return ""
    return match[1] if match else ""


def distribution_sources(sources: list[AptEntry], codename: str) -> list[AptEntry]:
    """Return the distribution's own entries among all: those of its codename's suites."""
    own = {codename, f"{codename}-updates", f"{codename}-security"}
    found = []
    for source in sources:
        suites = tuple(suite for suite in source.suites if suite in own)
        if codename and suites and "main" in source.components:
            found.append(
                AptEntry(source.uris, suites, source.components, source.signed_by, source.trusted)
            )
    return found


def sources_of_suite(suite: str, sources: list[AptEntry], codename: str) -> list[AptEntry]:
    """Return entries for a Debian suite (and its security updates) at the machine's own mirrors.

    Raises AptError where the machine has no mirror of its distribution.
    """
    found = []
    for source in distribution_sources(sources, codename):
        signed_by = source.signed_by
        if not signed_by and DEBIAN_KEYRING.exists():
            signed_by = str(DEBIAN_KEYRING)
        wanted = []
        if codename in source.suites:
            wanted.append(suite)
        # sid has no security suite: its fixes go straight in.
        if f"{codename}-security" in source.suites and suite != "sid":
            wanted.append(f"{suite}-security")
        if wanted:
            found.append(AptEntry(source.uris, tuple(wanted), ("main",), signed_by, source.trusted))
    if not any(suite in source.suites for source in found):
        raise AptError(
            "this machine's apt configuration names no mirror of its own distribution "
            f"({codename or 'which is unknown'}); add one to /etc/apt/sources.list.d"
        )
    return found


class PrivateApt:
    """apt-get with its own lists and sources, under a folder of its own."""

    def __init__(self, folder: Path, sources: list[AptEntry], types: str = "deb") -> None:
        """Write the configuration for `sources` into `folder`."""
        self.folder = folder.resolve()
        for name in ("state/lists/partial", "cache/archives/partial"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        self.stanzas = "\n".join(source.stanza(types) for source in sources)
        self._write("private.sources", self.stanzas)
        self.configuration = self._write(
            "apt.conf",
            f'Dir::State "{self.folder}/state";\n'
            'Dir::State::status "/var/lib/dpkg/status";\n'
            f'Dir::Cache "{self.folder}/cache";\n'
            f'Dir::Etc::SourceList "{self.folder}/private.sources";\n'
            'Dir::Etc::SourceParts "-";\n'
            'Acquire::Languages "none";\n'
            'Acquire::IndexTargets::deb::DEP-11::DefaultEnabled "false";\n'
            'Acquire::IndexTargets::deb::Contents-deb::DefaultEnabled "false";\n'
            'Acquire::Retries "3";\n'
            # The folder may lie where apt's download user cannot look.
            'APT::Sandbox::User "root";\n'
            # The machine's hooks are about the machine's lists.
            "#clear APT::Update::Post-Invoke;\n#clear APT::Update::Post-Invoke-Success;\n",
        )

    def _write(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.write_text(text)
        return path

    def run(self, *arguments: str, where: Path | None = None) -> str:
        """Run apt-get and return what it said; raises AptError with apt's own first complaint."""
        environment = {
            **os.environ,
            "APT_CONFIG": str(self.configuration),
            "DEBIAN_FRONTEND": "noninteractive",
            "LC_ALL": "C.UTF-8",
        }
        try:
            done = subprocess.run(
                ["apt-get", "-q", "-y", *arguments],
                cwd=where,
                env=environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
            )
        except FileNotFoundError:
            raise AptError(
                "this machine has no apt-get; install Apptainer and squashfs-tools with its own "
                "package manager"
            ) from None
        if done.returncode:
            words = (done.stderr + done.stdout).splitlines()
            complaint = next((line for line in words if line.startswith("E: ")), "E: it failed")
            raise AptError(
                f"apt-get {' '.join(arguments)}: {complaint[3:]} Check the network and the mirror "
                "in the machine's apt configuration, then try again"
            )
        return done.stdout

    def update(self) -> None:
        """Fetch the package lists unless they are fresh and from the same sources."""
        stamp = self.folder / "updated"
        try:
            age = time.time() - stamp.stat().st_mtime
            if stamp.read_text() == self.stanzas and 0 <= age < LISTS_ARE_FRESH_S:
                return
        except OSError:
            pass
        self.run("update", "-o", "APT::Update::Error-Mode=any")
        stamp.write_text(self.stanzas)

    def download(self, packages: list[str], folder: Path) -> list[Path]:
        """Download packages, without their dependencies, and return the files."""
        folder.mkdir(parents=True, exist_ok=True)
        self.update()
        self.run("download", *packages, where=folder)
        return sorted(folder.glob("*.deb"))

    def has(self, package: str) -> bool:
        """Return whether the suites have a package that could be installed."""
        self.update()
        done = subprocess.run(
            ["apt-cache", "policy", package],
            env={**os.environ, "APT_CONFIG": str(self.configuration), "LC_ALL": "C.UTF-8"},
            capture_output=True,
            text=True,
        )
        candidate = re.search(r"Candidate: (\S+)", done.stdout)
        return candidate is not None and candidate[1] != "(none)"


def of_machine(state: Path) -> PrivateApt:
    """Return apt with the sources of the machine's own distribution only."""
    codename = machine_codename()
    sources = distribution_sources(machine_sources(), codename)
    if not sources:
        raise AptError(
            "this machine's apt configuration names no mirror of its own distribution "
            f"({codename or 'which is unknown'}); add one to /etc/apt/sources.list.d"
        )
    return PrivateApt(state / "apt" / "machine", sources)


def of_suite(state: Path, suite: str, types: str = "deb") -> PrivateApt:
    """Return apt with a Debian suite at the machine's own mirrors."""
    sources = sources_of_suite(suite, machine_sources(), machine_codename())
    name = suite if types == "deb" else f"{suite}-{types}"
    return PrivateApt(state / "apt" / name, sources, types)
