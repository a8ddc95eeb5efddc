"""Adds up what a piece of the program costs: seconds, waits, calls of unknown cost, and peak memory.

A meter measures one region (a loop's body, a branch, a callee). What is spent is weighted by ``reach``: the share of
runs that get to that point, as (least, likely, most).
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from rlm_core.types import CauseKind, Growth, WaitKind

from .origins import PendingOrigin, Place, gathered, noted, repeated, shared
from .quantities import ONE, ZERO, Quantity, Range, constant, larger, mixed, range_product
from .records import record, replace

ALWAYS: Range = (1.0, 1.0, 1.0)
_MOST_CAUSES = 24
_MOST_WAITS = 40
_RARE = Quantity({(): (1.0, 0.0, 1.0)})  # times what few runs reach: possible, and not likely
_MANY = 1e6  # iterations, after which what may happen in one of them has happened


@record
class PendingWait:
    """A wait and how often it happens (``times``); ``seconds`` of all of them together, None where they are not known.

    That of a task in the ``background`` goes on while others start: several take as long as the longest. One that is
    ``on_error`` is in a handler of an exception. ``over`` is what the loop around it runs over, if each item waits. One
    that is known ``by_name`` only counts in loops. ``limit`` is the timeout of one wait in seconds,
    ``loaded_by`` what makes a related row part of a query.
    """

    kind: WaitKind
    line: int
    call: str
    seconds: Quantity | None
    share: Range
    background: bool = False
    on_error: bool = False
    over: str = ""
    by_name: bool = False
    times: Quantity = ONE
    limit: float | None = None
    loaded_by: str = ""


@record
class PendingCause:
    """A place that something is spent at; ``amount`` in seconds or, for an allocation, bytes.

    ``name`` is text or syntax, which is turned into text only for the causes that are reported. One with a
    ``worst_case`` is not part of what is spent.
    """

    kind: CauseKind
    line: int
    name: str | ast.AST
    amount: Quantity
    count: Quantity
    worst_case: Growth | None = None


@dataclass(slots=True)
class Meter:
    """The cost of a region.

    ``own`` is the constant part of ``seconds`` that has not been added to it yet. ``endless`` is the line of a loop
    that may not end, with the share of runs that get there. In a ``parallel`` region waits happen at the same time.
    ``unknown`` maps calls of unknown cost, as they are written (``fetch()``), and operations on objects of unknown
    types (``+``, ``[]``, ``.name``), which may run any code, to how often they run. ``origins`` are the parts of
    ``seconds`` that depend on sizes, by the ``place`` at which they are spent; a meter without one keeps none.
    """

    parallel: bool = False
    reach: Range = ALWAYS
    own: float = 0.0
    seconds: Quantity = ZERO
    unknown: dict[str, Quantity] = field(default_factory=dict)
    waits: list[PendingWait] = field(default_factory=list)
    causes: list[PendingCause] = field(default_factory=list)
    endless: tuple[int, float] | None = None
    peak: Quantity = ZERO
    place: Place | None = None
    origins: list[PendingOrigin] = field(default_factory=list)

    def spend(self, seconds: Quantity | float) -> None:
        """Add computing time."""
        if not isinstance(seconds, Quantity):
            if self.reach is ALWAYS:
                self.own += seconds
            elif seconds:
                self.seconds = self.seconds.plus(range_product((seconds, seconds, seconds), self.reach))
            return
        weighted = self.weighted(seconds)
        self.seconds = self.seconds + weighted
        if self.place is not None:
            noted(self.origins, self.place, weighted)

    @property
    def total(self) -> Quantity:
        """The computing time of the region."""
        if self.own:
            self.seconds, self.own = self.seconds + constant(self.own), 0.0
        return self.seconds

    def substituted(self, start: Mapping[str, Quantity]) -> Meter:
        """The region's cost with symbols replaced by what they stand for."""
        return Meter(
            parallel=self.parallel,
            seconds=self.total.substituted(start),
            unknown={name: times.substituted(start) for name, times in self.unknown.items()},
            waits=[
                replace(
                    wait,
                    seconds=wait.seconds.substituted(start) if wait.seconds is not None else None,
                    times=wait.times.substituted(start),
                )
                for wait in self.waits
            ],
            causes=[
                replace(cause, amount=cause.amount.substituted(start), count=cause.count.substituted(start))
                for cause in self.causes
            ],
            endless=self.endless,
            peak=self.peak.substituted(start),
            place=self.place,
            origins=[replace(origin, amount=origin.amount.substituted(start)) for origin in self.origins],
        )

    def weighted(self, quantity: Quantity) -> Quantity:
        """A quantity times the reach."""
        return quantity if self.reach is ALWAYS else quantity * Quantity({(): self.reach})

    def miss(self, name: str, times: Quantity = ONE) -> None:
        """Add calls of unknown cost, or operations that may run any code."""
        times = self.weighted(times)
        known = self.unknown.get(name)
        self.unknown[name] = times if known is None else known + times

    def hold(self, bytes_: Quantity) -> None:
        """Note an amount of memory in use at this point."""
        if bytes_.terms:
            self.peak = larger(self.peak, self.weighted(bytes_) if self.reach[0] < 1 else bytes_)

    def cause(self, kind: CauseKind, line: int, name: str | ast.AST, amount: Quantity, count: Quantity = ONE) -> None:
        """Note a place that something is spent at."""
        self.causes.append(PendingCause(kind, line, name, self.weighted(amount), count))
        if len(self.causes) > 2 * _MOST_CAUSES:
            self.causes = largest_causes(self.causes)

    def worst_case(self, line: int, pattern: str, seconds: Quantity, growth: Growth) -> None:
        """Note a regular expression that may take this long for some text."""
        self.causes.append(PendingCause(CauseKind.PATTERN, line, pattern, self.weighted(seconds), ONE, growth))

    def wait(
        self,
        kind: WaitKind,
        line: int,
        call: str,
        seconds: Quantity | None,
        *,
        by_name: bool = False,
        limit: float | None = None,
    ) -> None:
        """Note a wait."""
        length = self._bounded(seconds) if seconds is not None else None
        times = self._bounded(ONE)
        self._note(PendingWait(kind, line, call, length, self.reach, by_name=by_name, times=times, limit=limit))

    def _bounded(self, amount: Quantity) -> Quantity:
        """The length of a wait that some runs do not reach, or how often it happens.

        A share that the text fixes makes it that much shorter. Otherwise some runs wait for all of it, the others not.
        """
        if self.reach is ALWAYS:
            return amount
        low, _, high = self.reach
        return amount * Quantity({(): (low, low if low == high else 1.0, high)})

    def _note(self, wait: PendingWait) -> None:
        """Keep one wait per place: the body of a loop that is read trip by trip waits in each of them.

        What most runs that wait there do not reach, such as another try after an error, is not likely.
        """
        for index, other in enumerate(self.waits):
            place = (other.line, other.kind, other.call, other.background, other.by_name)
            if place == (wait.line, wait.kind, wait.call, wait.background, wait.by_name):
                joined = larger if self.parallel or wait.background else operator.add
                low, likely, high = (max(a, b) for a, b in zip(other.share, wait.share, strict=True))
                usual = [ONE if 2 * part.share[1] >= likely else _RARE for part in (other, wait)]
                seconds = None
                if other.seconds is not None and wait.seconds is not None:
                    seconds = joined(other.seconds * usual[0], wait.seconds * usual[1])
                times = joined(other.times * usual[0], wait.times * usual[1])
                over = other.over or wait.over
                self.waits[index] = replace(other, seconds=seconds, times=times, share=(low, likely, high), over=over)
                return
        if sum(other.by_name is wait.by_name for other in self.waits) < _MOST_WAITS:
            self.waits.append(wait)

    def run_on(self, line: int) -> None:
        """Note a loop that may not end."""
        if self.endless is None or self.endless[1] < self.reach[1]:
            self.endless = (line, self.reach[1])

    def add(self, other: Meter, times: Quantity = ONE, *, held: Quantity = ZERO) -> None:
        """Add a region that runs ``times`` times, while ``held`` bytes are in use around it."""
        once = times is ONE
        total = other.total
        self.seconds = self.seconds + self.weighted(total if once else total * times)
        if self.place is not None:
            parts = other.origins if once else repeated(other.origins, total, times, self.place)
            gathered(self.origins, shared(parts, self.reach))
        for name, missed in other.unknown.items():
            self.miss(name, missed if once else missed * times)
        enters = ALWAYS if once else _entered(times)
        for wait in other.waits:
            seconds, often = wait.seconds, wait.times
            if not (once or self.parallel or wait.background):
                # Of many iterations as many wait as are likely to; a share that the text fixes is part of the length.
                low, likely, high = wait.share
                repeats = times * Quantity({(): (1.0, 1.0 if low == high else likely, 1.0)})
                seconds, often = seconds * repeats if seconds is not None else None, often * repeats
            seconds = self._bounded(seconds) if seconds is not None else None
            share = scaled(wait.share if once else _at_least_once(wait.share, times), self.reach)
            self._note(replace(wait, seconds=seconds, times=self._bounded(often), share=share))
        for cause in other.causes:
            amount, count = cause.amount, cause.count
            if not once:
                amount, count = (amount if cause.kind is CauseKind.ALLOCATION else amount * times), count * times
            self.causes.append(replace(cause, amount=self.weighted(amount), count=count))
        if len(self.causes) > 2 * _MOST_CAUSES:
            self.causes = largest_causes(self.causes)
        if other.endless is not None:
            reached = other.endless[1] * self.reach[1] * enters[1]
            if self.endless is None or self.endless[1] < reached:
                self.endless = (other.endless[0], reached)
        if other.peak.terms or held.terms:
            self.hold(other.peak + held)

    def branch(self, branches: Sequence[tuple[Range, Meter]]) -> None:
        """Add one of several regions, each with its share of the runs."""
        self.seconds = self.seconds + self.weighted(mixed((share[1], meter.total) for share, meter in branches))
        for name in dict.fromkeys(name for _, meter in branches for name in meter.unknown):
            self.miss(name, mixed((share[1], meter.unknown.get(name, ZERO)) for share, meter in branches))
        for share, meter in branches:
            gathered(self.origins, shared(meter.origins, scaled(self.reach, share)))
            if not meter.waits and not meter.causes and meter.endless is None:
                continue
            inner = Meter(self.parallel, scaled(self.reach, share))
            inner.add(Meter(waits=meter.waits, causes=meter.causes, endless=meter.endless))
            for wait in inner.waits:
                self._note(wait)
            self.causes += inner.causes
            if inner.endless is not None and (self.endless is None or self.endless[1] < inner.endless[1]):
                self.endless = inner.endless
        if len(self.causes) > 2 * _MOST_CAUSES:
            self.causes = largest_causes(self.causes)
        self.hold(mixed((share[1], meter.peak) for share, meter in branches))


def largest_causes(causes: list[PendingCause]) -> list[PendingCause]:
    """The causes with the largest amounts, at sizes of 10."""
    ranked = sorted(causes, key=lambda cause: -cause.amount.evaluate(lambda name: 10.0)[1])
    return ranked[:_MOST_CAUSES]


def scaled(left: Range, right: Range) -> Range:
    """The share of a share."""
    if left is ALWAYS:
        return right
    return left[0] * right[0], left[1] * right[1], left[2] * right[2]


def _at_least_once(share: Range, times: Quantity) -> Range:
    """The share of runs in which a loop that runs so often reaches a place that each iteration reaches so often."""
    enters = _entered(times)
    low, likely, high = scaled(share, enters)
    iterations = max(times.evaluate(lambda name: 3.0)[1], 1.0)
    return low, max(likely, enters[1] * (1 - (1 - min(share[1], 1.0)) ** min(iterations, _MANY))), high


def _entered(times: Quantity) -> Range:
    """The share of runs that enter a loop that runs so often."""
    low, likely, high = times.evaluate(lambda name: 3.0)
    low = times.evaluate(lambda name: 0.0)[0]
    return min(max(low, 0.0), 1.0), min(max(likely, 0.0), 1.0), min(max(high, 0.0), 1.0)
