"""What programs in containers may try on the machine that measures them, and a check that does it.

Each attack is a shell command. It knows all paths, as $STAGE, $SECRET, $TRACE and $PLACE, and
leaves `good` in $RESULT where it got nothing. What it would destroy was made for it: $DECOYS.
"""

ATTACKS = {
    "none": 'echo good >"$RESULT"',
    # bash reads a script while it runs it: this has it do more after the launch.
    "script": "for f in rfm_job.sh $STAGE/rfm_job.sh $(ls -d /proc/[0-9]*/cwd/rfm_job.sh); do "
    '[ ! -e "$f" ] || { text=$(sed "s#^launch_exit_code=#cat $SECRET; touch $TRACE; &#" "$f"); '
    'printf "%s\\n" "$text" >"$f"; }; done; echo good >"$RESULT"',
    "stderr": "for d in . $STAGE $(ls -d /proc/[0-9]*/cwd); do "
    'ln -sf "$SECRET" "$d/rfm_job.err"; done; echo good >"$RESULT"',
    # The host would record what the program says was asked of it.
    "asked": "for f in launch_asked.json $STAGE/launch_asked.json; do "
    '[ ! -e "$f" ] || sed -i s/round001_/other_/ "$f"; done; echo good >"$RESULT"',
    "mounts": 'umount "$PLACE" /tmp; unshare --user --map-root-user --mount umount "$PLACE"; '
    'for d in "$PLACE" $STAGE/.. "$SECRET"; do ls -A "$d" 2>/dev/null; done >"$RESULT"; '
    'echo good >>"$RESULT"',
    # What the user's other processes see, and were told: $OUTSIDE is set for these alone.
    "processes": 'for p in /proc/[0-9]*; do cat "$p/root$SECRET" "$p/cwd/rfm_job.sh"; '
    'tr "\\0" "\\n" <"$p/environ" | grep ^OUTSIDE=; done >"$RESULT" 2>/dev/null; '
    'echo good >>"$RESULT"',
    # Only what was made for this is removed; of the rest it is asked whether it could be written.
    "machine": 'for f in $SHARED; do [ ! -e "$f" ] || echo "$f"; done >"$RESULT"; '
    "rm -rf $DECOYS; for f in /dev /etc/hosts /sys/power/state /sys/fs/cgroup "
    "/proc/sys/kernel/core_pattern /proc/sysrq-trigger /proc/irq/*/smp_affinity "
    '$(find /dev -type b); do [ ! -w "$f" ] || echo "$f"; done >>"$RESULT"; '
    'echo good >>"$RESULT"',
    # The user's own terminal is one, and what it says there is obeyed.
    "terminal": 'for f in $TERMINAL /dev/tty; do printf "\\033[2J" >"$f"; '
    'timeout 1 head -c1 <"$f"; '
    'done 2>/dev/null; echo good >"$RESULT"',
    # Other processes of the user, and memory that others share by a number.
    "others": 'for p in $ALIVE; do kill -0 "$p" && echo "$p"; done 2>/dev/null >"$RESULT"; '
    'for k in $SEGMENT; do grep -w -e "$k" /proc/sysvipc/shm; done >>"$RESULT"; '
    'echo good >>"$RESULT"',
    # Root's control groups are all of the machine's.
    "namespaces": "mkdir own; unshare --user --map-root-user --mount --cgroup "
    """perl -e '%n = (x86_64 => 165, aarch64 => 40); chomp($m = `uname -m`); """
    """$k = "cgroup2"; $d = "own"; exit if syscall($n{$m}, $k, $d, $k, 0, 0); """
    """print "written\n" if mkdir "own/evil"; rmdir "own/evil"' >"$RESULT"; """
    'echo good >>"$RESULT"',
    # Whoever runs a user's setuid program has the user's rights: so nobody else may reach it.
    "setuid": 'cp /bin/sh tool; chmod 6755 tool; chmod 777 .; echo good >"$RESULT"; exit 4',
    "input": 'echo bad >input; rm -f input; mv other input; cat input >"$RESULT"',
    "link": 'ln -s "$SECRET" "$RESULT"',
    "pipe": 'mkfifo "$RESULT"',
    "device": 'ln -s /dev/zero "$RESULT"',
    "folder": 'mkdir "$RESULT"',
    "huge": 'truncate -s 3G "$RESULT"',
    # Whoever removes it calls itself for each.
    "deep": """echo good >"$RESULT"; perl -e 'for (1..3000) { mkdir "d"; chdir "d" or die }'""",
    "closed": 'echo good >"$RESULT"; chmod 0 "$RESULT" .',
}  # fmt: skip
#: What is said of a result that is not read, where it is one of these.
NOT_READ = {
    "link": "is a link and not a file",
    "device": "is a link and not a file",
    "pipe": "is a pipe and not a file",
    "folder": "is a folder and not a file",
    "huge": "at most 1074 MB are read",
}
#: Beside it stands, as JSON, what it is to do: `attacks`, `told`, `ranks`, and `each`, the names of
#: results that are collected one by one, and told of in `became`.
CHECK = """
import json, sys
from pathlib import Path
import reframe as rfm
from reframe.core.builtins import parameter, run_after, run_before
from reframe.core.exceptions import SanityError
from records.base import RecordError
from reframe_checks.mixins.experiment import Experiment
from reframe_checks.mixins.guest import collect_outputs

FACTS = json.loads(Path(__file__).with_suffix(".json").read_text())

@rfm.simple_test
class Attacked(Experiment):
    program, needs_preflight, require_reference = "sh", False, False
    num_tasks = FACTS["ranks"]
    attack = parameter(sorted(FACTS["attacks"]))

    def cell_parameters(self):
        return {"attack": self.attack}

    @run_after("setup")
    def arm(self):
        told = {**FACTS["told"], "RESULT": "result", "STAGE": self.stagedir}
        words = " ".join(f"{name}='{value}'" for name, value in told.items())
        self.program_arguments = ["-c", f"{words}; {FACTS['attacks'][self.attack]}"]
        if self.attack == "asked":
            self.time_limit = "2s"
        if self.attack in ("input", "all"):
            (Path(self.stagedir) / "input").write_text("good")

    @run_before("run")
    def show_input(self):
        if self.attack in ("input", "all") and hasattr(self.container_platform, "inputs"):
            self.container_platform.inputs = ("input",)
            (Path(self.stagedir) / "work" / "input").touch()

    def outputs(self):
        return [] if FACTS["each"] else ["result"]

    def other_files(self):
        return {name: Path(self.stagedir) / name for name in ("result", "became")}

    def examine(self):
        stage = Path(self.stagedir)
        became = {}
        for name in FACTS["each"]:
            try:
                collect_outputs(stage, [name])
                became[name] = (stage / name).read_text()
            except (RecordError, OSError) as error:
                became[name] = str(error)
        if FACTS["each"]:
            (stage / "became").write_text(json.dumps(became))
            return
        said = (stage / "result").read_text()
        if said.strip() != "good":
            raise SanityError(f"it has left {said[:200]!r}")
"""
