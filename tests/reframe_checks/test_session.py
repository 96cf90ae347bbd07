"""What ReFrame itself tells the journal of a round: plan, attempts, and what became of each."""

import shutil
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from records import schedule
from records.budget import BEYOND, left_out
from records.campaign import unmeasured
from records.events import NotStarted, Planned, Recorded, Submitted, Wave, WaveRound
from records.fold import State
from records.journal import FILE, read_journal
from records.kept import read_records
from records.manifest import Design
from records.processes import MARK, known, processes
from reframe_checks.bin.telling import INSTEAD, ONCE, UNTIL
from reframe_checks.mixins.noted import ENDED, EXIT_CODE, STARTED
from reframe_checks.mixins.recording import NOTES
from reframe_checks.mixins.stage_disk import is_of_stage, unwritten
from tests.packed import bytes_of_records, records_in, take_out, text_of
from tests.reframe_checks.conftest import IMPLEMENTATION, StandIn
from tests.reframe_checks.rates import stream
from tests.whole_records import manifest

RANGES = "PointToPoint.*=Send/Recv"


def campaign_of(stand_in: StandIn) -> Path:
    return stand_in.root / "runs" / "campaign"


def state_of(stand_in: StandIn) -> State:
    found = schedule.state_of(campaign_of(stand_in))
    assert found is not None
    return found


def test_all_is_planned_in_its_order_before_anything_starts(stand_in: StandIn) -> None:
    assert stand_in.run(only=RANGES).code != 0, "the output is of one range only"
    content = read_journal(campaign_of(stand_in))
    assert content
    kinds = [event.kind for event in content.events]
    assert kinds[:3] == ["begun", "planned", "session"] and kinds.count("planned") == 1
    assert kinds[3:] == 4 * ["intended", "submitted", "recorded"]
    [planned] = [event for event in content.events if isinstance(event, Planned)]
    recorded = [event for event in content.events if isinstance(event, Recorded)]
    assert [one.launch for one in planned.launches] == [one.launch for one in recorded]
    assert [one.position for one in recorded] == [1, 2, 3, 4]
    assert sorted(one.outcome for one in recorded) == ["failed", "failed", "sound", "sound"]
    assert {one.implementation for one in planned.launches} == {IMPLEMENTATION}
    assert set(records_in(campaign_of(stand_in))) == {one.launch for one in planned.launches}


def test_what_is_missing_alone_runs_again_after_its_image_is_proven(stand_in: StandIn) -> None:
    stand_in.run(only=RANGES)
    before = bytes_of_records(campaign_of(stand_in))
    lost = next(name for name in before if "range=short" in name)
    take_out(campaign_of(stand_in), lost)
    with schedule.held(campaign_of(stand_in)) as held:
        held.resume()
    again = stand_in.run(only=RANGES)
    assert again.code == 0 and "Ran 3/3 test case(s)" in again.text, again.text
    state = state_of(stand_in)
    assert not state.left() and state.launches[lost].attempts == 2
    positions = [one.position for one in state.of(1)]
    assert len(set(positions)) == 4 and state.launches[lost].position == max(
        position or 0 for position in positions
    )
    after = bytes_of_records(campaign_of(stand_in))
    assert set(after) == set(before)
    assert all(after[name] == before[name] for name in before if name != lost), (
        "the proof that was done again is no launch of the campaign"
    )


def test_launches_by_another_apptainer_are_not_measured_beside_those_before(
    stand_in: StandIn,
) -> None:
    """On the nodes, whatever the one is that the campaign was begun with, or a job drives it by."""
    stand_in.run(only=RANGES)
    before = bytes_of_records(campaign_of(stand_in))
    said = {str(one.get("apptainer")) for one in records_in(campaign_of(stand_in)).values()
            if one["experiment"] == "Preflight"}  # fmt: skip
    assert said == {"apptainer version 1.4.0"}
    lost = next(name for name in before if "range=short" in name)
    take_out(campaign_of(stand_in), lost)
    with schedule.held(campaign_of(stand_in)) as held:
        held.resume()
    version = stand_in.root / "apptainer.version"
    version.write_text("apptainer version 1.5.0\n")
    stand_in.run(only=RANGES)
    one = state_of(stand_in).launches[lost]
    assert one.status == "missing"
    cause = (
        "would use apptainer version 1.5.0, but those of campaign have used apptainer version 1.4.0"
    )
    assert cause in (one.cause or "")
    version.write_text("apptainer version 1.4.0\n")
    with schedule.held(campaign_of(stand_in)) as held:
        held.resume()
    assert stand_in.run(only=RANGES).code == 0 and not state_of(stand_in).left()


