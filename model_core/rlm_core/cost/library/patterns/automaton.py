"""Program -> automaton: which reading instruction may follow which, by what characters, and in how many ways.

A state is a reading instruction that has just read a character (V. Glushkov, 1961), or the start. The automaton allows
at least what the matcher does: counts of long repeats, groups referred to and most of what looks ahead or behind say
are left out. The texts that it suggests are checked by running the matcher.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from .program import UNLIMITED, Op, Position, Program, UnreadError

BEGIN, ANYWHERE = 0, 1  # the states before the first character, and behind characters that a search has passed
_FIRST = 2
_MOST_STATES = 200
_MOST_WAYS = 20_000  # instructions on all ways between states


@dataclass(frozen=True, slots=True)
class Edge:
    """A step to a state: the characters by which, in how many ways (2: several), and whether it may be repeated freely.

    The step is ``limited`` if all ways begin another round of a repeat with a largest count.
    """

    mask: int
    ways: int
    is_limited: bool


@dataclass(frozen=True, slots=True)
class Automaton:
    """The edges of each state by target; ``loops`` has the groups of states that lead to each other without a limit."""

    program: Program
    edges: tuple[Mapping[int, Edge], ...]

    def step(self, states: Iterable[int], mask: int) -> Iterator[int]:
        """The states that follow by one of some characters."""
        for state in states:
            yield from (target for target, edge in self.edges[state].items() if edge.mask & mask)


def automaton(program: Program, *, is_search: bool) -> Automaton:
    """Return the automaton of a program; one that searches may begin anywhere.

    Raises:
        UnreadError: it has too many states or ways between them.
    """
    places = [place for place, instruction in enumerate(program.code) if instruction[0] <= Op.MANY]
    if len(places) > _MOST_STATES:
        raise UnreadError
    state_of = {place: number for number, place in enumerate(places, _FIRST)}
    everything = (1 << len(program.characters)) - 1
    walk = _Walk(program)
    edges: list[dict[int, Edge]] = []

    def add(before: int, start: int, *, at_begin: bool, is_limited_start: bool = False) -> dict[int, Edge]:
        following: dict[int, Edge] = {}
        for place, mask, is_limited in walk.from_place(start, before, at_begin=at_begin):
            target = state_of[place]
            is_limited = is_limited or (is_limited_start and place == start)
            known = following.get(target)
            if known is None:
                following[target] = Edge(mask, 1, is_limited)
            else:
                ways = 2 if known.ways > 1 or known.mask & mask else 1
                following[target] = Edge(known.mask | mask, ways, known.is_limited and is_limited)
        return following

    edges.append(add(0, 0, at_begin=True))
    edges.append(add(everything, 0, at_begin=False) if is_search else {})
    if is_search:
        edges[BEGIN][ANYWHERE] = edges[ANYWHERE][ANYWHERE] = Edge(everything, 1, False)
    for place in places:
        instruction = program.code[place]
        many = instruction[0] == Op.MANY
        start = place if many else place + 1
        limited = many and instruction[3] != UNLIMITED
        edges.append(add(instruction[1], start, at_begin=False, is_limited_start=limited))
    return Automaton(program, tuple(edges))


class _Walk:
    """Follows the instructions that read nothing."""

    def __init__(self, program: Program) -> None:
        self._program, self._steps = program, 0
        self._everything = (1 << len(program.characters)) - 1

    def from_place(self, start: int, before: int, *, at_begin: bool) -> Iterator[tuple[int, int, bool]]:
        """The reading instructions that a place leads to, once per way, with their characters.

        ``before`` are the characters of which one was read last. No round of a loop reads nothing: a way ends where it
        comes to the same loop again.
        """
        code = self._program.code
        waiting: list[tuple[int, int, bool, frozenset[int]]] = [(start, self._everything, False, frozenset())]
        while waiting:
            place, mask, is_limited, rounds = waiting.pop()
            self._steps += 1
            if self._steps > _MOST_WAYS:
                raise UnreadError
            instruction = code[place]
            op = instruction[0]
            if not mask or place in rounds:
                continue
            if op == Op.READ or op == Op.MANY:
                if instruction[1] & mask:
                    yield place, instruction[1] & mask, is_limited
                if op == Op.READ or (instruction[2] > 0 and place != start):
                    continue
            elif op == Op.LOOP:
                rounds |= {place}
            elif op == Op.ENTER:
                rounds -= {instruction[2]}
            if op == Op.AT:
                mask = self._behind(instruction[1], mask, before, at_begin=at_begin)
            elif op == Op.LOOK:
                mask = self._ahead(place, mask)
            for target, limits in _targets(code, place):
                waiting.append((target, mask, is_limited or limits, rounds))

    def _behind(self, position: int, mask: int, before: int, *, at_begin: bool) -> int:
        """The characters that may follow a position."""
        newline, word = self._program.newline, self._program.word
        if position == Position.BEGIN:
            return mask if at_begin else 0
        if position == Position.BEGIN_LINE:
            return mask if at_begin or before & newline else 0
        if position == Position.END_LINE:
            return mask & newline
        if position in (Position.END, Position.END_TEXT):
            return 0
        if before & word and before & ~word:
            return mask
        is_other = (position == Position.BOUNDARY) == bool(before & word)
        return mask & ~word if is_other else mask & word

    def _ahead(self, place: int, mask: int) -> int:
        """The characters that a look ahead at one character leaves."""
        _, is_negated, back, end = self._program.code[place]
        body = self._program.code[place + 1]
        if back >= 0 or end != place + 2 or body[0] != Op.READ:
            return mask
        return mask & (~body[1] if is_negated else body[1])


def _targets(code: tuple[tuple[int, ...], ...], place: int) -> Iterator[tuple[int, bool]]:
    """The instructions that may come next without reading; with whether this begins a round of a limited loop."""
    op, *operands = code[place]
    if op == Op.SPLIT:
        yield operands[0], False
        yield operands[1], False
    elif op == Op.JUMP:
        yield operands[0], False
    elif op == Op.ENTER:
        loop = code[operands[1]]
        yield (loop[5] if loop[2] > 0 else operands[1]), False
    elif op == Op.LOOP:
        yield operands[4], operands[2] != UNLIMITED
        yield place + 1, False
    elif op == Op.LOOK:
        yield operands[2] + 1, False
        if operands[1] < 0:
            yield place + 1, False
    elif op not in (Op.LOOK_END, Op.MATCH):
        yield place + 1, False


def components(nodes: Iterable[int], following: Callable[[int], Iterable[int]]) -> list[frozenset[int]]:
    """The groups of nodes of a directed graph that lead to each other or to themselves (R. Tarjan, 1972)."""
    index: dict[int, int] = {}
    low: dict[int, int] = {}
    opened: list[int] = []
    is_open: set[int] = set()
    groups: list[frozenset[int]] = []
    for root in nodes:
        if root in index:
            continue
        work = [(root, iter(following(root)))]
        index[root] = low[root] = len(index)
        opened.append(root)
        is_open.add(root)
        while work:
            node, others = work[-1]
            for other in others:
                if other not in index:
                    index[other] = low[other] = len(index)
                    opened.append(other)
                    is_open.add(other)
                    work.append((other, iter(following(other))))
                    break
                if other in is_open:
                    low[node] = min(low[node], index[other])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    group: set[int] = set()
                    while node not in group:
                        group.add(opened.pop())
                    is_open -= group
                    if len(group) > 1 or node in following(node):
                        groups.append(frozenset(group))
    return groups
