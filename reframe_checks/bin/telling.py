"""How a campaign tells a session of ReFrame what it measures next, and is told what is over."""

#: The variable that names the descriptor from which the rounds after the first are read, by line.
TOLD = "WYEAST_NEXT_ROUNDS"
#: The line that is printed when a round is over and the next is waited for.
OVER = "round {} is over"
#: The variable by which a campaign of all checks has what is compared with nothing measured once.
ONCE = "WYEAST_ONCE"
