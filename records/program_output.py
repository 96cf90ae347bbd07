"""Read the output of the project's own programs (benchmarks/FORMAT.md), strictly.

Nothing is guessed and nothing dropped: anything but a complete, sound output is a `RecordError`
that names file and line.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import from_json

from records.base import Header, Record, RecordError
from records.causes import harmless_strings, may_harm
from records.communication import (
    OPERATIONS,
    Communication,
    CommunicationIterations,
    ControlVariables,
    Fabric,
    Iterations,
    Latency,
    LoadedLibrary,
    PerformanceVariables,
    PingPong,
    RankIterations,
    Startup,
    StartupDurations,
    Topology,
    Transport,
    World,
)
from records.emulation import EmulationIterations, EmulationResult
from records.ending import End
from records.files import refuse_too_many_values
from records.node_pairs import NodePairsRound
from records.node_rates import DgemmResult, LinpackSolve, Rate, StreamResult
from records.noise import Noise
from records.su3 import Su3Iterations, Su3Proof, Su3Result

#: Where lines of a text end.
LINE_ENDS = "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"

Result = (
    PingPong
    | World
    | LoadedLibrary
    | Topology
    | ControlVariables
    | PerformanceVariables
    | Latency
    | Transport
    | Fabric
    | Noise
    | Startup
    | StartupDurations
    | Communication
    | EmulationResult
    | DgemmResult
    | StreamResult
    | LinpackSolve
    | Su3Result
    | Su3Proof
    | NodePairsRound
)
RESULTS: dict[str, type[Result]] = {
    "pingpong": PingPong,
    "world": World,
    "library": LoadedLibrary,
    "topology": Topology,
    "control_variables": ControlVariables,
    "performance_variables": PerformanceVariables,
    "latency": Latency,
    "transport": Transport,
    "fabric": Fabric,
    "noise": Noise,
    "startup": Startup,
    "startup_durations": StartupDurations,
    "emulation": EmulationResult,
    "dgemm": DgemmResult,
    "stream": StreamResult,
    "linpack": LinpackSolve,
    "su3": Su3Result,
    "su3_proof": Su3Proof,
    "node_pairs": NodePairsRound,
    **dict.fromkeys(OPERATIONS, Communication),
}
SeriesOfTimes = Iterations | CommunicationIterations | EmulationIterations | Su3Iterations
#: What the raw iterations of an operation are.
SERIES: dict[str, type[SeriesOfTimes]] = {
    "pingpong": Iterations,
    "emulation": EmulationIterations,
    "su3": Su3Iterations,
    **dict.fromkeys(OPERATIONS, CommunicationIterations),
}


class ProgramOutput(BaseModel):
    """The whole output of one launch."""

    header: Header
    results: list[Result]
    iterations: list[SeriesOfTimes]
    rank_iterations: list[RankIterations]

    @property
    def clock(self) -> str:
        """The name of the clock of the results: the header's, or what they name themselves."""
        named = {one.clock for one in self.results if isinstance(one, Startup)}
        return named.pop() if named else self.header.clock

    def added_sizes(self) -> frozenset[int]:
        """Return the message sizes in bytes that a program added to those it was asked for.

        `pingpong --refine` measures between two sizes where the times bend, so which ones it adds
        is a result, different in each launch. Other programs add none.
        """
        parameters = self.header.parameters
        if not parameters.get("refine") or not isinstance(parameters.get("sizes"), list):
            return frozenset()
        measured = (one.message_bytes for one in self.results if isinstance(one, PingPong))
        return frozenset(size for size in measured if size not in parameters["sizes"])

    def communications(self) -> list[Communication]:
        """Return the results that are communications."""
        return [result for result in self.results if isinstance(result, Communication)]


def refuse_constant(name: str) -> float:
    """Refuse NaN and Infinity, which JSON does not have but Python's reader accepts."""
    raise ValueError(f"{name} is not a number")


def parse_line(line: str) -> dict[str, Any]:
    """Return the object of a line; raise ValueError with what is wrong."""
    try:
        # Three times as fast as Python's own reader, which says better what is wrong.
        data = from_json(line, allow_inf_nan=False)
    except ValueError:
        try:
            data = json.loads(line, parse_constant=refuse_constant)
        except json.JSONDecodeError as error:
            raise ValueError(f"not a JSON object ({error.msg}): {line.strip()[:60]!r}") from None
        except RecursionError:
            raise ValueError(f"nested too deep for a record: {line.strip()[:60]!r}") from None
    if not isinstance(data, dict) or "record" not in data:
        raise ValueError(f"not a record: {line.strip()[:60]!r}")
    return dict(harmless_strings(data)) if may_harm(line) else data


def model_of(data: dict[str, Any]) -> type[Record]:
    """Return the model of a record; raise ValueError for an unknown kind."""
    kind = data["record"]
    if kind in ("header", "end"):
        return Header if kind == "header" else End
    if kind not in ("result", "iterations", "rank_iterations"):
        raise ValueError(f"the record {kind!r} is unknown")
    operation = data.get("operation")
    if not isinstance(operation, str):
        raise ValueError(f"the operation {repr(operation)[:60]} is not a name")
    if kind == "rank_iterations" and operation in OPERATIONS:
        return RankIterations
    models: Mapping[Any, type[Record]] = RESULTS if kind == "result" else SERIES
    if operation not in models:
        raise ValueError(f"the operation {operation!r} is unknown")
    return models[operation]


