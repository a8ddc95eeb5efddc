"""Globs over paths with ``/``: ``*`` and ``?`` stay in a folder, ``**`` crosses folders, all else is itself."""

from __future__ import annotations

import re
from functools import lru_cache

_PART = re.compile(r"\*\*/|\*\*|\*|\?|.", re.DOTALL)
_MEANING = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}


def matches(glob: str, path: str) -> bool:
    """Whether ``path`` (relative, with ``/``) is named by ``glob``, or lies below a folder that is.

    A glob without a slash inside names files and folders at any depth.
    """
    return _compiled(glob).fullmatch(path) is not None


@lru_cache(maxsize=1024)
def _compiled(glob: str) -> re.Pattern[str]:
    name = glob.strip("/")
    anywhere = "" if "/" in name or glob.startswith("/") else "(?:.*/)?"
    body = "".join(_MEANING.get(part) or re.escape(part) for part in _PART.findall(name))
    below = "/.+" if glob.endswith("/") else "(?:/.+)?"
    return re.compile(anywhere + body + below, re.DOTALL)
