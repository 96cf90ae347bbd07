"""Campaigns that travel: packed with what measured them, verified, and repeated."""
