"""From the folder of a run to the store; what interrupted runs left behind is taken in by the next command."""

from __future__ import annotations

import os
import platform
import shutil
import time
import uuid
from collections.abc import Callable
from pathlib import Path

from rlm_core.errors import DataError
from rlm_core.measurement.store import Store

from .collect import Collected, Run, collect, is_alive
from .recordings import Recording, read_recordings

_RUNS = "runs"


def new_run(store: Store, device: str = "", began: float | None = None) -> Path:
    """A folder for what a run sees, beside the store; this process leads the run.

    It is of this machine and begins now, unless ``device`` and ``began`` say otherwise; see :class:`Run`.

    Raises:
        DataError: it cannot be made.
    """
    name = f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}-{uuid.uuid4().hex[:8]}"
    folder = store.path.parent / _RUNS / name
    try:
        folder.mkdir(parents=True)
        Run(name, os.getpid(), platform.node(), time.time() if began is None else began, device).write(folder)
    except OSError as error:
        raise DataError(
            f"{folder}: cannot be made ({error.strerror}); check the disk or name another --store"
        ) from None
    return folder


def take_in(store: Store, folder: Path) -> Collected:
    """Add what a run has seen to the store; then its folder goes.

    Raises:
        DataError: the store cannot be written; the folder stays.
    """
    # Imported late, since it takes numpy, which tests that are measured in this process may do without.
    from rlm_core.inference.adaptation.cpu_score import cpu_name

    found = collect(folder, Run.read(folder).device or cpu_name())
    store.add(found.measurements)
    shutil.rmtree(folder, ignore_errors=True)
    return found


def _is_written(recording: Recording) -> bool:
    """Whether its process, which may outlive the one that led it, still writes."""
    return recording.end is None and is_alive(int(recording.header.get("pid", 0)))


def take_in_left(store: Store, note: Callable[[str], None]) -> None:
    """Take in the runs beside a store that nobody leads any more; ``note`` is told of each."""
    for folder in sorted((store.path.parent / _RUNS).glob("*/")):
        try:
            if Run.read(folder).is_led or any(_is_written(one) for one in read_recordings(folder)):
                continue
            found = take_in(store, folder)
        except DataError as error:
            note(str(error))
            continue
        if found.measurements:
            note(f"an interrupted run was taken in: measurements: {len(found.measurements):,}")
