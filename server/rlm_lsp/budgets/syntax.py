"""The language of budgets: ``latency < 1 ms at items=10k, memory < 10 MiB on nvidia-l4 M=4096`` <-> :class:`Budget`.

A budget is a metric, a bound with its unit and what it applies to: the device and the workload of a kernel, a module or
a network, the sizes of a function's inputs. Parsing continues after a mistake and reports the span of each one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import get_args

from rlm_core.queries.devices import canonical_device
from rlm_core.types import Metric

METRICS: tuple[Metric, ...] = get_args(Metric)
SCALES: dict[Metric, dict[str, Decimal]] = {
    "latency": {"ns": Decimal("1e-9"), "µs": Decimal("1e-6"), "ms": Decimal("1e-3"), "s": Decimal(1)},
    "memory": {"B": Decimal(1), "KiB": Decimal(2**10), "MiB": Decimal(2**20), "GiB": Decimal(2**30)},
    "accuracy": {"%": Decimal("0.01")},
    "energy": {"nJ": Decimal("1e-9"), "µJ": Decimal("1e-6"), "mJ": Decimal("1e-3"), "J": Decimal(1)},
}
_MICRO = {"us": "µs", "\u03bcs": "µs", "uJ": "µJ", "\u03bcJ": "µJ"}  # the Greek letter looks like the micro sign
_LARGEST = {"latency": Decimal("1e9"), "memory": Decimal("1e18"), "accuracy": Decimal(1), "energy": Decimal("1e9")}
_LIMITS = {"latency": "1e9 s", "memory": "1e18 B", "energy": "1e9 J"}
_SMALLEST = Decimal("1e-12")
_EXAMPLES: dict[Metric, str] = {"latency": "1 ms", "memory": "10 MiB", "accuracy": "90 %", "energy": "1 mJ"}
_TOKEN = re.compile(r"""(?P<comma>,)|"(?P<quoted>[^"]*)"|(?P<op>[<>]=?|[≤≥])|(?P<word>[^\s,<>≤≥"]+)|(?P<stray>")""")
_NUMBER = re.compile(r"(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?")
_PLAIN = re.compile(r"[^\s,<>≤≥\"=]+\Z")


@dataclass(frozen=True, slots=True)
class Budget:
    """The bound of a metric: at most ``value`` (seconds, bytes, joules), for accuracy at least (a fraction).

    ``device`` and ``workload`` (sorted pairs) qualify it; None and empty apply to every query.
    """

    metric: Metric
    value: float
    device: str | None = None
    workload: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class WrittenBudget:
    """A budget and the characters ``[start, end)`` of the text that it was read from."""

    budget: Budget
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Mistake:
    """A mistake in the characters ``[start, end)`` of a text, with what to write instead."""

    message: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    start: int
    end: int


class _MistakeError(Exception):
    def __init__(self, message: str, start: int, end: int) -> None:
        super().__init__(message)
        self.mistake = Mistake(message, start, end)


def parse(text: str) -> tuple[tuple[WrittenBudget, ...], tuple[Mistake, ...]]:
    """The budgets of a comma-separated list, and the mistakes in it."""
    budgets: list[WrittenBudget] = []
    mistakes: list[Mistake] = []
    for item in _items(text):
        try:
            written = _budget(item)
            if any(_key(written.budget) == _key(other.budget) for other in budgets):
                raise _MistakeError(f"{written.budget.metric} is given twice; keep one", written.start, written.end)
            budgets.append(written)
        except _MistakeError as error:
            mistakes.append(error.mistake)
    return tuple(budgets), tuple(mistakes)


def render(budgets: Sequence[Budget]) -> str:
    """The text of budgets; :func:`parse` returns the same budgets."""
    return ", ".join(_render(budget) for budget in budgets)


def bound(budget: Budget) -> str:
    """The bound of a budget with its unit, exactly: ``1.5 ms``."""
    value = Decimal(repr(budget.value))
    forms = []
    for unit, scale in SCALES[budget.metric].items():
        number = value / scale
        digits = format(number.normalize(), "f")
        if float(Decimal(digits) * scale) == budget.value:
            forms.append((number < 1, len(digits), f"{digits} {unit}"))
    return min(forms)[2]


def _key(budget: Budget) -> tuple[object, ...]:
    return budget.metric, budget.device, budget.workload


def _render(budget: Budget) -> str:
    words = [budget.metric, ">" if budget.metric == "accuracy" else "<", bound(budget)]
    if budget.device is not None:
        words += ["on", budget.device if _PLAIN.match(budget.device) else f'"{budget.device}"']
    elif budget.workload:
        words.append("at")
    return " ".join([*words, *(f"{name}={value}" for name, value in budget.workload)])


