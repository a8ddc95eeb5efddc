"""The skill for coding agents: how to review a change for its cost, from a hint to one comment with measurements."""

from __future__ import annotations

from pathlib import Path


def review_skill() -> str:
    """Return the text of ``SKILL.md``: front matter with a name and a description, then the steps."""
    return Path(__file__).with_name("SKILL.md").read_text(encoding="utf-8")
