"""How quiet nodes are before anything is measured, and what precision that leaves room for."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from records.base import Count, Duration, Number, Record, Share, TimeSummary
from records.counting import how_many

Relative = Annotated[float, Field(ge=0, le=1e6)]
Hertz = Annotated[float, Field(ge=0, le=1e12)]


class Noise(Record):
    """What a host's lowest rank saw while it worked and waited for nothing (FORMAT.md)."""

    record: Literal["result"]
    operation: Literal["noise"]
    host: str
    looked_s: Duration
    detours: Count
    detour_s: Duration
    longest_s: Duration
    deviation: Relative
    #: Of the processor that the rank was on; None where that changed, or no kernel told.
    stolen_s: Duration | None
    slowest_hz: Hertz
    fastest_hz: Hertz
    time_s: TimeSummary

    @model_validator(mode="after")
    def as_long_as_was_looked(self) -> Noise:
        """Refuse more detours than there was time for."""
        if not self.longest_s <= self.detour_s <= self.looked_s:
            raise ValueError("the detours lasted longer than the observation")
        return self

    @property
    def share(self) -> float:
        """Return which part of the time detours took."""
        return self.detour_s / self.looked_s if self.looked_s else 0.0


class Quiet(BaseModel):
    """How quiet a campaign's nodes were at its beginning, of all looks together.

    `noisiest` is the host of the greatest `share` of a processor's time that went elsewhere; the
    other values are each the worst of any look, but for `deviation`, the median over looks of that
    between the medians of blocks of 50 ms, relative. `rounds` is how many there are, or with
    `of_budget` how many the time asked is enough for; `half_width` how far from 1 the 95% interval
    of the ratio of two that are alike would reach, None where that tells nothing.
    """

    model_config = ConfigDict(frozen=True, allow_inf_nan=False)

    looks: Number
    hosts: Number
    looked_s: Duration
    noisiest: str
    share: Share
    longest_s: Duration
    stolen_share: Share
    slowest_hz: Hertz
    fastest_hz: Hertz
    deviation: Relative
    rounds: Number
    of_budget: bool = False
    half_width: Relative | None

    @property
    def few(self) -> str:
        """Return what precision they leave room for, in few words."""
        if self.half_width is None:
            return "no precision can be estimated"
        return f"a ratio may be known to within ±{self.half_width:.2%} at best"

    @property
    def sentence(self) -> str:
        """Return it in words."""
        hosts = "1 node" if self.hosts == 1 else f"each of {self.hosts} nodes"
        said = [
            f"How quiet: in {how_many(self.looks, 'look')} of {self.looked_s:.2g} s at {hosts}, "
            f"a busy loop was without a processor for up to {self.share:.2%} of the time "
            f"({self.noisiest}), and for at most {1e3 * self.longest_s:.3g} ms at a stretch"
        ]
        if self.stolen_share:
            said.append(f"a hypervisor took up to {self.stolen_share:.2%}")
        if self.slowest_hz:
            said.append(
                f"clocks ran at {self.slowest_hz / 1e9:.3g} to {self.fastest_hz / 1e9:.3g} GHz"
            )
        said.append(
            f"the time of the same work varied by {self.deviation:.2%} between blocks of 50 ms "
            "(median over all looks)"
        )
        rounds = how_many(self.rounds, "round")
        if self.of_budget:
            rounds += " (as many as the time allows)"
        if self.half_width is None:
            return f"{'; '.join(said)}. No precision can be estimated from {rounds}."
        return (
            f"{'; '.join(said)}. If launches vary by no more than that, {rounds} will give the "
            f"ratio of two to within ±{self.half_width:.2%}; they may vary for other reasons, too."
        )
