"""A network's latency in words: what limits it on a device, and its most expensive operators as a chart of text.

Input: predictions for a network. The command line prints the chart, the hover over a call that names the file shows a
table of devices; the page in VS Code draws the same from JSON.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from rlm_core.types import NetworkParts, OperatorCost, Prediction

from . import escaping, labels
from .abstentions import reason
from .json_rows import device_name

_BOUNDS = {"compute": "compute", "bandwidth": "memory bandwidth"}
_BAR = "█"
_BAR_WIDTH = 30
_HOVER_OPERATORS = 3


def bound_words(parts: NetworkParts) -> str:
    """``bound by compute (69 % of the time)``, or by memory bandwidth."""
    share = parts.arithmetic if parts.bound == "compute" else 1 - parts.arithmetic
    return f"bound by {_BOUNDS[parts.bound]} ({_percent(share)} of the time)"


def operator_chart(prediction: Prediction) -> tuple[str, ...]:
    """The most expensive operators of a network on a device, one bar per line; empty where they are not known."""
    parts = prediction.parts
    if parts is None or not parts.operators:
        return ()
    most = max(operator.share for operator in parts.operators)
    rows = [
        (
            _percent(operator.share),
            _BAR * max(math.ceil(operator.share / most * _BAR_WIDTH), 1),
            labels.quantity("latency", operator.seconds),
            operator_name(operator),
        )
        for operator in parts.operators
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    head = f"Most expensive operators on {device_name(prediction.device)}, of {parts.kernels:,} in all"
    return (
        head,
        *(
            f"{share:>{widths[0]}}  {bar:<{widths[1]}}  {seconds:>{widths[2]}}  {name}"
            for share, bar, seconds, name in rows
        ),
    )


def operator_name(operator: OperatorCost) -> str:
    """``12 × Conv 3x3 64→64 · 1x64x56x56``: the operator, and how often the network has it."""
    return f"{operator.count:,} × {operator.name}" if operator.count > 1 else operator.name


def network_hover(name: str, predictions: Sequence[Prediction], *, markdown: bool) -> str:
    """A network as a hover: a row per device, the most expensive operators, and why other numbers are missing."""
    latencies = [answer for answer in predictions if answer.metric == "latency"]
    others = [answer for answer in predictions if answer.metric == "accuracy" and answer.median is not None]
    energies = [answer for answer in predictions if answer.metric == "energy" and answer.median is not None]
    memory = {answer.device: labels.median(answer) for answer in predictions if answer.metric == "memory"}
    known = [answer for answer in latencies if answer.median is not None]
    refused = [answer for answer in latencies if answer.median is None]
    title = escaping.code_span(name) if markdown else escaping.printable(name)
    blocks = [f"{title}: predicted latency of one inference" if known else f"{title}: no predicted latency"]
    if known:
        blocks.append(_table(known, memory, markdown=markdown))
    blocks += [f"{labels.METRIC_WORDS[answer.metric]} {labels.marked_spread(answer)}" for answer in others]
    blocks += [
        f"energy {labels.marked_spread(answer)} on {device_name(answer.device)} with {answer.workload['backend']}"
        for answer in energies
    ]
    parts = next((answer for answer in known if answer.parts is not None and answer.parts.operators), None)
    if parts is not None and parts.parts is not None:
        names = [
            f"{_quoted(operator_name(operator), markdown=markdown)} {_percent(operator.share)}"
            for operator in parts.parts.operators[:_HOVER_OPERATORS]
        ]
        blocks.append(f"Most expensive on {device_name(parts.device)}: {', '.join(names)}")
    shapes = {name: value for answer in known for name, value in answer.workload.items() if name.startswith("arg")}
    if shapes:
        inputs = ", ".join(f"{name} {value}" for name, value in shapes.items())
        blocks.append(f"The file leaves sizes open; assumed are {_quoted(inputs, markdown=markdown)}")
    if refused and not known:
        quote = escaping.markdown if markdown else escaping.printable
        reasons = dict.fromkeys(reason(answer.abstained, quote) for answer in refused if answer.abstained is not None)
        blocks += [f"no prediction because {words}" for words in reasons]
    return ("\n\n" if markdown else "\n").join(blocks)


def _table(known: Sequence[Prediction], memory: Mapping[str | None, str], *, markdown: bool) -> str:
    rows = [["device", "batch", "latency", "80 % range", "memory", "bound by"]]
    for answer in known:
        band = labels.band(answer.metric, answer.band, answer.floor) if answer.band is not None else ""
        bound = _BOUNDS[answer.parts.bound] if answer.parts is not None else ""
        batch, peak = answer.workload.get("batch", ""), memory.get(answer.device, "")
        rows.append([device_name(answer.device) or "", batch, labels.marked_median(answer), band, peak, bound])
    if markdown:
        return escaping.table([list(map(escaping.markdown, row)) for row in rows])
    lines = (
        f"{row[0]} (batch {row[1] or 1}): {row[2]}, 80 % range {row[3]}{row[4] and f', memory {row[4]}'}"
        for row in rows[1:]
    )
    return "\n".join(map(escaping.printable, lines))


def _quoted(text: str, *, markdown: bool) -> str:
    return escaping.code_span(text) if markdown else escaping.printable(text)


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %" if share >= 0.095 else f"{100 * share:.1f} %"
