"""The connection to a registry: TLS, unless it is on loopback or a person allowed otherwise."""

import ipaddress
import os
import re
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from containers.apptainer import CallError, call
from records.ailments.of_machines import FILE_LIMIT, FULL_DISK

ADDRESS = re.compile(r"oras://[a-z0-9.-]+(:[0-9]+)?(/[a-z0-9]+([._-][a-z0-9]+)*)*")
#: How long a registry may take to answer, in seconds, and the slowest accepted transfer rate.
PATIENCE_S, LEAST_BYTES_PER_S = 120, 100_000
#: How much larger a file may become than it should: a copy fails at its limit, not beyond it.
SPARE_BYTES = 2**20


class RegistryError(Exception):
    """An image cannot travel; the text is a sentence with the next step."""


def check_address(address: str, named: str = "REGISTRY") -> str:
    """Return a registry's address without a closing slash; raises RegistryError.

    `named` is what gave the address, as the message calls it.
    """
    found = address.rstrip("/")
    if "@" in found:
        raise RegistryError(
            f"{named} contains a user name or a password; log in instead: apptainer registry "
            "login --username NAME oras://HOST"
        )
    if not ADDRESS.fullmatch(found):
        raise RegistryError(
            f"{named} is `{address}`; write oras://host[:port]/path in lower-case letters"
        )
    host = found.removeprefix("oras://").partition("/")[0]
    if "." not in host.strip(".") and ":" not in host:
        raise RegistryError(
            f"{named} is `{address}`, and Apptainer takes a host without a dot or a port for a "
            "name on Docker Hub, where passwords and images would then go; write "
            f"oras://{host}:443, "
            "or the host's full name"
        )
    return found


@dataclass(frozen=True)
class Registry:
    """A registry's address, and whether a person allowed clear text."""

    address: str
    insecure: bool = False

    def of(self, name: str, tag: str) -> str:
        """Return where an image or a lock is."""
        return f"{self.address}/{name}:{tag}"


def tls_alone(address: str, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables with which Apptainer uses TLS for a registry and nothing else.

    If TLS fails, Apptainer continues without it for private addresses, names in `.local` and
    whatever contains 127.0.0.1, and it follows a registry's redirect to a clear-text address.
    Each such request is sent to a proxy that cannot exist, except for real loopback, which never
    goes to a proxy.
    """
    host = address.removeprefix("oras://").partition("/")[0].partition(":")[0]
    nowhere = "http://127.0.0.1:0"
    found = {"HTTP_PROXY": nowhere, "http_proxy": nowhere, "NO_PROXY": "", "no_proxy": ""}
    spared = environment.get("NO_PROXY") or environment.get("no_proxy") or ""
    if spared and _is_spared(host, spared):
        found |= {"HTTPS_PROXY": "", "https_proxy": ""}
    return found


def _is_spared(host: str, words: str) -> bool:
    """Return whether NO_PROXY names a host, its domain, or a network that contains its address."""
    for word in (word.strip().lower() for word in words.split(",")):
        domain = word.partition(":")[0].removeprefix(".")
        if word == "*" or (domain and (host == domain or host.endswith(f".{domain}"))):
            return True
        with suppress(ValueError):
            if ipaddress.ip_address(host) in ipaddress.ip_network(word):
                return True
    return False


def transfer(verb: str, registry: Registry, *arguments: str | Path, size_bytes: int = 0) -> None:
    """Let Apptainer push or pull a file of that size; raises RegistryError with its message.

    A registry that sends more fills no disk.
    """
    patience_s = PATIENCE_S + size_bytes / LEAST_BYTES_PER_S
    most_bytes = size_bytes + SPARE_BYTES if verb == "pull" else None
    try:
        if registry.insecure:
            call(verb, "--no-https", *arguments, patience_s=patience_s, most_bytes=most_bytes)
        else:
            variables = tls_alone(registry.address, os.environ)
            call(verb, *arguments, patience_s=patience_s, most_bytes=most_bytes, **variables)
    except CallError as error:
        said = str(error)
        cure = "check the address and the network, and run this again"
        # What was said may be cut before its end; the sentence on it is there.
        if said.endswith(FULL_DISK.sentence):
            said = said.removesuffix(f"; {FULL_DISK.sentence}")
            cure = (
                f"the disk is full: make room where images are written, {tempfile.gettempdir()} or "
                "APPTAINER_TMPDIR and the checkout's .wyeast, and run this again"
            )
        elif said.endswith(FILE_LIMIT.sentence):
            said = said.removesuffix(f"; {FILE_LIMIT.sentence}")
            cure = (
                "the registry sends more than the lock says, so it is not taken: tell whoever "
                "keeps it; or this shell's limit is too low (ulimit -f)"
            )
        elif "UNAUTHORIZED" in said.upper() or "denied" in said:
            cure = "log in: apptainer registry login --username NAME oras://HOST"
        elif "verifying sha256 checksum" in said:
            cure = (
                "the registry's file was changed or is damaged, and is not installed: push it again"
            )
        elif "x509" in said or "tls:" in said:
            cure = "name the file of your site's certificate authority in SSL_CERT_FILE"
        elif "127.0.0.1:0" in said or "HTTP response to HTTPS" in said:
            said = f"{registry.address} offers no TLS connection that can be verified: {said}"
            cure = (
                "enable TLS on it; on a network where nobody can intercept the traffic, "
                "INSECURE=1 continues in clear text, where a password could be read"
            )
        raise RegistryError(f"{said}; {cure}") from None
