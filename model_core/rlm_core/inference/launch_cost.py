"""The text of a kernel, a workload and a device -> what its launches move and compute, and the roofline for that.

Nothing is said of a text whose launches are not known as a whole: of sizes that the workload leaves open, or of a
kernel that does what the analysis has no rule for. Of a kernel that nothing in the text launches at known sizes, the
launch that covers once what the kernel stores is meant. What the functions that launch it do with PyTorch is left out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from rlm_core.boundary import guarded
from rlm_core.cost.triton_launch.ir_program import ir_facts
from rlm_core.cost.triton_launch.launch import LaunchFacts
from rlm_core.cost.triton_launch.tally import OPERATIONS
from rlm_core.queries.architectures import architecture_of
from rlm_core.queries.devices import Device, canonical_device, device_table
from rlm_core.types import AmountRange, LaunchBound, LaunchCost

from .features.launch import LAUNCH_SECONDS, LaunchTimes, launch_times, stated_facts

_FEW = 0.05  # of the bytes: where their addresses are is not important


def launch_cost(text: str, workload: Mapping[str, str], device: str | None) -> LaunchCost | None:
    """What the launches of a kernel's canonical text do at a workload, and what bounds them on a device."""
    return guarded("the launches of a kernel", lambda: _launch_cost(text, workload, device), lambda error: None)


def program_cost(text: str, workload: Mapping[str, str]) -> LaunchCost | None:
    """What the first program of a function in Triton's IR does, where the IR and the sizes limit it."""
    return guarded("a program in Triton IR", lambda: _program_cost(text, workload), lambda error: None)


def _program_cost(text: str, workload: Mapping[str, str]) -> LaunchCost | None:
    facts = ir_facts(text, {name: int(size) for name, size in workload.items() if size.isdecimal()})
    if facts is None or not facts.known:
        return None
    moved = _total((facts,), 1.0, ("loaded", "stored"))
    return LaunchCost(moved, None, _total((facts,), 1.0, ("flops",)), None, 1, is_program=True)


def _launch_cost(text: str, workload: Mapping[str, str], device: str | None) -> LaunchCost | None:
    facts = stated_facts(text, workload)
    if facts is None:
        return None
    # The launches of a long loop that was followed in part are like those that were followed.
    cost = _cost(facts.facts, facts.launches / len(facts.facts), device)
    if cost is None or not facts.assumed:
        return cost
    # What bounds a launch depends on the size of its blocks and on strides, which are guesses.
    return replace(cost, assumed=True, roofline=None, bound=None)


def _cost(launches: tuple[LaunchFacts, ...], times: float, device: str | None) -> LaunchCost | None:
    """The cost of launches, each of which happens ``times`` times; None where they read and write nothing."""
    distinct = times * sum(each.footprint for each in launches)
    if not distinct:
        # A size that the text needs was not given: an axis that a tensor lacks.
        return None
    moved = _total(launches, times, ("loaded", "stored"))
    is_located = _total(launches, times, ("unlocated",)).most <= _FEW * moved.likely
    cost = LaunchCost(
        moved,
        distinct if is_located else None,
        _total(launches, times, ("flops",)),
        times * sum(each.programs for each in launches) if _is_same_grid(launches) else None,
        round(times * len(launches)),
    )
    card = device_table().get(canonical_device(device) or "") if device else None
    architecture = architecture_of(card.id) if card is not None else None
    is_complete = architecture is not None and card.memory_bandwidth and card.fp32_flops if card is not None else False
    if card is None or architecture is None or not is_complete or not is_located:
        return cost
    bandwidth = card.memory_bandwidth or math.inf
    roofline = times * sum(max(each.footprint / bandwidth, _arithmetic(each, card)) for each in launches)
    seconds: dict[LaunchBound, float] = {"launch": cost.launches * LAUNCH_SECONDS}
    for each in launches:
        part = launch_times(each, card, architecture)
        bound = _bound(part, each.programs, card)
        seconds[bound] = seconds.get(bound, 0.0) + times * part.bound
    longest = max(seconds, key=lambda name: seconds[name])
    return replace(cost, roofline=roofline, bound=longest)


def _total(launches: tuple[LaunchFacts, ...], times: float, names: tuple[str, ...]) -> AmountRange:
    """What the launches do, in any of the configurations that tuning chooses among."""

    def sums(end: str) -> list[list[float]]:
        facts = [(each, *(other for other in each.others if other.known)) for each in launches]
        return [[sum(getattr(one.counts[name], end) for name in names) for one in each] for each in facts]

    return AmountRange(
        times * sum(map(min, sums("least"))),
        times * sum(values[0] for values in sums("likely")),
        times * sum(map(max, sums("most"))),
    )


def _is_same_grid(launches: tuple[LaunchFacts, ...]) -> bool:
    return all(other.grid == each.grid for each in launches for other in each.others)


def _arithmetic(facts: LaunchFacts, card: Device) -> float:
    """The seconds of a launch's arithmetic at the peak of its units, which work at the same time."""
    likely = {name: facts.counts[name].likely for name in OPERATIONS}
    fp32 = card.fp32_flops or 1.0
    units = (likely["dot"] + 2 * likely["dot_wide"]) / (card.fp16_flops or fp32)
    return max(units, (likely["scalar"] + likely["special"]) / fp32)


def _bound(times: LaunchTimes, programs: int, card: Device) -> LaunchBound:
    """What takes the longest of a launch."""
    if times.latency == times.bound or programs < (card.multiprocessors or 1):
        return "occupancy"
    return "bandwidth" if max(times.memory, times.cache) == times.bound else "compute"
