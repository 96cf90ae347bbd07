"""Other programs' results judged: two sets of runs, or a history."""
