"""Each way to pass having measured nothing, or something impossible, is closed."""

import hashlib
import json
from collections.abc import Callable

import pytest

from reframe_checks.preflight import is_version
from tests.reframe_checks.conftest import (
    IMPLEMENTATION,
    PREFLIGHT,
    StandIn,
    header,
    lines,
    pingpong,
)

HPL = """\
T/V                N    NB     P     Q               Time             Gflops
----------------------------------------------------------------------------
WR11C2R4        {n}   192     1     2               {time}              {rate}
----------------------------------------------------------------------------
||Ax-b||_oo/(eps*(||A||_oo*||x||_oo+||b||_oo)*N)=        {residual} ...... {verdict}
============================================================================

Finished      1 tests with the following results:
              {passed} tests completed and passed residual checks,
              {failed} tests completed and failed residual checks,
              0 tests skipped because of illegal input values.
----------------------------------------------------------------------------

End of Tests.
"""
#: One cell of PointToPoint, as a plain run of the stand-in has it.
SHORT = "PointToPoint.*=Send/Recv.*=short"
LINPACK = "^Linpack.*=1x2.*n=2000"
RESIDUAL = (
    "HPL's residual is 17.5, the limit is 16 (HPL's usual threshold: Appendix A of the "
    "thesis, literature/kearns2003/hpl_dat.csv)"
)


def hpl(rate: str = "4.000e+01", residual: str = "0.0031", n: int = 2000) -> str:
    sound = float(residual) < 16
    return HPL.format(
        n=n, time="0.13", rate=rate, residual=residual, verdict="PASSED" if sound else "FAILED",
        passed=int(sound), failed=int(not sound),
    )  # fmt: skip


def test_sound_launch_passes_and_is_kept(stand_in: StandIn) -> None:
    outcome = stand_in.run()
    assert outcome.code == 0, outcome.text
    [launch] = outcome.launches
    assert launch["outcome"] == "sound" and launch["sentence"] is None
    assert launch["cell"] == "PointToPoint pair=Send/Recv message_range=short"
    assert launch["wall_s"] > 0
    assert set(launch["processors_s"]) == {"busy", "idle", "stolen"}
    assert launch["image_signature"] == "not verified: built here"
    assert launch["node"]["running"] >= 0 and launch["node"]["memory_available_bytes"] > 0
    assert launch["node"]["facts"].startswith("nodes/")


@pytest.mark.parametrize(
    ("options", "only"),
    [(["-t", "no-such-tag"], "."), ([], "NoSuchCheck"), (["-t", "paper"], "PointToPoint")],
)
def test_no_check_selected(stand_in: StandIn, options: list[str], only: str) -> None:
    outcome = stand_in.run(*options, only=only)
    assert outcome.code != 0
    assert "no check was selected, so nothing was measured" in outcome.text


def test_every_check_done_already(stand_in: StandIn) -> None:
    first, again = stand_in.run(), stand_in.run()
    assert first.code == 0
    # The launch is in the campaign already, so nothing is left to measure.
    assert again.code != 0 and "nothing was measured" in again.text
    assert first.launches == again.launches


def test_every_check_skipped_while_running(stand_in: StandIn) -> None:
    checks = stand_in.root / "checks"
    checks.mkdir()
    (checks / "skipped.py").write_text(
        "import reframe as rfm\nfrom reframe.core.builtins import run_before\n\n"
        "@rfm.simple_test\nclass Skipped(rfm.RunOnlyRegressionTest):\n"
        "    valid_systems = ['*']\n    valid_prog_environs = ['*']\n"
        "    @run_before('run')\n    def never(self):\n        self.skip('not today')\n"
    )
    outcome = stand_in.run("-c", str(checks), only="Skipped")
    assert outcome.code != 0 and "every selected check was skipped" in outcome.text


def test_host_that_matches_no_site(stand_in: StandIn) -> None:
    outcome = stand_in.run("--system=generic")
    assert outcome.code != 0 and "nothing was measured" in outcome.text


