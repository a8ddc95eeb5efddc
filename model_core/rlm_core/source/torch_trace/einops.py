"""Rearrangements by an einops pattern such as ``b (h d) n -> b h n d``."""

from __future__ import annotations

import math

from .functions import rule, tensor
from .recorder import Recorder
from .shaping import moved, viewed
from .values import Value


def embed_pattern(side: str) -> list[tuple[str, ...]]:
    """One side of an einops pattern as groups of names; raises ValueError for what is not such a pattern."""
    groups: list[tuple[str, ...]] = []
    inside: list[str] | None = None
    for word in side.replace("(", " ( ").replace(")", " ) ").split():
        if word == "(":
            inside = []
        elif word == ")":
            groups.append(tuple(inside or ()))
            inside = None
        elif inside is not None:
            inside.append(word)
        else:
            groups.append((word,))
    return groups


@rule("rearrange", "einops_repeat", "einops_reduce")
def rearrange(recorder: Recorder, args: list[Value], named: dict[str, Value]) -> Value:
    """Rearrangement by an einops pattern such as ``b (h d) n -> b h n d``."""
    x = tensor(args[0])
    left, right = (embed_pattern(side) for side in str(args[1]).split("->"))
    if ("...",) in left:
        spare = [(chr(0x100 + axis),) for axis in range(len(x.shape) - len(left) + 1)]
        left, right = (
            [part for group in side for part in (spare if group == ("...",) else [group])] for side in (left, right)
        )
    sizes = {name: int(size) for name, size in named.items() if isinstance(size, int)} | {"1": 1}
    for group, size in zip(left, x.shape, strict=True):
        open_names = [name for name in group if name not in sizes]
        known = math.prod(sizes[name] for name in group if name in sizes)
        sizes.update(dict.fromkeys(open_names[:1], size // max(known, 1)))
    shape = [math.prod(sizes[name] for name in group) for group in right]
    flat = [[name for group in side for name in group if name != "1"] for side in (left, right)]
    kept = [name for name in flat[1] if name in flat[0]]
    if math.prod(shape) < x.elements:
        return recorder.add("sum", "reduction", [x], shape, flops=float(x.elements))
    if kept == flat[0] and len(kept) == len(flat[1]):
        return viewed(recorder, x, shape)
    return moved(recorder, "copy", [x], shape)