def _items(text: str) -> Iterator[list[_Token]]:
    """The tokens between commas; an empty item is a separate token where a budget is missing."""
    tokens = [
        _Token(match.lastgroup or "", match[match.lastgroup or 0], *match.span()) for match in _TOKEN.finditer(text)
    ]
    item: list[_Token] = []
    after = 0
    for token in tokens:
        if token.kind != "comma":
            item.append(token)
            continue
        yield item or [_Token("none", "", token.start, token.end)]
        item, after = [], token.end
    end = len(text.rstrip())
    yield item or [_Token("none", "", min(max(after - 1, 0), end), max(end, after))]


def _budget(item: list[_Token]) -> WrittenBudget:
    first, last = item[0], item[-1]
    if first.kind != "word" or first.text not in METRICS:
        if first.kind == "none":
            raise _MistakeError("a budget is missing; write one like latency < 1 ms", first.start, first.end)
        raise _MistakeError(f"unknown metric {first.text!r}; write {_one_of(METRICS)}", first.start, first.end)
    metric: Metric = first.text
    better = ">" if metric == "accuracy" else "<"
    example = f"{metric} {better} {_EXAMPLES[metric]}"
    if len(item) < 2 or item[1].kind != "op":
        at = item[1] if len(item) > 1 else first
        raise _MistakeError(f"{better!r} is missing; write {example}", at.start, at.end)
    if item[1].text.strip("=") not in ((">", "≥") if metric == "accuracy" else ("<", "≤")):
        raise _MistakeError(
            f"a budget of {metric} is {'a lower' if metric == 'accuracy' else 'an upper'} bound; write {example}",
            item[1].start,
            item[1].end,
        )
    if len(item) < 3:
        raise _MistakeError(f"a number is missing; write {example}", item[1].start, item[1].end)
    value, used = _quantity(metric, item[2:4], example)
    device, workload = _qualifiers(item[2 + used :])
    return WrittenBudget(Budget(metric, value, device, workload), first.start, last.end)


def _quantity(metric: Metric, tokens: list[_Token], example: str) -> tuple[float, int]:
    """The SI value of the first tokens, and the number of tokens that were read."""
    first = tokens[0]
    match = _NUMBER.match(first.text) if first.kind == "word" else None
    if match is None:
        raise _MistakeError(f"{first.text!r} is not a number; write {example}", first.start, first.end)
    unit, at, used = first.text[match.end() :], _Token("", "", first.start + match.end(), first.end), 1
    if not unit:
        at = tokens[1] if len(tokens) > 1 else first
        unit, used = (at.text, 2) if at.kind == "word" and at is not first else ("", 1)
    scale = SCALES[metric].get(_MICRO.get(unit, unit))
    if scale is None:
        what = f"unknown unit {unit!r}" if unit and "=" not in unit and unit != "on" else "the unit is missing"
        raise _MistakeError(f"{what}; {metric} is in {_one_of(tuple(SCALES[metric]))}", at.start, at.end)
    # An exponent of many digits would be a number of as many digits.
    exponent = match[0].lower().partition("e")[2]
    value = Decimal(match[0]) * scale if len(exponent) <= 4 else Decimal(0)
    if not _SMALLEST <= value <= _LARGEST[metric]:
        limit = "over 0 % and at most 100 %" if metric == "accuracy" else "positive and at most " + _LIMITS[metric]
        raise _MistakeError(
            f"{match[0]} {unit} is not a valid bound; it must be {limit}", first.start, tokens[used - 1].end
        )
    return float(value), used


def _qualifiers(tokens: list[_Token]) -> tuple[str | None, tuple[tuple[str, str], ...]]:
    """``on DEVICE`` or ``device=DEVICE``, and NAME=VALUE words, in any order."""
    device: str | None = None
    workload: dict[str, str] = {}
    left = iter(tokens)
    for token in left:
        if token.kind == "word" and token.text == "at":  # in front of sizes
            continue
        name, equals, value = token.text.partition("=")
        if token.kind == "word" and (token.text == "on" or (name == "device" and equals)):
            # The value may be quoted: a separate token, since quotes end a word.
            value_token = (
                next(left, None) if token.text == "on" or not value else _Token("word", value, token.start, token.end)
            )
            if value_token is None or value_token.kind not in ("word", "quoted") or not value_token.text.strip():
                raise _MistakeError("a device is missing; write for example `on nvidia-l4`", token.start, token.end)
            if device is not None:
                raise _MistakeError("a second device; write one budget per device", token.start, value_token.end)
            device = canonical_device(value_token.text) or value_token.text
        elif token.kind == "word" and name and _PLAIN.match(value):
            if name in workload:
                raise _MistakeError(f"{name} is given twice; keep one", token.start, token.end)
            workload[name] = value
        else:
            raise _MistakeError(
                f"{token.text!r} is not valid here; write on DEVICE, at NAME=VALUE, or a comma before the next budget",
                token.start,
                token.end,
            )
    return device, tuple(sorted(workload.items()))


def _one_of(names: Sequence[str]) -> str:
    return f"{', '.join(names[:-1])} or {names[-1]}" if len(names) > 1 else names[0]