def test_missing_image(stand_in: StandIn) -> None:
    next((stand_in.root / ".wyeast" / "images").iterdir()).unlink()
    outcome = stand_in.run()
    assert outcome.code != 0 and not outcome.launches
    assert "make images" in outcome.reason()


def test_no_image_at_all(stand_in: StandIn) -> None:
    (stand_in.root / "containers" / "images.lock").unlink()
    outcome = stand_in.run()
    assert outcome.code != 0 and not outcome.launches
    assert "no image is built yet; build them with: make images" in outcome.text


def test_each_launch_records_what_admitted_its_image_then(stand_in: StandIn) -> None:
    """That may change while ReFrame runs, as where a key expires."""
    lock, later = stand_in.root / "containers" / "images.lock", stand_in.root / "later.lock"
    entry = json.loads(lock.read_text())["images"][IMPLEMENTATION]
    other = entry | {"origin": {"how": "pulled"}, "admitted": {"by": "me", "how": "make admit"}}
    later.write_text(json.dumps({"schema": "wyeast-images-1", "images": {IMPLEMENTATION: other}}))
    script = stand_in.root / "bin" / "apptainer"
    # Of the image is asked before anything is launched.
    asked = f"sif) cp {later} {lock};"
    script.write_text(script.read_text().replace("sif)", asked, 1))
    [launch] = stand_in.run().launches
    assert launch["image_signature"] == "not verified: vouched for"


def test_wrong_digest(stand_in: StandIn, relock: Callable[[str], None]) -> None:
    relock("f" * 64)
    outcome = stand_in.run()
    assert outcome.code != 0 and not outcome.launches
    assert "images.lock" in outcome.reason() and "sha256" in outcome.reason().lower()


@pytest.mark.parametrize("how", ["written", "built"])
def test_an_image_replaced_before_the_launch_ends_makes_it_unsound(
    stand_in: StandIn, how: str
) -> None:
    """A job may wait for hours between the image's admission and its start."""
    script = stand_in.root / "bin" / "apptainer"
    image = ".wyeast/images/mpich-5.0.2.sif"
    again = (
        'cd "$STAND_IN" && sed -i "s/$1/$(sha256sum $2 | cut -c1-64)/" containers/images.lock'
        if how == "built" else ":"
    )  # fmt: skip
    digest = hashlib.sha256((stand_in.root / image).read_bytes()).hexdigest()
    first, rest = script.read_text().split("\n", 1)
    swap = (
        f'case "$1" in exec) echo >>"$STAND_IN/{image}"; (set -- {digest} {image}; {again});; esac'
    )
    script.write_text(f"{first}\n{swap}\n{rest}")
    outcome = stand_in.run(only="Preflight")
    became = hashlib.sha256((stand_in.root / image).read_bytes()).hexdigest()
    assert became != digest, "nothing was replaced"
    lock = (stand_in.root / "containers" / "images.lock").read_text()
    assert (became in lock) == (how == "built") and (digest in lock) == (how == "written")
    assert outcome.code != 0, outcome.text
    assert "it is uncertain which image ran" in outcome.reason()


def test_a_site_that_asks_for_signatures_runs_no_unsigned_image(stand_in: StandIn) -> None:
    stand_in.write("")  # What the script says when it is asked for an image's objects.
    settings = stand_in.settings(lambda text: f"{text}image_policy: signed\n")
    outcome = stand_in.run("-C", settings)
    assert outcome.code != 0 and outcome.launches == []
    assert "mpich-5.0.2.sif is not signed; sign it: make sign" in outcome.reason()


def test_image_that_holds_something_else(stand_in: StandIn) -> None:
    stand_in.label({"org.wyeast.implementation": "openmpi-5.0.11"})
    outcome = stand_in.run()
    assert outcome.code != 0 and "holds openmpi-5.0.11, not mpich-5.0.2" in outcome.reason()


