"""What `make study` does after measuring, for each report: a campaign's folder becomes pages."""

import re
import shutil
from pathlib import Path

import pytest
from markupsafe import escape

from analysis.studies.declaration import Exhibit, Study
from analysis.studies.exhibits import of_report
from analysis.studies.one_number import FAILS, HOLDS, IN_PART, UNTOLD
from analysis.studies.reading import read_paper
from analysis.studies.relations import Report
from analysis.studies.verdicts import TESTABLE, TESTED, UNTESTABLE
from tests.analysis.support.in_process import analysis
from tests.analysis.support.study_samples import PAPERS, PROJECT
from tests.busy_campaign import busy_campaign

MEASURED = ("mpich-5.0.2", "openmpi-5.0.11")
#: Exhibits of which the sample of runs/ has launches: numbers of today have to stand there.
MEASURED_EXHIBITS = {
    "kearns2003": ["Tables 4, 5", "Table 9", "Appendices F to I"],
    "nas2003": ["ATA by buffer size"],
    "ornl1996": ["Table 2.1", "Table 3.1"],
}


def taken_for(study: Study) -> dict[str, str]:
    """Return as which implementations the sample's two are taken, so that they stand for some."""
    wanted = study.images()
    others = [name for name in wanted if name not in MEASURED]
    spare = [name for name in reversed(MEASURED) if name not in wanted]
    return dict(zip(spare, others, strict=False))


def sample_as(folder: Path, names: dict[str, str]) -> Path:
    """Write the sample of runs/ with other names of its implementations."""
    shutil.copytree(busy_campaign(), folder)
    for path in [folder / "manifest.json", *folder.glob("launches/*/launch.json")]:
        text = path.read_text()
        for measured, taken in names.items():
            text = text.replace(f'"{measured}"', f'"{taken}"')
        path.write_text(text)
    return folder


def between(page: str, before: str, after: str) -> str:
    """Return what stands between two texts; both have to be there."""
    assert before in page, before
    return page.split(before, 1)[1].split(after, 1)[0]


@pytest.mark.parametrize("name", PAPERS)
def test_a_measured_campaign_becomes_a_study(name: str, tmp_path: Path) -> None:
    paper = read_paper(PROJECT, name)
    folder = sample_as(tmp_path / "campaign", taken_for(paper.study))
    done = analysis("study", name, str(folder), "--page", "--no-tables")
    assert done.returncode == 0, done.stderr
    page = (folder / "study.html").read_text()
    for claim in paper.claims:
        article = between(page, f'<article id="{claim.id}">', "</article>")
        answers = [
            (
                "Follows from the report\N{RIGHT SINGLE QUOTATION MARK}s own tables?",
                (HOLDS, IN_PART, FAILS, UNTOLD),
            ),
            ("Holds here?", (HOLDS, IN_PART, FAILS, UNTOLD)),
            ("To test it", (TESTED, TESTABLE, UNTESTABLE)),
        ]
        for question, verdicts in answers:
            answer = between(article, f"<dt>{question}</dt>", "</dd>")
            assert any(f">{verdict}</strong>" in answer for verdict in verdicts), claim.id
            assert "<span>" in answer
    report = Report(paper)

    def nothing_printed(exhibit: Exhibit) -> bool:
        return of_report(report, exhibit).is_empty()

    for exhibit in paper.study.exhibits:
        heading = f"<h3>{escape(exhibit.number)}: {escape(exhibit.title)}</h3>"
        section = between(page, heading, "</section>")
        without = "nothing to compare with it" in section
        assert "<table" in section or exhibit.absent or (without and nothing_printed(exhibit))
        if exhibit.number in MEASURED_EXHIBITS.get(name, []):
            assert not without and re.search('class="number today" title="[^"]* rounds', section)
    assert (folder / "study.md").read_text().count("\n") > len(paper.claims)
