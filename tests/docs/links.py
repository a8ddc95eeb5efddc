"""Checks every link, picture, style sheet and script of a built site.

A target in the site must exist, including its anchor; any other target must be a valid address (no network request is
made). A page must not load anything from other hosts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

ANYWHERE = "404.html"  # shown at any address, so its links cannot be relative
# What a browser loads when it shows a page.
_LOADED = {"script": "src", "img": "src", "iframe": "src", "source": "src", "link": "href", "video": "src"}
_HOST = re.compile(r"(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.)+[a-z]{2,}", re.IGNORECASE)
_STYLE_URL = re.compile(r"""(?:url\(\s*['"]?|@import\s+['"])(?P<url>(?:https?:)?//[^'")]+)""")


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.anchors: set[str] = {""}
        self.links: list[str] = []
        self.loaded: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        self.anchors |= {values[name] for name in ("id", "name") if name in values}
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        # `canonical` and similar links load nothing.
        is_named = tag == "link" and values.get("rel") in ("canonical", "next", "prev")
        if values.get(_LOADED.get(tag, "")) and not is_named:
            self.loaded.append(values[_LOADED[tag]])


def problems(site: Path) -> Iterator[str]:
    """One line per problem in the HTML and CSS files of a site."""
    pages = {path: _read(path) for path in sorted(site.rglob("*.html"))}
    for path, page in pages.items():
        for link in (*page.links, *page.loaded):
            wrong = _wrong(link, path, site, pages)
            if wrong:
                yield f"{path.relative_to(site)}: {link}: {wrong}"
        yield from (f"{path.relative_to(site)}: loads {link}" for link in page.loaded if urlsplit(link).netloc)
    for path in sorted(site.rglob("*.css")):
        found = _STYLE_URL.findall(path.read_text(encoding="utf-8"))
        yield from (f"{path.relative_to(site)}: loads {url}" for url in found)


def _read(path: Path) -> _Page:
    page = _Page()
    page.feed(path.read_text(encoding="utf-8"))
    return page


def _wrong(link: str, path: Path, site: Path, pages: dict[Path, _Page]) -> str:
    """The problem of a link; empty if there is none."""
    parts = urlsplit(link)
    if parts.scheme or parts.netloc:
        known = parts.scheme in ("https", "http") and _HOST.fullmatch(parts.hostname or "")
        return "" if known or (parts.scheme == "mailto" and "@" in parts.path) else "no address"
    if parts.path.startswith("/") and path.name != ANYWHERE:
        return "an absolute path breaks where the site is not at the root"
    folder = site.resolve() if parts.path.startswith("/") else path.parent
    target = (folder / unquote(parts.path).lstrip("/")).resolve() if parts.path else path
    target = target / "index.html" if target.is_dir() else target
    if not target.is_file() or not target.is_relative_to(site.resolve()):
        return "leads nowhere"
    if parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].anchors:
        return "has no such anchor"
    return ""
