"""What Apptainer needs of the machine, for those who build images and for those who run them."""

from pathlib import Path

import pytest

from containers import apptainer, programs


def test_who_only_runs_images_needs_no_subordinate_ids(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apptainer, "on_path", lambda: Path("/usr/bin/apptainer"))
    monkeypatch.setattr(apptainer, "private_command", lambda: Path("/nowhere"))
    monkeypatch.setattr(programs, "ensure", lambda state: [])
    monkeypatch.setattr(programs, "_has_range", lambda path, names: False)
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    assert apptainer.provide() == Path("/usr/bin/apptainer")
    with pytest.raises(programs.ProvisionError, match=r"no range in /etc/subuid"):
        apptainer.provide(builds=True)


@pytest.mark.parametrize("folder", ["a b", "a\\b", "a\tb"])
def test_no_apptainer_is_unpacked_where_it_could_mount_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str
) -> None:
    state = tmp_path / folder / ".wyeast"
    monkeypatch.setattr(apptainer, "ROOT", state.parent)
    monkeypatch.setattr(apptainer, "on_path", lambda: None)
    monkeypatch.setattr(apptainer, "_install_package", lambda state: False)
    monkeypatch.setattr(programs, "ensure", lambda state: [])
    monkeypatch.setattr(programs, "ensure_subordinate_ids", lambda: False)
    monkeypatch.setattr("containers.apt.of_suite", lambda *_: pytest.fail("it was downloaded"))
    with pytest.raises(programs.ProvisionError, match="a space or a backslash in its path"):
        apptainer.provide(say=False)
    assert not state.exists()
