"""Campaigns: rounds of ReFrame checks on one site, written to `runs/` as they finish."""