def during_the_launch(stand_in: StandIn, command: str) -> None:
    """Have a command run by what stands in for Apptainer, each time that it starts the program."""
    script = stand_in.root / "bin" / "apptainer"
    first, rest = script.read_text().split("\n", 1)
    script.write_text(f'{first}\ncase "$*" in *pingpong*) {command} ;; esac\n{rest}')


def test_a_job_that_was_stopped_and_what_others_used_are_on_record(stand_in: StandIn) -> None:
    during_the_launch(stand_in, "kill -STOP $PPID; kill -CONT $PPID")
    outcome = stand_in.run()
    assert outcome.code == 0, outcome.text
    [launch] = outcome.launches
    found = launch["disturbance"]
    assert isinstance(found, dict)
    assert found["stopped"] == 1 and 0 < found["looked_s"] < 600 and found["others_s"] >= 0
    [one] = [one for one in state_of(stand_in).of(1) if "PointToPoint" in one.name]
    assert one.outside["stopped"] == 1


def test_which_file_the_image_was_is_on_record(stand_in: StandIn) -> None:
    [launch] = stand_in.run().launches
    found = launch["image_file"]
    file = (stand_in.root / ".wyeast" / "images" / f"{IMPLEMENTATION}.sif").stat()
    assert isinstance(found, dict)
    assert (found["inode"], found["bytes"]) == (file.st_ino, file.st_size)
    assert found["modified_utc_s"] == pytest.approx(file.st_mtime, abs=1e-6)


@pytest.mark.parametrize(
    "change",
    [
        "cp {0} {0}.new; touch -r {0} {0}.new; mv {0}.new {0}",
        # It has its bytes again when its digest is taken.
        "echo other >{0}; cat {0}.kept >{0}",
    ],
)
def test_an_image_that_is_another_file_or_written_during_the_launch_fails_it(
    stand_in: StandIn, change: str
) -> None:
    """Also where the bytes are the same afterwards, so that no digest tells."""
    image = stand_in.root / ".wyeast" / "images" / f"{IMPLEMENTATION}.sif"
    shutil.copy(image, f"{image}.kept")
    during_the_launch(stand_in, f"{{ {change.format(image)}; }} 2>/dev/null")
    [launch] = stand_in.run().launches
    assert image.read_bytes() == Path(f"{image}.kept").read_bytes()
    assert launch["outcome"] == "failed"
    assert "its file was replaced or written during the launch" in str(launch["sentence"])


def test_another_mode_or_name_of_the_image_fails_no_launch(stand_in: StandIn) -> None:
    image = stand_in.root / ".wyeast" / "images" / f"{IMPLEMENTATION}.sif"
    during_the_launch(stand_in, f"chmod 0600 {image}; ln {image} {image}.kept")
    [launch] = stand_in.run().launches
    assert launch["outcome"] == "sound", launch["sentence"]


def test_what_a_program_leaves_running_is_ended_before_the_next_launch_and_told(
    stand_in: StandIn,
) -> None:
    pid = stand_in.root / "pid"
    # In a session of its own, so that no signal to the job's reaches it; as long as its shell.
    leave = f"setsid sh -c 'echo $$ >{pid}; exec sleep 600' </dev/null >/dev/null 2>&1 &"
    wait = f"while [ ! -s {pid} ]; do sleep 0.01; done"
    during_the_launch(stand_in, f"{leave} {wait}")
    stand_in.variables[MARK] = str(campaign_of(stand_in))
    outcome = stand_in.run()
    assert outcome.code == 0, outcome.text
    assert "left 1 process running, ended since: sleep" in outcome.text
    assert outcome.launches[0]["left_running"] == 1
    assert int(pid.read_text()) not in processes()


def test_what_hides_its_environment_is_known_by_the_launchs_session(stand_in: StandIn) -> None:
    pid = stand_in.root / "pid"
    # In a process group of its own, which ReFrame does not end.
    script = stand_in.root / "leave.py"
    script.write_text(
        "import os, time\nos.setpgid(0, 0)\n"
        f"with open({str(pid)!r}, 'w') as file:\n    file.write(str(os.getpid()))\n"
        "time.sleep(600)\n"
    )
    leave = f"env -i {sys.executable} -IS {script} </dev/null >/dev/null 2>&1 &"
    during_the_launch(stand_in, f"{leave} while [ ! -s {pid} ]; do sleep 0.01; done")
    stand_in.variables[MARK] = str(campaign_of(stand_in))
    outcome = stand_in.run()
    assert "left 1 process running, ended since: python" in outcome.text
    assert outcome.launches[0]["left_running"] == 1
    assert int(pid.read_text()) not in processes()


