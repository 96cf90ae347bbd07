"""Tables and how they are written: terminal, CSV, LaTeX, Markdown, Parquet, JUnit."""
