"""Which files define or call a function of a name: texts -> files by the last part of the qualified name.

Files are scanned, not parsed, so a package of fifty thousand functions takes about a second; a file that a look-up
names is parsed when its functions are needed. A name in a string or comment costs a parse and nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Hashable
from typing import Generic, TypeVar

from .call_graph import MAX_CANDIDATES

_DEFINITION = re.compile(rb"^[ \t]+(?:async[ \t]+)?def[ \t]+([^\W\d]\w*)", re.MULTILINE)
# From the beginning of a word, and possessive: a long word without a bracket is read once.
CALL = re.compile(rb"\b([^\W\d]\w*+)\(")
_File = TypeVar("_File", bound=Hashable)


class FunctionNames(Generic[_File]):
    """The names in a set of files that a pattern finds: by default those of methods. Not thread-safe.

    A name in more than ``most`` files says too little.
    """

    def __init__(self, pattern: re.Pattern[bytes] = _DEFINITION, most: int = MAX_CANDIDATES) -> None:
        self._pattern, self._most = pattern, most
        self._files: dict[bytes, dict[_File, None]] = {}
        self._names: dict[_File, frozenset[bytes]] = {}

    def __len__(self) -> int:
        return len(self._names)

    def put(self, file: _File, source: bytes) -> bool:
        """Scan a file's current text; return whether it has other names than before."""
        names = frozenset(self._pattern.findall(source))
        before = self._names.get(file)
        if names == before:
            return False
        self.remove(file)
        self._names[file] = names
        for name in names:
            self._files.setdefault(name, {})[file] = None
        return True

    def remove(self, file: _File) -> None:
        """Forget a file."""
        for name in self._names.pop(file, ()):
            files = self._files[name]
            files.pop(file, None)
            if not files:
                del self._files[name]

    def files(self, name: str) -> list[_File] | None:
        """The files that have a name; None where they are too many."""
        files = self._files.get(name.encode("utf-8", "replace"), {})
        return list(files) if len(files) <= self._most else None
