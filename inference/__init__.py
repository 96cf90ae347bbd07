"""Statistics of numbers alone: intervals, fits, bands, change points."""