SINGLETONS = lines(header("preflight", ranks=1), header("preflight", ranks=1))


OTHER_WORLDS = [
    (SINGLETONS, "one world"),
    (PREFLIGHT.replace('["node", "node"]', '["node1", "node2"]'), "2 nodes, node1, node2"),
    (PREFLIGHT.replace("MPICH Version: 5.0.2", "Open MPI v4.1.4"), "the library that ran reports"),
    (PREFLIGHT.replace("MPICH V", "MVAPICH V"), "the library that ran reports: MVAPICH Version"),
    (PREFLIGHT.replace("5.0.2", "5.0.21"), "the library that ran reports: MPICH Version: 5.0.21"),
    (PREFLIGHT.replace('"preflight"', '"pingpong"', 1), "not from preflight"),
]  # fmt: skip


def test_world_that_is_not_as_asked(stand_in: StandIn) -> None:
    plays = [{"preflight.out": preflight} for preflight, _ in OTHER_WORLDS]
    outcomes = stand_in.play(*plays, only=SHORT)
    for (_, sentence), outcome in zip(OTHER_WORLDS, outcomes, strict=True):
        assert outcome.code != 0
        assert sentence in outcome.reason(), outcome.text
        assert not outcome.launches, "nothing is timed in an image that failed its preflight"


@pytest.mark.parametrize(
    ("family", "version", "said", "is_it"),
    [
        ("mvapich", "4.1", "MVAPICH Version      :\t4.1", True),
        ("mvapich", "4.1", "Open MPI v4.1.8, package: Open MPI root@host", False),
        ("mvapich", "4.1", "MPICH Version: 3.4.1", False),
        ("mvapich", "4.1", "MVAPICH Version      :\t4.1.2", False),
        ("mpich", "5.0.1", "Open MPI v5.0.10, package: Open MPI root@host", False),
        ("mpich", "5.0.1", "MPICH Version:      5.0.1", True),
        ("mpich", "5.0.1", "MPICH Version:      5.0.10", False),
        # As the library of Intel MPI 2021.19 says it.
        ("intel-mpi", "2021.19", "Intel(R) MPI Library 2021.19.0 for Linux* OS", True),
        ("intel-mpi", "2021.1", "Intel(R) MPI Library 2021.19.0 for Linux* OS", False),
        ("openmpi", "5.0.1", "Open MPI v5.0.1, package: Open MPI root@host", True),
        ("intel-mpi", "2021.19", "Intel(R) MPI Library 2021.19 for Linux* OS", True),
        # Its header file has the version, and nothing says how.
        ("lam", "7.1.4", "LAM/MPI 7.1.4", True),
        ("lam", "7.1.4", "LAM/MPI 7.1.2", False),
        ("of this site", "2.0", "Site MPI 2.0", True),
    ],
)
def test_the_library_that_ran_is_of_the_family_and_just_the_version(
    family: str, version: str, said: str, is_it: bool
) -> None:
    assert is_version(family, version, said) == is_it


def from_files(*paths: str) -> str:
    """Return what the preflight prints where its ranks have MPI from these files."""
    said = [{"record": "result", "operation": "library", "ranks": 1, "path": p} for p in paths]
    before, after = PREFLIGHT.split('{"record": "end"')
    assert after == ', "results": 3}\n'
    return f'{before}{lines(*said)}{{"record": "end", "results": {3 + len(said)}}}\n'


#: A bound MPI's library, and that of another build of the same version.
BOUND = "/opt/site/lib/libmpi.so.12"
OTHER = "/opt/mpi/lib/libmpi.so.12"