def explain(error: ValidationError) -> str:
    """Return the first thing that is wrong with a record, as a phrase."""
    first = error.errors()[0]
    # A key of a file that anybody wrote may hold what changes a terminal.
    words = [str(part)[:60] for part in first["loc"]]
    where = ".".join(word if word.isprintable() else repr(word) for word in words)
    what = first["msg"].removeprefix("Value error, ")
    return f"{where}: {what}" if where else what


def read_program_output(path: Path) -> ProgramOutput:
    """Return the records of a program's output, as `program_output` does; raises OSError, too."""
    return program_output(path.read_text(errors="replace"), path)


def program_output(text: str, path: Path) -> ProgramOutput:
    """Return the records of what a program printed; `path` is where that is.

    Raises RecordError with file and line for anything but one header, results that are whole, and
    one end record that counts them.
    """
    try:
        refuse_too_many_values(text, f",{LINE_ENDS}")
    except ValueError as error:
        raise RecordError(f"{path}: {error}") from None
    lines = text.splitlines()
    header: Header | None = None
    end: End | None = None
    results: list[Any] = []
    iterations: list[SeriesOfTimes] = []
    by_rank: list[RankIterations] = []
    for number, line in enumerate(lines, 1):
        try:
            record: Any = model_of(data := parse_line(line)).model_validate(data)
            if end:
                raise ValueError("there is more after the end record")
            if isinstance(record, Header):
                if header:
                    raise ValueError("a second header: the ranks did not form one world")
                header = record
            elif not header:
                raise ValueError("the first record is not the header")
            elif isinstance(record, End):
                end = record
            elif isinstance(record, SeriesOfTimes):
                follow_result(record, results[-1] if results else None)
                iterations.append(record)
            elif isinstance(record, RankIterations):
                follow_result(record, results[-1] if results else None)
                by_rank.append(record)
            else:
                results.append(record)
        except ValidationError as error:
            raise RecordError(f"{path}:{number}: {explain(error)}") from None
        except ValueError as error:
            raise RecordError(f"{path}:{number}: {error}") from None
    if not header:
        raise RecordError(f"{path}:1: the output is empty")
    if not end:
        raise RecordError(f"{path}:{len(lines)}: no end record: the output is truncated")
    if end.results != len(results):
        raise RecordError(
            f"{path}:{len(lines)}: the end record counts {end.results} results, "
            f"there are {len(results)}"
        )
    output = ProgramOutput.model_construct(
        header=header, results=results, iterations=iterations, rank_iterations=by_rank
    )
    try:
        refuse_ranks_outside(output)
        refuse_other_ranks(output)
    except ValueError as error:
        raise RecordError(f"{path}: {error}") from None
    return output


def follow_result(record: SeriesOfTimes | RankIterations, result: Any) -> None:
    """Raise ValueError unless the iterations belong to the result before them."""
    own = ("record", "situation", "rank", "time_s")
    key = [name for name in type(record).model_fields if name not in own]
    if any(getattr(record, name) != getattr(result, name, None) for name in key):
        raise ValueError("these iterations do not follow the result that they belong to")
    if len(record.time_s) != result.iterations:
        raise ValueError(
            f"{len(record.time_s)} times, but the result is of {result.iterations} iterations"
        )


def refuse_ranks_outside(output: ProgramOutput) -> None:
    """Raise ValueError where a result is of a rank that the world does not have."""
    for one in output.results:
        if isinstance(one, NodePairsRound):
            highest = max(*one.source, *one.to)
        elif isinstance(one, Latency | Transport):
            highest = max(one.source, one.to)
        elif isinstance(one, Rate):
            highest = one.ranks - 1
        else:
            continue
        if highest >= output.header.ranks:
            raise ValueError(
                f"{one.operation}: rank {highest} of a world of {output.header.ranks} ranks"
            )


def refuse_other_ranks(output: ProgramOutput) -> None:
    """Raise ValueError unless every rank has its own times, and they give the iterations' times.

    benchmarks/FORMAT.md says what an iteration's time is. By windows it is longer than any rank's.
    """
    if not output.rank_iterations:
        return
    ranks, results = output.header.ranks, output.communications()
    found = [series.rank for series in output.rank_iterations]
    if found != [*range(ranks)] * len(results):
        raise ValueError(
            f"there are {len(found)} series of single ranks' times, not one of each of {ranks} "
            f"ranks for each of {len(results)} results, in order"
        )
    whole = [one for one in output.iterations if isinstance(one, CommunicationIterations)]
    if len(whole) != len(results):
        raise ValueError("there are times of single ranks but none of the iterations")
    for place, (result, series) in enumerate(zip(results, whole, strict=True)):
        own = [one.time_s for one in output.rank_iterations[place * ranks : (place + 1) * ranks]]
        longest = own[0] if result.operation == "echo" else [max(t) for t in zip(*own, strict=True)]
        by_window = result.synchronisation == "window" and result.operation != "echo"
        wrong = [
            at
            for at, (rank, time) in enumerate(zip(longest, series.time_s, strict=True))
            if (time < rank if by_window else time != rank)
        ]
        if wrong:
            raise ValueError(
                f"{result.series}, {result.message_bytes} bytes, iteration {wrong[0]}: took "
                f"{series.time_s[wrong[0]]} s, but {longest[wrong[0]]} s by the ranks' own times"
            )
