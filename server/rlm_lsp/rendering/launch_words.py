"""What the launches of kernels do, in words: lines of a hover, cells of a table, fields of JSON, and GPUs side by side.

Input: predictions of kernels with their :class:`LaunchCost`. Amounts are those of all launches together.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

from rlm_core.types import AmountRange, LaunchBound, LaunchCost, Prediction

from . import escaping, labels

_BOUND: dict[LaunchBound, str] = {
    "bandwidth": "bandwidth",
    "compute": "compute",
    "launch": "launches",
    "occupancy": "occupancy",
}
_SAME = 1.05  # ends of a range that are shown as one number
_LAUNCH_MEANING = (
    "The roofline is the time that the GPU's bandwidth and peak arithmetic allow at least, if each byte is moved once."
)


def amounts(cost: LaunchCost) -> str:
    """``moves 50 MiB (34 MiB distinct), 4.2 GFLOP, 120 FLOP per byte``: what does not depend on the device.

    Of an assumed launch only the bytes that it moves, which depend neither on the size of its blocks nor on strides.
    """
    moved = _range(cost.moved, lambda value: labels.quantity("memory", value))
    flops = _range(cost.flops, _flops)
    distinct = moved if cost.distinct is None else labels.quantity("memory", cost.distinct)
    if cost.assumed:
        return f"moves {moved} in a launch that covers the output once"
    if cost.is_program:
        return f"the first program moves {moved}, {flops}"
    parts = [f"moves {moved}" + (f" ({distinct} distinct)" if distinct != moved else ""), flops]
    if cost.intensity:
        parts.append(f"{labels.number(cost.intensity)} FLOP per byte")
    launches = f"{cost.launches:,} launches" if cost.launches > 1 else "1 launch"
    programs = "" if cost.programs is None else f", {labels.size(cost.programs)} programs"
    return f"{', '.join(parts)}; {launches}{programs}"


def difference(before: LaunchCost, after: LaunchCost) -> str:
    """``moves 128 MiB instead of 64 MiB, 4.2 GFLOP as before``: what the text fixes of the launches of two kernels."""

    def pair(old: AmountRange, new: AmountRange, words: Callable[[float], str]) -> str:
        earlier, later = _range(old, words), _range(new, words)
        return f"{later} as before" if earlier == later else f"{later} instead of {earlier}"

    parts = [f"moves {pair(before.moved, after.moved, lambda value: labels.quantity('memory', value))}"]
    if not before.assumed and not after.assumed:
        parts.append(pair(before.flops, after.flops, _flops))
        if before.programs is not None and after.programs is not None:
            old, new = (AmountRange(count, count, count) for count in (before.programs, after.programs))
            parts.append(pair(old, new, lambda value: f"{labels.size(value)} programs"))
    return ", ".join(parts)


def hover_lines(predictions: Sequence[Prediction]) -> list[str]:
    """One line for each workload; its sizes come first where there are several."""
    lines: dict[str, str] = {}
    for prediction in predictions:
        if prediction.launch is not None:
            lines.setdefault(labels.workload(prediction.workload), amounts(prediction.launch))
    return list(lines.values()) if len(lines) < 2 else [f"{at}: {words}" for at, words in lines.items()]


def cells(prediction: Prediction) -> dict[str, str]:
    """The roofline, the share of it that the prediction reaches, and what bounds the launch; empty where unknown."""
    cost = prediction.launch
    if cost is None or cost.roofline is None or cost.bound is None:
        return {}
    return {
        "roofline": labels.quantity("latency", cost.roofline),
        "of roofline": share_words(prediction),
        "bound by": _BOUND[cost.bound],
    }


def share_of_roofline(prediction: Prediction) -> float | None:
    """The roofline over the predicted median, at most 1; None where one of them is not known."""
    cost, median = prediction.launch, prediction.median
    return min(cost.roofline / median, 1.0) if cost is not None and cost.roofline and median else None


def share_words(prediction: Prediction) -> str:
    """``42 %``, ``<1 %``; empty where it is not known."""
    share = share_of_roofline(prediction)
    if share is None:
        return ""
    return f"{share * 100:.0f} %" if share >= 0.01 else "<1 %"


def note(prediction: Prediction) -> str:
    """``bound by bandwidth, 42 % of the roofline``; empty where it is not known."""
    shown = cells(prediction)
    share = f", {shown['of roofline']} of the roofline" if shown.get("of roofline") else ""
    return f"bound by {shown['bound by']}{share}" if shown else ""


def launch_fields(prediction: Prediction) -> dict[str, Any] | None:
    """The fields of JSON, in bytes, operations and seconds; None where the launches are not known."""
    cost = prediction.launch
    if cost is None:
        return None
    return {
        "moved_bytes": asdict(cost.moved),
        "distinct_bytes": None if cost.assumed else cost.distinct,
        "flops": None if cost.assumed else asdict(cost.flops),
        "intensity": None if cost.assumed else cost.intensity,
        "programs": None if cost.assumed else cost.programs,
        "launches": cost.launches,
        "assumed": cost.assumed,
        "first_program": cost.is_program,
        "roofline": cost.roofline,
        "share_of_roofline": share_of_roofline(prediction),
        "bound": cost.bound,
    }


def comparison(name: str, predictions: Sequence[Prediction]) -> str:
    """GPUs side by side, the fastest first, as Markdown: a table for each workload, and what the launches do."""
    blocks = [f"**{escaping.code_span(name)}** on {len({one.device for one in predictions})} GPUs"]
    workloads: dict[str, list[Prediction]] = {}
    for prediction in predictions:
        workloads.setdefault(labels.workload(prediction.workload), []).append(prediction)
    for at, answers in workloads.items():
        rows = [_row(answer) for answer in sorted(answers, key=lambda one: one.median or math.inf)]
        names = [name for name in rows[0] if any(row.get(name) for row in rows)]
        lines = [[escaping.markdown(row.get(name, "")) for name in names] for row in rows]
        words = hover_lines(answers[:1])
        blocks += [escaping.markdown(f"At {at}: {words[0]}." if words else f"At {at}:") if at or words else ""]
        blocks.append(escaping.table([list(map(escaping.markdown, names)), *lines]))
    if any(prediction.launch is not None for prediction in predictions):
        blocks.append(_LAUNCH_MEANING)
    return "\n\n".join(filter(None, blocks))


def _row(prediction: Prediction) -> dict[str, str]:
    band = prediction.band
    return {
        "GPU": prediction.device or "",
        "median": labels.marked_median(prediction),
        "80 % band": labels.band(prediction.metric, band, prediction.floor) if band is not None else "",
        "roofline": "",
        "of roofline": "",
        "bound by": "",
        **cells(prediction),
        "note": "by its data sheet" if band is not None and band.source.by_data_sheet else "",
    }


def _range(amount: AmountRange, words: Callable[[float], str]) -> str:
    if amount.least > 0 and amount.most / amount.least < _SAME:
        return words(amount.likely)
    if amount.most == 0:
        return words(0.0)
    return f"{words(amount.least)} to {words(amount.most)}"


def _flops(value: float) -> str:
    """``4.2 GFLOP``."""
    digits = labels.size(float(f"{value:.2g}"))
    number, prefix = (digits[:-1], digits[-1].upper()) if digits[-1].isalpha() else (digits, "")
    return f"{number} {prefix}FLOP"
