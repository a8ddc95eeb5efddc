"""What a trial run counted, by node of the syntax tree."""

from __future__ import annotations

import ast
import math
from dataclasses import dataclass, field

_FEWEST_TESTS = 12
_FEWEST_RUNS = 32  # of a loop whose trips follow a law
_MOST_POWER = 2.5


@dataclass(slots=True)
class _Loop:
    node: ast.AST  # kept, so that its identity stays its own
    trips: int = 0
    ended: int = 0  # how often the loop was left
    ended_trips: int = 0
    most: int = 0
    begun: float = 0.0  # how far its condition was from its end in the first trip of a run
    left: float = 0.0  # and when the budget was spent
    earlier: tuple[int, int] = (0, 0)  # runs and all their trips at the last two powers of two
    later: tuple[int, int] = (0, 0)
    is_sample: bool = False  # trips were left out, or what they would have built


@dataclass(slots=True)
class _Tally:
    node: ast.AST
    times: int = 0
    hits: int = 0
    earlier: tuple[int, int] = (0, 0)  # times and hits at the last two powers of two
    later: tuple[int, int] = (0, 0)


@dataclass(slots=True)
class _Number:
    node: ast.AST
    times: int = 0
    bits: int = 0


@dataclass(slots=True)
class _Function:
    node: ast.AST
    active: int = 0
    calls: int = 0  # since the outermost call began
    most: int = 0
    ended: int = 0
    ended_calls: int = 0
    progress: float = 0.0  # of its outermost call when the budget was spent; 0 where that is not known


@dataclass(slots=True)
class Observations:
    """Counts of loops, conditions, recursive functions, and what is put into sets and dicts.

    ``is_whole`` says that the run came to its end and left out nothing: then the counts are those of the program.
    """

    is_whole: bool = False
    loops: dict[int, _Loop] = field(default_factory=dict)
    tallies: dict[int, _Tally] = field(default_factory=dict)
    numbers: dict[int, _Number] = field(default_factory=dict)
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
        if not found.ended & (found.ended - 1):
            found.earlier, found.later = found.later, (found.ended, found.ended_trips)
        found.most = max(found.most, trips)
        found.trips = 0

    def function(self, node: ast.AST) -> _Function:
        """The counts of a function, to add to."""
        found = self.functions.get(id(node))
        if found is None:
            found = self.functions[id(node)] = _Function(node)
        return found

    def tally(self, node: ast.AST, *, hit: bool) -> None:
        """Count a condition that holds or not, or a value that is put into a set or dict and is new there or not."""
        found = self.tallies.get(id(node))
        if found is None:
            found = self.tallies[id(node)] = _Tally(node)
        found.times += 1
        found.hits += hit
        if not found.times & (found.times - 1):
            found.earlier, found.later = found.later, (found.times, found.hits)

    def digits(self, node: ast.AST, bits: int) -> None:
        """Count a large number in an operation."""
        found = self.numbers.get(id(node))
        if found is None:
            found = self.numbers[id(node)] = _Number(node)
        found.times += 1
        found.bits += bits

    def bits(self, node: ast.AST) -> float | None:
        """The bits of the large numbers in an operation on average; None where there were none."""
        found = self.numbers.get(id(node))
        return found.bits / found.times if found is not None else None

    def trips(self, node: ast.AST, times: float = 0.0) -> float | None:
        """The trips of a loop on average when it runs so many times; None where it was not left once.

        Beyond the runs that were counted, all trips together go on as a power law: the inner loop of a triangle gets
        longer, that of a search with a memory shorter.
        """
        found = self.loops.get(id(node))
        if found is None or not found.ended or found.is_sample:
            return None
        begun, first = found.earlier
        if self.is_whole or found.ended < _FEWEST_RUNS or times <= found.ended or not first:
            return found.ended_trips / found.ended
        power = min(math.log(found.ended_trips / first) / math.log(found.ended / begun), _MOST_POWER)
        return found.ended_trips * math.pow(times / found.ended, power) / times

    def runs(self, node: ast.AST) -> int:
        """How often a loop was left."""
        found = self.loops.get(id(node))
        return found.ended if found is not None and not found.is_sample else 0

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

    def times(self, node: ast.AST) -> int:
        """How often a condition was tested."""
        found = self.tallies.get(id(node))
        return found.times if found is not None else 0

    def share(self, node: ast.AST, times: float = 0.0) -> float | None:
        """The share of hits among so many; None where too few were counted to tell.

        Beyond those that were counted the rarer outcome goes on as a power law, like new words in a text: a heap that
        is full stays full.
        """
        found = self.tallies.get(id(node))
        if found is None or (not self.is_whole and found.times < _FEWEST_TESTS):
            return None
        hits = found.hits
        if self.is_whole or times <= found.times:
            return hits / found.times
        begun, first = found.earlier
        if 2 * hits <= found.times:
            return _continued(first, hits, begun, found.times, times)
        return 1 - _continued(begun - first, found.times - hits, begun, found.times, times)

    def calls(self, node: ast.AST) -> float | None:
        """The calls of a function, its recursive ones included, for each call from outside."""
        found = self.functions.get(id(node))
        return found.ended_calls / found.ended if found is not None and found.ended else None

    def expected_calls(self, node: ast.AST) -> float | None:
        """The calls that a function would have made at the pace at which the loop in its outermost call went on."""
        found = self.functions.get(id(node))
        return found.calls / found.progress if found is not None and found.progress else None

    def most_calls(self, node: ast.AST) -> int:
        """The calls of a function at least, at most over its calls from outside, ended or not."""
        found = self.functions.get(id(node))
        return 0 if found is None else max(found.calls, found.most)


def _continued(first: int, last: int, begun: int, since: int, times: float) -> float:
    """The share among ``times`` of what came ``first`` times among ``begun`` and ``last`` times among ``since``."""
    if not last:
        return 0.0
    power = min(math.log(last / first) / math.log(since / begun), 1.0) if first else 1.0
    return last * math.pow(times / since, power) / times
