"""Facts of a kernel's launches and a data sheet -> numbers: bytes, operations, and times that bound the launch.

Times are a roofline with several roofs (Williams et al. 2009): memory, the last-level cache, matrix units, plain and
special operations, and the chain of accesses of a program, one wave of programs after another. Counts and seconds are
log10, unknown is NaN.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from rlm_core.boundary import guarded
from rlm_core.cost.concrete.values import Value
from rlm_core.cost.triton_launch.host import read_program
from rlm_core.cost.triton_launch.launch import LaunchFacts
from rlm_core.cost.triton_launch.unlaunched import assumed_launch, only_kernel
from rlm_core.cost.triton_launch.workload import WorkloadFacts, workload_facts
from rlm_core.queries.architectures import Architecture, architecture_of
from rlm_core.queries.devices import Device, canonical_device, device_table
from rlm_core.queries.kernel_arguments import KernelArguments, kernel_arguments, kernel_names
from rlm_core.queries.sizes import default_name, workload_name

LAUNCH_SECONDS = 3e-6  # seconds from one launch to the next when the device does nothing else
# Seconds: a load of a tile that nothing overlaps, one of a few bytes next to the last one, a reduction across warps.
# Medians of the labels that nothing else bounds (RTX 3090, A100): 400 ns and 12 ns.
_ACCESS, _SMALL_ACCESS, _BARRIER = 4e-7, 1.2e-8, 5e-8
_FEW_BYTES = 16
_CACHE_SPEED = 3.0  # bandwidth of the last-level cache in that of memory, as measured on data-centre cards
_SPECIAL_SHARE = 16.0  # plain operations in the time of a special function
_OTHER_REGISTERS = 40  # of a thread, without accumulators
_MOST_REGISTERS = 255

_COUNTED = (
    "loaded", "loaded_once", "stored", "sectors", "gathered", "dot", "dot_wide", "scalar", "special", "atomics",
    "accesses", "barriers",
)  # fmt: skip
_OF_PROGRAM = ("loaded", "stored", "dot", "scalar", "special", "accesses", "barriers")
_BOUNDS = ("memory", "cache", "dot", "scalar", "special", "latency")
_TEXT_NAMES = (
    *(f"launch_{name}" for name in _COUNTED),
    *(f"program_{name}" for name in _OF_PROGRAM),
    "footprint", "programs", "launches", "kernels", "host_operations", "host_bytes", "host_flops", "launch_warps",
    "launch_stages", "tile_bytes", "widest", "imbalance", "reuse", "sector_share", "intensity", "width_of_range",
    "strided", "irregular", "gathers", "launch_known", "launch_complete",
)  # fmt: skip
_DEVICE_NAMES = (
    "time_memory", "time_cache", "time_dot", "time_scalar", "time_special", "time_latency", "time_host", "waves",
    "resident", "tail", "time_bound", "time_launches",
)  # fmt: skip
NAMES: tuple[str, ...] = (*_TEXT_NAMES, *_DEVICE_NAMES)
ESTIMATE = "time_launches"
# What carries over to unseen kernels: times, counts of a program, and shares; not the totals that times are made of.
SELECTED: tuple[str, ...] = (
    *(name for name in _DEVICE_NAMES if name.startswith("time_")),
    "waves", "resident", "tail", "program_accesses", "program_loaded", "programs", "launches", "host_operations",
    "intensity", "sector_share", "reuse", "imbalance", "strided", "gathers", "launch_known", "launch_dot",
    "launch_scalar", "launch_special", "launch_sectors", "launch_atomics", "launch_warps", "launch_stages",
    "width_of_range", "program_barriers",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class LaunchTimes:
    """Seconds of a launch on a device by what bounds it, programs at once on a multiprocessor, and waves."""

    memory: float
    cache: float
    dot: float
    scalar: float
    special: float
    latency: float
    resident: int
    waves: float
    tail: float

    @property
    def bound(self) -> float:
        """The longest of the times."""
        return max(self.memory, self.cache, self.dot, self.scalar + self.special, self.latency)


def resident_programs(facts: LaunchFacts, architecture: Architecture) -> int:
    """How many programs of a launch a multiprocessor runs at once, at least one."""
    threads = facts.warps * architecture.warp
    registers = min(_OTHER_REGISTERS + facts.widest / threads, _MOST_REGISTERS) * threads
    shared = facts.tile_bytes * max(facts.stages - 1, 1)
    limits = [architecture.threads / threads, architecture.programs, architecture.registers / registers]
    if shared:
        limits.append(architecture.shared_memory / shared)
    return max(int(min(limits)), 1)


def launch_times(facts: LaunchFacts, device: Device, architecture: Architecture) -> LaunchTimes:
    """The times of a launch by the data sheet of a device, whose figures are known."""
    bandwidth, fp32 = device.memory_bandwidth or math.nan, device.fp32_flops or math.nan
    fp16 = device.fp16_flops or fp32
    units = device.multiprocessors or 1
    likely = {name: facts.counts[name].likely for name in facts.counts}
    programs = max(facts.programs, 1)
    resident = resident_programs(facts, architecture)
    busy = min(1.0, programs / units)
    full = math.floor(programs / (units * resident))
    waves = math.ceil(programs / (units * resident))
    read = facts.footprint if facts.footprint < architecture.cache else max(facts.footprint, likely["sectors"] / 4)
    each = {name: likely[name] / programs for name in ("accesses", "barriers")}
    # Pipelines load ahead in loops with matrix products.
    ahead = max(facts.stages - 1, 1) if facts.tile_bytes else 1
    is_small = likely["loaded"] + likely["stored"] < _FEW_BYTES * likely["accesses"]
    chain = each["accesses"] * (_SMALL_ACCESS if is_small else _ACCESS) / ahead + each["barriers"] * _BARRIER
    return LaunchTimes(
        (read + likely["gathered"]) / (bandwidth * busy**0.5), likely["sectors"] / (_CACHE_SPEED * bandwidth * busy),
        (likely["dot"] / fp16 + 2 * likely["dot_wide"] / fp16) / busy, likely["scalar"] / (fp32 / 2 * busy),
        likely["special"] * _SPECIAL_SHARE / (fp32 * busy), waves * chain, resident, waves,
        waves / max(programs / (units * resident), 1.0) if full else 1.0,
    )  # fmt: skip


def facts_of(text: str, workload: Mapping[str, str]) -> WorkloadFacts | None:
    """What the kernels of a text do at a workload, if it is known; remembered for other devices.

    Of a text that launches its kernel in another place, or with shapes that the workload does not name, these are the
    facts of a launch that covers once what the kernel stores. ``agrees`` says whether they can be stated.
    """
    items = tuple(workload.items())
    facts = _workload_facts(text, items)
    return facts if facts is not None and facts.known else _assumed_facts(text, items)


def stated_facts(text: str, workload: Mapping[str, str]) -> WorkloadFacts | None:
    """The facts of :func:`facts_of` as far as they are those of this workload; None where there are none."""
    items = tuple(workload.items())
    facts = _workload_facts(text, items)
    return facts if facts is not None and facts.stated else _assumed_facts(text, items)


@lru_cache(512)
def _workload_facts(text: str, items: tuple[tuple[str, str], ...]) -> WorkloadFacts | None:
    return workload_facts(text, dict(items), _sizes(text, dict(items)))


@lru_cache(512)
def _assumed_facts(text: str, items: tuple[tuple[str, str], ...]) -> WorkloadFacts | None:
    assumed = assumed_of(text, dict(items))
    return WorkloadFacts((assumed[0],), 1, 0, 0.0, 0.0, 0.0, complete=True, assumed=True) if assumed else None


def assumed_of(text: str, workload: Mapping[str, str]) -> tuple[LaunchFacts, Mapping[str, Value]] | None:
    """The facts and the arguments of the launch that covers once what the kernel of a text stores, if it is fixed."""
    program = read_program(text)
    kernel = only_kernel(program) if program is not None else None
    if program is None or kernel is None:
        return None
    return assumed_launch(program, _by_argument(kernel_arguments(text, kernel.name), workload))


def _sizes(text: str, workload: Mapping[str, str]) -> dict[str, dict[str, int]]:
    """What a workload says of the arguments of each kernel of a text."""
    found: dict[str, dict[str, int]] = {}
    for kernel in kernel_names(text):
        arguments = kernel_arguments(text, kernel)
        given = _by_argument(arguments, workload)
        found[kernel] = {name: int(given[name]) for name in arguments.sizes if given.get(name, "").isdecimal()}
    return found


def _by_argument(arguments: KernelArguments, workload: Mapping[str, str]) -> dict[str, str]:
    """A workload in which sizes have the names of the kernel's arguments, as far as it has them."""
    known = {name: workload_name(name, default_name(name, arguments.sizes)) for name in arguments.sizes}
    if "n" in known and "n_elements" not in known:
        known["n"] = "n_elements"  # as ``default_workload`` calls the only size of a kernel
    own = {name: workload[key] for name, key in known.items() if name not in workload and key in workload}
    renamed = {known[name] for name in own}
    return {**own, **{name: value for name, value in workload.items() if name not in renamed}}


