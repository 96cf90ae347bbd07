"""Implementations beside each other in one campaign."""
