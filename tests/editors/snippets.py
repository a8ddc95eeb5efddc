"""Code blocks of the documentation for use in editors: the tests use what a reader copies."""

from __future__ import annotations

from tests.docs.blocks import REPOSITORY, blocks


def snippets(page: str) -> dict[str, str]:
    """The titled code blocks of a page below ``docs``, by title."""
    found = [block for block in blocks(REPOSITORY / "docs" / page) if "title" in block.values]
    titled = {block.values["title"]: block.text for block in found}
    assert len(titled) == len(found), f"{page}: two blocks have the same title"
    return titled