@pytest.mark.parametrize(
    ("said", "paths", "sentence"),
    [
        ("MPICH Version:  5.0.2\nMPICH Device: ch4", [BOUND], ""),
        ("MPICH Version: 5.0.2-site", [BOUND], "own MPI reports"),
        (
            "MPICH Version: 5.0.2",
            [OTHER],
            f"own MPI is {BOUND}, but the library that ran is {OTHER}",
        ),
        ("MPICH Version: 5.0.2", [""], "the library that ran is linked into the program"),
        ("MPICH Version: 5.0.2", [BOUND, OTHER], "the ranks loaded MPI from 2 files"),
        ("MPICH Version: 5.0.2", [], "cannot be confirmed: rebuild the image: make images"),
    ],
)
def test_a_bound_mpi_is_the_one_that_ran(
    stand_in: StandIn, said: str, paths: list[str], sentence: str
) -> None:
    bound = f"{IMPLEMENTATION}+host-mpich-5.0.2"
    facts = {
        "variant": "host-mpich-5.0.2",
        "taken": {BOUND: "0" * 64},
        "prefix": "/opt/site",
        "library": said,
        "binds": [["/opt/site", "/opt/site"]],
        "variables": {"LD_LIBRARY_PATH": "/opt/site/lib"},
        "labels": {"org.wyeast.family": "mpich"},
    }
    (stand_in.root / "preflight.out").write_text(from_files(*paths))
    stand_in.variables = {"WYEAST_IMAGES": bound, "WYEAST_HOST_MPI": json.dumps(facts)}
    outcome = stand_in.run()
    assert (outcome.code != 0) == bool(sentence) and sentence in outcome.reason()
    assert [launch["implementation"] for launch in outcome.launches] == [bound] * (not sentence)


@pytest.mark.parametrize(("paths", "code"), [([OTHER], 0), ([OTHER, BOUND], 1)])
def test_ranks_of_an_image_have_one_library(stand_in: StandIn, paths: list[str], code: int) -> None:
    (stand_in.root / "preflight.out").write_text(from_files(*paths))
    outcome = stand_in.run()
    assert (outcome.code != 0) == code
    assert not code or f"MPI from 2 files: {OTHER}, {BOUND}" in outcome.reason()


CARRIED = {
    "record": "result", "operation": "fabric", "host": "n1", "ranks": 2, "between_bytes": 0,
    "within_bytes": 24 * 10**6, "cma_bytes": 0, "xpmem_ranks": 0, "counted_devices": 1,
    "devices": [{"device": "lo", "kind": "net", "sent_bytes": 25 * 10**6,
                 "received_bytes": 25 * 10**6, "stacked": []}],
}  # fmt: skip


@pytest.mark.parametrize(
    ("carried", "sentence"),
    [
        ([CARRIED], "of the 24.0 MB that ranks on n1 exchanged, lo carried 104%, where the site"),
        ([CARRIED | {"devices": []}], ""),
        ([], "`fabric` is not proven: rebuild the image: make images"),
    ],
)
def test_ranks_that_talk_by_another_device_than_the_site_says_are_refused(
    stand_in: StandIn, carried: list[dict[str, object]], sentence: str
) -> None:
    memory = stand_in.settings(lambda data: f"{data}\nfabric: memory\n")
    before, _ = PREFLIGHT.split('{"record": "end"')
    end = {"record": "end", "results": 3 + len(carried)}
    (stand_in.root / "preflight.out").write_text(before + lines(*carried, end))
    outcome = stand_in.run("-C", memory)
    assert (outcome.code != 0) == bool(sentence) and sentence in outcome.reason(), outcome.text


def test_a_bound_mpi_that_nobody_names(stand_in: StandIn) -> None:
    stand_in.variables = {"WYEAST_IMAGES": f"{IMPLEMENTATION}+host-mpich-5.0.2"}
    outcome = stand_in.run()
    assert outcome.code != 0 and f"{IMPLEMENTATION} has no variants" in outcome.reason()


