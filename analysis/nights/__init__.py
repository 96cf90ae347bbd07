"""A night judged, and its summary."""
