"""How a campaign tells a ReFrame session what to measure next, and learns what is finished."""

import os
import time

#: The variable that names the descriptor from which the rounds after the first are read, by line.
TOLD = "WYEAST_NEXT_ROUNDS"
#: The line that is printed when a round is over and the next is waited for.
OVER = "round {} is over"
#: How lines begin that also belong to the campaign's progress: what a job waits for, what one left
#: running, and which image measures what another one could not.
WAITS, LEFT, INSTEAD = "[ WAIT     ] ", "[ LEFT     ] ", "[ INSTEAD  ] "
#: The variable by which a campaign of all checks measures only once what is not compared.
ONCE = "WYEAST_ONCE"
#: The variable that says until when launches are begun, by this machine's monotonic clock in
#: seconds: a campaign that is driven by jobs continues in the next one.
UNTIL = "WYEAST_BEGIN_UNTIL"


def is_over() -> bool:
    """Return whether this process may begin no more launches."""
    return time.monotonic() >= float(os.environ.get(UNTIL, "inf"))
