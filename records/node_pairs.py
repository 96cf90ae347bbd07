"""Records of all pairs of nodes: latency and bandwidth, each way, in rounds of pairs at once."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from records.base import Count, Positive, Record

Lasting = Annotated[float, Field(gt=0, allow_inf_nan=False)]
#: A value for each way of each pair of a round.
EachWay = Annotated[list[Lasting], Field(min_length=2)]


class NodePairsRound(Record):
    """A round of disjoint pairs of ranks; times in seconds, by the rank that begins.

    Of `latency` an iteration is a round trip, of `bandwidth` it is `messages` one way and an empty
    answer. Each pair is there twice, once for each way.
    """

    record: Literal["result"]
    operation: Literal["node_pairs"]
    measure: Literal["latency", "bandwidth"]
    sweep: Count
    round: Count
    #: Of a whole tournament, in which each rank meets each other.
    rounds: Positive
    #: How many pairs had messages under way at the same time.
    at_once: Positive
    message_bytes: Positive
    messages: Positive
    iterations: Positive
    source: list[Count] = Field(alias="from")
    to: list[Count]
    median_s: EachWay
    #: None of programs from before it was told.
    mean_s: EachWay | None = None
    min_s: EachWay
    max_s: EachWay
    moved_bytes: Count
    verified_bytes: Count

    @property
    def means_s(self) -> list[float]:
        """Return the means, or what stands for them where the program told none."""
        return self.median_s if self.mean_s is None else self.mean_s

    @model_validator(mode="after")
    def disjoint_pairs_both_ways(self) -> NodePairsRound:
        """Refuse lists that do not belong together, and pairs that are not disjoint."""
        lists = (self.source, self.to, self.median_s, self.means_s, self.min_s, self.max_s)
        counts = {len(one) for one in lists}
        if len(counts) > 1:
            raise ValueError("the lists do not have one entry for each way")
        partner = dict(zip(self.source, self.to, strict=True))
        disjoint = len(partner) == len(self.source) and all(
            partner.get(other) == one != other for one, other in partner.items()
        )
        if not disjoint or self.at_once > len(self.source) // 2:
            raise ValueError("its pairs are not disjoint, each with both ways")
        for middles in (self.median_s, self.means_s):
            ordered = zip(self.min_s, middles, self.max_s, strict=True)
            if not all(low <= middle <= high for low, middle, high in ordered):
                raise ValueError("min, median or mean, and max are not in order")
        if self.round >= self.rounds:
            raise ValueError(f"there is no round {self.round} of {self.rounds}, counted from 0")
        moved = len(self.source) * self.messages * self.message_bytes
        if not moved == self.moved_bytes == self.verified_bytes:
            raise ValueError(
                f"{self.moved_bytes} bytes moved and {self.verified_bytes} were verified, "
                f"where {moved} were sent"
            )
        return self
