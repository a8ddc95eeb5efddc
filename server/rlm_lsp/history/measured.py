"""What this user has measured of a unit: looked up by its text, else by its place, and then it is stale."""

from __future__ import annotations

import logging
import os
import shlex
import subprocess
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
class Measured:
    """A measurement to show; ``stale`` if the unit's text has changed since."""

    measurement: Measurement
    stale: bool

    def answers(self, prediction: Prediction) -> bool:
        """Whether it stands beside a prediction: of kernels, modules and networks on the same device and workload."""
        from rlm_core.measurement.types import BENCHED

        its = self.measurement
        if its.metric != prediction.metric:
            return False
        return its.kind not in BENCHED or (its.device, its.asked) == (prediction.device, dict(prediction.workload))


def measured_of(store: Store, unit: Unit, path: Path | None, device: str) -> tuple[Measured, ...]:
    """The newest measurement of each metric: of this text if there is any, and of this ``device`` if there is any.

    Of a program's inputs it is the one that costs most. Kernels, modules and networks have one for each device and
    workload. Disturbed latencies are not shown.

    Raises:
        DataError: the store cannot be read.
    """
    from rlm_core.measurement import source_hash
    from rlm_core.measurement.types import BENCHED

    known_kind = unit.kind in ("program", *BENCHED) or (unit.kind == "function" and unit.language == "python")
    if not known_kind or not store.path.exists():
        return ()
    digest = source_hash(unit.text, unit.language)
    best: dict[tuple[object, ...], Measured] = {}
    for one in store.find(digest, unit.qualname, path):
        if one.basis != unit.basis:
            continue
        found = Measured(one, one.source_hash != digest)
        at = (one.device, tuple(sorted(one.asked.items()))) if one.kind in BENCHED else ()
        known = best.get((one.metric, *at))
        # They come newest first: a later one must be better, not as good.
        if one.ok and (known is None or _rank(found, device) > _rank(known, device) or _is_dearer(found, known)):
            best[one.metric, *at] = found
    return tuple(sorted(best.values(), key=_order))


def measured_here(unit: Unit, path: Path | None) -> tuple[Measured, ...]:
    """What the user's store has of a unit; a store that cannot be read costs a line in the log."""
    from rlm_core.inference.adaptation.cpu_score import cpu_name
    from rlm_core.measurement import Store

    try:
        return measured_of(Store(note=_log.warning), unit, path, cpu_name())
    except DataError as error:
        _log.warning("%s", error)
        return ()


def _order(one: Measured) -> tuple[str, bool, str, list[tuple[str, str]]]:
    return one.measurement.metric, one.stale, one.measurement.device, sorted(one.measurement.asked.items())


def _rank(one: Measured, device: str) -> tuple[bool, bool]:
    return not one.stale, one.measurement.device == device


def _is_dearer(one: Measured, known: Measured) -> bool:
    """Whether it is of the same run on another input that costs more."""
    its, other = one.measurement, known.measurement
    same = (its.run, its.device, one.stale) == (other.run, other.device, known.stale)
    return its.kind == "program" and same and its.median > other.median


def command_for(path: Path | None) -> str | None:
    """The command line that measures the package of a file under its project's tests; None for a file of no package."""
    if path is None or not (path.parent / "__init__.py").is_file():
        return None
    package = path.parent
    while (package.parent / "__init__.py").is_file():
        package = package.parent
    around = package.parents
    project = next((folder for folder in around if any((folder / mark).exists() for mark in _PROJECT)), around[0])
    quoted = subprocess.list2cmdline([str(project)]) if os.name == "nt" else shlex.quote(str(project))
    return f"cd {quoted} && rlm-lsp measure tests --package {package.name}"
