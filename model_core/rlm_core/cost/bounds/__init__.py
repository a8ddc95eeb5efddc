"""Bounds of loops and recursions: how often they run, as quantities in sizes."""
