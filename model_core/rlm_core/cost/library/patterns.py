"""Regular expressions that may take exponential time: a pattern -> whether a text can be read in ever more ways.

In ``(a+)+$`` a text of n characters can be split in 2^n ways, and all are tried when the end does not match. A pattern
is read as an automaton of its characters. It is exponential if a state can be left and reached again in two ways over
the same text (A. Weber, H. Seidl: On the degree of ambiguity of finite automata, 1991), and something behind can fail.
"""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from re import _constants, _parser  # type: ignore[attr-defined]
from typing import Any

_MOST_PATTERN = 2_000  # characters; a longer one is not read
_MOST_STATES, _MOST_STEPS = 150, 40_000  # of the automaton, and of pairs of its states
_MANY = 8  # repeats; fewer are as many copies
_LOOKS = (_constants.ASSERT, _constants.ASSERT_NOT)
_REPEATS = (_constants.MAX_REPEAT, _constants.MIN_REPEAT)
_SETS = (_constants.LITERAL, _constants.NOT_LITERAL, _constants.ANY, _constants.IN)
_CATEGORIES = {
    _constants.CATEGORY_DIGIT: r"\d", _constants.CATEGORY_NOT_DIGIT: r"\D",
    _constants.CATEGORY_SPACE: r"\s", _constants.CATEGORY_NOT_SPACE: r"\S",
    _constants.CATEGORY_WORD: r"\w", _constants.CATEGORY_NOT_WORD: r"\W",
}  # fmt: skip
_SAMPLE = "aZ0_ \n\t-.,:;\"'()[]{}<>/\\|+*?=&%$#@!~^`\x00\xe9\u4e00"


def pathological(pattern: str) -> bool:
    """Return whether a pattern reads some texts in exponentially many ways before it fails.

    Bounded for hostile input: patterns beyond 2,000 characters, or 150 states of the automaton, are not read.
    """
    if len(pattern) > _MOST_PATTERN or not any(sign in pattern for sign in "*+{") or pattern.count("(") > 200:
        return False
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = _parser.parse(pattern)
        automaton = _Automaton(ignore_case=bool(tree.state.flags & re.IGNORECASE), sample=_sample(pattern))
        whole = automaton.add(tree)
        return any(
            automaton.can_fail or not (loop & whole.last.keys())
            for loop in _components(automaton.follow)
            if automaton.is_ambiguous(loop)
        )
    except (re.error, RecursionError, OverflowError, ValueError, _UnreadError):
        return False


