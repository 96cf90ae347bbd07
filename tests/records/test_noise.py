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
    # The worst is told; what launches differ by is that of most looks.
    assert found.deviation == 0.004
    assert found.half_width == pytest.approx(student(5, 0.975) * 0.004 * (2 / 6) ** 0.5, rel=0.02)
    assert found.sentence == (
        "How quiet: in 2 looks of 2 s at each of 2 nodes, a busy loop was without a processor for "
        "up to 25.00% of the time (node2), and for at most 20 ms at a stretch; a hypervisor took "
        "up to 5.00%; clocks ran at 2.5 to 2.6 GHz; the time of the same work varied by 0.40% "
        "between blocks of 50 ms (median over all looks). If launches vary by no more than that, "
        "6 rounds will give the ratio of two to within ±0.60%; they may vary for other reasons, "
        "too."
    )
    assert found.few == "a ratio may be known to within ±0.60% at best"
    assert manifest(quiet=found.model_dump()).quiet == found
    asked = quiet_of([noise()], rounds=6, of_budget=True)
    assert asked and "6 rounds (as many as the time allows) will give the ratio" in asked.sentence


def test_one_round_shows_nothing() -> None:
    found = quiet_of([noise()], rounds=1)
    assert found and found.half_width is None and half_width(0.01, 1) is None
    assert found.sentence.endswith("No precision can be estimated from 1 round.")
    assert quiet_of([], rounds=3) is None


@pytest.mark.parametrize("deviation", [1.09, 56.0, 1e6])
def test_what_differs_by_any_amount_is_kept_without_a_precision(deviation: float) -> None:
    found = quiet_of([noise(deviation=deviation)], rounds=2)
    assert found and found.half_width is None and found.few == "no precision can be estimated"
    assert found.sentence.endswith("No precision can be estimated from 2 rounds.")
    assert manifest(quiet=found.model_dump()).quiet == found
    assert half_width(0.18, 2) == pytest.approx(8.85, rel=0.01)


def test_impossible_noise_is_refused() -> None:
    for wrong in ({"detour_s": 3.0}, {"longest_s": 0.5}, {"deviation": -1.0}, {"slowest_hz": None}):
        with pytest.raises(ValidationError):
            noise(**wrong)


def test_a_look_is_longer_where_there_is_more_time() -> None:
    assert looked_ms(manifest()) == 1000
