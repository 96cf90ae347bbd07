"""Within one campaign, what the images differ in besides the MPI stands beside the verdicts."""

from pathlib import Path
from typing import Any

import pytest

from analysis.comparison.caveats.image_caveats import image_caveats
from analysis.comparison.compare import compare
from analysis.comparison.result import Comparison
from analysis.report.markdown import markdown
from analysis.report.report import write_report
from records.campaign import read_campaign
from tests.analysis.support.in_process import analysis
from tests.analysis.support.synthetic import TWICE, Synthetic

FLAGS = "-O2 -g"


def image(builder: str, flags: str, **labels: str) -> dict[str, Any]:
    """Return what a manifest says of an image."""
    named = {"builder": builder, **labels}
    return {
        "labels": {f"org.wyeast.{key}": text for key, text in named.items()},
        "manifest": {"compiler": {"command": "gcc", "version": "12", "flags": flags}},
    }  # fmt: skip


WHEEL = image("wheel", FLAGS, hpl="2.0")
SPACK = image("spack", f"{FLAGS} -march=x86-64-v3", hpl="2.3", nas="official")


def campaign(tmp_path: Path, alpha: dict[str, Any], beta: dict[str, Any]) -> Path:
    """Write a campaign of PointToPoint and Linpack with two images that are described so."""
    made = Synthetic(tmp_path / "campaign", TWICE, pairs=["Send/Recv"])
    names = dict(zip(TWICE, (alpha, beta), strict=True))
    made.facts = {
        "images": {name: {"sha256": made.digest(name), **said} for name, said in names.items()}
    }
    return made.write()


def caveats(folder: Path) -> dict[str, tuple[str, ...]]:
    comparison: Comparison = compare(read_campaign(folder))
    return {one.sentence: one.experiments for one in image_caveats(comparison)}


def test_images_that_are_alike_have_no_caveat(tmp_path: Path) -> None:
    assert caveats(campaign(tmp_path, WHEEL, WHEEL)) == {}


def test_each_difference_is_named_with_the_experiments_that_it_concerns(tmp_path: Path) -> None:
    folder = campaign(tmp_path, WHEEL, SPACK)
    both = ("PointToPoint", "Linpack")
    found = {
        sentence.partition(": ")[2].rpartition(": ")[0]: experiments
        for sentence, experiments in caveats(folder).items()
    }
    assert found == {
        "compiler flags: -O2 -g (alpha-1.0); -O2 -g -march=x86-64-v3 (beta-2.0)": both,
        "HPL's version: 2.0 (alpha-1.0); 2.3 (beta-2.0)": ("Linpack",),
        "builder: wheel (alpha-1.0); spack (beta-2.0)": both,
    }
    # Nas was not measured: of its programs there is nothing to say.
    assert not any("NAS" in sentence for sentence in caveats(folder))


def test_what_is_not_known_of_one_is_a_difference(tmp_path: Path) -> None:
    older = image("wheel", FLAGS)
    (sentence,) = caveats(campaign(tmp_path, older, WHEEL))
    assert "HPL's version: not known (alpha-1.0); 2.0 (beta-2.0)" in sentence


def test_programs_of_nas_are_ours_where_no_label_says_otherwise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    official = image("wheel", FLAGS, hpl="2.0", nas="official")
    folder = campaign(tmp_path, WHEEL, official)
    found = compare(read_campaign(folder))
    for cell in found.cells:
        cell.experiment = "Nas" if cell.experiment == "Linpack" else cell.experiment
    (caveat,) = image_caveats(found)
    assert caveat.experiments == ("Nas",)
    assert "NAS programs: ours (alpha-1.0); official (beta-2.0)" in caveat.sentence


def test_pages_are_the_usual_ones_where_no_label_says_otherwise(tmp_path: Path) -> None:
    found = compare(read_campaign(campaign(tmp_path, WHEEL, image("wheel", FLAGS, hpl="2.0",
                                                                  pages="huge"))))  # fmt: skip
    for cell in found.cells:
        cell.experiment = "Su3" if cell.experiment == "Linpack" else "Nas"
    (caveat,) = image_caveats(found)
    assert set(caveat.experiments) == {"Nas", "Su3"}
    assert "pages of large arrays: usual (alpha-1.0); huge (beta-2.0)" in caveat.sentence


def test_table_comparison_markdown_and_report_have_it(tmp_path: Path) -> None:
    folder = campaign(tmp_path, WHEEL, SPACK)
    sentence = "HPL's version: 2.0 (alpha-1.0); 2.3 (beta-2.0)"
    for command in ("table", "compare"):
        said = " ".join(analysis(command, str(folder)).stdout.split())
        assert said.count(sentence) == 1, command
    text = markdown(compare(read_campaign(folder)))
    assert text.count("- Caveat for Linpack: HPL's version") == 1
    page = write_report(folder, None, None).read_text()
    ranks = page.partition('aria-label="ranks of Linpack"')[2].partition("</div>")[0]
    assert "Caveat for Linpack: HPL&#39;s version" in ranks and "compiler flags" in ranks
    others = page.partition('aria-label="ranks of PointToPoint"')[2].partition("</div>")[0]
    assert "compiler flags" in others and "HPL&#39;s version" not in others
