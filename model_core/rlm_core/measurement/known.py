"""Finds the measured costs of a unit: the best match among the user's measurements and those committed with a project.

Input: a unit and its file. Output: at most one cost per metric, and per device and workload where each has one, with
the text that was measured if the unit has changed since. Looked up by qualified name, then by the hash of the text and
by file; both are indices, and what was found is kept until :meth:`KnownMeasurements.changed` finds something new.

Several units of a file may have the same qualified name. Their decorators distinguish getters from setters; of others,
such as functions called ``_``, only the same text is a match.
"""

from __future__ import annotations

import math
import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import NormalDist
from threading import Lock

from rlm_core.errors import DataError
from rlm_core.files import read_regular
from rlm_core.source.units import accessor_of
from rlm_core.types import CalledFunction, FoundCost, KnownCost, MeasuredCost, MeasurementMark, Unit

from .committed import FOLDER, CommittedIndex, signature_of
from .committed_units import is_committed
from .store import Store
from .types import BENCHED, RUNTIME, TOOL, Measurement, source_hash

# After half a year dependencies, data and the interpreter's patch version have usually changed.
OLD_DAYS = 180
_MOST_UNITS = 50_000
_MOST_CONFIG_BYTES = 64 * 1024
_TENTH = NormalDist().inv_cdf(0.9)


@dataclass(frozen=True, slots=True)
class Here:
    """This machine: its processor and, where it was scored, its speed against the reference and the log10 error."""

    device: str
    cpu_score: float = 0.0
    cpu_spread: float = 0.0

    @classmethod
    def find(cls) -> Here:
        """This machine, as ``rlm-lsp doctor`` scored it; without a score where scaling is off."""
        # Imported on first use: it takes numpy, which must not slow down the start of the server.
        from rlm_core.inference.adaptation.cpu_score import cpu_name, stored

        score = stored()
        return cls(cpu_name(), score.overall, score.spread) if score is not None else cls(cpu_name())


