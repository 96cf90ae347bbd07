"""Figures in SVG."""
