"""What enters a job script stays one word each, and nothing in it does anything."""

import os
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from reframe.core.exceptions import SanityError

from containers.apptainer import guard, mount_option, without_terminals
from containers.guarded import BEFORE_DEV, MEMORY
from reframe_checks.mixins.job_script import (
    OWN_MEMORY,
    OWN_TMP,
    QuotedApptainer,
    folder_for_files,
    own_folders,
    quoted,
)

SHELLS = [shell for shell in ("sh", "bash") if shutil.which(shell)]
#: What argv and a script in UTF-8 can hold; letters that shells heed come often.
WORDS = st.lists(
    st.one_of(
        st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")),
        st.text("$`\"'\\;&|<>(){}[]*?!~#= \t\n\r%^-a/"),
    ),
    min_size=1,
    max_size=8,
)
ECHO = "for word; do printf '%s\\0' \"$word\"; done"


@given(words=WORDS)
@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_shell_reads_every_string_as_that_very_word(words: list[str], tmp_path: Path) -> None:
    folder = tmp_path / "empty"
    folder.mkdir(exist_ok=True)
    (tmp_path / "echo.sh").write_text(ECHO)
    script = tmp_path / "script.sh"
    line = quoted("sh", "../echo.sh", *words)
    script.write_text(f"{line}\nprintf 'went on'\n", newline="")
    for shell in SHELLS:
        done = subprocess.run([shell, "../script.sh"], cwd=folder, capture_output=True, check=False)
        assert done.returncode == 0 and done.stderr == b""
        assert done.stdout == b"".join(word.encode() + b"\0" for word in words) + b"went on"
        assert list(folder.iterdir()) == []


@given(words=WORDS)
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_so_does_what_starts_a_container(words: list[str], tmp_path: Path) -> None:
    bin_folder = tmp_path / "bin"
    bin_folder.mkdir(exist_ok=True)
    (bin_folder / "apptainer").write_text(f"#!/bin/sh\n{ECHO}\n")
    (bin_folder / "apptainer").chmod(0o755)
    platform = QuotedApptainer()
    platform.options, platform.image = words, words[0]
    platform.command = quoted("program", *words)
    line = platform.launch_command(words[-1])
    script = tmp_path / "script.sh"
    script.write_text(f"PATH={shlex.quote(str(bin_folder))}:$PATH\n{line}\n", newline="")
    done = subprocess.run(["bash", script], cwd=tmp_path, capture_output=True, check=True)
    found = done.stdout.decode().split("\0")[:-1]
    mount = mount_option(str(Path(words[-1]) / "work"), "/rfm_workdir")
    memory = f'--mount=type=bind,"source={BEFORE_DEV + MEMORY}",destination=/dev/shm'
    asked = [
        "exec",
        *([memory] if guard() else []),
        *without_terminals(),
        mount,
        *words,
        "--pwd",
        "/rfm_workdir",
        words[0],
        "program",
        *words,
    ]
    assert found == asked


def test_what_nobody_has_quoted_is_words_all_the_same() -> None:
    platform = QuotedApptainer()
    platform.image, platform.command = "image.sif", "program; touch hello $(touch there)"
    assert platform.launch_command("/stage").endswith(
        " image.sif 'program;' touch hello '$(touch' 'there)'"
    )


@pytest.mark.parametrize("word", ["a\0b", "gr\udcf6\udcdfe"])
def test_what_no_script_can_hold_is_refused(word: str) -> None:
    with pytest.raises(SanityError, match="give the file or folder another name"):
        quoted("program", word)


@pytest.mark.parametrize(
    ("source", "field"),
    [
        ("/plain", "source=/plain"),
        ("/a b/größe", '"source=/a b/größe"'),
        ("/a,b:c", '"source=/a,b:c"'),
        ('/a"b', '"source=/a""b"'),
        ("/a\\b", "source=/a\\b"),
    ],
)
def test_a_folder_of_any_name_is_one_field_of_a_mount(source: str, field: str) -> None:
    assert mount_option(source, "/mnt") == f"--mount=type=bind,{field},destination=/mnt"
    assert mount_option(source, "/mnt", writable=False).endswith(",destination=/mnt,ro")


