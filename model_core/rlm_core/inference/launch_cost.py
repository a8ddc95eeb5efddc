"""The text of a kernel, a workload and a device -> what its launches move and compute, and the roofline for that.

Nothing is said of a text whose launches are not known as a whole: of a kernel that nothing in the text launches, of
sizes that the workload leaves open, or of a kernel that does what the analysis has no rule for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from rlm_core.boundary import guarded
from rlm_core.cost.triton_launch.launch import LaunchFacts
from rlm_core.cost.triton_launch.workload import WorkloadFacts
from rlm_core.queries.architectures import Architecture, architecture_of
from rlm_core.queries.devices import Device, canonical_device, device_table
from rlm_core.types import AmountRange, LaunchBound, LaunchCost

from .features.launch import LAUNCH_SECONDS, LaunchTimes, facts_of, launch_times

_OPERATIONS = ("dot", "dot_wide", "scalar", "special")


def launch_cost(text: str, workload: Mapping[str, str], device: str | None) -> LaunchCost | None:
    """What the launches of a kernel's canonical text do at a workload, and what bounds them on a device."""
    return guarded("the launches of a kernel", lambda: _launch_cost(text, workload, device), lambda error: None)


def _launch_cost(text: str, workload: Mapping[str, str], device: str | None) -> LaunchCost | None:
    facts = facts_of(text, workload)
    if facts is None or not (facts.known and facts.complete):
        return None
    times = facts.launches / len(facts.facts)
    cost = LaunchCost(
        _total(facts, times, ("loaded", "stored"), facts.read + facts.written),
        times * sum(each.footprint for each in facts.facts) + facts.read + facts.written,
        _total(facts, times, _OPERATIONS, facts.flops),
        times * sum(each.programs for each in facts.facts),
        facts.launches,
    )
    if not cost.distinct:
        # Nothing is read or written where a size that the text needs was not given: an axis that a tensor lacks.
        return None
    card = device_table().get(canonical_device(device) or "") if device else None
    architecture = architecture_of(card.id) if card is not None else None
    if card is None or architecture is None or not card.memory_bandwidth or not card.fp32_flops:
        return cost
    return replace(
        cost,
        roofline=max(cost.distinct / card.memory_bandwidth, times * sum(_least(each, card) for each in facts.facts)),
        bound=_bound(facts, times, card, architecture),
    )


def _total(facts: WorkloadFacts, times: float, names: tuple[str, ...], rest: float) -> AmountRange:
    counts = [each.counts[name] for each in facts.facts for name in names]
    return AmountRange(*(
        times * sum(getattr(count, end) for count in counts) + rest for end in ("least", "likely", "most")
    ))  # fmt: skip


def _least(facts: LaunchFacts, card: Device) -> float:
    """The seconds of a launch's arithmetic at the peak of its units, which work at the same time."""
    likely = {name: facts.counts[name].likely for name in _OPERATIONS}
    fp32 = card.fp32_flops or 1.0
    units = (likely["dot"] + 2 * likely["dot_wide"]) / (card.fp16_flops or fp32)
    return max(units, (likely["scalar"] + likely["special"]) / fp32)


def _bound(facts: WorkloadFacts, times: float, card: Device, architecture: Architecture) -> LaunchBound:
    """What takes the longest of all launches together."""
    each = [launch_times(launch, card, architecture) for launch in facts.facts]
    seconds: dict[LaunchBound, float] = {"bandwidth": 0.0, "compute": 0.0, "occupancy": 0.0}
    for launch, part in zip(facts.facts, each, strict=True):
        seconds[_bound_of(part, launch.programs, card)] += times * part.bound
    seconds["bandwidth"] += (facts.read + facts.written) / (card.memory_bandwidth or 1.0)
    seconds["launch"] = (facts.launches + facts.operations) * LAUNCH_SECONDS
    return max(seconds, key=lambda name: seconds[name])


def _bound_of(times: LaunchTimes, programs: int, card: Device) -> LaunchBound:
    if times.latency == times.bound or programs < (card.multiprocessors or 1):
        return "occupancy"
    return "bandwidth" if max(times.memory, times.cache) == times.bound else "compute"
