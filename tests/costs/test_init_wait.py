"""That a spared wait changes nothing else is measured of what is launched and what is not."""

import sys

import pytest

from containers import images
from costs import hiding, init_wait

#: What the command prints of an experiment is one family of verdicts, as for `costs.hiding`.
pytestmark = [pytest.mark.real, pytest.mark.serial]


def test_an_experiment_is_measured_with_the_wait_and_without(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    seen: list[list[str]] = []
    started = hiding.as_launched

    def as_launched(*given: object, **named: object):  # type: ignore[no-untyped-def]
        place = started(*given, **named)  # type: ignore[arg-type]
        seen.append(place.prefix)
        return place

    monkeypatch.setattr(init_wait, "as_launched", as_launched)
    monkeypatch.setattr(sys, "argv", ["init_wait", "--rounds=2", "--only=EchoTest"])
    assert init_wait.main() == 0
    [row] = [line.strip("| ").split(" | ") for line in capsys.readouterr().out.splitlines()[2:]]
    assert row[:3] == ["openmpi-5.0.11", "EchoTest", "0 to 1 MB"]
    assert float(row[3]) > 0 and float(row[4]) > 0
    assert [any("OMPI_MCA_btl=^ofi" in word for word in prefix) for prefix in seen] == [False, True]


def test_an_image_without_the_wait_is_refused() -> None:
    with pytest.raises(images.ImageError, match=r"^mpich-5\.0\.2 has no wait in MPI_Init"):
        init_wait.measure("mpich-5.0.2", 2, [one.experiment for one in hiding.PROGRAMS])