def test_a_launch_that_prints_without_end_is_ended_and_says_so(stand_in: StandIn) -> None:
    stand_in.variables = {"PYTHONPATH": f"{stand_in.root}:{stand_in.project}"}
    (stand_in.root / "sitecustomize.py").write_text(
        "from reframe_checks.bin import output_limit\n"
        "output_limit.MOST_OUTPUT_BYTES, output_limit.MOST_KEPT_BYTES = 20_000, 1000\n"
    )
    script = stand_in.root / "bin" / "apptainer"
    first, rest = script.read_text().split("\n", 1)
    script.write_text(f'{first}\ncase "$*" in *pingpong*) yes; sleep 600 ;; esac\n{rest}')
    outcome = stand_in.run()
    [launch] = outcome.launches
    assert launch["outcome"] == "failed"
    assert "it printed more than 0 MB on " in str(launch["sentence"]), launch["sentence"]
    assert len(text_of(campaign_of(stand_in), str(launch["launch"]))) == 1000


def test_no_launch_is_begun_once_the_time_for_that_is_over(stand_in: StandIn) -> None:
    stand_in.variables[UNTIL] = "0"
    over = stand_in.run(only=RANGES)
    assert over.code != 0 and "the time for starting launches is over" in over.text
    content = read_journal(campaign_of(stand_in))
    assert content and [event.kind for event in content.events] == ["begun", "planned", "session"]
    del stand_in.variables[UNTIL]
    stand_in.run(only=RANGES)
    state = state_of(stand_in)
    assert not state.left() and {one.attempts for one in state.of(1)} == {1}


def test_a_job_whose_own_script_is_killed_fails_and_what_it_ran_is_ended(stand_in: StandIn) -> None:
    script = stand_in.root / "bin" / "apptainer"
    first, rest = script.read_text().split("\n", 1)
    # The script leads the job's session.
    kill = "read -r _ _ _ _ _ leader _ </proc/$$/stat; kill -9 $leader; exec sleep 600.0625"
    script.write_text(f'{first}\ncase "$*" in *pingpong*) {kill} ;; esac\n{rest}')
    outcome = stand_in.run()
    [launch] = outcome.launches
    assert (launch["outcome"], launch["exit_code"]) == ("failed", 137)
    assert str(launch["sentence"]).startswith("the job's script ended by being killed"), launch
    left = [one for one in Path("/proc").glob("[0-9]*/cmdline") if one.is_file()]
    for one in left:
        with suppress(OSError):
            assert b"600.0625" not in one.read_bytes(), "what it ran has been ended"


def test_a_launch_beyond_its_time_is_kept_as_failed(stand_in: StandIn) -> None:
    script = stand_in.root / "bin" / "apptainer"
    text = script.read_text()
    script.write_text(
        text.replace("           *) of ", "           *pingpong*) sleep 60 ;;\n           *) of ")
    )
    assert script.read_text() != text
    outcome = stand_in.run("-S", "PointToPoint.time_limit=2s")
    [launch] = outcome.launches
    assert (launch["outcome"], launch["position"]) == ("failed", None)
    assert "run" in str(launch["sentence"]) and "time" in str(launch["sentence"]).lower()
    assert not state_of(stand_in).left()


def test_a_launch_that_the_disk_does_not_take_is_lost_and_not_failed(stand_in: StandIn) -> None:
    campaign = campaign_of(stand_in)
    campaign.mkdir(parents=True)
    real = campaign / "packs"
    real.mkdir()
    # The folder goes when the program runs, so that what it gave cannot be written.
    script = stand_in.root / "bin" / "apptainer"
    first, rest = script.read_text().split("\n", 1)
    take = f'case "$*" in *pingpong*) rm -rf "{real}"; echo >"{real}" ;; esac'
    script.write_text(f"{first}\n{take}\n{rest}")
    outcome = stand_in.run()
    assert outcome.code != 0 and not outcome.launches
    [one] = state_of(stand_in).left()
    assert (one.status, one.losses) == ("planned", 1) and "could not be kept" in str(one.cause)
    assert "make room and resume" in str(one.cause)
    real.unlink()
    real.mkdir()
    script.write_text(f"{first}\n{rest}")
    with schedule.held(campaign) as held:
        held.resume()
    again = stand_in.run()
    assert [launch["outcome"] for launch in again.launches] == ["sound"], again.text


