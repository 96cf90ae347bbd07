"""Records of emulated applications that run side by side."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from records.base import Count, Positive, Record, Seconds, Share, Times, TimesThatLast, TimeSummary

#: How often an iteration runs an emulated application: alone, without computing, together.
RUNS_OF_AN_ITERATION = 3


class EmulationResult(Record):
    """Runs of an emulated application, alone and together with the others of the launch."""

    record: Literal["result"]
    operation: Literal["emulation"]
    application: Count
    graph: str
    ranks: Annotated[int, Field(ge=2)]
    world_ranks: list[Count]
    edges: Positive
    step_bytes: Count
    steps: Positive
    iterations: Positive
    warmup: Count
    alone_s: TimesThatLast
    together_s: TimesThatLast
    messages_s: TimeSummary
    computing_s: TimeSummary
    #: Not seconds but their ratio, together to alone.
    slowdown: TimeSummary
    overlap: Share
    communication_fraction_alone: Share
    communication_fraction_together: Share
    median_by_rank_alone_s: list[Seconds]
    median_by_rank_together_s: list[Seconds]
    drawn_by_rank_s: list[Seconds]
    sent_by_rank_bytes: list[Count]
    received_by_rank_bytes: list[Count]
    verified_bytes: Count

    @model_validator(mode="after")
    def one_entry_per_rank(self) -> EmulationResult:
        """Refuse a result that does not describe every rank, or a rank of the world twice."""
        lists = (
            self.world_ranks, self.median_by_rank_alone_s, self.median_by_rank_together_s,
            self.drawn_by_rank_s, self.sent_by_rank_bytes, self.received_by_rank_bytes,
        )  # fmt: skip
        if {len(entries) for entries in lists} != {self.ranks}:
            raise ValueError("the lists do not have one entry for each rank")
        if len(set(self.world_ranks)) != self.ranks:
            raise ValueError("a rank of the world appears twice in world_ranks")
        return self

    @model_validator(mode="after")
    def bytes_are_conserved(self) -> EmulationResult:
        """Refuse bytes that were lost, came from nowhere or were not verified."""
        sent, received = sum(self.sent_by_rank_bytes), sum(self.received_by_rank_bytes)
        if sent != received:
            raise ValueError(f"{sent} bytes were sent and {received} received")
        if sent != self.step_bytes * self.steps * self.iterations * RUNS_OF_AN_ITERATION:
            raise ValueError(f"{sent} bytes were sent, which is not what the steps have to send")
        if self.verified_bytes != self.step_bytes:
            raise ValueError(
                f"a step has {self.step_bytes} bytes, and {self.verified_bytes} were verified"
            )
        return self

    @property
    def series(self) -> str:
        """Return which of the launch's applications it is."""
        return f"application {self.application}: {self.graph}"


class EmulationIterations(Record):
    """The times of an emulated application's iterations in one situation, in seconds."""

    record: Literal["iterations"]
    operation: Literal["emulation"]
    application: Count
    graph: str
    situation: Literal["alone", "together", "messages", "computing"]
    time_s: Times
