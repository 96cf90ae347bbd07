"""Reports replayed: their tables, their claims, and what holds of these here (docs/method.md)."""