FULL = {
    "no room": ("size=2m", "head -c 9m /dev/zero >filled 2>/dev/null"),
    "no inodes": (
        "nr_inodes=200",
        "mkdir filled; i=0; while touch filled/$i; do i=$((i + 1)); done",
    ),
}


@pytest.mark.real
@pytest.mark.parametrize("full", FULL)
def test_a_stage_folder_that_fills_up_during_a_launch_is_not_its_fault(
    full: str, stand_in: StandIn
) -> None:
    options, fill = FULL[full]
    disk = stand_in.root / "reframe"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "none", str(disk)], check=True)
    try:
        script = stand_in.root / "bin" / "apptainer"
        whole = script.read_text()
        first, rest = whole.split("\n", 1)
        script.write_text(
            f'{first}\ncase "$*" in *pingpong*) cd work; {fill} 2>/dev/null; cd ..;; esac\n{rest}'
        )
        outcome = stand_in.run()
        assert outcome.code != 0 and not outcome.launches, outcome.text
        [one] = state_of(stand_in).left()
        assert (one.status, one.losses) == ("planned", 1) and "folder of stages" in str(one.cause)
        script.write_text(whole)
        for filled in disk.rglob("filled"):
            shutil.rmtree(filled) if filled.is_dir() else filled.unlink()
        assert [launch["outcome"] for launch in stand_in.run().launches] == ["sound"]
    finally:
        subprocess.run(["umount", str(disk)], check=True)


#: What is said of a full disk, and whether it is that of the stages.
SAID_OF_A_DISK = {
    "where it prints to": ("mpiexec: write error (No space left on device)", True),
    "of a program by its path": ("/usr/bin/mpiexec: write error: No space left on device", True),
    "a function": ("MPI_File_write: I/O error, No space left on device", True),
    "a file of the work folder": ("fopen(/rfm_workdir/out): No space left on device", True),
    "a note": ("rfm_job.sh: line 9: launch_seen_after: No space left on device", True),
    "a quota": ("write(1): Disk quota exceeded", True),
    "a limit": ("semget: No space left on device", False),
    "a limit of keys": ("session keyring: Disk quota exceeded", False),
    "a node's own folder": ("LAM: write to /tmp/x: No space left on device", False),
    "shared memory": ("write /dev/shm/x: No space left on device", False),
    "a folder that a site binds": ("write to /scratch/me/out: No space left on device", False),
}


@pytest.mark.parametrize("words", SAID_OF_A_DISK)
def test_whose_disk_was_full_is_known_by_the_file_that_is_named(words: str, tmp_path: Path) -> None:
    line, is_ours = SAID_OF_A_DISK[words]
    assert is_of_stage(line, ["/rfm_workdir", str(tmp_path)], ["launch_seen_after"]) == is_ours


def test_the_stage_is_meant_by_its_path_even_in_a_folder_of_the_nodes(tmp_path: Path) -> None:
    line = f"cannot create {tmp_path}/out: No space left on device"
    assert is_of_stage(line, [str(tmp_path)], []) and not is_of_stage(line, [f"{tmp_path}2"], [])


@pytest.mark.parametrize(
    ("words", "outcomes"),
    [
        ("mpiexec: write error (No space left on device)", []),
        (
            "semget: No space left on device\nLAM: write to /tmp/x: No space left on device",
            ["failed"],
        ),
    ],
    ids=["where it prints to", "a limit, and a node's own folder"],
)
def test_a_disk_that_was_full_for_a_moment_is_no_failure(
    words: str, outcomes: list[str], stand_in: StandIn
) -> None:
    stand_in.write("", f"{words}\n", 1)
    outcome = stand_in.run()
    assert outcome.code != 0 and [one["outcome"] for one in outcome.launches] == outcomes
    assert len(state_of(stand_in).left()) == 1 - len(outcomes)


@pytest.mark.parametrize(
    ("notes", "found"),
    [
        ({STARTED: "1", ENDED: "2", EXIT_CODE: "0"}, []),
        ({STARTED: "1", ENDED: "", EXIT_CODE: "0"}, [ENDED]),
        ({STARTED: "1", ENDED: "2", EXIT_CODE: ""}, [EXIT_CODE]),
        # Killed, or asked to end, while it wrote.
        ({STARTED: "1", ENDED: ""}, []),
        ({STARTED: "1", ENDED: "", EXIT_CODE: "143"}, []),
    ],
)
def test_a_note_is_no_sign_of_a_full_disk_where_its_script_was_ended(
    notes: dict[str, str], found: list[str], tmp_path: Path
) -> None:
    for name, text in notes.items():
        (tmp_path / name).write_text(text)
    assert unwritten(tmp_path, NOTES) == found


