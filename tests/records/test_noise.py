"""What preflights see of noise, what it comes to, and that damage is refused."""

from typing import Any

import pytest
from pydantic import ValidationError

from campaign.quiet import half_width, looked_ms, quiet_of
from inference.intervals import student
from records.noise import Noise
from tests.whole_records import manifest


def noise(host: str = "node1", **more: Any) -> Noise:
    summary = dict.fromkeys(("min", "quartile1", "median", "mean", "quartile3", "max"), 1e-3)
    return Noise.model_validate({
        "record": "result", "operation": "noise", "host": host, "looked_s": 2.0, "detours": 100,
        "detour_s": 0.001, "longest_s": 2e-5, "deviation": 0.004, "stolen_s": 0.0,
        "slowest_hz": 2.5e9, "fastest_hz": 2.6e9, "time_s": summary, **more,
    })  # fmt: skip


def test_the_noisiest_node_decides_what_can_be_shown() -> None:
    noisy = noise("node2", detour_s=0.5, longest_s=0.02, deviation=0.01, stolen_s=0.1)
    found = quiet_of([noise(), noisy, noise(), noise("node2")], rounds=6)
    assert found and (found.looks, found.hosts, found.noisiest) == (2, 2, "node2")
    assert found.half_width == pytest.approx(student(5, 0.975) * 0.01 * (2 / 6) ** 0.5, rel=0.02)
    assert found.sentence == (
        "How quiet: on 2 nodes, looked at for 2 s 2 time(s), something else took a processor for "
        "25.00% of the time (node2), at most 20 ms at once; a hypervisor took 5.00%; clocks were "
        "2.5 to 2.6 GHz; the same work differed by 1.00%. With 6 rounds, which the time asked is "
        "enough for, that alone makes a ratio uncertain by 1.50%: hardly a smaller one can be "
        "shown."
    )
    assert found.few == "a ratio may be known to ±1.50% at best"
    assert manifest(quiet=found.model_dump()).quiet == found


def test_a_quiet_node_has_only_the_kernels_own_work_and_one_round_shows_nothing() -> None:
    found = quiet_of([noise()], rounds=1)
    assert found and found.half_width is None and half_width(0.01, 1) is None
    assert "only the kernel's own work" in found.sentence
    assert found.sentence.endswith("Of 1 round no precision can be told.")
    assert quiet_of([], rounds=3) is None


def test_impossible_noise_is_refused() -> None:
    for wrong in ({"detour_s": 3.0}, {"longest_s": 0.5}, {"deviation": -1.0}, {"slowest_hz": None}):
        with pytest.raises(ValidationError):
            noise(**wrong)


def test_a_look_is_longer_where_there_is_more_time() -> None:
    assert looked_ms(manifest()) == 1000
