"""What to keep in mind beside a comparison: differences, disturbances, and what clocks miss."""
