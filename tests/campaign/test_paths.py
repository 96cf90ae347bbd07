"""Where a checkout may stand: what cannot be told of a path is refused before anything begins."""

from pathlib import Path

import pytest

from campaign.paths import refuse_path
from records.base import CampaignError


@pytest.mark.parametrize(
    "path", ["/scratch/wyeast", "/a b/größe", "/a,b", "/(id)", "/it's", '/"', "/;"]
)
@pytest.mark.parametrize("scheduler", ["local", "slurm", "squeue", "lsf", "flux"])
def test_any_letter_that_can_be_quoted_may_be_in_a_path(path: str, scheduler: str) -> None:
    refuse_path(Path(path), {"scheduler": scheduler})


@pytest.mark.parametrize(
    ("path", "scheduler", "reason"),
    [
        ("/a:b", "local", "colon"),
        ("/a\nb", "slurm", "control character"),
        ("/gr\udcf6", "local", "not text"),
        ("/$(touch ran)", "local", "ReFrame takes a dollar sign"),
        ("/`id`", "slurm", "or a backquote"),
        ("/a b", "pbs", "unquoted for the scheduler pbs"),
        ("/größe", "sge", "unquoted for the scheduler sge"),
        ("/a;b", "torque", "unquoted for the scheduler torque"),
    ],
)
def test_what_programs_of_others_cannot_be_told_is_refused(
    path: str, scheduler: str, reason: str
) -> None:
    with pytest.raises(CampaignError, match=reason) as refused:
        refuse_path(Path(path), {"scheduler": scheduler})
    assert str(refused.value).isprintable() and "move it" in str(refused.value)


def test_an_ordinary_path_is_taken_by_every_scheduler() -> None:
    refuse_path(Path("/home/some-one/wyeast_1.0"), {"scheduler": "pbs"})


def test_a_checkout_that_cannot_be_hidden_from_containers_is_refused_at_once() -> None:
    with pytest.raises(
        CampaignError, match=r"/opt/wyeast.* since images need /opt/wyeast for themselves; move it$"
    ):
        refuse_path(Path("/opt/wyeast/1.0"), {"scheduler": "slurm"})
    refuse_path(Path("/opt/site/wyeast"), {"scheduler": "slurm"})
