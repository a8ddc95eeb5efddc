"""Outlines: functions, loops and calls of a text in any language with a grammar, and what they say of its cost."""
