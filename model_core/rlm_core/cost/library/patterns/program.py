"""Pattern -> program: the instructions of a backtracking matcher, over classes of characters.

Input: a pattern as ``re`` takes it, read by the parser of ``re`` itself. Output: a :class:`Program`, which
:mod:`.matcher` runs and whose reading instructions are the states of the automaton of :mod:`.ambiguity`. Repeats of
one character are one instruction, as they are in CPython; short counted repeats of groups are as many copies.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum
from re import _constants, _parser  # type: ignore[attr-defined]
from typing import Any

_MOST_PATTERN = 2_000  # characters; a longer one is not read
_MOST_GROUPS = 200
_MOST_INSTRUCTIONS = 600
_MOST_SAMPLES = 400
_MOST_COPIES = 8  # of a group; one that is repeated more often is a loop that counts
_MOST_CHARACTERS = 40  # single characters that a counted repeat is written out as
_LOOKS = (_constants.ASSERT, _constants.ASSERT_NOT)
_SETS = (_constants.LITERAL, _constants.NOT_LITERAL, _constants.ANY, _constants.IN)
_CATEGORIES = {
    _constants.CATEGORY_DIGIT: r"\d", _constants.CATEGORY_NOT_DIGIT: r"\D",
    _constants.CATEGORY_SPACE: r"\s", _constants.CATEGORY_NOT_SPACE: r"\S",
    _constants.CATEGORY_WORD: r"\w", _constants.CATEGORY_NOT_WORD: r"\W",
}  # fmt: skip
# Characters of all kinds that sets of characters often tell apart; the first ones make the most readable witnesses.
_SAMPLE = "a0 !Z_x\t\n-.,:;\"'()[]{}<>/\\|+*?=&%$#@~^`\x00\x0b\x1f\x7f\x85\xa0\xb2\xe9\u0663\u4e00\U0001f600"


class UnreadError(Exception):
    """The pattern is too large, or has parts that are not decided."""


class Op(IntEnum):
    """The instructions; each is a tuple of its operation and operands."""

    READ = 0  # (mask)
    MANY = 1  # (mask, least, most, mode): one character several times
    SPLIT = 2  # (first, second): two ways to go on, in this order
    JUMP = 3  # (target)
    ENTER = 4  # (slot, target of the loop instruction): begin to count the rounds of a loop
    LOOP = 5  # (slot, least, most, is_greedy, body): after a round, begin another one or go on
    AT = 6  # (position)
    LOOK = 7  # (is_negated, characters to step back or -1 for ahead, end): the body follows
    LOOK_END = 8
    ATOMIC = 9  # (end): the body follows
    ATOMIC_END = 10
    SAVE = 11  # (slot)
    REFERENCE = 12  # (slot of the start, slot of the end)
    MATCH = 13


class Mode(IntEnum):
    """How a repeat tries its lengths."""

    LAZY = 0
    GREEDY = 1
    POSSESSIVE = 2


class Position(IntEnum):
    """The positions that a pattern may ask for."""

    BEGIN = 0
    BEGIN_LINE = 1
    END = 2  # of the text, or before a last newline
    END_LINE = 3
    END_TEXT = 4
    BOUNDARY = 5
    NOT_BOUNDARY = 6


Instruction = tuple[int, ...]
UNLIMITED = 1 << 30


@dataclass(frozen=True, slots=True)
class Program:
    """A compiled pattern. ``slots`` counts the values that a match keeps: rounds of loops, and groups referred to.

    Masks are sets of indices into ``characters``, one per class of characters that the pattern distinguishes.
    """

    code: tuple[Instruction, ...]
    slots: int
    characters: str
    word: int
    newline: int


def compiled(pattern: str | bytes, flags: int = 0) -> Program:
    """Return the program of a pattern.

    Raises:
        UnreadError: it is not a valid pattern, is too large, or has parts that are not decided.
    """
    opening = pattern.count("(") if isinstance(pattern, str) else pattern.count(b"(")
    if len(pattern) > _MOST_PATTERN or opening > _MOST_GROUPS:
        raise UnreadError
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = _parser.parse(pattern, flags & ~re.DEBUG)
        return _Compiler(tree, is_text=isinstance(pattern, str)).program()
    except (re.error, RecursionError, OverflowError, ValueError, TypeError) as error:
        raise UnreadError from error


class _Compiler:
    """Writes the instructions of one pattern."""

    def __init__(self, tree: Any, *, is_text: bool) -> None:
        self._tree, self._is_text = tree, is_text
        self._code: list[Instruction] = []
        self._slots = 0
        self._referred = {value: None for kind, value in _nodes(tree) if kind is _constants.GROUPREF}
        self._groups: dict[int, int] = {}
        self._sample = self._characters()
        self._masks: dict[Any, int] = {}

    def program(self) -> Program:
        for group in self._referred:
            self._groups[group] = self._slot(2)
        self._sequence(self._tree, self._tree.state.flags)
        self._emit(Op.MATCH)
        flags = self._tree.state.flags
        word = self._mask(_constants.IN, [(_constants.CATEGORY, _constants.CATEGORY_WORD)], flags)
        newline = self._mask(_constants.LITERAL, 10, flags)
        return self._merged(word, newline)

    def _merged(self, word: int, newline: int) -> Program:
        """The program with one character for all those that it does not tell apart."""
        masks = [word, newline, *(instruction[1] for instruction in self._code if instruction[0] <= Op.MANY)]
        first: dict[tuple[bool, ...], int] = {}
        for place in range(len(self._sample)):
            first.setdefault(tuple(bool(mask >> place & 1) for mask in masks), place)
        kept = sorted(first.values())

        def merged(mask: int) -> int:
            return sum(1 << new for new, old in enumerate(kept) if mask >> old & 1)

        code = tuple((op, merged(rest[0]), *rest[1:]) if op <= Op.MANY else (op, *rest) for op, *rest in self._code)
        characters = "".join(self._sample[place] for place in kept)
        return Program(code, self._slots, characters, merged(word), merged(newline))

    def _characters(self) -> str:
        """Characters that tell the sets of the pattern apart: the ends of its ranges with their neighbours."""
        points: dict[int, None] = dict.fromkeys(map(ord, _SAMPLE))
        for kind, value in _nodes(self._tree):
            ends = (value,) if kind in (_constants.LITERAL, _constants.NOT_LITERAL) else ()
            for end in value if kind is _constants.RANGE else ends:
                points.update(dict.fromkeys(int(end) + step for step in (0, 1, -1)))
                points.update(dict.fromkeys(ord(case) for case in chr(end).swapcase() if len(case) == 1))
            if len(points) > _MOST_SAMPLES:
                raise UnreadError
        most = 0x110000 if self._is_text else 0x100
        return "".join(chr(point) for point in points if 0 <= point < most and not 0xD800 <= point < 0xE000)

    def _emit(self, *instruction: int) -> int:
        if len(self._code) >= _MOST_INSTRUCTIONS:
            raise UnreadError
        self._code.append(instruction)
        return len(self._code) - 1

    def _slot(self, count: int = 1) -> int:
        self._slots += count
        return self._slots - count

    def _sequence(self, tree: Any, flags: int) -> None:
        for kind, value in tree:
            self._node(kind, value, flags)

    def _node(self, kind: Any, value: Any, flags: int) -> None:
        if kind in _SETS:
            self._emit(Op.READ, self._mask(kind, value, flags))
        elif kind is _constants.SUBPATTERN:
            self._group(value, flags)
        elif kind is _constants.BRANCH:
            self._branch(value[1], flags)
        elif kind in (_constants.MAX_REPEAT, _constants.MIN_REPEAT, _constants.POSSESSIVE_REPEAT):
            self._repeat(kind, value, flags)
        elif kind is _constants.ATOMIC_GROUP:
            self._atomic(value, flags)
        elif kind in _LOOKS:
            self._look(kind, value, flags)
        elif kind is _constants.AT:
            self._emit(Op.AT, _position(value, flags))
        elif kind is _constants.GROUPREF:
            slot = self._groups[value]
            self._emit(Op.REFERENCE, slot, slot + 1)
        elif kind is _constants.FAILURE:
            self._emit(Op.READ, 0)
        else:
            raise UnreadError  # a condition on a group

    def _group(self, value: Any, flags: int) -> None:
        number, added, removed, body = value
        slot = self._groups.get(number)
        if slot is not None:
            self._emit(Op.SAVE, slot)
        self._sequence(body, (flags | added) & ~removed)
        if slot is not None:
            self._emit(Op.SAVE, slot + 1)

    def _branch(self, arms: Any, flags: int) -> None:
        jumps = []
        for arm in arms[:-1]:
            split = self._emit(Op.SPLIT, 0, 0)
            self._sequence(arm, flags)
            jumps.append(self._emit(Op.JUMP, 0))
            self._code[split] = (Op.SPLIT, split + 1, len(self._code))
        self._sequence(arms[-1], flags)
        for jump in jumps:
            self._code[jump] = (Op.JUMP, len(self._code))

    def _atomic(self, body: Any, flags: int) -> None:
        start = self._emit(Op.ATOMIC, 0)
        self._sequence(body, flags)
        self._code[start] = (Op.ATOMIC, self._emit(Op.ATOMIC_END))

    def _look(self, kind: Any, value: Any, flags: int) -> None:
        direction, body = value
        back = -1 if direction >= 0 else body.getwidth()[0]
        start = self._emit(Op.LOOK, 0, 0, 0)
        self._sequence(body, flags)
        self._code[start] = (Op.LOOK, int(kind is _constants.ASSERT_NOT), back, self._emit(Op.LOOK_END))

    def _repeat(self, kind: Any, value: Any, flags: int) -> None:
        least, most, body = value
        unlimited = most == _constants.MAXREPEAT
        most = UNLIMITED if unlimited else int(most)
        single = _single(body)
        if single is not None:
            mode = {_constants.MIN_REPEAT: Mode.LAZY, _constants.MAX_REPEAT: Mode.GREEDY}.get(kind, Mode.POSSESSIVE)
            self._characters_repeated(self._mask(*single, flags), int(least), most, mode)
        elif kind is _constants.POSSESSIVE_REPEAT:
            start = self._emit(Op.ATOMIC, 0)
            self._rounds(int(least), most, body, flags, is_greedy=True)
            self._code[start] = (Op.ATOMIC, self._emit(Op.ATOMIC_END))
        else:
            self._rounds(int(least), most, body, flags, is_greedy=kind is _constants.MAX_REPEAT)

    def _characters_repeated(self, mask: int, least: int, most: int, mode: Mode) -> None:
        written = least if least <= _MOST_CHARACTERS else 0
        for _ in range(written):
            self._emit(Op.READ, mask)
        if most - written <= _MOST_COPIES:
            self._optional([(Op.READ, mask)] * (most - written), mode)
        else:
            self._emit(Op.MANY, mask, least - written, most if most == UNLIMITED else most - written, mode)

    def _optional(self, instructions: list[Instruction], mode: Mode) -> None:
        """Instructions of which each is run only after those before it, or none is."""
        start = self._emit(Op.ATOMIC, 0) if instructions and mode == Mode.POSSESSIVE else None
        end = len(self._code) + 2 * len(instructions)
        for instruction in instructions:
            ways = (len(self._code) + 1, end)
            self._emit(Op.SPLIT, *(ways[::-1] if mode == Mode.LAZY else ways))
            self._emit(*instruction)
        if start is not None:
            self._code[start] = (Op.ATOMIC, self._emit(Op.ATOMIC_END))

    def _rounds(self, least: int, most: int, body: Any, flags: int, *, is_greedy: bool) -> None:
        copies = 0
        if most <= _MOST_COPIES:
            copies = least
        elif 1 < least <= _MOST_COPIES:
            copies = least - 1
        for _ in range(copies):
            self._sequence(body, flags)
        least, most = least - copies, most if most == UNLIMITED else most - copies
        if copies + most <= _MOST_COPIES:
            splits = []
            for _ in range(most):
                splits.append(self._emit(Op.SPLIT, 0, 0))
                self._sequence(body, flags)
            for split in splits:
                ways = (split + 1, len(self._code))
                self._code[split] = (Op.SPLIT, *(ways if is_greedy else ways[::-1]))
            return
        slot = self._slot(2)  # the rounds, and where the last one began
        enter = self._emit(Op.ENTER, slot, 0)
        self._sequence(body, flags)
        loop = self._emit(Op.LOOP, slot, least, most, int(is_greedy), enter + 1)
        self._code[enter] = (Op.ENTER, slot, loop)

    def _mask(self, kind: Any, value: Any, flags: int) -> int:
        """The characters of a set, as bits."""
        items = tuple(value) if kind is _constants.IN else ((kind, value),)
        if kind is _constants.NOT_LITERAL:
            items = ((_constants.NEGATE, None), (_constants.LITERAL, value))
        key = (items, flags)
        if key not in self._masks:
            negated = items[0][0] is _constants.NEGATE
            self._masks[key] = sum(
                1 << place for place, sign in enumerate(self._sample) if self._matches(sign, items, flags) != negated
            )
        return self._masks[key]

    def _matches(self, sign: str, items: Iterable[tuple[Any, Any]], flags: int) -> bool:
        cases = {sign, sign.lower(), sign.upper()} if flags & re.IGNORECASE else {sign}
        is_ascii = not self._is_text or bool(flags & re.ASCII)
        return any(
            _matches(case, kind, value, is_ascii=is_ascii, dot_all=bool(flags & re.DOTALL))
            for kind, value in items
            for case in cases
            if len(case) == 1
        )


def _matches(sign: str, kind: Any, value: Any, *, is_ascii: bool, dot_all: bool) -> bool:
    if kind is _constants.LITERAL:
        return ord(sign) == int(value)
    if kind is _constants.RANGE:
        return int(value[0]) <= ord(sign) <= int(value[1])
    if kind is _constants.CATEGORY:
        name = _CATEGORIES.get(value)
        return name is not None and re.match(name, sign, re.ASCII if is_ascii else 0) is not None
    return (dot_all or sign != "\n") if kind is _constants.ANY else False


def _position(kind: Any, flags: int) -> Position:
    lines = bool(flags & re.MULTILINE)
    if kind is _constants.AT_BEGINNING:
        return Position.BEGIN_LINE if lines else Position.BEGIN
    if kind is _constants.AT_END:
        return Position.END_LINE if lines else Position.END
    return {
        _constants.AT_BEGINNING_STRING: Position.BEGIN, _constants.AT_END_STRING: Position.END_TEXT,
        _constants.AT_BOUNDARY: Position.BOUNDARY, _constants.AT_NON_BOUNDARY: Position.NOT_BOUNDARY,
    }[kind]  # fmt: skip


def _single(body: Any) -> tuple[Any, Any] | None:
    """The one set of characters that a body consists of; None where it has other parts or keeps a group."""
    if len(body) != 1:
        return None
    kind, value = body[0]
    if kind is _constants.SUBPATTERN and value[0] is None and not value[1] and not value[2]:
        return _single(value[3])
    return (kind, value) if kind in _SETS else None


def _nodes(tree: Any) -> Iterable[tuple[Any, Any]]:
    """All nodes of a parsed pattern, items of sets among them."""
    waiting = [tree]
    while waiting:
        for item in waiting.pop():
            if not isinstance(item, tuple) or len(item) != 2:
                continue
            kind, value = item
            yield kind, value
            if kind is _constants.IN:
                yield from value
            elif kind is _constants.BRANCH:
                waiting += value[1]
            elif isinstance(value, _parser.SubPattern):
                waiting.append(value)
            elif isinstance(value, tuple):
                waiting += [part for part in value if isinstance(part, _parser.SubPattern)]
