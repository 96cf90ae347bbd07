"""Any experiment with its program profiled: the MPI calls of its ranks, their time and bytes."""

from pathlib import Path
from typing import Any

import reframe as rfm
from reframe.core.builtins import run_after
from reframe.core.exceptions import SanityError

from records.counting import how_many
from records.profile import FILE, impossible_time, lost_message, read_profile
from reframe_checks.mixins.recording import Suspect


class Profiled(rfm.RegressionTestPlugin):
    """Comes before an experiment among a check's bases; the experiment judges as always.

    The image's `profiled` starts each rank's program with the library in it, so that neither a
    launcher nor a shell has it.
    """

    @run_after("setup")
    def leave_out_what_has_no_profile(self) -> None:
        """Leave out programs in Fortran where what they call is not what a profile counts."""
        check: Any = self
        is_fortran = getattr(check, "is_official", bool)()
        check.skip_if(
            is_fortran and check.image.labels.family == "openmpi",
            "Open MPI's functions for Fortran do not call those for C that a profile counts, and "
            "NPB's own programs are in Fortran",
        )

    def start_of(self, program: list[str]) -> Any:
        """Return how the ranks of a profiled program start."""
        return super().start_of(["profiled", "--output", FILE, *program])  # type: ignore[misc]

    def outputs(self) -> list[str]:
        """Return the names of files that programs leave, including the profile."""
        return [*super().outputs(), FILE]  # type: ignore[misc]

    def other_files(self) -> dict[str, Path]:
        """Return what else the launch leaves behind, including the profile."""
        files: dict[str, Path] = super().other_files()  # type: ignore[misc]
        return files | {FILE: self.profile_path()}

    def profile_path(self) -> Path:
        """Return where the profile is that rank 0 left."""
        return Path(self.stagedir) / FILE  # type: ignore[attr-defined]

    def examine(self) -> None:
        """Refuse what the experiment refuses, and a profile that is not from the launch."""
        super().examine()  # type: ignore[misc]
        check: Any = self
        profile = read_profile(self.profile_path())
        header = profile.header
        if header.program != check.program:
            raise SanityError(f"the profile is from {header.program}, not from {check.program}")
        if header.ranks != check.num_tasks:
            raise SanityError(
                f"the profile is of {header.ranks} ranks, not of the {check.num_tasks} requested"
            )
        if len(set(header.hosts)) != check.nodes:
            raise SanityError(
                f"the profile is of {how_many(len(set(header.hosts)), 'node')}, not of "
                f"{check.nodes}"
            )
        silent = set(range(header.ranks)) - {function.rank for function in profile.functions}
        if silent:
            raise SanityError(f"no MPI call was recorded in rank {min(silent)}")
        sentence = lost_message(profile)
        if sentence:
            raise SanityError(sentence)
        sentence = impossible_time(profile)
        if sentence:
            raise Suspect(sentence)
