"""What hiding the machine costs: verdicts of a campaign's kind, and that the two ways differ."""

import sys
from pathlib import Path

import pytest

from analysis.comparison.verdict import correct
from containers import trust
from costs import hiding
from costs.hiding import as_launched, rows, seeing_more
from site_configs.settings import load_site
from tests.campaign.played_programs import Played

PROJECT = Path(__file__).resolve().parents[2]
IMAGE = "mpich-5.0.2"


def test_verdicts_are_those_of_campaigns() -> None:
    """Of sizes together, by each experiment's margin, and corrected over the experiment."""
    noise = [1.0, 1.002, 0.998, 1.001, 0.999] * 4
    # Ten percent longer at one of two sizes, and three percent where five are taken for equal.
    found = [
        *rows(
            "a",
            "EchoTest",
            {"x at 0": [(n, 1.0) for n in noise], "x at 8": [(1.1, n) for n in noise]},
        ),
        *rows("b", "EchoTest", {"x at 0": [(n, 1.0) for n in noise]}),
        *rows("a", "StartUp", {"true": [(0.103 * n, 0.1) for n in noise]}),
        *rows("b", "StartUp", {"true": [(0.103, 0.1)]}),
    ]
    for experiment in ("EchoTest", "StartUp"):
        correct([row.verdict for row in found if row.experiment == experiment])
    assert [row.verdict.words for row in found] == [
        "slower", "equivalent within 2%", "slower", "inconclusive (1 paired round)",
    ]  # fmt: skip
    assert found[0].verdict.ratio.value == pytest.approx(1.1**-0.5, rel=1e-3)
    assert found[0].launched_s / found[0].otherwise_s == pytest.approx(1.1**0.5, rel=1e-3)
    assert "| a | EchoTest | x | 1.049 | 1 | 0.953 | " in found[0].line()


def test_few_launches_that_take_twice_as_long_do_not_widen_the_median_round() -> None:
    """The ratio's interval counts each of them, so that nothing is shown of all launches."""
    rare = {5: (2.0, 1.0), 11: (1.0, 2.0)}
    pairs = [rare.get(turn % 12, (1 + 1e-3 * (turn % 5), 1.0)) for turn in range(60)]
    [row] = rows("a", "EchoTest", {"x at 0": pairs})
    correct([row.verdict])
    assert row.verdict.words == "no difference shown"
    assert 1 / 1.005 < row.typical.low < row.typical.high <= 1 and row.typical.coverage > 0.95
    assert row.line().endswith("| 0.997 – 0.999 |"), row.line()


def test_every_program_is_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """All that the command prints, of programs that are played."""
    place = Played(tmp_path)
    monkeypatch.setattr(hiding, "as_launched", lambda image, folder, alone, variables=None: place)
    monkeypatch.setattr(hiding, "seeing_more", lambda image, folder, variables: place)
    monkeypatch.setattr(hiding, "mpiexec_of", lambda image: ["mpiexec"])
    monkeypatch.setattr(hiding, "set_in_launches", lambda image, site: {})
    monkeypatch.setattr(hiding, "ROOT", tmp_path)
    (tmp_path / ".wyeast").mkdir()
    monkeypatch.setattr(trust, "admit", lambda *_: tmp_path)
    monkeypatch.setattr(sys, "argv", ["hiding", "--rounds=3", "--images", IMAGE])
    assert hiding.main() == 0
    printed = [line.strip("| ").split(" | ") for line in capsys.readouterr().out.splitlines()[2:]]
    experiments = [one.experiment for one in hiding.PROGRAMS]
    assert [row[:2] for row in printed] == [
        [IMAGE, name] for name in [*experiments, "Linpack", "StartUp", "StartUp"]
    ]
    assert all(float(row[3]) > 0 and float(row[4]) > 0 for row in printed)
    started = [command for command in place.commands if command[0] == "mpiexec"]
    assert len(started) == 2 * 3 * (len(hiding.PROGRAMS) + len(["xhpl"]))


@pytest.mark.real
def test_what_is_compared_differs_in_what_it_sees(tmp_path: Path) -> None:
    image = trust.admit(PROJECT, IMAGE, load_site("local"))
    look = ["sh", "-c", "ls -d /proc/[0-9]* | wc -l; pwd; touch left"]
    seen = {}
    for name, place in {
        "more": seeing_more(image, tmp_path),
        "launched": as_launched(image, tmp_path, alone=True),
    }.items():
        processes, folder = place.run(look)[0].split()
        assert folder == "/mnt" and (tmp_path / "work" / "left").is_file()
        seen[name] = int(processes)
    assert seen["launched"] < 10 < seen["more"]


@pytest.mark.real
@pytest.mark.serial
def test_an_experiment_is_compared_in_a_real_image(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["hiding", "--rounds=2", "--only=EchoTest", "--images", IMAGE])
    assert hiding.main() == 0
    [row] = [line.strip("| ").split(" | ") for line in capsys.readouterr().out.splitlines()[2:]]
    assert row[:3] == [IMAGE, "EchoTest", "0 to 1 MB"] and float(row[3]) > 0 and float(row[4]) > 0
