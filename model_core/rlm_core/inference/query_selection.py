"""Selects the queries about a unit.

Input: a predictor, the text of a unit, and the user's choice of metrics, devices and workload. Output: the model's
default queries for the unit's basis, with the user's choice in place of the defaults. The command line, the editor and
``rlm-lsp check`` all choose their queries here, so the same settings give the same predictions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product

from rlm_core.queries.devices import canonical_device
from rlm_core.queries.network_sizes import NETWORK_SIZES
from rlm_core.types import CodeText, Metric, Query

from .predictor import Predictor

# The cost of a function or a program is predicted for the machine of its labels, whatever the workload.
_FIXED_BASES = frozenset({"call", "program"})


@dataclass(frozen=True, slots=True)
class QuerySelection:
    """The user's choice: metrics (None: all), devices and workload (empty: the model's defaults), judge of programs.

    None among the devices is the model's own default device. Without a judge, a program is asked about for the one that
    its file looks like.
    """

    metrics: Sequence[Metric] | None = None
    devices: Sequence[str | None] = ()
    workload: Mapping[str, str] = field(default_factory=dict)
    judge: str | None = None


DEFAULT_SELECTION = QuerySelection()


def queries_for(
    predictor: Predictor, code: CodeText, selection: QuerySelection = DEFAULT_SELECTION
) -> tuple[Query, ...]:
    """The queries about a unit, in the order of the model's defaults, without duplicates.

    Chosen devices apply to kernels, modules and networks. A function keeps the device that its labels were measured on,
    unless the model knows the chosen device for functions too. A kernel gets one query for each of the sizes that its
    file names; chosen sizes replace them. A program is asked about for the judge that a comment in its file names, else
    for the chosen one, whether the model knows it or not; else for a chosen device, else for the judge that the file
    looks like if the model knows that one in the language of the program.
    """
    queries: list[Query] = []
    known_devices = predictor.devices(code.basis, code.language)
    chosen_devices = [
        name
        for name in selection.devices
        if name is None or code.basis not in _FIXED_BASES or (canonical_device(name) or name) in known_devices
    ]
    named_sizes = [dict(workload) for workload in code.workloads if not _has_sizes(selection.workload)] or [{}]
    judge, runtime = _judge(code, selection, known_devices, has_devices=bool(chosen_devices))
    metrics: list[Metric] = []
    for default in predictor.default_queries(code.basis, code.language):
        if selection.metrics is not None and default.metric not in selection.metrics:
            continue
        # Of several queries by default, which differ in their devices, chosen devices replace all.
        if chosen_devices and default.metric in metrics:
            continue
        metrics.append(default.metric)
        devices: Sequence[str | None] = [default.device]
        if chosen_devices and default.metric == "energy":
            # It was measured on few devices: chosen ones select among these.
            is_chosen = any(name is None or canonical_device(name) == default.device for name in chosen_devices)
            devices = [default.device] if is_chosen else []
        elif chosen_devices and default.metric != "accuracy":
            devices = chosen_devices
        if judge is not None and (judge != default.device or runtime):
            # The rest of the workload, such as the date, is the model's own for this judge.
            queries.append(Query(default.metric, judge, runtime))
            continue
        for sizes, device in product(named_sizes, devices):
            workload = default.workload
            if code.basis not in _FIXED_BASES:
                # Each device of networks has a workload that it was measured with.
                is_other = code.basis == "network" and device != default.device
                named = {**sizes, **selection.workload}
                if default.metric == "accuracy":
                    named = {name: value for name, value in named.items() if name not in NETWORK_SIZES}
                workload = {**({} if is_other else default.workload), **named}
            query = Query(default.metric, device or default.device, workload)
            if query not in queries:
                queries.append(query)
    return tuple(queries)


def _judge(
    code: CodeText, selection: QuerySelection, known_devices: Sequence[str], *, has_devices: bool
) -> tuple[str | None, dict[str, str]]:
    """The judge to ask about, None for the defaults, and the runtime that a comment names."""
    choice = code.judge if code.basis == "program" else None
    if choice is not None and choice.is_stated:
        runtime = {"runtime": choice.runtime} if choice.runtime is not None else {}
        return canonical_device(choice.judge) or choice.judge, runtime
    if code.basis == "program" and selection.judge is not None:
        return canonical_device(selection.judge) or selection.judge, {}
    looks_known = choice is not None and choice.judge in known_devices and not has_devices
    return (choice.judge, {}) if choice is not None and looks_known else (None, {})


def _has_sizes(workload: Mapping[str, str]) -> bool:
    # Imported on first use: it takes numpy, which must not slow down the start of the server.
    from rlm_core.queries.query_vector import has_sizes

    return has_sizes(workload)