def test_a_node_that_says_nothing_of_itself_has_no_full_disk(stand_in: StandIn) -> None:
    # Where `head` is none that knows the option.
    head = stand_in.root / "bin" / "head"
    head.write_text('#!/bin/sh\n[ "$1" != -v ] || exit 1\nexec /usr/bin/head "$@"\n')
    head.chmod(0o755)
    assert [one["outcome"] for one in stand_in.run().launches] == ["sound"]


def test_what_waits_for_an_image_that_cannot_be_opened_is_missing(stand_in: StandIn) -> None:
    image = next((stand_in.root / ".wyeast" / "images").iterdir())
    image.rename(image.with_suffix(".away"))
    assert stand_in.run().code != 0
    state = state_of(stand_in)
    assert [one.status for one in state.of(1)] == ["missing", "missing"]
    assert any("which failed" in str(one.cause) and "missing" in str(one.cause)
               for one in state.of(1)), [one.cause for one in state.of(1)]  # fmt: skip
    image.with_suffix(".away").rename(image)
    with schedule.held(campaign_of(stand_in)) as held:
        held.resume()
    assert stand_in.run().code == 0 and not state_of(stand_in).left()


def test_what_waits_for_a_preflight_that_failed_has_failed(stand_in: StandIn) -> None:
    (stand_in.root / "preflight.out").write_text("not what is asked\n")
    assert stand_in.run().code != 0
    state = state_of(stand_in)
    assert sorted(one.status for one in state.of(1)) == ["failed", "recorded"]
    assert not state.left()


def by_slurm(stand_in: StandIn, sbatch: str, answer_s: int = 120) -> list[str]:
    """Have the site's jobs handed to an sbatch; return the options.

    Every command of Slurm's has `answer_s` to answer.
    """
    # ReFrame asks scontrol where a job was that has ended, if it has something to say then.
    programs = {"sbatch": sbatch, "squeue": "#!/bin/sh\n", "scontrol": "#!/bin/sh\n",
                "srun": '#!/bin/sh\nexec "$@"\n'}  # fmt: skip
    for name, text in programs.items():
        (stand_in.root / "bin" / name).write_text(text)
        (stand_in.root / "bin" / name).chmod(0o755)
    path = Path(
        stand_in.settings(lambda text: text.replace("scheduler: local", "scheduler: squeue"))
    )
    text = path.read_text()
    assert text.count('"job_submit_timeout": 120') == 1
    path.write_text(text.replace('"job_submit_timeout": 120', f'"job_submit_timeout": {answer_s}'))
    return ["-C", str(path)]


@pytest.mark.parametrize("answer", ["exec sleep 600", "echo Socket timed out >&2; exit 1"])
def test_a_submission_without_an_answer_is_lost_and_a_job_that_comes_late_starts_nothing(
    stand_in: StandIn, answer: str
) -> None:
    late = stand_in.root / "late.sh"
    options = by_slurm(
        stand_in, f'#!/bin/sh\nfor script; do :; done\ncp "$script" {late}\n{answer}\n', answer_s=1
    )
    outcome = stand_in.run(*options)
    assert outcome.code != 0 and "is lost: run: spawned process" in outcome.text, outcome.text
    assert not records_in(campaign_of(stand_in))
    [one] = [one for one in state_of(stand_in).of(1) if one.attempts]
    assert (one.status, one.losses, one.unanswered) == ("planned", 1, (1,))
    with schedule.held(campaign_of(stand_in)) as held:
        [name] = held.give_up_unanswered()
    script = late.read_text()
    assert f'--job-name="{name}"' in script and len(name) == 15
    there = stand_in.root / "there"
    there.mkdir()
    done = subprocess.run(["bash", late], cwd=there, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and not done.stdout + done.stderr
    assert not list(there.iterdir())
    # The same script runs where nobody has given it up.
    late.write_text(script.replace(name, "wy-another"))
    subprocess.run(["bash", late], cwd=there, capture_output=True, text=True, check=False)
    assert (there / "launch_started").is_file()


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (
            "echo '17|PENDING||Resources'",
            "it has waited in the queue for longer than the site allows",
        ),
        ("echo '17|PENDING||ReqNodeNotAvail'", "cancelled because it was blocked"),
    ],
    ids=["the site's limit", "no node"],
)
def test_a_job_that_was_given_up_in_the_queue_has_not_failed(
    stand_in: StandIn, answer: str, said: str
) -> None:
    options = by_slurm(stand_in, "#!/bin/sh\necho Submitted batch job 17\n")
    cancelled = stand_in.root / "cancelled"
    (stand_in.root / "bin" / "squeue").write_text(f"#!/bin/sh\n[ -e {cancelled} ] || {answer}\n")
    scancel = stand_in.root / "bin" / "scancel"
    scancel.write_text(f'#!/bin/sh\necho "$@" >>{cancelled}\n')
    scancel.chmod(0o755)
    settings = Path(options[1])
    text = settings.read_text()
    settings.write_text(text.replace('"site": {**site,', '"site": {**site, "longest_wait_s": 3,'))
    assert settings.read_text() != text
    outcome = stand_in.run(*options)
    assert outcome.code != 0 and not outcome.launches, outcome.text
    [one] = [one for one in state_of(stand_in).of(1) if one.attempts]
    assert (one.status, one.losses) == ("planned", 1) and said in str(one.cause), outcome.text
    assert "17" in cancelled.read_text()


