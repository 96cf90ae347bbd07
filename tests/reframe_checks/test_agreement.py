"""Agreement is of medians, and only a documented reason lets more pass, up to its own bound."""

from pathlib import Path

import pytest

from reframe_checks.mixins.agreement import (
    Circumstances,
    Reason,
    Reasons,
    ReasonsError,
    compare,
    disagreement,
    read_reasons,
)

WHERE = Circumstances("pingpong", "NPmpi", "srun", "mpich", "virtual")
STRICT = Reasons(tolerance=0.1, reasons=[])
WHY = "the other program counts something else as well and that is much of a short message"


def reason(**other: object) -> Reasons:
    told = {"operation": "pingpong", "program": "NPmpi", "sizes": (1, 100), "ratio": (0.7, 1.0),
            "reason": WHY, **other}  # fmt: skip
    return Reasons(tolerance=0.1, reasons=[Reason.model_validate(told)])


def test_the_median_of_the_turns_ratios_counts() -> None:
    ours = [{8: [1.02, 9.0]}, {8: [50.0, 1.0]}, {8: [1.2, 1.08]}]
    theirs = [{8: [1.0]}, {8: [1.04]}, {8: [1.5]}]
    [found] = compare(ours, theirs, STRICT, WHERE)
    assert (found.ours_s, found.theirs_s) == (1.02, 1.04)
    assert found.ratio == pytest.approx(1.0 / 1.04)
    assert found.interval == pytest.approx((1.08 / 1.5, 1.02))
    assert found.holds and not found.shown and disagreement([found], WHERE) is None


def test_what_drifts_or_happens_once_is_no_disagreement() -> None:
    """A machine that becomes five times slower, and one launch quick by chance."""
    speed = [1.0, 1.3, 2.0, 2.4, 5.0]
    ours = [{8: [one]} for one in speed]
    theirs = [{8: [one]} for one in [speed[0] / 2, *speed[1:]]]
    [found] = compare(ours, theirs, STRICT, WHERE)
    assert found.ratio == 1.0 and found.holds


@pytest.mark.parametrize(("ratios", "told"), [((1.2, 1.21, 1.22), True), ((0.8, 1.2, 1.3), False)])
def test_noise_is_no_proof_of_disagreement_and_does_not_pass(
    ratios: tuple[float, ...], told: bool
) -> None:
    found = compare([{8: [one]} for one in ratios], [{8: [1.0]}] * 3, STRICT, WHERE)
    sentence = disagreement(found, WHERE)
    assert sentence and ("repeat it when nothing else is running" in sentence) is not told


@pytest.mark.parametrize(
    ("ours", "holds"), [(0.89, False), (0.91, True), (1.09, True), (1.11, False)]
)
def test_tolerance(ours: float, holds: bool) -> None:
    [found] = compare([{8: [ours]}], [{8: [1.0]}], STRICT, WHERE)
    assert found.holds is holds


def test_sentence_names_size_numbers_and_ratio() -> None:
    ours, theirs = [{8: [1.2e-6], 16: [3e-6], 32: [1e-6]}], [{8: [1e-6], 16: [1e-6], 32: [1e-6]}]
    sentence = disagreement(compare(ours, theirs, STRICT, WHERE), WHERE)
    assert sentence == (
        "pingpong, 16 bytes: 3e-06 s here, 1e-06 s by NPmpi, ratio turn by turn 3.000 (3.000 to "
        "3.000); allowed is 0.90 to 1.10 "
        "(also beyond it: 8 bytes)"
    )


@pytest.mark.parametrize(
    ("reasons", "size", "holds"),
    [
        (reason(), 8, True),
        (reason(), 101, False),
        (reason(launch="srun", families=["mpich"]), 8, True),
        (reason(launch="mpiexec"), 8, False),
        (reason(families=["lam"]), 8, False),
        (reason(sites=["virtual"]), 8, True),
        (reason(sites=["local"]), 8, False),
        (reason(operation="bcast"), 8, False),
        (reason(program="IMB-MPI1"), 8, False),
        (reason(ratio=(0.8, 1.0)), 8, False),
    ],
)
def test_a_reason_covers_what_it_names_and_no_more(
    reasons: Reasons, size: int, holds: bool
) -> None:
    [found] = compare([{size: [0.75]}], [{size: [1.0]}], reasons, WHERE)
    assert found.holds is holds


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [([{8: [1.0]}], [{16: [1.0]}]), ([{8: [1.0]}], [{8: [1.0]}] * 2), ([], []), ([{}], [{}])],
)
def test_what_was_not_measured_alike_is_refused(
    ours: list[dict[int, list[float]]], theirs: list[dict[int, list[float]]]
) -> None:
    with pytest.raises(ValueError, match="pingpong: our program measured"):
        compare(ours, theirs, STRICT, WHERE)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[", "not YAML"),
        ("tolerance: 0.1\nreasons: []\nmore: 1\n", "more"),
        ("tolerance: 1.5\nreasons: []\n", "tolerance"),
        ("tolerance: 0.1\nreasons: [{operation: a, program: b, sizes: [1, 2], ratio: [0.5, 0.9], "
         f"reason: {WHY}}}]", "1 is not between"),
        ("tolerance: 0.1\nreasons: [{operation: a, program: b, sizes: [2, 1], ratio: [0.5, 1], "
         f"reason: {WHY}}}]", "the first is above the last"),
        ("tolerance: 0.1\nreasons: [{operation: a, program: b, sizes: [1, 2], ratio: [0.5, 1], "
         "reason: noise}]", "reason"),
    ],
)  # fmt: skip
def test_a_table_that_cannot_be_used(tmp_path: Path, text: str, sentence: str) -> None:
    path = tmp_path / "reasons.yaml"
    path.write_text(text)
    with pytest.raises(ReasonsError, match=sentence):
        read_reasons(path)
    with pytest.raises(ReasonsError, match="cannot be read"):
        read_reasons(tmp_path / "none")


def test_the_table_of_the_check_can_be_used() -> None:
    root = Path(__file__).resolve().parents[2]
    assert read_reasons(root / "reframe_checks" / "cross_validation.yaml").tolerance == 0.1
