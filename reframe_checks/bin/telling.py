"""How a campaign tells a session of ReFrame what it measures next, and is told what is over."""

#: The variable that names the descriptor from which the rounds after the first are read, by line.
TOLD = "WYEAST_NEXT_ROUNDS"
#: The line that is printed when a round is over and the next is waited for.
OVER = "round {} is over"
#: How lines begin that are of the campaign's progress, too: what a job waits for, what one left.
WAITS, LEFT = "[ WAIT     ] ", "[ LEFT     ] "
