"""What the rows of a bench say of kernels, modules and networks goes to the store of measurements, for the editor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rlm_core import RlmError
from rlm_core.measurement.gpu.bench_rows import read_rows
from rlm_core.measurement.gpu.worker import Job

from rlm_lsp.rendering import console

if TYPE_CHECKING:
    from .bench_jobs import Settings


def keep_for_editor(jobs: Sequence[Job], settings: Settings, report: Callable[[RlmError], None]) -> None:
    """Take in the rows about the jobs' files: also those of a run before, which may have been ended.

    ``report`` is told an error; the rows stay where they are.
    """
    told = [one for job in jobs for one in job.options.get("files", [job.options]) if "shown" in one]
    if not settings.keep or not told:
        return
    from rlm_core.measurement.gpu.measurements import measurements_of

    from .measure import opened

    kept = opened(settings.store)
    try:
        taken = measurements_of(read_rows(settings.out), {one["shown"]: Path(one["path"]) for one in told})
        count = kept.add(taken.measurements)
    except RlmError as error:
        report(error)
        return
    for reason, left in taken.left_out.most_common():
        console.note(f"not kept for the editor: {left:,} rows: {reason}")
    if count:
        console.note(f"kept in {kept.path}: {count:,} measurements; rlm-lsp measure list --functions shows them")