def test_a_launch_that_was_recorded_after_all_is_not_said_to_be_lost(stand_in: StandIn) -> None:
    # The journal's first line about a record that is kept does not get to the disk.
    stand_in.variables = {"PYTHONPATH": f"{stand_in.root}:{stand_in.project}"}
    (stand_in.root / "sitecustomize.py").write_text(
        "import errno\nfrom records import journal\nreal, left = journal.Journal.append, [True]\n"
        "def append(self, event, sync=True):\n"
        "    if event.kind == 'recorded' and left:\n"
        "        left.clear()\n"
        "        raise OSError(errno.ENOSPC, 'No space left on device')\n"
        "    return real(self, event, sync)\n"
        "journal.Journal.append = append\n"
    )
    outcome = stand_in.run()
    assert outcome.code != 0 and "No space left on device" in outcome.text
    assert "is recorded, and the session ends: " in outcome.text, outcome.text
    assert " is lost" not in outcome.text
    content = read_journal(campaign_of(stand_in))
    assert content
    kinds = [event.kind for event in content.events]
    assert kinds.count("recorded") == 1 and "lost" not in kinds


def test_a_session_ends_where_every_launch_fails_of_one_cause(stand_in: StandIn) -> None:
    stand_in.variables = {"PYTHONPATH": f"{stand_in.root}:{stand_in.project}"}
    (stand_in.root / "sitecustomize.py").write_text(
        "from records import fold\nfold.MOST_ALIKE = 2\n"
    )
    stand_in.write("", "no port", 3)
    outcome = stand_in.run(only=RANGES)
    sentence = "2 launches in a row ended alike: pingpong ended with exit code #: no port"
    assert outcome.code != 0 and sentence in outcome.text, outcome.text
    assert [launch["outcome"] for launch in outcome.launches] == ["failed", "failed"]
    assert [one.status for one in state_of(stand_in).left()] == ["planned"]


def test_a_local_job_is_known_by_its_process_and_when_it_started(stand_in: StandIn) -> None:
    assert stand_in.run().code == 0
    content = read_journal(campaign_of(stand_in))
    assert content
    jobs = [event.job for event in content.events if isinstance(event, Submitted)]
    assert jobs and len(known(jobs)) == len(jobs), jobs


def test_a_campaign_that_goes_is_not_made_again_for_what_reframe_reports(
    stand_in: StandIn,
) -> None:
    campaign = campaign_of(stand_in)
    during_the_launch(stand_in, f"mv {campaign} {campaign}.elsewhere")
    assert stand_in.run(f"--report-file={campaign}/reframe/report.json").code != 0
    assert not campaign.exists(), list(campaign.iterdir())


def test_a_damaged_journal_measures_nothing(stand_in: StandIn) -> None:
    campaign = campaign_of(stand_in)
    campaign.mkdir(parents=True)
    (campaign / FILE).write_text("{}\n")
    outcome = stand_in.run()
    assert outcome.code != 0 and "journal.jsonl:1: the journal is damaged" in outcome.text
    assert not outcome.launches and (campaign / FILE).read_text() == "{}\n"


