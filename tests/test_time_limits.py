"""What other programs are asked ends: by a time limit, or because it is the work itself."""

import ast
from pathlib import Path

import pytest

from containers import installed, trusted_keys
from containers.installed import PrefixError
from containers.trusted_keys import TrustError
from reframe_checks.bin import schedulers
from reframe_checks.mixins.asking import NoAnswer

PROJECT = Path(__file__).resolve().parents[1]
#: Functions whose programs may take as long as their work does, or wait for a person. What asks a
#: network among them (apt, pip, git) has limits of its own.
WORK = {
    "analysis/simulation/history.py": {"timed_history"},
    "campaign/bundle/rerun.py": {"repeat", "compare"},
    "campaign/concluding.py": {"report"},
    "campaign/nightly.py": {"say_analysis"},
    "campaign/request.py": {"matching"},
    "cluster/box.py": {"ask"},
    "cluster/filesystem.py": {"own_etc"},
    "cluster/network.py": {"run"},
    "cluster/programs.py": {"unpack"},
    "cluster/scrontab.py": {"compile_in"},
    "cluster/slurm.py": {"start_munge", "start_controller", "stop_controller"},
    "containers/apptainer_setup.py": {"_unpack", "_assemble"},
    "cluster/accounts.py": {"give_to_job_user"},
    "containers/apt.py": {"has", "run"},
    "containers/bases.py": {"pack"},
    "containers/commands.py": {"run_logged"},
    "containers/host_mpi.py": {"_ldd"},
    "containers/programs.py": {"unpack_as_user"},
    "containers/sharing/reproducibility.py": {"unpack", "dump", "build_again"},
    "containers/sources.py": {"_pip_download"},
    "containers/spack/environment.py": {"run"},
    "containers/spack/mirror.py": {"archive_of"},
    "containers/spack/tool.py": {"solver", "clone"},
    "containers/trust.py": {"new_key", "sign_image"},
    "costs/checkouts.py": {"measure"},
    "costs/network.py": {"tcp_bandwidth"},
    "costs/places.py": {"run"},
    "costs/su3.py": {"build_naive", "naive"},
    "costs/twins.py": {"measure"},
    "records/mounts.py": {"mount"},
    "records/nodes.py": {"of_this_machine"},
    "reframe_checks/bin/foreign.py": {"rmtree"},
    "spack_repo/wyeast/linkage.py": {"loaded"},
}
ROOMS = ("analysis", "campaign", "cluster", "containers", "costs", "documentation", "inference",
         "records", "reframe_checks", "site_configs", "spack_repo")  # fmt: skip


def without_limit(path: Path) -> set[str]:
    """Return the functions of a file that wait for a program however long it takes."""
    text = path.read_text()
    found: set[str] = set()
    if "subprocess" not in text:
        return found
    tree = ast.parse(text)
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    for function in functions:
        for call in ast.walk(function):
            if (
                isinstance(call, ast.Call)
                and ast.unparse(call.func).startswith("subprocess.")
                and call.func.attr in ("run", "call", "check_call", "check_output")  # type: ignore[attr-defined]
                and not any(word.arg == "timeout" for word in call.keywords)
            ):
                found.add(function.name)
    return found


def test_whoever_is_asked_something_has_a_limit() -> None:
    found = {
        path.relative_to(PROJECT).as_posix(): names
        for room in ROOMS
        for path in (PROJECT / room).rglob("*.py")
        if (names := without_limit(path) - WORK.get(path.relative_to(PROJECT).as_posix(), set()))
    }
    assert found == {}, "give it a timeout, and a sentence that names the command and what to do"


@pytest.fixture
def hangs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Have some programs be there that never answer; return their folder."""
    for name in ("squeue", "gpg", "ldd"):
        program = tmp_path / name
        program.write_text("#!/bin/sh\nexec sleep 600\n")
        program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    return tmp_path


def test_a_queue_that_does_not_answer_says_nothing_about_the_job(
    hangs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schedulers, "PATIENCE_S", 0.3)
    with pytest.raises(NoAnswer, match=r"squeue did not answer within 0\.3 s"):
        schedulers.state_in_queue("7")


def test_keys_that_cannot_be_read_in_time_are_a_sentence(
    hangs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trusted_keys, "PATIENCE_S", 0.3)
    with pytest.raises(TrustError, match=r"gpg did not end within 0\.3 s on x\.asc: "):
        trusted_keys.gpg(hangs, "--import", "x.asc")


def test_an_mpi_that_cannot_be_asked_in_time_is_a_sentence(
    hangs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(installed, "PATIENCE_S", 0.3)
    with pytest.raises(PrefixError, match=r"ldd /x/lib\.so did not end within 0\.3 s: "):
        installed._ask(hangs, "ldd", "/x/lib.so")