class KnownMeasurements:
    """The measurements that apply to units. Safe to use from several threads.

    Args:
        store: the user's measurements; None for none.
        roots: project folders, whose committed measurements count for the files below them.
        note: receives a line about what cannot be read, each once.
        here: describes this machine; called when something was measured.
    """

    def __init__(
        self,
        store: Store | None,
        roots: Iterable[Path] = (),
        note: Callable[[str], None] = lambda text: None,
        here: Callable[[], Here] = Here.find,
    ) -> None:
        self._store, self._make_here, self._note = store, here, note
        self._roots = _innermost_first(roots)
        self._noted: set[str] = set()
        self._lock = Lock()
        self._here: Here | None = None
        self._last_path: tuple[Path | None, str] = None, ""
        self._committed: dict[Path, CommittedIndex] = {}
        self._signature = self._current_signature()
        self._forget()

    def _forget(self) -> None:
        self._own = _Index()
        self._loaded: set[str] = set()
        self._pythons: dict[Path, str | None] = {}
        self._answers: dict[tuple[str, str, str, bool], tuple[FoundCost, ...]] = {}

    def use_roots(self, roots: Iterable[Path]) -> bool:
        """Read the committed measurements of these folders from now on; returns whether they differ."""
        with self._lock:
            before, self._roots = self._roots, _innermost_first(roots)
            if before == self._roots:
                return False
            self._forget()
            self._committed = {root: index for root, index in self._committed.items() if root in self._roots}
            self._signature = self._current_signature()
            return True

    def changed(self) -> bool:
        """Return whether the measurements have changed since the last call; if so, forget all results.

        It looks at the state of a few files, not into them.
        """
        with self._lock:
            signature = self._current_signature()
            if signature == self._signature:
                return False
            self._signature, self._here = signature, None
            self._forget()
            for root, index in list(self._committed.items()):
                if index.signature != signature_of(root / FOLDER):
                    del self._committed[root]
            return True

    def prepare(self, qualnames: Iterable[str]) -> None:
        """Read what is known of units with these names at once, so that :meth:`find` need not read one by one."""
        with self._lock:
            self._load(qualnames)

    def find(self, unit: Unit, path: Path | None, *, is_shared: bool = False) -> tuple[FoundCost, ...]:
        """Return the measured costs of a unit of a file: the best match for each metric (and device and workload).

        The same text goes first, then the same file, this machine, the project's Python, and the newest; of a program's
        run the most expensive input counts. Latencies that were disturbed are left out.

        Args:
            unit: the unit.
            path: its file.
            is_shared: another unit of the file has the same name and accessor, so that only the same text is a match.
        """
        # Comparing paths takes longer than all the rest; most look-ups are about the same file as the one before.
        last = self._last_path
        if last[0] is not path:
            last = self._last_path = path, str(path)
        key = unit.qualname, unit.text, last[1], is_shared
        # All units of a file are looked up after each edit: without the lock, since nothing that is there changes.
        known = self._answers.get(key)
        if known is None:
            with self._lock:
                self._load([unit.qualname])
                known = self._find(unit, path.resolve() if path is not None else None, is_shared=is_shared)
                if len(self._answers) >= _MOST_UNITS:
                    self._answers = {}
                self._answers[key] = known
        return known

    def functions_in(self, folder: Path) -> dict[Path, list[CalledFunction]]:
        """The measured Python functions in files below a folder, by file, with the texts that were measured."""
        with self._lock:
            return self._functions_in(folder.resolve())

    def _functions_in(self, folder: Path) -> dict[Path, list[CalledFunction]]:
        try:
            found = self._store.in_folder(folder) if self._store is not None else []
        except DataError as error:
            self._note_once(str(error))
            found = []
        committed = self._committed_above(folder / "__init__.py")
        found += committed.below(folder) if committed is not None else []
        found = [one for one in found if one.ok and one.text and one.basis == "call" and one.language == "python"]
        if not found:
            return {}
        if self._here is None:
            self._here = self._make_here()
        newest: dict[tuple[str, str, str, str], tuple[tuple[object, ...], dict[str, Measurement]]] = {}
        for one in found:
            key, rank = (one.path, one.qualname, accessor_of(one.qualname, one.text), one.metric), self._rank(one)
            if key not in newest or rank > newest[key][0]:
                newest[key] = rank, {one.text: one}
            elif rank == newest[key][0]:
                # Functions that share a name have the same rank where one run measured them.
                newest[key][1].setdefault(one.text, one)
        functions: dict[tuple[str, str, str], list[KnownCost]] = {}
        for (path, qualname, *_), (_, by_text) in sorted(newest.items(), key=lambda item: item[0]):
            for text, one in by_text.items():
                cost = cost_here(one, self._here, None)
                known_cost = KnownCost(one.metric, cost.median, cost.low, cost.high)
                functions.setdefault((path, qualname, text), []).append(known_cost)
        by_file: dict[Path, list[CalledFunction]] = {}
        for (path, _, text), costs in functions.items():
            by_file.setdefault(Path(path), []).append(CalledFunction(text, known=tuple(costs)))
        return by_file

    def _rank(self, one: Measurement) -> tuple[object, ...]:
        assert self._here is not None, "something was measured"
        return one.device == self._here.device, _order(one), not is_committed(one)

    def _find(self, unit: Unit, path: Path | None, *, is_shared: bool) -> tuple[FoundCost, ...]:
        committed = self._committed_above(path)
        indices: list[_Index | CommittedIndex] = [self._own, committed] if committed is not None else [self._own]
        if committed is None and not self._own.has(unit.qualname):
            return ()
        digest = source_hash(unit.text, unit.language)
        found = [one for index in indices for one in index.of_text(unit.qualname, digest)]
        if path is not None and not is_shared:
            of_file = [one for index in indices for one in index.of_file(unit, path)]
            if not _has_shared_name(of_file):
                found += [one for one in of_file if one.source_hash != digest]
        found = [one for one in found if one.ok and one.basis == unit.basis and one.language == unit.language]
        if not found:
            return ()
        if self._here is None:
            self._here = self._make_here()
        here, runtime = self._here, self._python_of(path)
        best: dict[tuple[object, ...], tuple[tuple[object, ...], Measurement]] = {}
        for one in found:
            query = (one.device, tuple(sorted(one.asked.items()))) if one.kind in BENCHED else ()
            rank = (
                one.source_hash == digest,
                # A text that is not known cannot be compared.
                one.source_hash == digest or bool(one.text),
                path is not None and one.path == str(path),
                one.device == here.device,
                runtime is not None and one.workload.get(RUNTIME) == runtime,
                _order(one),
                not is_committed(one),
            )
            key = (one.metric, *query)
            if key not in best or rank > best[key][0]:
                best[key] = rank, one
        chosen = sorted((one for _, one in best.values()), key=lambda one: (one.metric, one.device))
        return tuple(
            FoundCost(cost_here(one, here, runtime), None if one.source_hash == digest else one.text) for one in chosen
        )

    def _python_of(self, path: Path | None) -> str | None:
        if path is None:
            return None
        if path.parent not in self._pythons:
            self._pythons[path.parent] = python_of(path)
        return self._pythons[path.parent]

    def _load(self, qualnames: Iterable[str]) -> None:
        if self._store is None:
            return
        missing = [name for name in dict.fromkeys(qualnames) if name not in self._loaded]
        if not missing:
            return
        self._loaded.update(missing)
        try:
            for one in self._store.of_names(missing):
                self._own.add(one)
        except DataError as error:
            self._note_once(str(error))

    def _committed_above(self, path: Path | None) -> CommittedIndex | None:
        """The committed measurements of the innermost folder around a file that has any."""
        for root in self._roots:
            if path is None or not path.is_relative_to(root):
                continue
            if root not in self._committed:
                self._committed[root] = CommittedIndex(root, self._note_once)
            if self._committed[root]:
                return self._committed[root]
        return None

    def _note_once(self, text: str) -> None:
        if text not in self._noted:
            self._noted.add(text)
            self._note(text)

    def _current_signature(self) -> Sequence[object]:
        states: list[object] = []
        for end in ("", "-wal") if self._store is not None else ():
            assert self._store is not None, "the loop is empty without one"
            try:
                state = os.stat(f"{self._store.path}{end}")  # noqa: PTH116 - once in a while for ever: no new path
            except OSError:
                continue
            # A reader creates an empty log and removes it.
            if state.st_size:
                states.append((end, state.st_mtime_ns, state.st_size, state.st_ino))
        return [*states, *((root, signature_of(root / FOLDER)) for root in self._roots)]


