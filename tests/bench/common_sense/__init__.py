"""Judges predictions by common sense: hand-written functions, edits and solutions with their true costs."""
