"""Campaigns compared with each other: series, regressions, causes."""
