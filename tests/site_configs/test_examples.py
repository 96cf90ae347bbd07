"""The examples that a site can begin with: right once they are filled in, refused until then."""

import re
from pathlib import Path

import pytest
import yaml

from campaign.site import new
from site_configs import settings
from site_configs.entries import SiteError
from site_configs.site_file import FILL_IN, KEYS, read_site
from tests.site_configs.fake_machine import SLURM, machine, port

PROJECT = Path(__file__).resolve().parents[2]
#: What somebody might fill in, by key.
FILLED = {
    "description": "a cluster", "hostnames": '["^login"]', "access": '["--partition=batch"]',
    "nodes": "16", "cores_per_node": "64", "memory_bytes_per_node": "256.0e+9",
    "peak_flops_per_node": "4.0e+12", "link_bytes_per_s": "25.0e+9",
}  # fmt: skip
OF_A_CLUSTER = ("infiniband", "slingshot", "ethernet")


def filled(text: str) -> str:
    return re.sub(
        r"(?m)^(\w+): .*<fill in .*$", lambda found: f"{found[1]}: {FILLED[found[1]]}", text
    )


def test_there_are_those_that_people_look_for() -> None:
    assert set(new.examples()) == {*OF_A_CLUSTER, "fat-node", "laptop"}
    makefile = (PROJECT / "Makefile").read_text()
    [listed] = re.findall(r"\bFROM=([\w|-]+)", makefile)
    assert sorted(listed.split("|")) == new.examples()
    page = (PROJECT / "docs/how-to/add-a-site.md").read_text()
    assert all(f"| `{name}` |" in page for name in new.examples())


def test_none_is_taken_for_a_site() -> None:
    assert not set(settings.NAMES) & {*new.examples(), "examples"}
    with pytest.raises(SiteError, match="is not a valid site name"):
        new.refuse_name("examples", settings.SITES)


@pytest.mark.parametrize("name", new.examples())
def test_it_is_refused_until_it_is_filled_in(name: str, tmp_path: Path) -> None:
    """With file and line for each value, and with nothing else that is wrong."""
    text = (new.EXAMPLES / f"{name}.yaml").read_text()
    (tmp_path / "site.yaml").write_text(text)
    with pytest.raises(SiteError) as refused:
        read_site(tmp_path / "site.yaml", tmp_path)
    said = str(refused.value).splitlines()
    lines = [n for n, line in enumerate(text.splitlines(), 1) if FILL_IN.search(line)]
    assert [int(one.split(":")[1]) for one in said] == lines
    assert all("is not filled in yet: " in one for one in said)


@pytest.mark.parametrize("name", new.examples())
def test_filled_in_it_is_right_and_reframe_is_told(name: str, tmp_path: Path) -> None:
    text = filled((new.EXAMPLES / f"{name}.yaml").read_text())
    (tmp_path / "site.yaml").write_text(text)
    site = read_site(tmp_path / "site.yaml", tmp_path)
    assert set(site) <= set(KEYS) and not FILL_IN.search(text)
    [partition] = settings.system("mine", site)["partitions"]
    assert partition["scheduler"] == ("slurm" if name in OF_A_CLUSTER else "local")
    assert (site["link_bytes_per_s"] is None) == (site["nodes"] == 1)
    # A fabric and its absence are told apart as docs/how-to/add-a-site.md says.
    wait = {"ethernet": True, "infiniband": False, "slingshot": False}
    assert site["spare_init_wait"] == wait.get(name, "detect")


@pytest.mark.parametrize("name", OF_A_CLUSTER)
def test_what_the_machine_tells_is_filled_in_as_a_guess(name: str, tmp_path: Path) -> None:
    port(tmp_path, "mlx5_0", "100 Gb/sec (4X EDR)", "4: ACTIVE")
    text = new.files_of("mine", machine(tmp_path, SLURM), None, "login3", name)["site.yaml"]
    site = yaml.safe_load(text)
    assert (site["nodes"], site["cores_per_node"]) == (42, 64)
    assert site["hostnames"] == [r"^login\d+(\.|$)"]
    assert site["link_bytes_per_s"] == 12_500_000_000
    # What a key means is said once.
    assert text.count("Where ReFrame runs") == text.count("An upper limit that no HPL") == 1
    assert text.count("# guess: ") >= 5 and "begun with the example" in text
    assert FILL_IN.findall(text) == ["a short description for people"]
    # An account is none that a machine could tell.
    assert site["access"] == ["--partition=batch"] and "to do: add the account" in text


@pytest.mark.parametrize("name", ["fat-node", "laptop"])
def test_a_machine_without_a_scheduler_is_ready_at_once(name: str, tmp_path: Path) -> None:
    files = new.files_of("mine", machine(tmp_path, {}), None, "big1", name)
    new.write(tmp_path / "mine", files)
    site = read_site(tmp_path / "mine" / "site.yaml", tmp_path)
    assert site["hostnames"] == [r"^big\d+(\.|$)"] and site["launch"] == "mpiexec"


def test_an_unknown_example_and_a_second_scheduler_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SiteError, match=r"infiniband, laptop, slingshot; did you mean `infiniba"):
        new.files_of("mine", machine(tmp_path, {}), None, "login3", "infinband")
