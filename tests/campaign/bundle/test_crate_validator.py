"""The crate of a bundle passes roc-validator, which has no network."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.campaign.bundle.conftest import Checkout
from tests.campaign.bundle.test_make import made, unpacked

PROJECT = Path(__file__).resolve().parents[3]
TOOLS = PROJECT / ".wyeast" / "tools" / "bin"
#: It demands all that RO-Crate 1.1 does, too.
PROFILE = "process-run-crate-0.5"
#: The context that a crate names, which the validator asks the network for. Its terms that a crate
#: of ours may have stand in for it: they are schema.org's but for these two. With a network the
#: whole one is used: docs/how-to/share-a-campaign.md has the command.
CONTEXT = "https://w3id.org/ro/crate/1.1/context"
OTHERS = {
    "File": "http://schema.org/MediaObject",
    "conformsTo": "http://purl.org/dc/terms/conformsTo",
}
#: What is recommended and a crate of ours cannot have: nobody asks where people work, or groups for
#: an address, and an image is known by its digest.
UNKNOWN = {
    "The author SHOULD have an organizational affiliation.",
    "The author SHOULD have a Contextual Entity which specifies the organizational `affiliation`.",
    "The organization SHOULD have a URL.",
    "The Application SHOULD have a url",
    "The SoftwareApplication id SHOULD be an absolute URI",
}
TERMS = (
    "CreateAction", "CreativeWork", "Dataset", "Organization", "Person", "SoftwareApplication",
    "about", "actionStatus", "agent", "author", "codeRepository", "contentSize", "datePublished",
    "description", "encodingFormat", "endTime", "hasPart", "identifier", "instrument", "license",
    "mentions", "name", "object", "publisher", "result", "softwareVersion", "startTime", "url",
    "version",
)  # fmt: skip
#: Fills the validator's own cache with an answer, by its own Python.
ANSWER = """
import sys
from requests import Response
from requests.adapters import BaseAdapter
from requests_cache import CachedSession
from urllib3 import HTTPResponse
import io

class Said(BaseAdapter):
    def send(self, request, **_):
        response = Response()
        response.status_code, response.url, response.request = 200, request.url, request
        response.headers["Content-Type"] = "application/ld+json"
        response.raw = HTTPResponse(
            body=io.BytesIO(sys.argv[3].encode()), status=200, preload_content=False,
            headers={"Content-Type": "application/ld+json"}, request_url=request.url)
        return response
    def close(self):
        pass

session = CachedSession(cache_name=sys.argv[1], backend="sqlite", expire_after=-1)
session.mount("https://", Said())
assert session.get(sys.argv[2]).status_code == 200
assert session.get(sys.argv[2], only_if_cached=True).from_cache
"""


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the validator's cache with the context that a crate names."""
    path = tmp_path_factory.mktemp("validator") / "cache"
    own = {**{term: f"http://schema.org/{term}" for term in TERMS}, **OTHERS}
    subprocess.run(
        [TOOLS / "python", "-c", ANSWER, path, CONTEXT, json.dumps({"@context": own})], check=True
    )
    return path


def issues(crate: Path, cache: Path) -> set[tuple[str, str]]:
    """Return what the validator finds: how severe each is, and its message."""
    said = crate.parent / "issues.json"
    subprocess.run(
        [
            TOOLS / "rocrate-validator", "-y", "validate", "--offline", "--cache-path", cache,
            "--profile-identifier", PROFILE, "--requirement-severity", "recommended",
            "--output-format", "json", "--output-file", said, crate,
        ],
        check=False, capture_output=True, timeout=300,
        env={**os.environ, "HOME": str(crate.parent), "https_proxy": "http://127.0.0.1:9"},
    )  # fmt: skip
    found: dict[str, Any] = json.loads(said.read_text())
    return {(str(one["severity"]), str(one["message"])) for one in found["issues"]}


@pytest.mark.real
def test_a_crate_passes_its_profiles(here: Checkout, tmp_path: Path, cache: Path) -> None:
    words = ["--with-images", "--creator", "Ada Lovelace (0000-0002-1825-0097); A Group",
             "--repository", "https://example.org/wyeast"]  # fmt: skip
    found = issues(unpacked(made(here, *words), tmp_path), cache)
    assert {severity for severity, _ in found} <= {"RECOMMENDED"}
    assert {message for _, message in found} <= UNKNOWN


@pytest.mark.real
def test_what_is_wrong_with_a_crate_is_found(here: Checkout, tmp_path: Path, cache: Path) -> None:
    """So that a validator which finds nothing has looked."""
    folder = unpacked(made(here), tmp_path)
    file = folder / "ro-crate-metadata.json"
    text = file.read_text()
    for broken in (
        re.sub(r'"instrument": \[[^\]]*\],?', "", text),
        text.replace('"contentSize"', '"contentSizes"'),
    ):
        assert broken != text
        file.write_text(broken)
        assert "REQUIRED" in {severity for severity, _ in issues(folder, cache)}
    shutil.rmtree(folder)