class _Index:
    """Measurements by qualified name and hash, and by qualified name, accessor and file."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self._by_hash: defaultdict[tuple[str, str], list[Measurement]] = defaultdict(list)
        self._by_path: defaultdict[tuple[str, str, str], list[Measurement]] = defaultdict(list)

    def add(self, one: Measurement) -> None:
        self.names.add(one.qualname)
        self._by_hash[one.qualname, one.source_hash].append(one)
        # What came from another machine is known by the path from the package on.
        key = one.qualname, accessor_of(one.qualname, one.text), one.path or f"*/{one.file}"
        self._by_path[key].append(one)

    def has(self, qualname: str) -> bool:
        return qualname in self.names

    def of_text(self, qualname: str, digest: str) -> list[Measurement]:
        """Return the measurements of a text, wherever it is."""
        return self._by_hash.get((qualname, digest), [])

    def of_file(self, unit: Unit, path: Path) -> list[Measurement]:
        """Return the measurements of a unit of a file, whatever its text was."""
        parts, accessor = path.parts, accessor_of(unit.qualname, unit.text)
        places = [str(path), *(f"*/{'/'.join(parts[start:])}" for start in range(1, len(parts)))]
        return [one for place in places for one in self._by_path.get((unit.qualname, accessor, place), ())]


def _has_shared_name(measurements: Iterable[Measurement]) -> bool:
    """Return whether measurements of one name in a file are of several units: one run measured several texts."""
    texts: defaultdict[tuple[str, ...], set[str]] = defaultdict(set)
    for one in measurements:
        texts[one.basis, one.run, one.measured_at, one.device].add(one.source_hash)
    return any(len(of_run) > 1 for of_run in texts.values())


def cost_here(one: Measurement, here: Here, runtime: str | None, now: datetime | None = None) -> MeasuredCost:
    """A measurement as it applies on this machine: a latency of another processor is scaled where both have a score.

    ``runtime`` is the project's Python, such as ``cpython-3.12``; None where it is not known.
    """
    marks: list[MeasurementMark] = []
    low, median, high, ratio = one.low, one.median, one.high, None
    if one.basis == "call" and one.metric == "latency" and one.device != here.device:
        if one.cpu_score > 0 and here.cpu_score > 0:
            ratio = one.cpu_score / here.cpu_score
            slack = _TENTH * here.cpu_spread * math.sqrt(2)
            low, median, high = _widened(low * ratio, median * ratio, high * ratio, slack)
        else:
            marks.append(MeasurementMark.OTHER_MACHINE)
    elif one.basis == "program" and one.metric == "latency" and one.device != here.device:
        marks.append(MeasurementMark.OTHER_MACHINE)
    ran_on = one.workload.get(RUNTIME, "")
    if one.basis == "call" and runtime is not None and ran_on and ran_on != runtime:
        marks.append(MeasurementMark.OTHER_PYTHON)
    at = _time(one.measured_at)
    if ((now or datetime.now(UTC)) - at).days >= OLD_DAYS:
        marks.append(MeasurementMark.OLD)
    return MeasuredCost(
        one.metric,
        median,
        low,
        high,
        one.calls,
        one.tests,
        one.kind,
        one.device,
        ran_on,
        at.date().isoformat(),
        tuple(sorted(one.asked.items())),
        ratio,
        tuple(marks),
        is_committed(one),
        tuple(one.sizes.items()),
        one.sized if ratio is None else tuple(replace(calls, median=calls.median * ratio) for calls in one.sized),
        one.workload.get(TOOL, ""),
    )


def python_of(path: Path) -> str | None:
    """The Python of the project of a file, as measurements name it (``cpython-3.12``); None where it is not known.

    It is that of the active environment, else of the innermost ``.venv`` above the file, as for ``measure tests``.
    """
    if active := os.environ.get("VIRTUAL_ENV"):
        return _python_in(Path(active))
    return next(filter(None, (_python_in(folder / ".venv") for folder in path.parents)), None)


def _python_in(environment: Path) -> str | None:
    """The version that the configuration of a virtual environment names."""
    try:
        text = read_regular(environment / "pyvenv.cfg", _MOST_CONFIG_BYTES).decode("utf-8", "replace")
    except OSError:
        return None
    pairs = [line.partition("=") for line in text.splitlines()]
    values = {name.strip(): value.strip() for name, _, value in pairs}
    version = (values.get("version") or values.get("version_info") or "").split(".")
    return f"cpython-{version[0]}.{version[1]}" if len(version) >= 2 else None


def _order(one: Measurement) -> tuple[object, ...]:
    """When a measurement was made; of the inputs of one run of a program the most expensive counts."""
    if one.kind == "program":
        return one.run if not is_committed(one) else one.measured_at[:10], one.median
    at = _time(one.measured_at)
    # A date in the future is that of a wrong clock; it must not count until then.
    return at if at < datetime.now(UTC) + timedelta(days=1) else datetime.min.replace(tzinfo=UTC), 0.0


def _time(text: str) -> datetime:
    at = datetime.fromisoformat(text)
    return at if at.tzinfo is not None else at.replace(tzinfo=UTC)


def _widened(low: float, median: float, high: float, slack: float) -> tuple[float, float, float]:
    """Quantiles moved away from their median by ``slack``, joined in log10."""
    if min(low, median) <= 0:
        return low, median, high * 10**slack
    down, up = math.log10(median / low), math.log10(high / median)
    return median * 10 ** -math.hypot(down, slack), median, median * 10 ** math.hypot(up, slack)


def _innermost_first(roots: Iterable[Path]) -> tuple[Path, ...]:
    resolved = dict.fromkeys(root.resolve() for root in roots)
    return tuple(sorted(resolved, key=lambda root: (-len(root.parts), root)))
