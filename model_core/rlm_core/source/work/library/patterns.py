"""Regular expressions that may take exponential time: a pattern -> whether quantifiers are nested over one another.

In ``(a+)+$`` a text of n characters can be split in 2^n ways, and all are tried when the end does not match.
"""

from __future__ import annotations

import re
import warnings
from re import _constants, _parser  # type: ignore[attr-defined]
from typing import Any

_MOST_PATTERN = 2_000  # characters; a longer one is not read
_MANY = 8  # repeats; a smaller bound of both quantifiers keeps the number of ways small
_MOST_NODES = 5_000


def pathological(pattern: str) -> bool:
    """Whether a repeated group repeats inside, or has alternatives that match the same text, and something follows.

    Bounded for hostile input: patterns beyond 2,000 characters or 5,000 nodes are not read.
    """
    if len(pattern) > _MOST_PATTERN or not any(sign in pattern for sign in "*+{"):
        return False
    if pattern.count("(") > 200:
        return False
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = _parser.parse(pattern)
    except (re.error, RecursionError, OverflowError, ValueError):
        return False
    nodes = list(_walk(tree))
    return any(_is_nested(node) for node in nodes)


def _walk(tree: Any) -> Any:
    stack, count = [tree], 0
    while stack and count < _MOST_NODES:
        current = stack.pop()
        count += 1
        if isinstance(current, _parser.SubPattern):
            stack += list(current)
        elif isinstance(current, (tuple, list)):
            yield current
            stack += [part for part in current if isinstance(part, (tuple, list, _parser.SubPattern))]


def _repeat(node: Any) -> tuple[int, Any] | None:
    """The largest number of repeats of a quantifier that can backtrack, and what it repeats."""
    kinds = (_constants.MAX_REPEAT, _constants.MIN_REPEAT)
    is_repeat = isinstance(node, tuple) and len(node) == 2 and node[0] in kinds
    if is_repeat and isinstance(node[1], tuple) and len(node[1]) == 3:
        _, most, body = node[1]
        return int(most), body
    return None


def _is_nested(node: Any) -> bool:
    repeat = _repeat(node)
    if repeat is None or repeat[0] < _MANY:
        return False
    body = _unwrapped(repeat[1])
    if len(body) == 1 and body[0][0] == _constants.BRANCH:
        return _has_overlap(body[0][1][1])
    # ``(x a+)+``: the inner repeat is ambiguous only if nothing that must follow it separates the rounds.
    inner = [index for index, part in enumerate(body) if (found := _repeat(part)) is not None and found[0] >= _MANY]
    if not inner:
        return False
    others = [part for index, part in enumerate(body) if index not in inner and not _is_optional(part)]
    if not others:
        return True
    repeated = [_first(_repeat(body[index])[1]) for index in inner]  # type: ignore[index]
    return all(_first([part]) is not None and _first([part]) in repeated for part in others)


def _unwrapped(body: Any) -> list[Any]:
    """The parts of a group, without groups around a single part."""
    parts = list(body)
    for _ in range(20):
        if len(parts) == 1 and parts[0][0] == _constants.SUBPATTERN:
            parts = list(parts[0][1][3])
        else:
            break
    return [
        part[1][3][0] if part[0] == _constants.SUBPATTERN and len(list(part[1][3])) == 1 else part for part in parts
    ]


def _is_optional(part: Any) -> bool:
    repeat = part[1] if part[0] in (_constants.MAX_REPEAT, _constants.MIN_REPEAT) else None
    return repeat is not None and repeat[0] == 0


def _first(body: Any) -> str | None:
    parts = list(body)
    return repr(parts[0]) if parts else None


def _has_overlap(branches: Any) -> bool:
    """Whether two alternatives begin alike, or one of them repeats without end."""
    starts = [_first(branch) for branch in branches]
    if len(set(starts)) < len(starts):
        return True
    return any(
        (repeat := _repeat(part)) is not None and repeat[0] >= _MANY and len(list(branch)) == 1
        for branch in branches
        for part in list(branch)[:1]
    )
