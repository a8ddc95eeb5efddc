"""When a trial runs, and what the analysis takes from it."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from ..quantities import Quantity, Range, constant
from ..scope import Scope
from ..values import DIGIT_BITS
from .held import held_bytes
from .machine import Machine
from .names import Names
from .observations import Observations
from .values import Budget, Refused

STEPS = 90_000
_MOST_OPEN = 30.0  # times the count of a loop or recursion that was running when the budget was spent
_SAMPLE_ERROR = 3.0
_OTHERS = 0.15  # of the calls that pass something else than the defaults
_FARTHEST = 1e9  # trips
_FEWEST_RUNS = 64  # of a loop whose law is believed
_FEWEST = 20  # trips or calls that say more than nothing


class Trial:
    """The trial of one unit, which runs when first asked.

    ``has_defaults`` says that the unit has parameters, all of which have defaults: then a caller may pass others, and
    the ranges begin at 0.
    """

    def __init__(
        self, body: Sequence[ast.stmt], scope: Scope, caller: str, arguments: ast.arguments | None = None
    ) -> None:
        self._body, self._scope, self._caller, self._arguments = body, scope, caller, arguments
        self._runs: list[Observations] | None = None
        self._held: Quantity | None = None
        self.has_defaults = arguments is not None and bool(arguments.defaults or arguments.kw_defaults)

    def trips(self, node: ast.AST, times: float = 0.0, *, keeps: bool = False) -> Quantity | None:
        """The trips of a loop on average when it runs so many times; None where it did not end.

        ``keeps`` says that its condition reads what the loops around it have put into containers: then samples of them
        say less than their beginning.
        """
        first, *others = self._observed()
        last = self._observed()[-1]
        if others and keeps and last.runs(node) >= _FEWEST_RUNS:
            return self._around(last.trips(node, times) or 0.0, last)
        # Samples are spread over all runs already.
        found = first.trips(node, 0.0 if others else times)
        if found is not None:
            return self._around(found, first)
        begun = next((trips for seen in others if (trips := seen.trips(node)) is not None), None)
        if begun is None:
            return None
        # The first trips of the loops around are mostly those with the least work.
        return constant(0.0 if self.has_defaults else begun / _SAMPLE_ERROR, _MOST_OPEN * begun, 2 * begun)

    def whole_trips(self, node: ast.AST) -> float | None:
        """The trips of a loop on average, if a run of the whole unit has counted them: nothing is run to find out."""
        whole = next((seen for seen in self._runs or () if seen.is_whole), None)
        return None if whole is None or self.has_defaults else whole.trips(node)

    def run(self) -> None:
        """Run the unit, unless that was done before."""
        self._observed()

    def expected_trips(self, node: ast.AST) -> Quantity | None:
        """The trips of a loop that was running when the budget was spent, from how far its condition had come."""
        found = max((trips for seen in self._observed() if (trips := seen.expected(node)) is not None), default=None)
        if found is None or found > _FARTHEST:
            return None
        fewest = self._observed()[-1].fewest(node)
        return constant(0.0 if self.has_defaults else min(fewest, found), _SAMPLE_ERROR * found, found)

    def begun_trips(self, node: ast.AST) -> Quantity | None:
        """The trips of a loop that was running when the budget was spent: more than those that were counted."""
        return self._beyond(max((seen.fewest(node) for seen in self._observed()), default=0))

    def calls(self, node: ast.AST) -> Quantity | None:
        """The calls of a function for each call from outside, its recursive ones included, in a whole run."""
        seen = self._observed()[-1]
        found = seen.calls(node) if seen.is_whole else None
        return None if found is None else self._around(found, seen)

    def expected_calls(self, node: ast.AST) -> Quantity | None:
        """The calls of a function whose outermost call had got so far in a loop when the budget was spent."""
        found = self._observed()[-1].expected_calls(node)
        if found is None or found > _FARTHEST:
            return None
        fewest = self._observed()[-1].most_calls(node)
        return constant(0.0 if self.has_defaults else min(fewest, found), _SAMPLE_ERROR * found, found)

    def begun_calls(self, node: ast.AST) -> tuple[int, Quantity | None]:
        """The calls that were counted when the budget was spent, and how many there may be then."""
        fewest = self._observed()[-1].most_calls(node)
        return fewest, self._beyond(fewest)

    def share(self, test: ast.AST, *, whole: bool, times: float = 0.0) -> Range | None:
        """How often a condition holds among so many; ``whole`` asks for what a whole run counted."""
        for seen in sorted(self._observed(), key=lambda seen: seen.times(test), reverse=True):
            found = seen.share(test, times if seen is self._observed()[-1] else 0.0)
            if found is not None and (seen.is_whole or not whole):
                if seen.is_whole and not self.has_defaults:
                    return found, found, found
                # A call with other arguments may take the other branch.
                return 0.0, _OTHERS + (1 - 2 * _OTHERS) * found if self.has_defaults else found, 1.0
        return None

    def share_of_new(self, node: ast.AST, times: float) -> Range | None:
        """The share of new ones among so many values that are put into a set or dict at this place in the text."""
        seen = self._observed()[-1]
        found = seen.share(node, times)
        if found is None:
            return None
        if self.has_defaults:
            return 0.0, found, 1.0
        counted = seen.share(node)
        assert counted is not None
        least = found if seen.is_whole else found / _SAMPLE_ERROR
        return least, found, max(counted, found)

    def digits(self, node: ast.AST) -> Quantity | None:
        """The digits of 30 bits of the large numbers in an operation."""
        bits = next((found for seen in self._observed() if (found := seen.bits(node)) is not None), None)
        return None if bits is None else constant(bits / DIGIT_BITS)

    def held(self) -> Quantity | None:
        """The bytes that the unit holds when it returns or the budget is spent; None where no trial was run."""
        return self._held

    def _beyond(self, fewest: int) -> Quantity | None:
        """A count that had got so far when the budget was spent."""
        if fewest < _FEWEST:
            return None
        return constant(0.0 if self.has_defaults else fewest, _MOST_OPEN * fewest, _MOST_OPEN**0.5 * fewest)

    def _around(self, value: float, seen: Observations) -> Quantity:
        if seen.is_whole and not self.has_defaults:
            return constant(value)
        error = _SAMPLE_ERROR if not seen.is_whole else 1.0
        return constant(0.0 if self.has_defaults else value / error, max(error, 2.0) * value, value)

    def _observed(self) -> Sequence[Observations]:
        """What was counted: by the run that takes samples, where there is one, then by the other."""
        if self._runs is None:
            first, has_long_loops = self._run(samples=False)
            self._runs = [first]
            if has_long_loops and not first.is_whole:
                self._runs.insert(0, self._run(samples=True)[0])
        return self._runs

    def _run(self, *, samples: bool) -> tuple[Observations, bool]:
        """What a run counts, and whether a run that takes samples would count something else."""
        seen = Observations()
        machine = Machine(Budget(STEPS), seen, samples=samples)
        home = Names(self._scope, None, self._caller)
        home.values["__name__"] = "__main__"
        inner = Names(self._scope, home, self._caller)
        try:
            inner.values.update(machine.defaults(self._arguments, home))
            machine.run(self._body, inner)
            seen.is_whole = not samples
        except Refused:
            pass
        except Exception:  # noqa: S110 - the program fails or recurses too deeply; what was counted still holds
            pass
        if not samples:
            bodies = [*self._body, *(found.node for found in seen.functions.values())]
            held = held_bytes([*inner.values.values(), inner.result], bodies)
            self._held = constant(0.0 if self.has_defaults else held, held, held)
        return seen, machine.has_long_loops
