"""Campaigns that travel: packed with what they were measured by, checked, and repeated elsewhere."""