GOOD = pingpong()
HALF = GOOD[: len(GOOD) // 2]


NOT_WHOLE = [
    ("", "empty"),
    (HALF, "rfm_job.out:"),
    (HALF[: HALF.rindex("\n") + 1], "truncated"),
    ("a warning of some library\n" + GOOD, "rfm_job.out:1"),
    (GOOD + "Segmentation fault\n", "rfm_job.out:"),
    (GOOD + GOOD, "rfm_job.out:"),
    (GOOD.replace("1e-05", "NaN", 3), "rfm_job.out:2"),
    (pingpong(sizes=(300, 1800, 3300)), "not the 4 requested"),
    (pingpong(iterations=10), "other parameters differ"),
]  # fmt: skip


def test_output_that_is_not_whole(stand_in: StandIn) -> None:
    stand_in.refuse([(stdout, "failed", sentence) for stdout, sentence in NOT_WHOLE], only=SHORT)


def test_program_that_fails_is_quoted(stand_in: StandIn) -> None:
    stand_in.write(GOOD, stderr="pingpong: rank 1 received byte 17 wrong\n", code=1)
    outcome = stand_in.run()
    assert outcome.code != 0
    [launch] = outcome.launches
    assert launch["sentence"] == (
        "pingpong ended with exit code 1: pingpong: rank 1 received byte 17 wrong"
    )
    assert launch["exit_code"] == 1


def test_bandwidth_above_memory(stand_in: StandIn) -> None:
    stand_in.write(pingpong(seconds=1e-6, memory_copy=2e-6))
    outcome = stand_in.run()
    assert outcome.code != 0
    [launch] = outcome.launches
    assert launch["outcome"] == "suspect" and "suspect: " in outcome.reason()


def test_time_below_the_clock(stand_in: StandIn) -> None:
    stand_in.write(pingpong(seconds=1e-9, memory_copy=1e-10))
    outcome = stand_in.run()
    [launch] = outcome.launches
    assert outcome.code != 0 and launch["outcome"] == "suspect"


def test_bandwidth_below_the_reference(stand_in: StandIn) -> None:
    stand_in.write(pingpong(seconds=1e-2))
    outcome = stand_in.run()
    assert outcome.code != 0 and "Failing phase: performance" in outcome.text
    assert "bandwidth" in outcome.text
    [launch] = outcome.launches
    assert launch["outcome"] == "sound", "slow is a finding, not a fault of the launch"


def test_linpack_passes(stand_in: StandIn) -> None:
    stand_in.write(hpl())
    outcome = stand_in.run(only=LINPACK)
    assert outcome.code == 0, outcome.text


WRONG_LINPACK = [
    # xhpl itself ends with 1 where a residual failed, HPL's own program with 0.
    (hpl(residual="17.5"), 1, "failed", RESIDUAL),
    (hpl(residual="17.5"), 0, "failed", RESIDUAL),
    (hpl(), 1, "failed", "xhpl ended with exit code 1: it printed nothing on stderr"),
    ("", 1, "failed", "xhpl ended with exit code 1: it printed nothing on stderr"),
    (hpl(rate="9.000e+06"), 0, "suspect", "peak"),
    (hpl(n=1000), 0, "failed", "not [(1, 2, 2000, 192)] as requested"),
    (hpl()[:300], 0, "failed", "rfm_job.out"),
    ("", 0, "failed", "rfm_job.out"),
]  # fmt: skip


def test_linpack_that_is_not_right(stand_in: StandIn) -> None:
    wrong = [
        ({"stdout": stdout, "code": str(code)}, kind, sentence)
        for stdout, code, kind, sentence in WRONG_LINPACK
    ]
    stand_in.refuse(wrong, only=LINPACK)


def test_check_file_that_cannot_be_loaded(stand_in: StandIn) -> None:
    broken = stand_in.root / "checks"
    broken.mkdir()
    (broken / "broken.py").write_text(
        "import reframe as rfm\nimport no_such_module\n\n"
        "@rfm.simple_test\nclass Broken(rfm.RunOnlyRegressionTest):\n    pass\n"
    )
    outcome = stand_in.run("-c", str(broken))
    assert outcome.code != 0 and "provided no check" in outcome.text
