"""An engineer's way, with no look into the source: a sample, a site, a night, all nights."""

import json
import re
import shutil
import sys
from pathlib import Path

import pytest

from analysis.commands.nights import EXIT_CODES
from campaign.site import new
from site_configs.entries import SiteError
from site_configs.site_file import FILL_IN, read_site
from tests.analysis.history.test_history import nightly  # noqa: F401
from tests.analysis.support.in_process import analysis

#: What somebody at the machine would write, for keys that are not words.
NUMBERS = {"nodes": "4", "cores_per_node": "64", "memory_bytes_per_node": "256000000000",
           "link_bytes_per_s": "12500000000.0"}  # fmt: skip


def fill_in(file: Path) -> None:
    """Write what the file asks for where it asks for it; whatever is refused names its line."""
    asked = [line for line in file.read_text().splitlines() if FILL_IN.search(line)]
    if asked:
        with pytest.raises(SiteError) as refused:
            read_site(file, file.parent)
        said = str(refused.value).splitlines()
        assert len(said) == len(asked) and all(
            f"`{line.partition(':')[0]}` is not filled in yet" in one
            for line, one in zip(asked, said, strict=True)
        )
    lines = [
        FILL_IN.sub(NUMBERS.get(line.partition(":")[0], "mine"), line)
        for line in file.read_text().splitlines()
    ]
    file.write_text("\n".join([*lines, ""]))


@pytest.mark.parametrize("example", new.examples())
def test_from_a_sample_report_to_the_page_of_nights(
    nightly: Path,  # noqa: F811
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    example: str,
) -> None:
    # A report to look at, before anything is measured.
    report = tmp_path / "report.html"
    done = analysis("report", "sample", "-o", str(report))
    assert done.returncode == 0 and "<h1>" in report.read_text(), done.stderr

    # A site, from the example that is nearest: its file is read as every site's is.
    words = ["new-site", "mine", "--from", example, "--sites", str(tmp_path / "sites")]
    monkeypatch.setattr(sys, "argv", words)
    (tmp_path / "sites").mkdir()
    assert new.main() == 0
    mine = tmp_path / "sites" / "mine"
    fill_in(mine / "site.yaml")
    assert read_site(mine / "site.yaml", mine)["partition"]
    told = capsys.readouterr().out
    assert "make check-site SITE=mine" in told and " 1 guesses" not in told

    # Nights of two weeks; the last one is judged, and its page leads to all that it names.
    runs = tmp_path / "runs"
    shutil.copytree(nightly, runs, ignore=shutil.ignore_patterns("history.html"))
    last = sorted(one for one in runs.iterdir() if one.is_dir())[-1]
    analysis("report", str(last))
    judged = analysis("night", str(last), "--runs", str(runs))
    verdict = json.loads((last / "night.json").read_text())["verdict"]
    assert judged.returncode == EXIT_CODES.get(verdict, 0), judged.stderr
    page = (runs / "history.html").read_text()
    links = set(re.findall(r'href="([^"#]+)[^"]*"', page))
    assert {f"{last.name}/night.md", f"{last.name}/report.html"} <= links
    assert all((runs / link).is_file() for link in links)
