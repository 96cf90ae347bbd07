"""What a campaign has many of shares what it was given, and nothing else."""

from records.disturbance import Disturbance
from tests.whole_records import launch


def test_records_that_are_alike_share_the_names_that_they_were_given() -> None:
    one, other = launch("round001_a"), launch("round001_b")
    assert one.__pydantic_fields_set__ is other.__pydantic_fields_set__
    assert one.launch == "round001_a" and other.launch == "round001_b"


def test_what_was_given_to_one_is_not_said_of_another() -> None:
    told = {"looked_s": 1.0, "others_s": 0.0}
    less, more = Disturbance.model_validate(told), Disturbance.model_validate(told | {"stopped": 1})
    assert "stopped" in more.model_fields_set and "stopped" not in less.model_fields_set
    changed = less.model_copy(update={"stopped": 2})
    assert "stopped" in changed.model_fields_set and "stopped" not in less.model_fields_set
    again = Disturbance.model_validate(told)
    assert again.model_dump(exclude_unset=True) == told
