"""Campaigns of two checkouts at once: a launch of one, then one of the other."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from costs import checkouts as compared_checkouts
from costs.checkouts import by_round, compared
from costs.turns import in_turns
from records.base import CampaignError
from records.campaign import read_campaign
from tests.analysis.support.synthetic import HPL, TWICE, Synthetic

PROJECT = Path(__file__).resolve().parents[2]
#: Says when it begins and ends, and that nobody else's is between both.
APPTAINER = """#!/bin/sh
echo "begin {side} $1" >>{log}
sleep 0.0$(($$ % 10))
echo "end {side} $1" >>{log}
"""
#: So many launches; an Apptainer that is only asked waits for nobody.
LAUNCHES = """
apptainer --version
for number in $(seq $(cat launches)); do apptainer exec image mpiexec -n 2 program; done
[ -e ends ] || exit 3
"""
#: Whoever never gets a turn ends with an error, long after any test.
WORDS = ["timeout", "120", "sh", "-c", LAUNCHES]


@pytest.fixture
def checkouts(tmp_path: Path) -> list[Path]:
    made = []
    for side in ("here", "there"):
        checkout = tmp_path / side
        (checkout / "bin").mkdir(parents=True)
        (checkout / "activate").write_text('PATH="$PWD/bin:$PATH"\n')
        (checkout / "ends").touch()
        (checkout / "launches").write_text("4")
        apptainer = checkout / "bin" / "apptainer"
        apptainer.write_text(APPTAINER.format(side=side, log=tmp_path / "log"))
        apptainer.chmod(0o755)
        made.append(checkout)
    return made


def place_of(link: Path) -> str:
    """Return where a process is at work; nothing for one that has ended meanwhile."""
    try:
        return os.readlink(link)
    except OSError:
        return ""


def until(patience_s: float, holds: Callable[[], bool]) -> None:
    """Wait for something, for so long at most."""
    last = time.monotonic() + patience_s
    while not holds():
        assert time.monotonic() < last, "it never was so"
        time.sleep(0.1)


def launched(folder: Path) -> list[str]:
    """Return whose launches ran, in their order, each alone."""
    lines = [one for one in (folder / "log").read_text().splitlines() if one.endswith(" exec")]
    begun, ended = lines[::2], lines[1::2]
    assert [one.replace("begin", "end") for one in begun] == ended, "two at once"
    return [one.split()[1] for one in begun]


def test_launches_alternate_and_none_runs_beside_another(
    tmp_path: Path, checkouts: list[Path]
) -> None:
    in_turns(checkouts, WORDS, os.environ)
    assert launched(tmp_path) == ["here", "there"] * 4


def test_whoever_has_more_launches_goes_on_alone(tmp_path: Path, checkouts: list[Path]) -> None:
    (checkouts[0] / "launches").write_text("2")
    in_turns(checkouts, WORDS, os.environ)
    assert launched(tmp_path) == ["here", "there"] * 2 + ["there"] * 2


def test_where_one_fails_both_have_ended_and_its_last_words_are_told(
    checkouts: list[Path],
) -> None:
    (checkouts[0] / "ends").unlink()
    (checkouts[1] / "launches").write_text("1000000")
    with pytest.raises(CampaignError, match="here did not measure"):
        in_turns(checkouts, WORDS, os.environ)
    assert str(checkouts[1]) not in set(map(place_of, Path("/proc").glob("[0-9]*/cwd")))


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_whoever_is_ended_leaves_no_campaign_behind(
    tmp_path: Path, checkouts: list[Path], number: signal.Signals
) -> None:
    for checkout in checkouts:
        (checkout / "launches").write_text("1000000")
    code = (
        "import os, sys; from pathlib import Path; from costs.turns import in_turns; "
        f"in_turns([*map(Path, sys.argv[1:])], {WORDS!r}, os.environ)"
    )
    # Whoever is killed leaves its folder, which is the test's own here.
    with subprocess.Popen(
        [sys.executable, "-c", code, *checkouts], cwd=PROJECT, stderr=subprocess.DEVNULL,
        env=os.environ | {"TMPDIR": str(tmp_path)},
    ) as running:  # fmt: skip
        log = tmp_path / "log"
        until(60, lambda: log.exists() and log.read_text().count(" exec") > 3)
        running.send_signal(number)
    # Nobody would see them measure.
    places = {*map(str, checkouts)}
    until(60, lambda: not places & set(map(place_of, Path("/proc").glob("[0-9]*/cwd"))))


def test_a_launch_that_never_waits_for_a_turn_is_told(checkouts: list[Path]) -> None:
    with pytest.raises(CampaignError, match=r"no launch of .*here waited for a turn"):
        in_turns(checkouts, ["apptainer", "exec", "image", "some_launcher"], os.environ)


@pytest.mark.parametrize("launcher", ["lam_ranks", "/opt/mpi/bin/mpiexec"])
def test_folders_may_have_any_name_and_launchers_a_path(
    tmp_path: Path, checkouts: list[Path], monkeypatch: pytest.MonkeyPatch, launcher: str
) -> None:
    for checkout in checkouts:
        (checkout / "launches").write_text("2")
    place = tmp_path / "a b' $c"
    place.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(place))
    words = [*WORDS[:-1], LAUNCHES.replace("mpiexec", launcher)]
    in_turns(checkouts, words, os.environ)
    assert launched(tmp_path) == ["here", "there"] * 2
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "a:b"))
    (tmp_path / "a:b").mkdir()
    with pytest.raises(CampaignError, match="has a colon, which PATH cannot"):
        in_turns(checkouts, words, os.environ)


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--images", "mpich-5.0.2,mpich-5.0.2+site"], "an installation, are started by no Appt"),
        ([], "two campaigns at once need two checkouts"),
    ],
)
def test_what_cannot_take_turns_is_refused(
    words: list[str], why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = str(compared_checkouts.ROOT)
    monkeypatch.setattr(sys, "argv", ["checkouts", here, "--turns", "1", *words])
    with pytest.raises(CampaignError, match=why):
        compared_checkouts.main()


def test_a_checkout_without_apptainer_is_refused(checkouts: list[Path]) -> None:
    (checkouts[0] / "bin" / "apptainer").unlink()
    (checkouts[0] / "activate").write_text("PATH=/usr/bin:/bin\nhash -r\ncommand() { return 1; }\n")
    with pytest.raises(CampaignError, match="has no apptainer"):
        in_turns(checkouts, WORDS, os.environ)


def campaign(folder: Path, name: str, times: float) -> Path:
    """Make up a campaign of six rounds that measured so many times what its twin did."""
    made = Synthetic(folder / name, {"alpha-1.0": TWICE["alpha-1.0"]}, rounds=0)
    made.write()
    for number in range(1, 7):
        # The machine's rate changes by half between rounds, for both.
        rate = times * (1 + 1e-3 * (-1) ** number * (times - 1)) * (1.0 if number % 2 else 1.5)
        made.launch(
            number, "alpha-1.0", "Linpack", {"grid": "1x2", "n": 4000, "nb": 192},
            HPL.format(n=4000, q=2, time=1.0, gflops=40.0 * rate),
        )  # fmt: skip
    return folder / name


def test_rounds_are_compared_by_pairs_whatever_the_machine_s_rate(tmp_path: Path) -> None:
    here, there = (campaign(tmp_path, name, times) for name, times in (("a", 1.1), ("b", 1.0)))
    ratios = by_round(read_campaign(here), read_campaign(there))
    assert len(ratios) == 6
    [(key, one)] = compared(ratios)
    assert key == ("Linpack grid=1x2 n=4000 nb=192", "alpha-1.0")
    assert one.verdict.words == "faster" and one.verdict.ratio.value == pytest.approx(1.1, rel=1e-3)
