"""Implementations compared within one campaign."""
