"""The units that open documents had at git's ``HEAD``, for comparison; git runs on a thread of its own.

What a unit called then is read at ``HEAD`` too, so that the editor compares as ``rlm-lsp check --diff HEAD`` does.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from rlm_core.errors import SourceError
from rlm_core.queries.analysis import AnalysedUnit, Analyser, DefaultSizes
from rlm_core.source.parsed import ParsedSource
from rlm_core.source.units import MAX_FILE_BYTES, decode

from . import git as head

# Nobody tells when HEAD moves: git is asked again after this time, when something is compared.
COMMIT_SECONDS = 1.0
_ANALYSES = 64
_TEXTS = 1024
_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


class Revisions:
    """The units of files at the newest commit of their repositories."""

    def __init__(self, default_sizes: DefaultSizes | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="rlm-head")
        self._analyser = Analyser(self._then, default_sizes)
        self._commits: dict[Path, tuple[float, str | None]] = {}
        self._texts: OrderedDict[tuple[str, Path], bytes | None] = OrderedDict()
        self._units: OrderedDict[tuple[str, Path, str], tuple[AnalysedUnit, ...]] = OrderedDict()

    async def units(self, path: Path, language: str) -> tuple[AnalysedUnit, ...] | None:
        """The units of a file at ``HEAD``; None for a new file, outside a repository and before its first commit.

        Raises:
            GitError: git is missing, did not end in time, or refused.
        """
        return await asyncio.get_running_loop().run_in_executor(self._worker, self._find, path, language)

    def forget(self) -> None:
        """Read all anew: how files are analysed has changed."""
        self._worker.submit(self._units.clear)

    def close(self) -> None:
        """Drop what waits for git."""
        self._worker.shutdown(wait=False, cancel_futures=True)

    def _find(self, path: Path, language: str) -> tuple[AnalysedUnit, ...] | None:
        path = head.real(path)
        commit = self._commit(path)
        text = self._text(path, commit) if commit is not None else None
        if commit is None or not text or len(text) > MAX_FILE_BYTES:
            return None
        key = commit, path, language
        found = self._units.get(key)
        if found is None:
            try:
                parsed = ParsedSource(decode(text, language, str(path)), language)
                found = tuple(self._analyser.analyse(parsed, path))
            except SourceError:
                found = ()
        _keep(self._units, key, found, _ANALYSES)
        return found

    def _commit(self, path: Path) -> str | None:
        repository = head.repository_of(path)
        if repository is None:
            return None
        asked, commit = self._commits.get(repository, (float("-inf"), None))
        if self._clock() - asked >= COMMIT_SECONDS:
            commit = head.commit_of(repository)
            self._commits[repository] = self._clock(), commit
        return commit

    def _text(self, path: Path, commit: str) -> bytes | None:
        key = commit, path
        if key not in self._texts:
            repository = head.repository_of(path)
            found = head.texts_at(repository, commit, [path])[path] if repository is not None else None
            _keep(self._texts, key, found, _TEXTS)
        return self._texts[key]

    def _then(self, path: Path) -> bytes | None:
        """What stood at ``HEAD`` in place of a file on disk; a file that was not there then is empty."""
        try:
            path = head.real(path)
            repository = head.repository_of(path)
            known = self._commits.get(repository) if repository is not None else None
            text = self._text(path, known[1]) if known is not None and known[1] is not None else None
        except head.GitError:
            return None
        return b"" if text is None and path.is_file() else text


def _keep(entries: OrderedDict[_Key, _Value], key: _Key, value: _Value, limit: int) -> None:
    entries[key] = value
    entries.move_to_end(key)
    while len(entries) > limit:
        entries.popitem(last=False)
