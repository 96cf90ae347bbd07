"""What ails launches, machines and nodes: how each is seen, and what helps."""
