"""A plan over a cluster: a program an item, with a core to itself; what a node has runs it and gives it its names."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

from rlm_core.errors import DataError
from rlm_core.inference.adaptation.cpu_score import cpu_name
from rlm_core.measurement.types import Measurement
from rlm_core.serving.cluster import Cluster, Need

from .execute import Limits, Sandbox
from .inputs import digest_of
from .plan import Job, Plan
from .run import Keep, Note, Result, run_name, run_plan
from .sandbox import find_sandbox
from .toolchains import Found, find, wanted


@dataclass(frozen=True, slots=True)
class _Order:
    """A job, what its program's file holds, the interpreter for Python, and of the plan the rest by its names."""

    job: Job
    digest: str
    python: str
    sandbox: str
    limits: Limits
    repeat: int


@dataclass(frozen=True, slots=True)
class _Done:
    """What came of it: measurements, lines for people, and counts."""

    measurements: list[Measurement]
    notes: list[str]
    result: Result


def spread_plan(plan: Plan, cluster: Cluster, python: str, keep: Keep, note: Note) -> Result:
    """Do a plan on a cluster whose nodes have the same files at the same paths; see :func:`.run.run_plan`."""
    name, whole = run_name(), Result()

    def order(job: Job) -> _Order:
        digest = digest_of(job.program.path)
        return _Order(job, digest, python, plan.sandbox.name, plan.limits, plan.repeat)

    for found in cluster.spread(measure_on_node, plan.jobs, Need(), order):
        job = plan.jobs[found.index]
        if found.value is None:
            note(f"{job.program.path}: {found.error}")
            whole.failed += len(job.inputs)
            continue
        for line in found.value.notes:
            note(line)
        whole.add(found.value.result)
        keep([replace(one, run=name) for one in found.value.measurements])
    return whole


def measure_on_node(order: _Order) -> _Done:
    """On a node: measure a program with the toolchain and in the kind of sandbox that the plan names.

    Raises:
        DataError: the node lacks one of them, or its files are others.
    """
    job, program = order.job, order.job.program
    expected = {program.path: order.digest} | {one.path: one.digest for one in job.inputs}
    for path, digest in expected.items():
        if digest_of(path) != digest:
            raise DataError(f"{path}: is another file on a node; share its folder with all nodes")
    found = _toolchain(program.language, order.python)
    if found is None:
        raise DataError(f"nothing on a node runs {program.language}; install {wanted(program.language)} there")
    plan = Plan((replace(job, found=found),), (), _sandbox(order.sandbox), order.limits, order.repeat)
    measurements: list[Measurement] = []
    notes: list[str] = []
    result = run_plan(plan, cpu_name(), measurements.extend, notes.append)
    return _Done(measurements, notes, result)


@lru_cache
def _toolchain(language: str, python: str) -> Found | None:
    return find(language, python)


@lru_cache
def _sandbox(name: str) -> Sandbox:
    return find_sandbox("bubblewrap" if name == "bubblewrap" else "limits")
