"""The calls that a recursion makes, and sums over them of costs that depend on the size that shrinks."""

from __future__ import annotations

from dataclasses import dataclass

from ..domain.quantities import LINEAR, LOG, Monomial, Quantity, of_size


@dataclass(frozen=True, slots=True)
class Recurrence:
    """The recursion of a function: ``calls`` in all, ``depth`` of them open at once; ``size`` is what shrinks.

    ``ratio`` is the share of the size that a call passes on, 1 where it passes on a fixed amount less, and
    ``branches`` the number of recursive calls per call. ``going`` is the share of calls that do not end at once: what
    a call costs is read as an average over all, but large ones go on. Where each call gets a part of an
    argument in ``parts``, the sizes of all together are the number of calls, or for sizes of ``subtrees``, which are
    those of all that is below a node, this number for each level. ``guessed``: nothing says how many calls there are.
    """

    calls: Quantity
    depth: Quantity
    size: str
    ratio: float
    branches: float
    name: str
    going: float = 1.0
    parts: tuple[str, ...] = ()
    subtrees: frozenset[str] = frozenset()
    guessed: bool = False

    def total(self, cost: Quantity) -> Quantity:
        """The sum over all calls of a cost that depends on the size."""
        return self._summed(cost, self.calls, self.branches)

    def open_at_once(self, held: Quantity) -> Quantity:
        """The sum over the calls that are open at once."""
        return self._summed(held, self.depth, 1.0)

    def _summed(self, cost: Quantity, calls: Quantity, branches: float) -> Quantity:
        result = Quantity({})
        for monomial, coefficient in cost.terms.items():
            power = sum(p for (name, form), p in monomial if name == self.size and form == LINEAR)
            term = Quantity({monomial: coefficient})
            if self.parts:
                levels = sum(int(p) for (name, form), p in monomial if name in self.subtrees and form == LINEAR)
                of_parts = Quantity({self._without_parts(monomial): coefficient}) * calls
                result = result + (of_parts * self.depth.power(levels) if levels else of_parts)
            elif power <= 0:
                result = result + term * calls
            elif self.ratio < 1:
                shrink = branches * self.ratio**power
                if shrink < 0.97:
                    result = result + term.times(1 / (1 - shrink) / self.going)
                elif shrink < 1.03:
                    result = result + (term * of_size(self.size).log()).times(1 / self.going)
                else:
                    # Of a geometric series that rises towards the smallest calls, which are most of all calls.
                    series = (1 - 1 / branches) / (1 - 1 / shrink)
                    result = result + Quantity({_without(monomial, self.size): coefficient}).times(series) * calls
            elif branches < 1.05:
                result = result + (term * calls).times(1 / (power + 1))
            else:
                small = Quantity({_without(monomial, self.size): coefficient}).times(2.0**power)
                result = result + small * calls
        return result

    def _without_parts(self, monomial: Monomial) -> Monomial:
        owned = tuple(f"{name}{sign}" for name in self.parts for sign in ".[")
        return tuple(
            (factor, power)
            for factor, power in monomial
            if (factor[0] not in self.parts and not factor[0].startswith(owned)) or factor[1] not in (LINEAR, LOG)
        )


def _without(monomial: Monomial, size: str) -> Monomial:
    return tuple((factor, power) for factor, power in monomial if factor[0] != size)
