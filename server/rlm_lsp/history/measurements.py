"""The user's own measurements of a unit, looked up by its text, else by its location (then they are stale).

Input: a unit, its file and the measurement store. Output: at most one measurement per metric, device and workload.
"""

from __future__ import annotations

import logging
import os
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rlm_core import DataError
from rlm_core.types import Prediction, Unit

if TYPE_CHECKING:
    from rlm_core.measurement import Measurement, Store

_PROJECT = ("pyproject.toml", "pytest.ini", "tox.ini", "setup.cfg", "setup.py", ".git")
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class StoredMeasurement:
    """A measurement to show; ``stale`` if the unit's text has changed since."""

    measurement: Measurement
    stale: bool

    def matches(self, prediction: Prediction) -> bool:
        """Whether it has the metric of a prediction and, for kernels, modules and networks, its device and workload."""
        from rlm_core.measurement.types import BENCHED

        its = self.measurement
        if its.metric != prediction.metric:
            return False
        return its.kind not in BENCHED or (its.device, its.asked) == (prediction.device, dict(prediction.workload))


def measurements_of(store: Store, unit: Unit, path: Path | None, device: str) -> tuple[StoredMeasurement, ...]:
    """The newest measurement of each metric, of this text and on this ``device`` where there is one.

    For a program it is the most expensive input. Kernels, modules and networks have one per device and workload.
    Latencies that were disturbed are left out.

    Raises:
        DataError: the store cannot be read.
    """
    from rlm_core.measurement import source_hash
    from rlm_core.measurement.types import BENCHED

    known_kind = unit.kind in ("program", *BENCHED) or (unit.kind == "function" and unit.language == "python")
    if not known_kind or not store.path.exists():
        return ()
    digest = source_hash(unit.text, unit.language)
    best: dict[tuple[object, ...], StoredMeasurement] = {}
    for measurement in store.find(digest, unit.qualname, path):
        if measurement.basis != unit.basis:
            continue
        candidate = StoredMeasurement(measurement, measurement.source_hash != digest)
        query = (measurement.device, tuple(sorted(measurement.asked.items()))) if measurement.kind in BENCHED else ()
        known = best.get((measurement.metric, *query))
        # The newest comes first: an older one must be better, not just as good.
        if measurement.ok and (
            known is None or _rank(candidate, device) > _rank(known, device) or _is_more_expensive(candidate, known)
        ):
            best[measurement.metric, *query] = candidate
    return tuple(sorted(best.values(), key=_order))


def user_measurements(unit: Unit, path: Path | None) -> tuple[StoredMeasurement, ...]:
    """The measurements of a unit in the user's store; a store that cannot be read is a warning in the log."""
    from rlm_core.inference.adaptation.cpu_score import cpu_name
    from rlm_core.measurement import Store

    try:
        return measurements_of(Store(note=_log.warning), unit, path, cpu_name())
    except DataError as error:
        _log.warning("%s", error)
        return ()


def _order(entry: StoredMeasurement) -> tuple[str, bool, str, list[tuple[str, str]]]:
    return entry.measurement.metric, entry.stale, entry.measurement.device, sorted(entry.measurement.asked.items())


def _rank(entry: StoredMeasurement, device: str) -> tuple[bool, bool]:
    return not entry.stale, entry.measurement.device == device


def _is_more_expensive(entry: StoredMeasurement, known: StoredMeasurement) -> bool:
    """Whether it is from the same run, on another input that costs more."""
    its, other = entry.measurement, known.measurement
    same = (its.run, its.device, entry.stale) == (other.run, other.device, known.stale)
    return its.kind == "program" and same and its.median > other.median


def command_for(path: Path | None) -> str | None:
    """The command that measures the package of a file with its project's tests.

    None for a file outside a package, and where a name might not be one word for a shell: people paste the
    command into a terminal.
    """
    if path is None or not (path.parent / "__init__.py").is_file():
        return None
    package = path.parent
    while (package.parent / "__init__.py").is_file():
        package = package.parent
    around = package.parents
    project = next((folder for folder in around if any((folder / mark).exists() for mark in _PROJECT)), around[0])
    folder = _quoted(str(project))
    if folder is None or not package.name.isidentifier():
        return None
    return f"cd {folder} && rlm-lsp measure tests --package {package.name}"


def _quoted(word: str, *, windows: bool = os.name == "nt") -> str | None:
    """A word for the shell, None if it cannot be one: on Windows it has to be one for ``cmd`` and for PowerShell."""
    if not word.isprintable() or (windows and any(sign in word for sign in '"%!$`')):
        return None
    return f'"{word}"' if windows else shlex.quote(word)
