"""A registry at a private address is spoken to by TLS alone, unless a person says otherwise."""

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from containers import registry_connection
from tests.containers import travelling
from tests.containers.travelling import NAME, PRIVATE, PROJECT

pytestmark = [pytest.mark.real, pytest.mark.serial]
HOSTS = [PRIVATE, "registry.local", "x127.0.0.1.example.org"]


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What pulls came to in a network that has nothing but the registries."""
    folder = tmp_path_factory.mktemp("tls")
    travelling.new_sif(folder, NAME)
    (folder / "hosts").write_text(f"127.0.0.1 localhost\n{PRIVATE} {' '.join(HOSTS[1:])}\n")
    script = (
        f"ip link set lo up && ip addr add {PRIVATE}/32 dev lo && "
        'mount --bind "$1/hosts" /etc/hosts && exec "$2" -m tests.containers.in_clear "$1"'
    )
    done = subprocess.run(
        ["unshare", "--map-root-user", "--net", "--mount", "sh", "-c", script, "sh", folder,
         sys.executable],
        env={**os.environ, "PATH": f"{os.environ['PATH']}:/usr/sbin:/sbin"}, cwd=PROJECT,
        capture_output=True, text=True, timeout=1500,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.parametrize("host", [*HOSTS, "variables"])
def test_nothing_is_pulled_in_clear_without_a_word(outcomes: dict[str, Any], host: str) -> None:
    outcome = outcomes[host]
    assert outcome["clear"] == 0 and outcome["entry"] is None and outcome["code"] == 1
    assert (
        "offers no TLS connection that can be verified" in outcome["said"]
        and "INSECURE=1" in outcome["said"]
    )
    assert outcome["said"].count("\n") == 1


def test_with_the_word_it_is_and_the_lock_says_so(outcomes: dict[str, Any]) -> None:
    outcome = outcomes["insecure"]
    assert outcome["code"] == 0 and outcome["clear"] > 0
    assert outcome["entry"]["origin"]["insecure"] is True


def test_loopback_needs_no_word_and_tls_works_as_ever(outcomes: dict[str, Any]) -> None:
    for name in ("loopback", "tls"):
        assert outcomes[name]["code"] == 0, outcomes[name]["said"]
        assert "insecure" not in outcomes[name]["entry"]["origin"]
    assert outcomes["tls"]["clear"] == 0


@pytest.mark.parametrize(
    ("spared", "kept"),
    [("", True), ("other.org", True), ("site.org", False), (".site.org", False), ("*", False),
     ("10.0.0.0/8", True), ("r.site.org:5000", False), ("e.org", True)],
)  # fmt: skip
def test_a_site_s_proxy_is_asked_where_it_was(spared: str, kept: bool) -> None:
    """NO_PROXY is emptied for the sake of requests in clear, and has to hold for TLS even so."""
    found = registry_connection.tls_alone("oras://r.site.org:5000/x", {"NO_PROXY": spared})
    assert ("HTTPS_PROXY" not in found) is kept
    assert found["NO_PROXY"] == "" and found["HTTP_PROXY"] == found["http_proxy"]


def test_no_proxy_may_name_a_network() -> None:
    found = registry_connection.tls_alone(f"oras://{PRIVATE}/x", {"no_proxy": "a,10.0.0.0/8"})
    assert found["HTTPS_PROXY"] == ""
