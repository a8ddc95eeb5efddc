"""Program and text -> the number of steps that CPython's matcher takes, up to a limit.

The matcher tries alternatives in the order of CPython's (``Modules/_sre/sre_lib.h``): a search begins at each
character, a repeat of one character reads as much as it can and gives back one by one, and a loop does not begin
another round where the last one began. A step is an instruction or a character read. Nothing depends on a clock.
"""

from __future__ import annotations

from collections.abc import Sequence

from .program import Mode, Op, Position, Program


class StepLimitError(Exception):
    """The match takes more steps than the limit."""


def count_steps(program: Program, text: Sequence[int], method: str, limit: int) -> int:
    """Return the steps of a function of ``re`` on a text, given as indices into the program's characters.

    ``method`` is ``match``, ``fullmatch``, ``search``, or ``findall`` for all functions that go on behind a match.
    The result is ``limit`` where there are as many or more.
    """
    matcher = _Matcher(program, text, limit, is_full=method == "fullmatch")
    try:
        start = 0
        while start <= len(text):
            end = matcher.match(start)
            if method in ("match", "fullmatch") or (method == "search" and end is not None):
                break
            start = max(start + 1, end if end is not None else 0)
    except StepLimitError:
        return limit
    return matcher.steps


def match_end(program: Program, text: Sequence[int], limit: int) -> int | None:
    """Return where a match at the start of a text ends; None if there is none.

    Raises:
        StepLimitError: it takes more steps than the limit.
    """
    return _Matcher(program, text, limit, is_full=False).match(0)


class _Matcher:
    """One run over a text. ``steps`` counts what it has done so far."""

    def __init__(self, program: Program, text: Sequence[int], limit: int, *, is_full: bool) -> None:
        self._program, self._text, self._limit, self._is_full = program, text, limit, is_full
        self.steps = 0

    def match(self, start: int) -> int | None:
        """Match at one position; return where the match ends."""
        ended = self._run(0, start, (-1,) * self._program.slots)
        return None if ended is None else ended[0]

    def _run(self, pc: int, place: int, slots: tuple[int, ...]) -> tuple[int, tuple[int, ...]] | None:
        """Run from an instruction until the program or the body of a look or of an atomic group ends."""
        code, text, size = self._program.code, self._text, len(self._text)
        # What is left to try: an instruction, a position, the slots, and for a repeat its length now and its limit.
        waiting: list[tuple[int, int, tuple[int, ...], int, int]] = []
        while True:
            self.steps += 1
            if self.steps >= self._limit:
                raise StepLimitError
            instruction = code[pc]
            op = instruction[0]
            fails = False
            if op == Op.READ:
                if place < size and instruction[1] >> text[place] & 1:
                    pc, place = pc + 1, place + 1
                else:
                    fails = True
            elif op == Op.MANY:
                _, mask, least, most, mode = instruction
                longest = 0
                bound = min(least if mode == Mode.LAZY else most, size - place)
                while longest < bound and mask >> text[place + longest] & 1:
                    longest += 1
                self.steps += longest
                if longest < least:
                    fails = True
                else:
                    if mode == Mode.LAZY or (mode == Mode.GREEDY and longest > least):
                        waiting.append((pc, place, slots, longest, least if mode == Mode.GREEDY else most))
                    pc, place = pc + 1, place + longest
            elif op == Op.SPLIT:
                waiting.append((instruction[2], place, slots, -1, 0))
                pc = instruction[1]
            elif op == Op.JUMP:
                pc = instruction[1]
            elif op == Op.ENTER:
                slots = _replaced(slots, instruction[1], 0, -1)
                pc = instruction[2]
            elif op == Op.LOOP:
                _, slot, least, most, is_greedy, body = instruction
                rounds = slots[slot]
                again = _replaced(slots, slot, rounds + 1, place)
                if rounds < least:
                    slots, pc = _replaced(slots, slot, rounds + 1, slots[slot + 1]), body
                elif rounds >= most or slots[slot + 1] == place:
                    pc += 1
                elif is_greedy:
                    waiting.append((pc + 1, place, slots, -1, 0))
                    slots, pc = again, body
                else:
                    waiting.append((body, place, again, -1, 0))
                    pc += 1
            elif op == Op.AT:
                fails = not self._is_at(instruction[1], place)
                pc += 1
            elif op == Op.LOOK:
                _, is_negated, back, end = instruction
                start = place if back < 0 else place - back
                seen = self._run(pc + 1, start, slots) if start >= 0 else None
                fails = (seen is None) != bool(is_negated)
                if seen is not None and not is_negated:
                    slots = seen[1]
                pc = end + 1
            elif op == Op.ATOMIC:
                seen = self._run(pc + 1, place, slots)
                if seen is None:
                    fails = True
                else:
                    (place, slots), pc = seen, instruction[1] + 1
            elif op == Op.SAVE:
                slots = (*slots[: instruction[1]], place, *slots[instruction[1] + 1 :])
                pc += 1
            elif op == Op.REFERENCE:
                start, end = slots[instruction[1]], slots[instruction[2]]
                length = end - start
                self.steps += max(length, 0)
                if start < 0 or length < 0 or text[start:end] != text[place : place + length]:
                    fails = True
                else:
                    pc, place = pc + 1, place + length
            elif op == Op.MATCH and self._is_full and place < size:
                fails = True
            else:
                return place, slots
            while fails:
                if not waiting:
                    return None
                pc, place, slots, length, bound = waiting.pop()
                if length < 0:
                    fails = False
                    continue
                mask, mode = code[pc][1], code[pc][4]
                self.steps += 1
                if mode == Mode.GREEDY:
                    length -= 1
                    if length > bound:
                        waiting.append((pc, place, slots, length, bound))
                elif length < bound and place + length < size and mask >> text[place + length] & 1:
                    length += 1
                    waiting.append((pc, place, slots, length, bound))
                else:
                    continue
                pc, place, fails = pc + 1, place + length, False

    def _is_at(self, position: int, place: int) -> bool:
        text, program = self._text, self._program
        if position in (Position.BEGIN, Position.BEGIN_LINE):
            return place == 0 or (position == Position.BEGIN_LINE and bool(program.newline >> text[place - 1] & 1))
        if position in (Position.END, Position.END_LINE, Position.END_TEXT):
            left = len(text) - place
            is_newline = left > 0 and bool(program.newline >> text[place] & 1)
            lines = {Position.END: left == 1, Position.END_LINE: True, Position.END_TEXT: False}[Position(position)]
            return left == 0 or (lines and is_newline)
        before = place > 0 and bool(program.word >> text[place - 1] & 1)
        after = place < len(text) and bool(program.word >> text[place] & 1)
        return (before != after) == (position == Position.BOUNDARY)


def _replaced(slots: tuple[int, ...], slot: int, first: int, second: int) -> tuple[int, ...]:
    return (*slots[:slot], first, second, *slots[slot + 2 :])
