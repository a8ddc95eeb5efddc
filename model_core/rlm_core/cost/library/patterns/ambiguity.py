"""Automaton -> texts that it may read in many ways, as candidates for the worst case.

A state that is left and reached again in two ways over the same text doubles the ways with each repetition: they grow
exponentially. A loop that leads to another one over a text that repeats both lets their border move, which multiplies
the ways by the length; links of such loops in a row give the degree of a polynomial (A. Weber, H. Seidl: On the degree
of ambiguity of finite automata, 1991; N. Weideman et al.: Analyzing matching time behavior of backtracking regular
expression matchers by using ambiguity of NFA, 2016).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from .automaton import ANYWHERE, BEGIN, Automaton, Edge, components

_MOST_STEPS = 40_000  # of pairs and triples of states; what is found until then counts
_MOST_PER_LOOP = 3  # candidates per group of states
_MOST_CHAINS = 12

Word = tuple[int, ...]
"""Indices into the characters of the program."""

Node = TypeVar("Node", bound=Hashable)
Following = Callable[[Node], Iterable[tuple[Node, int]]]


@dataclass(frozen=True, slots=True)
class Attack:
    """A text to match: for each part a word once and a word many times, and a word at the end.

    ``degree`` is that of the steps in the repetitions by the automaton; 0 for exponential growth.
    """

    parts: tuple[tuple[Word, Word], ...]
    degree: int
    suffix: Word = ()

    def text(self, repetitions: int) -> Word:
        """The text with each part repeated."""
        return sum((once + many * repetitions for once, many in self.parts), ()) + self.suffix


def exponential_attacks(automaton: Automaton) -> Iterator[Attack]:
    """Texts for which the automaton has exponentially many ways."""
    budget = _Budget()
    edges = automaton.edges
    for group in components(range(len(edges)), lambda state: edges[state]):
        seen: set[tuple[int, Word]] = set()
        for state, word in _ambiguous_words(edges, group, budget):
            prefix = _word(BEGIN, state.__eq__, _all_edges(edges))
            if prefix is not None and (state, word) not in seen and len(seen) < _MOST_PER_LOOP:
                seen.add((state, word))
                yield Attack(((prefix, word),), 0)


def polynomial_attacks(automaton: Automaton) -> Iterator[Attack]:
    """Texts for which the ways grow as a power of the length, the largest degree first."""
    edges = automaton.edges
    free = [{target: edge.mask for target, edge in targets.items() if not edge.is_limited} for targets in edges]
    groups = components(range(len(edges)), lambda state: free[state])
    reach = _reachable(edges)
    links = _links(automaton, free, groups, reach)
    best: dict[int, tuple[int, ...]] = {}  # the chain of groups that begins at a group, as indices of links
    order = list(links)
    for place in range(len(groups)):  # the groups come with those that they lead to before them
        chains = [best[other] for other in range(place) if reach[min(groups[place])] >> min(groups[other]) & 1]
        chains += [(number, *best[pair[1]]) for number, pair in enumerate(order) if pair[0] == place]
        best[place] = max(chains, key=len, default=())
    seen: set[tuple[int, ...]] = set()
    # Behind the last links of a chain nothing may be able to fail: its beginnings are candidates as well.
    chains = [chain[:length] for chain in best.values() for length in range(1, len(chain) + 1)]
    chains.sort(key=len, reverse=True)
    for chain in [*chains, *((number,) for number in range(len(order)))]:
        if chain in seen or len(seen) >= _MOST_CHAINS:
            continue
        seen.add(chain)
        attack = _chained(edges, [links[order[number]] for number in chain])
        if attack is not None:
            yield attack


@dataclass(frozen=True, slots=True)
class _Link:
    """Two states, the first of which leads to itself and to the second over a word that the second repeats."""

    first: int
    second: int
    word: Word


class _Budget:
    """The steps left for searching products of states."""

    def __init__(self) -> None:
        self._left = _MOST_STEPS

    def allows(self, steps: int = 1) -> bool:
        self._left -= steps
        return self._left > 0


def _ambiguous_words(
    edges: Sequence[Mapping[int, Edge]], group: frozenset[int], budget: _Budget
) -> Iterator[tuple[int, Word]]:
    """States of a group with words over which they lead to themselves in two ways."""
    inner = {
        state: {target: edge for target, edge in edges[state].items() if target in group} for state in sorted(group)
    }
    for state, targets in inner.items():
        for target, edge in targets.items():
            if edge.ways > 1:
                back = _word(target, state.__eq__, lambda node: _masks(inner[node]))
                if back is not None:
                    yield state, (_lowest(edge.mask), *back)
    pairs: dict[tuple[int, int], list[tuple[tuple[int, int], int]]] = {}
    waiting = [(state, state) for state in inner]
    while waiting:
        pair = waiting.pop()
        if pair in pairs:
            continue
        following: dict[tuple[int, int], int] = {}
        left, right = inner[pair[0]], inner[pair[1]]
        if not budget.allows(1 + len(left) * len(right)):
            return
        for a, one in left.items():
            for b, two in right.items():
                if one.mask & two.mask:
                    following.setdefault((a, b) if a <= b else (b, a), one.mask & two.mask)
        pairs[pair] = list(following.items())
        waiting += following
    names = list(pairs)
    places = {pair: place for place, pair in enumerate(names)}
    graph = [[places[target] for target, _ in pairs[pair]] for pair in names]
    for component in components(range(len(names)), lambda place: graph[place]):
        members = sorted(names[place] for place in component)
        same = [pair for pair in members if pair[0] == pair[1]]
        for different in [pair for pair in members if pair[0] != pair[1]][: _MOST_PER_LOOP if same else 0]:
            there = _word(same[0], different.__eq__, lambda node: pairs[node])
            back = _word(different, same[0].__eq__, lambda node: pairs[node])
            if there is not None and back is not None:
                yield same[0][0], there + back


def _links(
    automaton: Automaton, free: Sequence[Mapping[int, int]], groups: Sequence[frozenset[int]], reach: Sequence[int]
) -> dict[tuple[int, int], _Link]:
    """One link per pair of groups that has one."""
    edges, budget = automaton.edges, _Budget()
    characters = [
        _union(free[state][target] for state in group for target in free[state] if target in group) for group in groups
    ]
    links: dict[tuple[int, int], _Link] = {}
    for first in reversed(range(len(groups))):
        for second in range(first):
            common = characters[first] & characters[second]
            if not common or not reach[min(groups[first])] >> min(groups[second]) & 1:
                continue
            for p, q in ((p, q) for p in sorted(groups[first]) for q in sorted(groups[second])):
                word = _link_word(edges, free, groups[first], groups[second], (p, q), reach, budget)
                if word is not None:
                    links[first, second] = _Link(p, q, word)
                    break
    return links


def _link_word(
    edges: Sequence[Mapping[int, Edge]], free: Sequence[Mapping[int, int]], first: frozenset[int],
    second: frozenset[int], ends: tuple[int, int], reach: Sequence[int], budget: _Budget,
) -> Word | None:  # fmt: skip
    """A word that leads the first state to itself and to the second one, and the second to itself."""
    p, q = ends

    def following(node: tuple[int, int, int]) -> Iterator[tuple[tuple[int, int, int], int]]:
        x, y, z = node
        for a, one in free[x].items():
            if a not in first:
                continue
            for c, three in free[z].items():
                if c not in second or not one & three or not budget.allows():
                    continue
                for b, two in edges[y].items():
                    if one & three & two.mask and (b == q or reach[b] >> q & 1) and budget.allows():
                        yield (a, b, c), one & two.mask & three

    return _word((p, p, q), (p, q, q).__eq__, following)


def _chained(edges: Sequence[Mapping[int, Edge]], links: Sequence[_Link]) -> Attack | None:
    parts: list[tuple[Word, Word]] = []
    state = BEGIN
    for link in links:
        once = () if link.first in (state, ANYWHERE) else _word(state, link.first.__eq__, _all_edges(edges))
        if once is None:
            return None
        parts.append((once, link.word))
        state = link.second
    return Attack(tuple(parts), len(links) + 1)


def _word(start: Node, is_end: Callable[[Node], bool], following: Following[Node]) -> Word | None:
    """The shortest word over which a node leads to an end by at least one step; None if it does not."""
    before: dict[Node, tuple[Node, int]] = {}
    layer = [start]
    while layer:
        following_layer: list[Node] = []
        for node in layer:
            for target, mask in following(node):
                if target in before:
                    continue
                before[target] = (node, mask)
                if is_end(target):
                    letters: list[int] = []
                    step = target
                    while True:
                        step, mask = before[step]
                        letters.append(_lowest(mask))
                        if step == start:
                            return tuple(reversed(letters))
                following_layer.append(target)
        layer = following_layer
    return None


def _all_edges(edges: Sequence[Mapping[int, Edge]]) -> Callable[[int], Iterator[tuple[int, int]]]:
    return lambda state: _masks(edges[state])


def _masks(targets: Mapping[int, Edge]) -> Iterator[tuple[int, int]]:
    return ((target, edge.mask) for target, edge in targets.items())


def _lowest(mask: int) -> int:
    return (mask & -mask).bit_length() - 1


def _union(masks: Iterable[int]) -> int:
    result = 0
    for mask in masks:
        result |= mask
    return result


def _reachable(edges: Sequence[Mapping[int, Edge]]) -> list[int]:
    """For each state the states that it leads to, as bits."""
    reach = [_union(1 << target for target in targets) for targets in edges]
    changed = True
    while changed:
        changed = False
        for state in reversed(range(len(edges))):
            wider = reach[state] | _union(reach[target] for target in edges[state])
            changed, reach[state] = changed or wider != reach[state], wider
    return reach
