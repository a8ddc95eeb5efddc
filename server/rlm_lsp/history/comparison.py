"""The units of a file compared with an earlier revision: which are new, which have changed, and what they were.

Input: the units of a file now and, from git, at an earlier revision. Output: a :class:`UnitDiff` per unit. The hints
and hovers of the editor, its diagnostics, and ``rlm-lsp check --diff`` all compare here.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from cachetools import LRUCache
from rlm_core.errors import SourceError
from rlm_core.queries.analysis import AnalysedUnit, Analyser, DefaultSizes
from rlm_core.source.parsed import ParsedSource
from rlm_core.source.units import MAX_FILE_BYTES, decode
from rlm_core.types import CodeText

from . import git

# git does not announce that HEAD has moved: it is asked again after this time, when something is compared.
COMMIT_SECONDS = 1.0
_ANALYSES = 64


@dataclass(frozen=True, slots=True)
class UnitDiff:
    """A unit compared with an earlier revision; ``before`` is its earlier text where it has changed.

    ``is_edit`` is whether the text of the unit or of something that it calls has changed. A unit may have changed
    without an edit: what the analysis knows about it depends on constants outside of it.
    """

    state: Literal["new", "same", "changed"]
    before: CodeText | None = None
    is_edit: bool = False


NEW = UnitDiff("new", is_edit=True)


def unit_diffs(before: Sequence[AnalysedUnit], after: Sequence[AnalysedUnit]) -> list[UnitDiff]:
    """Compare each unit of ``after`` with the unit of ``before`` that has its kind and qualified name.

    Of several with one name the unchanged ones are paired first, then those with the same texts, the others in their
    order. A file's only program is the same program by any name. Units are the same when their text, what they call,
    and what the text says about their cost are, except for line ends.
    """
    if not before:
        return [NEW] * len(after)
    left: dict[Hashable, list[CodeText]] = {}
    for entry in before:
        left.setdefault(_identity(entry, before), []).append(entry.code)
    diffs = [NEW] * len(after)
    for likeness in (2, 1, 0):
        for number, entry in enumerate(after):
            if diffs[number] is not NEW:
                continue
            candidates = left.get(_identity(entry, after), [])
            match = next((code for code in candidates if _likeness(code, entry.code) >= likeness), None)
            if match is not None:
                candidates.remove(match)
                is_same = likeness == 2
                diffs[number] = UnitDiff("same") if is_same else UnitDiff("changed", match, is_edit=likeness == 0)
    return diffs


def _identity(entry: AnalysedUnit, units: Sequence[AnalysedUnit]) -> Hashable:
    unit = entry.unit
    only = unit.kind == "program" and sum(other.unit.kind == "program" for other in units) == 1
    return unit.kind, unit.language, "" if only else unit.qualname


def _likeness(before: CodeText, after: CodeText) -> int:
    """2 where two units are the same, 1 where only what the analysis knows differs, 0 where a text does."""
    if _texts(before) != _texts(after):
        return 0
    # The facts differ where a constant outside the unit does.
    return 2 if before.work == after.work else 1


def _texts(code: CodeText) -> tuple[object, ...]:
    """All source text that a comparison of a unit rests on."""
    callees = tuple((callee.text.replace("\r\n", "\n"), callee.depth) for callee in code.callees)
    return code.language, code.basis, code.text.replace("\r\n", "\n"), callees


class HeadUnits:
    """The units that files have at the newest commit of their repositories; git runs on a separate thread.

    The callees of a unit are read at ``HEAD`` too, so that the editor compares as ``rlm-lsp check --diff HEAD`` does.
    """

    def __init__(self, default_sizes: DefaultSizes | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="rlm-head")
        self._analyser = Analyser(self._overlay, default_sizes)
        self._commits: dict[Path, tuple[float, str | None]] = {}
        self._texts: LRUCache[tuple[str, Path], bytes | None] = git.text_cache()
        self._units: LRUCache[tuple[str, Path, str], tuple[AnalysedUnit, ...]] = LRUCache(_ANALYSES)

    async def units(self, path: Path, language: str) -> tuple[AnalysedUnit, ...] | None:
        """The units of a file at ``HEAD``; None for a new file, outside a repository and before its first commit.

        Raises:
            GitError: git is missing, did not finish in time, or failed.
        """
        return await asyncio.get_running_loop().run_in_executor(self._worker, self._find, path, language)

    def forget(self) -> None:
        """Analyse all files again: the way they are analysed has changed."""
        self._worker.submit(self._units.clear)

    def close(self) -> None:
        """Drop what waits for git."""
        self._worker.shutdown(wait=False, cancel_futures=True)

    def _find(self, path: Path, language: str) -> tuple[AnalysedUnit, ...] | None:
        path = git.real(path)
        commit = self._commit(path)
        text = self._text(path, commit) if commit is not None else None
        if commit is None or not text or len(text) > MAX_FILE_BYTES:
            return None
        key = commit, path, language
        if key not in self._units:
            try:
                parsed = ParsedSource(decode(text, language, str(path)), language, may_leave_out=True)
                units = tuple(self._analyser.analyse(parsed, path))
            except SourceError:
                units = ()
            self._units[key] = units
        # The same object while the commit stays: callers see by it that nothing has changed.
        return self._units[key]

    def _commit(self, path: Path) -> str | None:
        repository = git.repository_of(path)
        if repository is None:
            return None
        at, commit = self._commits.get(repository, (float("-inf"), None))
        if self._clock() - at >= COMMIT_SECONDS:
            commit = git.commit_of(repository)
            self._commits[repository] = self._clock(), commit
        return commit

    def _text(self, path: Path, commit: str) -> bytes | None:
        key = commit, path
        if key not in self._texts:
            repository = git.repository_of(path)
            self._texts[key] = dict(git.texts_at(repository, commit, [path]))[path] if repository is not None else None
        return self._texts[key]

    def _overlay(self, path: Path) -> bytes | None:
        """The text at ``HEAD`` in place of a file on disk; a file that did not exist then is empty."""
        try:
            path = git.real(path)
            repository = git.repository_of(path)
            _, commit = self._commits.get(repository, (0.0, None)) if repository is not None else (0.0, None)
            text = self._text(path, commit) if commit is not None else None
        except git.GitError:
            return None
        return b"" if text is None and path.is_file() else text
