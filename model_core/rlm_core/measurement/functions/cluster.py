"""The tests of a project over a cluster: each node runs some of the test files, and all samples go to one store.

Nodes have the project at the same path. What is seen on processors of different names goes to separate runs.
"""

from __future__ import annotations

import platform
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from rlm_core.errors import DataError, RlmError
from rlm_core.folders import ScratchFolder
from rlm_core.inference.adaptation.cpu_score import cpu_name
from rlm_core.measurement.store import Store
from rlm_core.serving.ray_cluster import Cluster, Need

from .collect import new_run
from .run import Note, SuitePlan, run

_PARTS = 2  # a core: so that none waits long for the slowest
_TAIL = 20_000  # bytes of what pytest prints


@dataclass(frozen=True, slots=True)
class SuiteShare:
    """The result of one node: its recordings by name, its processor, the output of pytest, and lines for people."""

    recordings: dict[str, bytes]
    device: str
    node: str
    printed: str
    notes: list[str] = field(default_factory=list)


def spread_tests(
    plan: SuitePlan, cluster: Cluster, store: Store, note: Note, show: Callable[[str], None], places: list[Path]
) -> None:
    """Run the tests of a plan on a cluster; folders of what was seen, one a kind of processor, are added to ``places``.

    ``note`` gets lines for people, ``show`` what pytest prints.

    Raises:
        RlmError: a folder cannot be written, or the cluster not be used.
    """
    began = time.time()
    count = _PARTS * cluster.places(Need())
    runs: dict[str, Path] = {}
    orders = (replace(plan, part=(number, count)) for number in range(count))
    for found in cluster.spread(run_on_node, orders, Need()):
        if found.value is None:
            note(f"part {found.index + 1} of the tests: {found.error}")
            continue
        part = found.value
        show(part.printed)
        for line in part.notes:
            note(f"{part.node}: {line}")
        if not part.recordings:
            continue
        if part.device not in runs:
            runs[part.device] = new_run(store, part.device, began)
            places.append(runs[part.device])
        try:
            for name, data in part.recordings.items():
                (runs[part.device] / f"{found.index}-{name}").write_bytes(data)
        except OSError as error:
            raise DataError(f"{runs[part.device]}: cannot be written ({error.strerror}); free some space") from None


def run_on_node(plan: SuitePlan) -> SuiteShare:
    """On a node: run a part of the tests and give back what was seen, whatever became of it.

    Raises:
        DataError: the node has no such project.
    """
    if not plan.folder.is_dir():
        raise DataError(f"{plan.folder}: is not on node {platform.node()}; share the project with all nodes")
    notes: list[str] = []
    with ScratchFolder() as folder:
        with (folder / "printed").open("w+b") as output:
            try:
                run(plan, folder, notes.append, output)
            except RlmError as error:
                notes.append(str(error))
            output.seek(max(0, output.seek(0, 2) - _TAIL))
            printed = output.read().decode(errors="replace")
        recordings = {path.name: path.read_bytes() for path in folder.glob("*.jsonl")}
    return SuiteShare(recordings, cpu_name(), platform.node(), printed, notes)
