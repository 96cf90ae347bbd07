"""Who is to be cited for a campaign: people with their ORCIDs, and groups."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from records.archive import BundleError

DEVELOPERS = "The Wyeast developers"
#: A name, and in brackets an ORCID or its address.
CREATOR = re.compile(r"([^()<>;]+?)\s*(?:\((?:https?://orcid\.org/)?([\dXx-]+)\))?")
ORCID = re.compile(r"\d{4}-\d{4}-\d{4}-\d{3}[\dX]")
ADDRESS = "https://orcid.org/"


@dataclass(frozen=True)
class Creator:
    """A person with an ORCID, or anybody else by name alone."""

    name: str
    orcid: str | None = None

    @property
    def parts(self) -> tuple[str, str]:
        """Return a person's family name and given names; the last word is the family name.

        Where it is not, a person is named `Family, Given`.
        """
        if ", " in self.name:
            family, _, given = self.name.partition(", ")
            return family, given
        given, _, family = self.name.rpartition(" ")
        return family, given

    @property
    def identifier(self) -> str:
        """Return what an RO-Crate calls it."""
        words = "-".join(re.findall(r"\w+", self.name.lower()))
        return f"{ADDRESS}{self.orcid}" if self.orcid else f"#creator-{words}"

    @property
    def shown(self) -> str:
        """Return the name as people say it."""
        family, given = self.parts
        return f"{given} {family}".strip() if self.orcid else self.name

    def in_crate(self) -> dict[str, Any]:
        """Return the entity of an RO-Crate."""
        kind = "Person" if self.orcid else "Organization"
        return {"@id": self.identifier, "@type": kind, "name": self.shown}

    def in_citation(self) -> dict[str, str]:
        """Return the author of a CITATION.cff."""
        family, given = self.parts
        if not self.orcid:
            return {"name": self.name}
        names = {"family-names": family, "given-names": given}
        return {**{key: name for key, name in names.items() if name},
                "orcid": f"{ADDRESS}{self.orcid}"}  # fmt: skip

    def in_zenodo(self) -> dict[str, str]:
        """Return the creator of a deposit at Zenodo."""
        if not self.orcid:
            return {"name": self.name}
        return {"name": ", ".join(filter(None, self.parts)), "orcid": self.orcid}


def is_orcid(text: str) -> bool:
    """Return whether an ORCID has its form and its check digit (ISO 7064, MOD 11-2)."""
    if not ORCID.fullmatch(text):
        return False
    total = 0
    for digit in text.replace("-", "")[:-1]:
        total = (total + int(digit)) * 2
    return "0123456789X"[(12 - total % 11) % 11] == text[-1]


def creators_of(words: str) -> list[Creator]:
    """Return who is named: names separated by semicolons, people with an ORCID in brackets.

    Raises BundleError for what is not a name, or not an ORCID.
    """
    found = []
    for one in filter(None, map(str.strip, words.split(";"))):
        said = CREATOR.fullmatch(one)
        if not said:
            raise BundleError(
                f"CREATOR={words!r}: `{one}` is not a name; write CREATOR='First Last "
                "(0000-0002-1825-0097); Your group'"
            )
        orcid = said[2].upper() if said[2] else None
        if orcid and not is_orcid(orcid):
            raise BundleError(
                f"CREATOR={words!r}: {orcid} is not an ORCID: its check digit or form is wrong"
            )
        found.append(Creator(said[1].strip(), orcid))
    if not found:
        raise BundleError("CREATOR names nobody; leave it out, or name who is to be cited")
    return found
