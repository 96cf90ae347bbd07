"""Reports replayed: their tables, their claims, and which hold here (docs/method/studies.md)."""
