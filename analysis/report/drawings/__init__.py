"""The report's drawings: curves, maps, planes and forests, as SVG and as text."""