def features_of(text: str, workload: Mapping[str, str], device: str | None) -> npt.NDArray[np.float32]:
    """The numbers of a text's launches on a device, NaN unless all launches are known. Shape ``(len(NAMES),)``."""
    facts = guarded("the launches of a kernel", lambda: facts_of(text, workload), lambda error: None)
    return launch_features(facts, device)


def launch_features(facts: WorkloadFacts | None, device: str | None) -> npt.NDArray[np.float32]:
    """The numbers of a call's launches on a device. Shape ``(len(NAMES),)``; NaN where unknown."""
    if facts is None:
        return np.full(len(NAMES), np.nan, np.float32)
    times = facts.launches / len(facts.facts)
    total = {name: times * sum(each.counts[name].likely for each in facts.facts) for name in _COUNTED}
    programs = times * sum(each.programs for each in facts.facts)
    footprint = times * sum(each.footprint for each in facts.facts)
    moved = total["loaded"] + total["stored"]
    arithmetic = total["dot"] + total["dot_wide"] + total["scalar"] + total["special"]
    largest = max(facts.facts, key=lambda each: each.counts["sectors"].likely)
    least, most = largest.counts["loaded"].least, largest.counts["loaded"].most
    strides = [stride for each in facts.facts for stride in each.strides]
    share = {
        kind: strides.count(kind) / len(strides) if strides else math.nan for kind in ("strided", "irregular", "gather")
    }
    about_text = (
        *(_log(total[name]) for name in _COUNTED),
        *(_log(total[name] / max(programs, 1)) for name in _OF_PROGRAM),
        _log(footprint), _log(programs), _log(facts.launches), float(len(facts.facts)), float(facts.operations),
        _log(facts.read + facts.written), _log(facts.flops), float(largest.warps), float(largest.stages),
        _log(largest.tile_bytes), _log(largest.widest), largest.largest,
        _log(moved / footprint if footprint else 0), _log(total["sectors"] / moved if moved else 0),
        _log(arithmetic / moved if moved else 0), _log(most / least) if least and math.isfinite(most) else math.nan,
        share["strided"], share["irregular"], share["gather"], float(facts.known), float(facts.complete),
    )  # fmt: skip
    return np.array((*about_text, *_on_device(facts, times, device)), np.float32)


def _on_device(facts: WorkloadFacts, times: float, device: str | None) -> tuple[float, ...]:
    card = device_table().get(canonical_device(device) or "") if device else None
    architecture = architecture_of(card.id) if card else None
    if card is None or architecture is None or not card.memory_bandwidth or not card.fp32_flops:
        return (math.nan,) * len(_DEVICE_NAMES)
    each = [launch_times(launch, card, architecture) for launch in facts.facts]
    host = (facts.read + facts.written) / card.memory_bandwidth + facts.operations * LAUNCH_SECONDS
    bound = times * sum(part.bound for part in each)
    longest = max(each, key=lambda part: part.bound)
    return (
        *(_log(times * sum(getattr(part, name) for part in each)) for name in _BOUNDS),
        _log(host), _log(longest.waves), float(longest.resident), longest.tail, _log(bound),
        _log(bound + host + facts.launches * LAUNCH_SECONDS),
    )  # fmt: skip


def _log(value: float) -> float:
    return math.log10(value) if value > 0 and math.isfinite(value) else math.nan
