"""Pattern and function of ``re`` -> how the time of the worst text grows with its length.

The automaton of a pattern suggests texts that can be read in many ways, and a matcher that counts its steps runs them:
only what it confirms is reported, with the text that shows it. Limits are on states and steps, so the same pattern
always has the same answer, after a bounded time.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from .ambiguity import Attack, Word, exponential_attacks, polynomial_attacks
from .automaton import automaton
from .matcher import count_steps
from .program import Program, UnreadError, compiled

METHODS = ("match", "fullmatch", "search", "findall")
_FEW, _FEW_LIMIT = (24, 6), 2_000  # repetitions and steps for choosing how a text begins and ends
_MOST_ENDS = 24
_EXPONENTIAL_STEPS, _EXPONENTIAL_LIMIT = 15_000, 100_000
_EXPONENTIAL_SIZES = range(4, 22, 2)
_EXPONENTIAL_POWER = 3.5  # of the repetitions between half of them and all, at least
_EXPONENTIAL_SHARE = 0.8  # of the doublings that the automaton predicts
_POLYNOMIAL_STEPS, _POLYNOMIAL_LIMIT = 8_000, 60_000
_POLYNOMIAL_SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
_LEAST_POWER = 1.6
_POWER_SHARE = 0.72


@dataclass(frozen=True, slots=True)
class WorstCase:
    """How matching may grow with the length of the text: as its ``degree``-th power, or exponentially (infinity).

    ``parts`` and ``suffix`` are the text that shows it: each part is a text once and a text many times.
    """

    degree: float
    parts: tuple[tuple[str, str], ...]
    suffix: str

    @property
    def is_exponential(self) -> bool:
        """Return whether each longer text multiplies the time."""
        return math.isinf(self.degree)

    def text(self, repetitions: int) -> str:
        """Return a text that takes long to match."""
        return "".join(once + many * repetitions for once, many in self.parts) + self.suffix


def worst_case(pattern: str | bytes, method: str = "search", flags: int = 0) -> WorstCase | None:
    """Return the worst case of matching a pattern; None if it is linear or cannot be decided.

    ``method`` is one of :data:`METHODS`; ``findall`` is for all functions that go on behind a match. Not decided are
    patterns of more than 2,000 characters, those with too many states, and conditions on groups.
    """
    try:
        program = compiled(pattern, flags)
        states = automaton(program, is_search=method in ("search", "findall"))
    except UnreadError:
        return None
    for attack in exponential_attacks(states):
        ended = _ended(program, attack, method)
        if _is_exponential(program, ended, method):
            return _reported(program, ended, math.inf)
    best: tuple[int, Attack] | None = None
    for attack in polynomial_attacks(states):
        if best is not None and attack.degree <= best[0]:
            continue
        for ended in _variants(program, attack, method):
            degree = _degree(program, ended, method)
            if degree > 1 and (best is None or degree > best[0]):
                best = (degree, ended)
            if degree > 1:
                break
    return None if best is None else _reported(program, best[1], float(best[0]))


def _reported(program: Program, attack: Attack, degree: float) -> WorstCase:
    def text(word: Word) -> str:
        return "".join(program.characters[letter] for letter in word)

    return WorstCase(degree, tuple((text(once), text(many)) for once, many in attack.parts), text(attack.suffix))


def _variants(program: Program, attack: Attack, method: str) -> Iterator[Attack]:
    """An attack with the end that costs most, and then between characters that keep a match from starting or ending."""
    ended = _ended(program, attack, method)
    yield ended
    if method in ("search", "findall") and not attack.parts[0][0]:
        many, rest = attack.parts[0][1], attack.parts[1:]
        between = (
            replace(attack, parts=(((letter,), many), *rest), suffix=(letter,)) for letter in range(_letters(program))
        )
        best = max(between, key=lambda other: _few_steps(program, other, method))
        yield best
        yield _ended(program, best, method)


def _letters(program: Program) -> int:
    return min(len(program.characters), _MOST_ENDS)


def _ended(program: Program, attack: Attack, method: str) -> Attack:
    """An attack with the end that costs most: one that makes the match fail late."""
    newline = (program.newline & -program.newline).bit_length() - 1
    ends: list[Word] = [(), *((letter,) for letter in range(_letters(program))), (newline, newline)]
    return max(
        (replace(attack, suffix=end) for end in ends),
        key=lambda ended: _few_steps(program, ended, method),
    )


def _few_steps(program: Program, attack: Attack, method: str) -> list[int]:
    """The steps of a few repetitions, the most first: with fewer, a pattern that asks for more fails early."""
    return [count_steps(program, attack.text(size), method, _FEW_LIMIT) for size in _FEW]


def _is_exponential(program: Program, attack: Attack, method: str) -> bool:
    for size in _EXPONENTIAL_SIZES:
        steps = count_steps(program, attack.text(size), method, _EXPONENTIAL_LIMIT)
        if steps >= _EXPONENTIAL_STEPS:
            half = count_steps(program, attack.text(size // 2), method, _EXPONENTIAL_LIMIT)
            return math.log2(steps / half) >= max(_EXPONENTIAL_POWER, _EXPONENTIAL_SHARE * size / 2)
    return False


def _degree(program: Program, attack: Attack, method: str) -> int:
    """The degree that the steps show: that of the automaton where they come near it."""
    before = 0
    power = 1.0
    for size in _POLYNOMIAL_SIZES:
        steps = count_steps(program, attack.text(size), method, _POLYNOMIAL_LIMIT)
        power = math.log2(steps / before) if before else 1.0
        if steps >= _POLYNOMIAL_STEPS and before:
            break
        before = steps
    if power < _LEAST_POWER:
        return 1
    return attack.degree if _POWER_SHARE * attack.degree <= power <= attack.degree + 0.5 else round(power)
