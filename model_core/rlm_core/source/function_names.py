"""Which files define a function of a name: a package's texts -> files by the last part of the qualified name.

Files are scanned, not parsed, so a package of fifty thousand functions takes about a second; a file that a look-up
names is parsed when its functions are needed. A name in a string or comment costs a parse and nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Hashable
from typing import Generic, TypeVar

from .call_graph import MAX_CANDIDATES

_DEFINITION = re.compile(rb"^[ \t]+(?:async[ \t]+)?def[ \t]+([^\W\d]\w*)", re.MULTILINE)
_File = TypeVar("_File", bound=Hashable)


class FunctionNames(Generic[_File]):
    """The names of the methods in a set of files. Not thread-safe."""

    def __init__(self) -> None:
        self._files: dict[bytes, dict[_File, None]] = {}
        self._names: dict[_File, frozenset[bytes]] = {}

    def __len__(self) -> int:
        return len(self._names)

    def put(self, file: _File, source: bytes) -> bool:
        """Scan a file's current text; whether it defines other names than before."""
        names = frozenset(_DEFINITION.findall(source))
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
        """The files that define a method of that name; None where they are more than ``MAX_CANDIDATES``."""
        files = self._files.get(name.encode("utf-8", "replace"), {})
        return list(files) if len(files) <= MAX_CANDIDATES else None
