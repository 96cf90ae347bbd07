"""What tests of the programs' lines of progress share."""

import re


def assert_progress(said: str, program: str, parts: str, of: int) -> None:
    """Fail unless stderr has lines of progress of so many parts, in order and none at the end."""
    line = re.compile(rf"^{program}: (\d+) of {of} {parts} after \d+ s$", re.MULTILINE)
    done = [int(number) for number in line.findall(said)]
    assert done and done == sorted(set(done)) and done[-1] < of, said
