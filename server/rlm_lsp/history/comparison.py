"""The units of a file compared with an earlier revision: which are new, which have changed, and what got worse.

Input: the units of a file now and, from git, at an earlier revision. Output: a :class:`UnitDiff` per unit. From the
predictions and facts of a unit before and after, :func:`work_change` finds a growth class that rises, and a wait that
is new or longer. The hints and hovers of the editor, its diagnostics, and ``rlm-lsp check --diff`` all compare here.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from cachetools import LRUCache
from rlm_core.cost.domain.called_names import last_part, written_calls
from rlm_core.errors import SourceError
from rlm_core.queries.analysis import AnalysedUnit, Analyser
from rlm_core.queries.file_sizes import DefaultSizes, SizeRulesOf
from rlm_core.source.parsed import ParsedSource
from rlm_core.source.units import MAX_FILE_BYTES, decode
from rlm_core.types import Basis, CodeText, GrowthClass, GrowthEstimate, Metric, Prediction, Wait, WaitKind, WorkFacts

from . import git

# git does not announce that HEAD has moved: it is asked again after this time, when something is compared.
COMMIT_SECONDS = 1.0
_ANALYSES = 64
# Growth is known for these; kernels, modules and networks are asked about at fixed sizes.
GROWING: frozenset[Basis] = frozenset({"call", "program"})
# In order of growth; a product of two sizes grows as a square does. "other" is not comparable.
_RANKS: Mapping[GrowthClass, int] = {
    "1": 0,
    "log n": 1,
    "sqrt n": 2,
    "n": 3,
    "n log n": 4,
    "mn": 5,
    "n^2": 5,
    "n^3": 6,
    "2^n": 7,
}
# A wait is usual when at least this share of calls gets there: below it, most calls do not wait, such as the calls of a
# function that retries after an error.
LEAST_WAIT_SHARE = 0.2
# Two lengths of a wait that differ by less are the same to a reader: both are shown with two digits.
_LONGER = 1.25
# Of two texts that grow alike the slower takes less than this many times as long, as a rule.
_FAR_LESS = 5.0


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

    def __init__(
        self,
        default_sizes: DefaultSizes | None = None,
        size_rules: SizeRulesOf | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._clock = clock
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="rlm-head")
        self._analyser = Analyser(self._overlay, default_sizes, size_rules=size_rules)
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


@dataclass(frozen=True, slots=True)
class GrowthRise:
    """A cost that grows faster with its inputs than before.

    Where the growth ``before`` is not certain enough to be stated, no place of the earlier text grows like that.
    """

    metric: Metric
    before: GrowthEstimate
    after: GrowthEstimate

    @property
    def is_fast(self) -> bool:
        """True if the cost now grows faster than n log n."""
        return _RANKS.get(self.after.growth_class, 0) > _RANKS["n log n"]

    @property
    def probability(self) -> float:
        """The probability of the rise.

        The errors for two texts that differ by an edit are nearly the same, so it is that of the less certain side, not
        a product.
        """
        return min(self.before.probability, self.after.probability) if self.before.is_claim else self.after.probability


@dataclass(frozen=True, slots=True)
class WaitChange:
    """The waits that an edit adds to a unit.

    ``waits`` are of kinds that the earlier text has no wait of, the frequent ones first; ``endless`` is the 0-based
    line of the unit's text that may not end; ``seconds`` are the lengths of the known sleeps before and after, where
    they have become longer.
    """

    waits: tuple[Wait, ...] = ()
    endless: int | None = None
    seconds: tuple[float, float] | None = None

    @property
    def is_new(self) -> bool:
        """True if there is a new wait, and not only a longer one."""
        return bool(self.waits) or self.endless is not None or (self.seconds is not None and not self.seconds[0])


@dataclass(frozen=True, slots=True)
class WorkChange:
    """The changes of a unit's work that made it worse."""

    growth: tuple[GrowthRise, ...] = ()
    wait: WaitChange | None = None


UNCHANGED = WorkChange()


def usual_waits(work: WorkFacts | None, basis: Basis) -> list[Wait]:
    """The waits that enough calls reach to be worth a label.

    A judge does not make a program wait for its input, and a lock is usually free.
    """
    waits = work.waits if work is not None else ()
    return [
        wait
        for wait in waits
        if wait.share >= LEAST_WAIT_SHARE
        and not (basis == "program" and wait.kind is WaitKind.USER)
        and not (wait.kind is WaitKind.THREAD and wait.call.rpartition(".")[2] == "acquire")
    ]


