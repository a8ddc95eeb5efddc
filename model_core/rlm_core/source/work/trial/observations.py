"""What a trial run counted, by node of the syntax tree."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

_FEWEST_TESTS = 12


@dataclass(slots=True)
class _Loop:
    node: ast.AST  # kept, so that its identity stays its own
    trips: int = 0
    ended: int = 0  # how often the loop was left
    ended_trips: int = 0
    most: int = 0
    begun: float = 0.0  # how far its condition was from its end in the first trip of a run
    left: float = 0.0  # and when the budget was spent
    is_sample: bool = False  # trips were left out, or what they would have built


@dataclass(slots=True)
class _Test:
    node: ast.AST
    times: int = 0
    hits: int = 0


@dataclass(slots=True)
class _Function:
    node: ast.AST
    active: int = 0
    calls: int = 0  # since the outermost call began
    most: int = 0
    ended: int = 0
    ended_calls: int = 0


@dataclass(slots=True)
class Observations:
    """Counts of loops, conditions and recursive functions.

    ``is_whole`` says that the run came to its end and left out nothing: then the counts are those of the program.
    """

    is_whole: bool = False
    loops: dict[int, _Loop] = field(default_factory=dict)
    tests: dict[int, _Test] = field(default_factory=dict)
    functions: dict[int, _Function] = field(default_factory=dict)

    def loop(self, node: ast.AST) -> _Loop:
        """The counts of a loop, to add to."""
        found = self.loops.get(id(node))
        if found is None:
            found = self.loops[id(node)] = _Loop(node)
        return found

    def ran(self, node: ast.AST, trips: int, *, is_sample: bool = False) -> None:
        """Count a loop that was left after so many trips."""
        found = self.loop(node)
        found.is_sample |= is_sample
        found.ended += 1
        found.ended_trips += trips
        found.most = max(found.most, trips)
        found.trips = 0

    def function(self, node: ast.AST) -> _Function:
        """The counts of a function, to add to."""
        found = self.functions.get(id(node))
        if found is None:
            found = self.functions[id(node)] = _Function(node)
        return found

    def test(self, node: ast.AST, *, holds: bool) -> None:
        """Count a condition."""
        found = self.tests.get(id(node))
        if found is None:
            found = self.tests[id(node)] = _Test(node)
        found.times += 1
        found.hits += holds

    def trips(self, node: ast.AST) -> float | None:
        """The trips of a loop on average; None where it was not left once."""
        found = self.loops.get(id(node))
        return found.ended_trips / found.ended if found is not None and found.ended and not found.is_sample else None

    def fewest(self, node: ast.AST) -> int:
        """The trips that a loop made at least, at most over its runs, ended or not."""
        found = self.loops.get(id(node))
        return 0 if found is None else max(found.most, found.trips)

    def expected(self, node: ast.AST) -> float | None:
        """The trips that a loop would have made at the pace at which its condition came to its end."""
        found = self.loops.get(id(node))
        if found is None or not found.trips or not 0 < found.left / (found.begun or -1.0) < 1:
            return None
        return found.trips / (1 - found.left / found.begun)

    def share(self, node: ast.AST) -> float | None:
        """The share of the times that a condition held; None where it was tested too rarely to tell."""
        found = self.tests.get(id(node))
        if found is None or (not self.is_whole and found.times < _FEWEST_TESTS):
            return None
        return found.hits / found.times

    def calls(self, node: ast.AST) -> float | None:
        """The calls of a function, its recursive ones included, for each call from outside."""
        found = self.functions.get(id(node))
        return found.ended_calls / found.ended if found is not None and found.ended else None

    def most_calls(self, node: ast.AST) -> int:
        """The calls of a function at least, at most over its calls from outside, ended or not."""
        found = self.functions.get(id(node))
        return 0 if found is None else max(found.calls, found.most)
