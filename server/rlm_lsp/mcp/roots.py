"""The folders that a client lets its tools read.

Input: the roots that a client names, as URIs. Output: absolute paths inside them; every other path is refused.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from rlm_core.errors import SourceError

from rlm_lsp.sources import path_of_uri


@dataclass(frozen=True, slots=True)
class Roots:
    """Folders, with their links resolved; relative paths are looked up in them in this order."""

    folders: tuple[Path, ...]

    @classmethod
    def of_uris(cls, uris: Iterable[str] | None) -> Roots:
        """The folders of ``file:`` URIs; with None, of a client that names no roots, the working directory."""
        if uris is None:
            return cls((Path.cwd().resolve(),))
        paths = map(path_of_uri, uris)
        return cls(tuple(dict.fromkeys(path.resolve() for path in paths if path is not None)))

    @classmethod
    def of_folders(cls, folders: Iterable[Path]) -> Roots:
        """The folders that the user names when the server starts."""
        return cls(tuple(dict.fromkeys(folder.resolve() for folder in folders)))

    def contains(self, path: Path) -> bool:
        """Return whether a path, with its links resolved, is one of the folders or below one."""
        try:
            real = path.resolve()
        except (OSError, RuntimeError, ValueError):
            return False
        return any(real.is_relative_to(folder) for folder in self.folders)

    def find(self, name: str) -> Path:
        """The absolute path of a file or folder that a client names, with its links resolved.

        Raises:
            SourceError: it is outside all folders, or does not exist.
        """
        candidates = [Path(folder, name) for folder in self.folders]
        try:
            inside = [path for path in candidates if self.contains(path)]
            exists = next((path for path in inside if path.exists()), None)
        except (OSError, ValueError):
            raise SourceError(f"{name}: is not a path; name a file or folder") from None
        if exists is not None:
            return exists.resolve()
        if inside:
            raise SourceError(f"{name}: does not exist in {self}; name a file or folder there")
        raise SourceError(f"{name}: is outside {self}; name a path inside, or pass the text of the code instead")

    def shown(self, path: Path) -> str:
        """A path below one of the folders, relative to it."""
        folder = next((folder for folder in self.folders if path.is_relative_to(folder)), None)
        return path.relative_to(folder).as_posix() if folder is not None else path.as_posix()

    def __str__(self) -> str:
        return ", ".join(map(str, self.folders)) or "the client's roots, of which there are none"
