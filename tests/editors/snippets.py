"""Code blocks of the documentation, to be put into editors: what a reader copies is what is tested."""

from __future__ import annotations

from tests.docs.blocks import REPOSITORY, blocks


def snippets(page: str) -> dict[str, str]:
    """The titled code blocks of a page below ``docs``, by their titles."""
    found = [block for block in blocks(REPOSITORY / "docs" / page) if "title" in block.values]
    titled = {block.values["title"]: block.text for block in found}
    assert len(titled) == len(found), f"{page}: a title is there twice"
    return titled
