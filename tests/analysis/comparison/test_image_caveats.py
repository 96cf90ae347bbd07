"""Within one campaign, what the images differ in besides the MPI stands beside the verdicts."""

from pathlib import Path
from typing import Any

import pytest

from analysis.comparison.caveats import image_libraries
from analysis.comparison.caveats.comparability import differences, facts_of
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
        "builder: wheel (alpha-1.0); spack (beta-2.0); it is not known for all of them which "
        "libraries were loaded": both,
    }
    # Nas was not measured: of its programs there is nothing to say.
    assert not any("NAS" in sentence for sentence in caveats(folder))


LIBC, BLAS = "/lib/x86_64-linux-gnu/libc.so.6", "/lib/x86_64-linux-gnu/libopenblas.so.0"


def loading(image: dict[str, Any], mpi: str, digests: str, **others: str) -> dict[str, Any]:
    """An image whose programs load an MPI, of digest a or b, and others by their digests."""
    sha256 = {mpi: digests[0] * 64, LIBC: "c" * 64, BLAS: others.get("blas", "d") * 64}
    loaded = [
        {"by": ["pingpong"], "files": [mpi, LIBC]},
        {"by": ["xhpl"], "files": [mpi, LIBC, BLAS]},
        {"by": [mpi], "files": [LIBC]},
    ]
    return {**image, "libraries": {"sha256": sha256, "loaded": loaded}}


def said_of(folder: Path, rule: str) -> dict[str, tuple[str, ...]]:
    """What is said by a rule, without what it concerns and why it matters."""
    return {
        sentence.partition(f"{rule}: ")[2].rpartition(": ")[0]: experiments
        for sentence, experiments in caveats(folder).items()
        if f": {rule}: " in sentence
    }


SAME = image("debian", FLAGS, hpl="2.0"), image("spack", FLAGS, hpl="2.0")
OF_DEBIAN, OF_SPACK = "/usr/lib/libmpich.so.12", "/opt/software/x/lib/libmpi.so.12"


def test_one_library_that_two_builders_put_into_images_was_compiled_once(tmp_path: Path) -> None:
    alpha, beta = (loading(one, OF_DEBIAN, "a") for one in SAME)
    assert caveats(campaign(tmp_path, alpha, beta)) == {}
    # Its bytes decide, and not its place.
    beta = loading(SAME[1], OF_SPACK.replace("libmpi", "libmpich"), "a")
    assert caveats(campaign(tmp_path / "moved", alpha, beta)) == {}


def test_libraries_of_two_mpis_of_one_distribution_have_one_builder(tmp_path: Path) -> None:
    alpha = loading(SAME[0], OF_DEBIAN, "a")
    beta = loading(SAME[1], "/usr/lib/libmpi.so.40", "b")
    assert caveats(campaign(tmp_path, alpha, beta)) == {}


def test_a_library_that_was_compiled_in_another_way_is_a_caveat(tmp_path: Path) -> None:
    alpha, beta = loading(SAME[0], OF_DEBIAN, "a"), loading(SAME[1], OF_SPACK, "b")
    found = said_of(campaign(tmp_path, alpha, beta), "builder")
    both = ("PointToPoint", "Linpack")
    assert found == {"the distribution (alpha-1.0); spack (beta-2.0)": both}


def test_what_images_load_is_not_known_of_older_campaigns(tmp_path: Path) -> None:
    folder = campaign(tmp_path, *SAME)
    (words,) = said_of(folder, "builder")
    assert words == (
        "the distribution (alpha-1.0); spack (beta-2.0); "
        "it is not known for all of them which libraries were loaded"
    )
    assert said_of(folder, "libraries besides the MPI") == {}


def test_another_blas_concerns_only_the_programs_that_load_it(tmp_path: Path) -> None:
    alpha, beta = (loading(SAME[0], OF_DEBIAN, "a", blas=blas) for blas in "de")
    found = said_of(campaign(tmp_path, alpha, beta), "libraries besides the MPI")
    words = "libopenblas.so.0 dddddddddddd (alpha-1.0); libopenblas.so.0 eeeeeeeeeeee (beta-2.0)"
    assert found == {words: ("Linpack",)}
    # Of an image that does not tell, nobody knows.
    found = said_of(campaign(tmp_path / "one", alpha, SAME[0]), "libraries besides the MPI")
    assert found == {"known (alpha-1.0); not known (beta-2.0)": ("PointToPoint", "Linpack")}


def test_the_machine_s_own_mpi_is_not_the_image_s(tmp_path: Path) -> None:
    manifest = {
        "images": {name: loading(SAME[0], OF_DEBIAN, "a") for name in ("x", "x+host")},
        "host_mpi": {"variant": "host"},
    }
    assert image_libraries.mpi(facts_of(manifest, "x"))
    assert image_libraries.mpi(facts_of(manifest, "x+host")) is None


def test_builds_with_other_options_have_no_caveat_but_their_difference_between_campaigns(
    tmp_path: Path,
) -> None:
    own = image("spack", FLAGS, hpl="2.0", build_options="fabrics=cma")
    alpha, beta = loading(SAME[1], OF_SPACK, "a"), loading(own, OF_SPACK, "b")
    # Within a campaign the report says which option moved what.
    assert caveats(campaign(tmp_path, alpha, beta)) == {}
    before, after = ({"images": {"x": one}} for one in (alpha, beta))
    (found,) = differences(before, after, [("x", "x")])
    assert found.sentence.startswith("build options of x: those of its entry and fabrics=cma: ")


def test_two_campaigns_images_differ_in_what_their_programs_load(tmp_path: Path) -> None:
    def found(one: dict[str, Any], other: dict[str, Any]) -> dict[str, str]:
        before, after = ({"images": {"x": image}} for image in (one, other))
        said = differences(before, after, [("x", "x")])
        return {difference.rule.name: difference.sentence for difference in said}

    alpha = loading(SAME[0], OF_DEBIAN, "a")
    assert found(alpha, loading(SAME[1], OF_SPACK.replace("libmpi", "libmpich"), "a")) == {}
    said = found(alpha, loading(SAME[1], OF_SPACK, "b", blas="e"))
    assert said["builder"].startswith("builder of x: the distribution and spack: ")
    assert "libopenblas.so.0 dddd" in said["libraries besides the MPI"]
    assert "libc.so.6" not in said["libraries besides the MPI"]
    # That an older one's files are not known is not said of each image.
    assert set(found(alpha, SAME[1])) == {"builder"}


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