def made_by(
    place: Path, tmpdir: Path, memory: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Run what makes a launch's own folders, on a node with that /tmp, by that login's TMPDIR.

    It says which the first one is, or with the node's /dev/shm which that one is.
    """
    made = own_folders(str(place), str(memory or place.parent))
    said = OWN_MEMORY if memory else OWN_TMP
    script = "\n".join([f"{OWN_MEMORY}=", *made, f'printf %s "${said}"'])
    return subprocess.run(
        ["bash", "-c", script], capture_output=True, text=True, check=False,
        env={"PATH": os.environ["PATH"], "TMPDIR": str(tmpdir)},
    )  # fmt: skip


def test_a_launch_s_tmp_is_on_the_node_and_elsewhere_only_where_it_must(tmp_path: Path) -> None:
    node, elsewhere = tmp_path / "the node's", tmp_path / "elsewhere"
    node.mkdir()
    elsewhere.mkdir()
    for tmpdir in (elsewhere, tmp_path / "missing"):
        made = Path(made_by(node, tmpdir).stdout)
        assert made.parent == node and made.stat().st_mode & 0o777 == 0o700
    assert Path(made_by(tmp_path / "none", elsewhere).stdout).parent == elsewhere
    assert made_by(tmp_path / "none", tmp_path / "missing").returncode == 1


def test_what_killed_launches_have_left_is_removed_after_a_day(tmp_path: Path) -> None:
    with subprocess.Popen(["true"]) as ended:
        ended.wait()
    dead, other = tmp_path / f"wyeast.{ended.pid}.AbCd1234", tmp_path / "elsewhere"
    young = tmp_path / f"wyeast.{ended.pid}.EfGh1234"
    alive = tmp_path / f"wyeast.{os.getpid()}.AbCd1234"
    foreign = [tmp_path / "wyeast.1x.AbCd1234", tmp_path / "wyeast.notes", other]
    link = tmp_path / f"wyeast.{ended.pid}.LiNk1234"
    for folder in (dead, young, alive, *foreign):
        folder.mkdir()
        (folder / "file").touch()
    link.symlink_to(other)
    for folder in (dead, alive, *foreign, link):
        os.utime(folder, (1, 1), follow_symlinks=False)
    made = Path(made_by(tmp_path, tmp_path).stdout)
    assert not dead.exists()
    assert all((folder / "file").exists() for folder in (young, alive, *foreign))
    assert link.is_symlink() and made.is_dir()


def test_a_folder_for_files_is_new_and_what_was_left_a_week_ago_is_removed(tmp_path: Path) -> None:
    old, young, foreign = (tmp_path / name for name in ("wyeast-1", "wyeast-2", "notes"))
    for folder in (old, young, foreign):
        folder.mkdir()
        (folder / "file").touch()
    for folder in (old, foreign):
        os.utime(folder, (1, 1))
    for name, code in (("wyeast-3 $x", 0), ("wyeast-2", 1)):
        made = folder_for_files(str(tmp_path), name, "files")
        script = "\n".join(["trap 'echo \"$launch_files\"' EXIT", *made])
        done = subprocess.run(
            ["bash", "-c", script], capture_output=True, text=True, check=False
        )  # fmt: skip
        # Another launch's folder is not this one's to remove.
        assert (done.returncode, done.stdout) == (code, "\n" if code else f"{tmp_path}/{name}\n")
    assert f"files: no folder can be made in {tmp_path}, the site's files_folder" in done.stderr
    left = {"wyeast-2", "notes", "wyeast-3 $x"}
    assert {path.name for path in tmp_path.iterdir()} == left


@pytest.mark.parametrize("is_root", [True, False])
def test_a_launch_has_a_folder_of_the_node_s_shared_memory(
    is_root: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0 if is_root else 1000)
    with subprocess.Popen(["true"]) as ended:
        ended.wait()
    node, memory = tmp_path / "tmp", tmp_path / "shm"
    left = memory / f"wyeast.{ended.pid}.AbCd1234"
    for folder in (node, left):
        folder.mkdir(parents=True)
    os.utime(left, (1, 1))
    made = made_by(node, node, memory).stdout
    # Root's containers have another /dev/shm than the node's.
    assert left.exists() == is_root and bool(made) != is_root
    assert is_root or (Path(made).parent, Path(made).stat().st_mode & 0o777) == (memory, 0o700)