class _UnreadError(Exception):
    """The automaton would have too many states or pairs, or one state for what depends on more than a character."""


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of a pattern: whether it matches the empty text, and the states of its first and last characters.

    A state counts as often as there are ways to begin or end with it.
    """

    is_empty: bool = True
    first: Counter[int] = field(default_factory=Counter)
    last: Counter[int] = field(default_factory=Counter)


class _Automaton:
    """The states of a pattern, one per character or set in it, and in how many ways one follows another (Glushkov)."""

    def __init__(self, *, ignore_case: bool, sample: str) -> None:
        self.sets: list[frozenset[str]] = []
        self.follow: list[Counter[int]] = []
        self.can_fail = False
        self._repeats = 0  # around the part that is being added
        self._ignore_case, self._sample = ignore_case, sample

    def add(self, tree: Any) -> _Part:
        """Add the parts of a sequence."""
        whole = _Part()
        for node in tree:
            part = self._node(*node)
            for state, ways in whole.last.items():
                self._lead(state, part.first, ways)
            whole = _Part(
                whole.is_empty and part.is_empty,
                whole.first + part.first if whole.is_empty else whole.first,
                whole.last + part.last if part.is_empty else part.last,
            )
        return whole

    def _node(self, kind: Any, value: Any) -> _Part:
        if kind in _SETS:
            return self._set(kind, value)
        if kind is _constants.SUBPATTERN:
            return self.add(value[3])
        if kind is _constants.BRANCH:
            arms = [self.add(arm) for arm in value[1]]
            firsts, lasts = [arm.first for arm in arms], [arm.last for arm in arms]
            return _Part(any(arm.is_empty for arm in arms), sum(firsts, Counter()), sum(lasts, Counter()))
        if kind in _REPEATS:
            return self._repeated(*value)
        if kind in _LOOKS and self._repeats:
            raise _UnreadError  # it may keep the rounds apart
        # A position, a look ahead or behind, and what does not backtrack read nothing here; a position may fail.
        self.can_fail |= kind in _LOOKS or (kind is _constants.AT and value is not _constants.AT_BEGINNING)
        return _Part()

    def _repeated(self, least: int, most: int, body: Any) -> _Part:
        """A part several times: a loop, or as many copies, each of which leads to the next."""
        self._repeats += 1
        copies = [self.add(body) for _ in range(most if most < _MANY else 1)]
        self._repeats -= 1
        if not copies:
            return _Part()
        for part, following in zip(copies, [*copies[1:], *(copies if most >= _MANY else ())], strict=False):
            for state, ways in part.last.items():
                self._lead(state, following.first, ways)
        lasts = [part.last for part in copies[max(min(least, len(copies)), 1) - 1 :]]
        return _Part(copies[0].is_empty or least == 0, copies[0].first, sum(lasts, Counter()))

    def _set(self, kind: Any, value: Any) -> _Part:
        if len(self.sets) >= _MOST_STATES:
            raise _UnreadError
        items = value if kind is _constants.IN else [(kind, value)]
        negated = any(item[0] is _constants.NEGATE for item in items)
        self.sets.append(frozenset(sign for sign in self._sample if self._matches(sign, items) != negated))
        self.follow.append(Counter())
        states = Counter({len(self.sets) - 1: 1})
        return _Part(is_empty=False, first=states, last=states)

    def _matches(self, sign: str, items: Iterable[tuple[Any, Any]]) -> bool:
        cases = {sign, sign.lower(), sign.upper()} if self._ignore_case else {sign}
        return any(_matches(case, kind, value) for kind, value in items for case in cases)

    def _lead(self, state: int, first: Mapping[int, int], ways: int) -> None:
        for following, times in first.items():
            self.follow[state][following] = min(self.follow[state][following] + ways * times, 2)

    def is_ambiguous(self, loop: frozenset[int]) -> bool:
        """Return whether one of these states, which lead to each other, leads back to itself by a text in two ways."""
        if any(ways > 1 for state in loop for following, ways in self.follow[state].items() if following in loop):
            return True
        pairs: dict[tuple[int, int], list[tuple[int, int]]] = {}
        waiting, steps = [(state, state) for state in loop], 0
        while waiting:
            pair = waiting.pop()
            if pair in pairs:
                continue
            left, right = (self.follow[state].keys() & loop for state in pair)
            pairs[pair] = [(a, b) for a in left for b in right if self.sets[a] & self.sets[b]]
            waiting += pairs[pair]
            steps += len(left) * len(right)
            if steps > _MOST_STEPS:
                raise _UnreadError
        places = {pair: place for place, pair in enumerate(pairs)}
        graph = [[places[pair] for pair in following] for following in pairs.values()]
        names = list(pairs)
        return any(
            any(names[place][0] == names[place][1] for place in group)
            and any(names[place][0] != names[place][1] for place in group)
            for group in _components(graph)
        )


def _matches(sign: str, kind: Any, value: Any) -> bool:
    if kind is _constants.LITERAL:
        return ord(sign) == int(value)
    if kind is _constants.NOT_LITERAL:
        return ord(sign) != int(value)
    if kind is _constants.RANGE:
        return int(value[0]) <= ord(sign) <= int(value[1])
    if kind is _constants.CATEGORY:
        return value in _CATEGORIES and re.match(_CATEGORIES[value], sign) is not None
    return sign != "\n" if kind is _constants.ANY else False


def _sample(pattern: str) -> str:
    """Characters that tell the sets of a pattern apart: its own with their neighbours, and some of each kind."""
    own = {chr(ord(sign) + step) for sign in pattern for step in (-1, 0, 1) if 0 <= ord(sign) + step < 0x110000}
    return "".join(sorted(own | set(_SAMPLE)))


def _components(graph: list[Any]) -> Iterator[frozenset[int]]:
    """The groups of nodes of a directed graph that lead to each other or to themselves (R. Tarjan, 1972)."""
    index: dict[int, int] = {}
    low: dict[int, int] = {}
    open_nodes: list[int] = []
    is_open: set[int] = set()
    for root in range(len(graph)):
        if root in index:
            continue
        work = [(root, iter(graph[root]))]
        index[root] = low[root] = len(index)
        open_nodes.append(root)
        is_open.add(root)
        while work:
            node, following = work[-1]
            for other in following:
                if other not in index:
                    index[other] = low[other] = len(index)
                    open_nodes.append(other)
                    is_open.add(other)
                    work.append((other, iter(graph[other])))
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
                        group.add(open_nodes.pop())
                    is_open -= group
                    if len(group) > 1 or node in graph[node]:
                        yield frozenset(group)
