"""How a campaign tells a ReFrame session what to measure next, and learns what is finished."""

#: The variable that names the descriptor from which the rounds after the first are read, by line.
TOLD = "WYEAST_NEXT_ROUNDS"
#: The line that is printed when a round is over and the next is waited for.
OVER = "round {} is over"