def test_a_launch_that_cannot_be_started_is_kept_as_failed(stand_in: StandIn) -> None:
    labels = stand_in.labels()
    del labels["org.wyeast.mpiexec.pinned"]
    stand_in.label(labels)
    assert stand_in.run().code != 0
    state = state_of(stand_in)
    assert sorted(one.status for one in state.of(1)) == ["failed", "recorded"]
    campaign = campaign_of(stand_in)
    asked = manifest(rounds=1, campaign="campaign")
    said = [one.sentence for one in unmeasured(campaign, asked, state, records_in(campaign))]
    [waits] = [one for one in said if one.startswith("failed: it was never started: it waits for ")]
    assert "org.wyeast.mpiexec.pinned" in waits
    [record] = read_records(campaign)
    assert record.outcome == "failed" and "org.wyeast.mpiexec.pinned" in str(record.sentence)


CELL = "PointToPoint pair=Send/Recv message_range=short"


def decide(stand_in: StandIn, *waves: tuple[WaveRound, ...], budget_s: float = 1e6) -> Path:
    """Make a campaign with a budget that has decided waves; return its folder."""
    campaign = campaign_of(stand_in)
    campaign.mkdir(parents=True)
    design = Design(
        budget_s=budget_s, seed=1, looks=[3], shares=[1.0], margins={}, begin=2, fewest=2,
        wave_s=1.0,
    )  # fmt: skip
    schedule.begin(campaign, design=design)
    with schedule.held(campaign) as held:
        for number, rounds in enumerate(waves, 1):
            held.add(Wave(number=number, why="chosen", rounds=rounds, scores=(), predicted_s=None,
                          spent_s=0))  # fmt: skip
    return campaign


def test_a_proof_that_failed_is_tried_again_in_the_next_round_of_a_session(
    stand_in: StandIn,
) -> None:
    campaign = decide(
        stand_in, (WaveRound(round=1, cells=None),), (WaveRound(round=2, cells=(CELL,)),)
    )
    script = stand_in.root / "bin" / "apptainer"
    text = script.read_text()
    once = 'of environment; mkdir "$STAND_IN/once" 2>/dev/null ||\n'
    script.write_text(text.replace("of environment\n", once))
    assert script.read_text() != text
    done = stand_in.run(then=(2,))
    state = state_of(stand_in)
    assert [one.outcome for one in state.of(1)] == ["failed", None], done.text
    assert [(one.planned.cell, one.outcome) for one in state.of(2)] == [(CELL, "sound")], done.text
    # The proof that was tried again is no launch of the campaign.
    assert sum("Preflight" in name for name in records_in(campaign)) == 1
    assert done.text.count("RUN      ] Preflight") == 2


def test_rounds_of_one_session_are_those_of_sessions_of_their_own(stand_in: StandIn) -> None:
    """The checks are loaded once; a round that is chosen has its cells alone, and no proof anew."""
    every = tuple(WaveRound(round=number, cells=None) for number in (1, 2))
    campaign = decide(stand_in, every, (WaveRound(round=3, cells=(CELL,)),))
    two_images(stand_in)
    done = stand_in.run(only="PointToPoint.*=Send/Recv.*=short", then=(2, 3))
    state = state_of(stand_in)
    assert not state.left(), done.text
    assert [len(state.rounds[number]) for number in (1, 2, 3)] == [4, 4, 2], done.text
    assert {one.outcome for one in state.of(None)} == {"sound"}, done.text
    for number in (1, 2, 3):
        drawn = [(one.planned.cell, one.planned.implementation) for one in state.of(number)]
        measured = sorted(state.of(number), key=lambda one: one.position or 0)
        assert drawn == [(one.planned.cell, one.planned.implementation) for one in measured]
        # Blocks: a cell's implementations one after the other, and the preflights before all.
        cells = [cell for cell, _ in drawn]
        assert all(one == two for one, two in zip(cells[::2], cells[1::2], strict=True))
    assert done.text.count("round 1 is over") == 1 and "round 3 is over" in done.text
    assert {record.round for record in read_records(campaign)} == {1, 2, 3}
    assert sorted(path.name for path in (campaign / "packs").iterdir()) == [
        f"round00{number}.tar" for number in (1, 2, 3)
    ]
    outputs = list((stand_in.root / "reframe").rglob("*_retry*"))
    assert not outputs


def two_images(stand_in: StandIn) -> list[str]:
    """Give the stand-in two images to compare; return their names."""
    names = [f"{IMPLEMENTATION}+{number}" for number in range(2)]
    stand_in.label(stand_in.labels() | {f"org.wyeast.variant.{n}": f"A={n}" for n in range(2)})
    stand_in.variables["WYEAST_IMAGES"] = ",".join(names)
    return names


