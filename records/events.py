"""The events of a campaign's journal, and a line of it: what can happen to a launch."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from records.base import Count, Duration, Number, OneOfMany, Positive, RoundNumber, Seconds
from records.disturbance import Often, Outside
from records.launch import LaunchName
from records.manifest import Design, ImageName, PlainName, Sha256, Utc
from records.packs import PackPlace


class Fact(OneOfMany, BaseModel):
    """A part of a journal; a key that this version does not know is an error."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)


class Begun(Fact):
    """The campaign was made; `converted` if its first launches were measured without a journal."""

    kind: Literal["begun"] = "begun"
    campaign: PlainName
    converted: bool = False
    #: Of a campaign with a budget.
    design: Design | None = None
    #: Of what the manifest declares; None of campaigns from before it was noted.
    declared_sha256: Sha256 | None = None


class Resumed(Fact):
    """The campaign is resumed: what was given up is tried again."""

    kind: Literal["resumed"] = "resumed"


class SessionBegan(Fact):
    """A process of ReFrame has chosen what it measures of a round, and begins with that.

    What it chose that was not planned yet was planned before this.
    """

    kind: Literal["session"] = "session"
    round: RoundNumber
    process: Positive


class PlannedLaunch(Fact):
    """A launch that a round is to have."""

    launch: LaunchName
    cell: str
    implementation: ImageName


class Planned(Fact):
    """The launches of a round, in their drawn order, written before the first of them starts."""

    kind: Literal["planned"] = "planned"
    round: RoundNumber
    launches: tuple[PlannedLaunch, ...]

    @model_validator(mode="after")
    def each_once(self) -> Planned:
        """Refuse a launch that is planned twice."""
        names = [one.launch for one in self.launches]
        if len(set(names)) < len(names):
            raise ValueError("a launch is planned twice")
        return self


class Intended(Fact):
    """An attempt at a launch is about to be handed to the scheduler."""

    kind: Literal["intended"] = "intended"
    launch: LaunchName
    attempt: Number


class Submitted(Fact):
    """The scheduler has accepted an attempt; `job` is its name for it, here that of a process."""

    kind: Literal["submitted"] = "submitted"
    launch: LaunchName
    attempt: Number
    job: str


class Recorded(Fact):
    """The launch is in the campaign, judged; attempt 0 is from before there was a journal."""

    kind: Literal["recorded"] = "recorded"
    launch: LaunchName
    attempt: Count
    #: In the order in which the round was measured; None of what was never judged.
    position: Number | None
    outcome: Literal["sound", "suspect", "failed"]
    #: Why it is not sound.
    cause: str | None = None
    #: None for a launch with its own folder, from before there were packs.
    place: PackPlace | None = None
    #: How often came from outside what a block may be measured again for.
    outside: dict[Outside, Often] = {}


class Repeated(Fact):
    """A whole block is measured again, once: something from outside came between.

    What it had given is kept aside.
    """

    kind: Literal["repeated"] = "repeated"
    round: RoundNumber
    cell: str
    launches: tuple[LaunchName, ...]
    cause: str


class Lost(Fact):
    """An attempt that left nothing to keep, through no fault of the program."""

    kind: Literal["lost"] = "lost"
    launch: LaunchName
    attempt: Number
    cause: str


class NotStarted(Fact):
    """A launch that was not attempted, and why.

    `skipped` is what the site cannot measure, `failed` what waited for a launch that failed, and
    `missing` what may succeed another time.
    """

    kind: Literal["not started"] = "not started"
    launch: LaunchName
    why: Literal["skipped", "failed", "missing"]
    cause: str


class Gone(Fact):
    """A launch that was recorded is measured again.

    It is no longer in the campaign, or no longer counts there: the campaign stopped for it.
    """

    kind: Literal["gone"] = "gone"
    launch: LaunchName
    cause: str


class Stopped(Fact):
    """The campaign was given up for now, and why."""

    kind: Literal["stopped"] = "stopped"
    cause: str


class WaveRound(Fact):
    """A round of a wave; `cells` are those that it measures, None for all of them."""

    round: RoundNumber
    cells: tuple[str, ...] | None


class WaveScore(Fact):
    """The value of a cell when a wave was chosen: its next look's blocks, seconds, and rate.

    The rate is expected decisions per second, by its best look to come.
    """

    cell: str
    blocks: Number
    seconds: Duration
    rate: Annotated[float, Field(ge=0)]


class Wave(Fact):
    """What a campaign with a budget decided to measure next, before it does.

    `why`: `begin` is all, `chosen` where decisions are near, `uniform` all once more if the
    budget is too small to choose. From the second wave on, all is what is compared.
    """

    kind: Literal["wave"] = "wave"
    number: Number
    why: Literal["begin", "chosen", "uniform"]
    rounds: tuple[WaveRound, ...]
    scores: tuple[WaveScore, ...]
    predicted_s: Duration | None
    spent_s: Duration


class Ended(Fact):
    """A campaign with a budget measures nothing more, and why.

    `decided`: no series is open; `hopeless`: what is left would decide none; `budget`: no look
    that may decide one is over in time; `repeated`: all waves of another campaign are measured;
    `unknown`: series are open, and no launch says how long one takes; `interrupted`: until
    somebody resumes it.
    """

    kind: Literal["ended"] = "ended"
    why: Literal["budget", "decided", "hopeless", "unknown", "repeated", "interrupted"]
    spent_s: Duration
    open_series: Count | None


class Reported(Fact):
    """Tables and report were made of all that was recorded."""

    kind: Literal["reported"] = "reported"


Event = (
    Begun | Resumed | SessionBegan | Planned | Intended | Submitted | Recorded | Lost | NotStarted
    | Gone | Stopped | Reported | Wave | Ended | Repeated
)  # fmt: skip


class Entry(Fact):
    """A line of a journal."""

    seq: Positive
    before: Sha256
    monotonic_s: Seconds
    utc: Utc
    boot: Annotated[str, Field(pattern=r"^[0-9a-f-]{1,64}$")]
    event: Annotated[Event, Field(discriminator="kind")]
