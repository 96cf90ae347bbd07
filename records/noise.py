"""How quiet nodes are before anything is measured, and what precision that leaves room for."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from records.base import Count, Duration, Number, Record, Seconds, Share, TimeSummary

#: Below this share of a processor, and this long at most, detours are a machine's own housekeeping.
HOUSEKEEPING, LONGEST_S = 0.001, 1e-3
Relative = Annotated[float, Field(ge=0, le=1e6)]
Hertz = Annotated[float, Field(ge=0, le=1e12)]


class Noise(Record):
    """What a host's lowest rank saw while it worked and waited for nothing (FORMAT.md)."""

    record: Literal["result"]
    operation: Literal["noise"]
    host: str
    looked_s: Seconds
    detours: Count
    detour_s: Seconds
    longest_s: Seconds
    deviation: Relative
    stolen_s: Seconds | None
    slowest_hz: Hertz
    fastest_hz: Hertz
    time_s: TimeSummary

    @model_validator(mode="after")
    def as_long_as_was_looked(self) -> Noise:
        """Refuse more detours than there was time for."""
        if not self.longest_s <= self.detour_s <= self.looked_s:
            raise ValueError("the detours took longer than was looked for them")
        return self

    @property
    def share(self) -> float:
        """Return which part of the time detours took."""
        return self.detour_s / self.looked_s if self.looked_s else 0.0


class Quiet(BaseModel):
    """How quiet a campaign's nodes were at its beginning, of all looks together.

    `noisiest` is the host of the greatest `share` of a processor's time that went elsewhere; the
    other values are each the worst of any look. `deviation` is that between the medians of blocks
    of 50 ms, relative. `rounds` is how many the time asked is enough for, `half_width` how far from
    1 the ratio of two that are alike would come out, as its 95% interval has it.
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
    half_width: Relative | None

    @property
    def few(self) -> str:
        """Return what precision they leave room for, in few words."""
        if self.half_width is None:
            return "one round tells no precision"
        return f"a ratio may be known to ±{self.half_width:.2%} at best"

    @property
    def sentence(self) -> str:
        """Return it in words."""
        hosts = f"{self.hosts} node{'s' if self.hosts > 1 else ''}"
        own = self.share <= HOUSEKEEPING and self.longest_s <= LONGEST_S
        kept = "only the kernel's own work" if own else "something else"
        said = [
            f"How quiet: on {hosts}, looked at for {self.looked_s:.2g} s {self.looks} time(s), "
            f"{kept} took a processor for {self.share:.2%} of the time ({self.noisiest}), at most "
            f"{1e3 * self.longest_s:.3g} ms at once"
        ]
        if self.stolen_share:
            said.append(f"a hypervisor took {self.stolen_share:.2%}")
        if self.slowest_hz:
            said.append(
                f"clocks were {self.slowest_hz / 1e9:.3g} to {self.fastest_hz / 1e9:.3g} GHz"
            )
        said.append(f"the same work differed by {self.deviation:.2%}")
        rounds = f"{self.rounds} round{'s' if self.rounds > 1 else ''}"
        if self.half_width is None:
            return f"{'; '.join(said)}. Of {rounds} no precision can be told."
        return (
            f"{'; '.join(said)}. With {rounds}, which the time asked is enough for, that alone "
            f"makes a ratio uncertain by {self.half_width:.2%}: hardly a smaller one can be shown."
        )