def test_what_is_compared_with_nothing_is_measured_once(stand_in: StandIn) -> None:
    """By each image; all else is in every round. One image is enough for others: see below."""
    names = two_images(stand_in)
    stand_in.variables[ONCE] = "1"
    decide(stand_in, tuple(WaveRound(round=number, cells=None) for number in (1, 2)))
    done = stand_in.run(only="^SerialLinpack|PointToPoint.*=Send/Recv.*=short", then=(2,))
    state = state_of(stand_in)

    def of(number: int, experiment: str) -> list[str]:
        return sorted(one.planned.implementation for one in state.of(number)
                      if one.planned.cell.startswith(experiment))  # fmt: skip

    assert of(1, "SerialLinpack") == names and of(2, "SerialLinpack") == [], done.text
    assert of(1, "PointToPoint") == of(2, "PointToPoint") == names
    assert not state.left()


def test_another_image_measures_what_one_is_enough_for_where_the_first_could_not(
    stand_in: StandIn,
) -> None:
    """One is broken, another one's program fails: the nodes' rates are measured all the same."""
    names = [f"{IMPLEMENTATION}+{number}" for number in range(4)]
    for number, (name, text) in enumerate([("preflight.out", ""), ("code", "1")]):
        folder = stand_in.root / "plays" / str(number)
        folder.mkdir(parents=True)
        (folder / name).write_text(text)
    variants = {f"org.wyeast.variant.{n}": f"PLAY={n}" for n in range(len(names))}
    stand_in.label(stand_in.labels() | variants)
    stand_in.variables |= {"WYEAST_IMAGES": ",".join(names), ONCE: "1"}
    stand_in.write(stream())
    done = stand_in.run(only="^Stream")
    found = {one.planned.implementation: one.outcome for one in state_of(stand_in).of(1)
             if one.planned.cell.startswith("Stream")}  # fmt: skip
    assert found == {names[0]: None, names[1]: "failed", names[2]: "sound"}, done.text
    said = [line for line in done.text.splitlines() if line.startswith(INSTEAD)]
    assert [line.split()[3] for line in said] == names[1:3], done.text
    [launch] = [one for one in done.launches if one["outcome"] == "sound"]
    assert launch["implementation"] == names[2] and not state_of(stand_in).left()


def test_a_session_that_ends_as_it_begins_has_asked_every_image_that_is_left(
    stand_in: StandIn,
) -> None:
    """What counts as asked is in the plan before the session says that it began."""
    names = two_images(stand_in)
    stand_in.variables |= {ONCE: "1", "PYTHONPATH": f"{stand_in.root}:{stand_in.project}"}
    stand_in.write("", "no memory", 3)
    dying = stand_in.root / "sitecustomize.py"
    dying.write_text(
        "import os\nfrom records import schedule\nreal = schedule.Schedule.begin_session\n"
        "def begin(self, number):\n    real(self, number)\n    os._exit(1)\n"
        "schedule.Schedule.begin_session = begin\n"
    )
    for asked in ([names[0]], names):
        # The first image fails, and then nobody asks the second one.
        assert stand_in.run(only="^Stream").code == 1
        content = read_journal(campaign_of(stand_in))
        assert content and content.events[-1].kind == "session"
        rates = [one for one in state_of(stand_in).of(1) if one.planned.cell.startswith("Stream")]
        assert [one.planned.implementation for one in rates] == asked
        if asked != names:
            with schedule.held(campaign_of(stand_in)) as held:
                for one in [one.name for one in held.state.open(1)]:
                    held.add(NotStarted(launch=one, why="failed", cause="it is made up"))


def test_a_first_round_leaves_out_what_the_budget_has_no_room_for(stand_in: StandIn) -> None:
    """What is most important comes first, and a block that has begun is whole."""
    two_images(stand_in)
    decide(stand_in, (WaveRound(round=1, cells=None),), budget_s=1e-3)
    done = stand_in.run(only="PointToPoint.*=Send/Recv.*=short|^EchoTest", then=(2,))
    state = state_of(stand_in)
    cells = [one.planned.cell for one in state.of(1)]
    experiments = [cell.split()[0] for cell in cells]
    assert experiments == ["Preflight", "Preflight", "EchoTest", "EchoTest",
                           "PointToPoint", "PointToPoint"], done.text  # fmt: skip
    assert [one.status for one in state.of(1)] == ["recorded"] * 4 + ["skipped"] * 2, done.text
    assert left_out(state) == [CELL] and {one.cause for one in state.of(1)} == {None, BEYOND}
    # The first round alone is cut: what comes later was decided by what it took.
    assert {one.status for one in state.of(2)} == {"recorded"}, done.text