def work_change(
    before: CodeText, after: CodeText, answers: tuple[Sequence[Prediction], Sequence[Prediction]]
) -> WorkChange:
    """Compare two texts of a unit, given the predictions for both, one per metric."""
    earlier = {prediction.metric: prediction for prediction in reversed(answers[0])}
    newer = {prediction.metric: prediction for prediction in reversed(answers[1])}
    pairs = [(earlier[metric], newer[metric]) for metric in newer if metric in earlier]
    rises = [rise for pair in pairs if (rise := growth_rise(*pair)) is not None and _is_shown(rise, before, after)]
    if not rises and "latency" in newer and "latency" in earlier:
        rises = _new_places(before, after, earlier["latency"].growth, newer["latency"].growth)
    cost = newer["latency"].median if "latency" in newer else None
    return WorkChange(tuple(rises), wait_change(before, after, cost or 0.0))


def growth_rise(before: Prediction, after: Prediction) -> GrowthRise | None:
    """The rise of a growth class; None where it does not rise or is not certain enough on both sides."""
    old, new = before.growth, after.growth
    if old is None or new is None or not (old.is_claim and new.is_claim) or after.basis not in GROWING:
        return None
    if old.in_worst_case != new.in_worst_case or _RANKS[new.growth_class] <= _RANKS[old.growth_class]:
        return None
    return GrowthRise(after.metric, old, new)


def _new_places(
    before: CodeText, after: CodeText, old: GrowthEstimate | None, new: GrowthEstimate | None
) -> list[GrowthRise]:
    """The rise of a latency that is shown by the place that makes it grow.

    Places of the earlier text that grow like that cost far less, and the edit removes no call of unknown cost, which
    may have. An earlier growth that is certain has to be slower.
    """
    # They need numpy, which the server imports with the model.
    from rlm_core.inference.cost_origins import growth_origins, seconds_of_growth

    if old is None or new is None or new.in_worst_case or before.work is None:
        return []
    if old.is_claim and _RANKS.get(new.growth_class, 0) <= _RANKS.get(old.growth_class, 0):
        return []
    rise, places = GrowthRise("latency", old, new), growth_origins(after, new)
    if not rise.is_fast or not places or _removes_unknown(before, after):
        return []
    if seconds_of_growth(before, new) > seconds_of_growth(after, new) / _FAR_LESS:
        return []
    known = {origin.place.text for origin in before.work.latency.origins}
    return [rise] if places[0].place.text not in known else []


def _is_shown(rise: GrowthRise, before: CodeText, after: CodeText) -> bool:
    """Return whether the texts of a function show a rise themselves: a model reads one into other differences, too."""
    # It needs numpy, which the server imports with the model.
    from rlm_core.inference.growth_facts import class_of, input_growth

    if after.basis != "call" or after.language != "python":
        return True
    old, new = (class_of(input_growth(code, rise.metric)) for code in (before, after))
    return _RANKS.get(new, -1) > _RANKS.get(old, -1)


def wait_change(before: CodeText, after: CodeText, cost: float = 0.0) -> WaitChange | None:
    """Return the waits that an edit adds to a unit, or None if nothing is new.

    A sleep counts when it is at least a quarter of ``cost``, the predicted latency. Another wait counts where the edit
    adds the call that waits, and removes no call of unknown cost, which may have waited for the same: where only what
    is known of a call has changed, or what it calls, this unit's text adds no wait.
    """
    old, work = before.work, after.work
    if old is None or work is None:
        return None
    known = {wait.kind for wait in old.waits}
    if known:
        known.add(WaitKind.THREAD)  # a task or thread that is waited for may wait for the same
    usual = usual_waits(work, after.basis)
    unbounded = [wait for wait in usual if not wait.is_known]
    waits = {wait.kind: wait for wait in sorted(unbounded, key=lambda wait: wait.share)}
    new = sorted((wait for kind, wait in waits.items() if kind not in known), key=lambda wait: -wait.share)
    new = [wait for wait in new if _is_added(wait, before, after)]
    endless = work.endless if old.endless is None else None
    slept, sleeps = _slept(old), _slept(work)
    longer = sleeps > _LONGER * slept and sleeps - slept >= max(cost / 4, 1e-5)
    if not new and endless is None and not longer:
        return None
    return WaitChange(tuple(new), endless, (slept, sleeps) if longer else None)


def _is_added(wait: Wait, before: CodeText, after: CodeText) -> bool:
    """Return whether an edit adds the call that waits and removes none of unknown cost."""
    old, new = (written_calls(code.text) if code.language == "python" else None for code in (before, after))
    if old is None or new is None:
        return True
    # The name is that of a callee's call where the callee waits; the line is that of the unit.
    here = new.across(wait.line)
    names = {last_part(wait.call)} & here or here
    return not _removes_unknown(before, after) and any(name not in old for name in names)


def _removes_unknown(before: CodeText, after: CodeText) -> bool:
    """Return whether an edit removes a call of unknown cost."""
    new = written_calls(after.text) if after.language == "python" else None
    unknown = before.work.unknown if before.work is not None else ()
    return new is None or any(name.endswith("()") and name not in new for name, _ in unknown)


def _slept(work: WorkFacts) -> float:
    return sum(wait.seconds.likely for wait in work.waits if wait.is_known and wait.seconds is not None)
