"""Campaigns that are made up: what the methods find in a known truth."""
