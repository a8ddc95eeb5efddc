"""Adds files in the root of the repository to the site as pages."""

from __future__ import annotations

import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

# File in the root -> name of its page.
PAGES = {"MODEL_CARD.md": "model-card.md", "CHANGELOG.md": "changelog.md"}
_LINK = re.compile(r"\]\(([^)#\s]+)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages, with links relative to ``docs/``."""
    root = Path(config.config_file_path).parent
    for name, page in PAGES.items():
        text = _LINK.sub(lambda found: f"]({_from_docs(found[1])}", (root / name).read_text(encoding="utf-8"))
        files.append(File.generated(config, page, content=text))
    return files


def on_page_markdown(markdown: str, **_: object) -> str:
    """Point links from ``docs/`` to files in the root to their pages."""
    return _LINK.sub(lambda found: f"]({PAGES.get(found[1].removeprefix('../'), found[1])}", markdown)


def _from_docs(link: str) -> str:
    return PAGES.get(link, link.removeprefix("docs/"))
