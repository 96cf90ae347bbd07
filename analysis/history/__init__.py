"""Campaigns beside each other: series, regressions, causes."""
