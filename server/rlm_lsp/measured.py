"""What this user has measured of a unit: looked up by its text, else by its place, and then it is stale."""

from __future__ import annotations

import os
import shlex
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rlm_core.types import Unit

if TYPE_CHECKING:
    from rlm_core.measure import Measurement, Store

_PROJECT = ("pyproject.toml", "pytest.ini", "tox.ini", "setup.cfg", "setup.py", ".git")


@dataclass(frozen=True, slots=True)
class Measured:
    """A measurement to show; ``stale`` if the unit's text has changed since."""

    measurement: Measurement
    stale: bool


def measured_of(store: Store, unit: Unit, path: Path | None, device: str) -> tuple[Measured, ...]:
    """The newest measurement of each metric: of this text if there is any, and of this ``device`` if there is any.

    Of a program's inputs it is the one that costs most. Disturbed latencies are not shown.

    Raises:
        DataError: the store cannot be read.
    """
    from rlm_core.measure import source_hash

    known_kind = unit.kind == "program" or (unit.kind == "function" and unit.language == "python")
    if not known_kind or not store.path.exists():
        return ()
    digest = source_hash(unit.text, unit.language)
    best: dict[str, Measured] = {}
    for one in store.find(digest, unit.qualname, path):
        if (one.kind == "program") != (unit.kind == "program"):
            continue
        found = Measured(one, one.source_hash != digest)
        known = best.get(one.metric)
        # They come newest first: a later one must be better, not as good.
        if one.ok and (known is None or _rank(found, device) > _rank(known, device) or _is_dearer(found, known)):
            best[one.metric] = found
    return tuple(sorted(best.values(), key=lambda one: one.measurement.metric))


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
