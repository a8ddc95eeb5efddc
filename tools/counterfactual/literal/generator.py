"""Seed -> groups of a program whose text fixes its cost and edits of it; the same seed gives the same groups.

Templates take turns. Sizes are drawn evenly on the logarithmic axis of predicted time or memory, with fewer in the
slowest decades, whose measurement takes longest. A program that is predicted to be slow or large brings smaller
versions of itself, from which its cost is extrapolated.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from random import Random

from ..vocabulary import seeded
from . import sizes
from .rendering import PLACEMENTS, Module, Specification, render
from .templates import TEMPLATES
from .words import DECOYS, GLUE, PARAMETERS

# Shares and bounds of the predicted seconds of a call.
_DECADES = ((0.92, 1e-7, 0.008), (0.02, 0.008, 0.06), (0.005, 0.06, 0.8), (0.055, 0.8, 100.0))
_LARGEST = 8e9  # bytes
# Beyond these a program is measured at smaller sizes.
MOST_SECONDS, MOST_MEMORY = 1.3, 1e8
# For most programs the limit is lower, or their measurement would take days.
_USUAL_MOST_SECONDS, _UNUSUAL = 0.06, 0.06
_POINT_SECONDS, _POINT_MEMORY = 0.01, 2e7
_POINT_STEP, _POINTS = 2.0, 3
NEUTRAL = "neutral-"
_EDITS = 2
_SLOWEST_EDIT, _LARGEST_EDIT = 300.0, 2e10


@dataclass(frozen=True, slots=True)
class Program:
    """A module with the size of its work; ``points`` are the same at smaller sizes, to extrapolate from."""

    specification: Specification
    module: Module
    points: tuple[tuple[int, Module], ...]


@dataclass(frozen=True, slots=True)
class Group:
    """A base program and its edits by kind; the whole group is in one split."""

    name: str
    family: str
    base: Program
    edits: tuple[tuple[str, Program], ...]


def generate(seed: int, start: int, end: int) -> Iterator[Group]:
    """The groups with the numbers from ``start`` to ``end``; a number gives the same group on every machine."""
    names = sorted(TEMPLATES)
    for number in range(start, end):
        turn, at = divmod(number, len(names))
        order = list(names)
        seeded("literal-order", seed, turn).shuffle(order)
        yield group(seed, number, order[at])


def group(seed: int, number: int, template: str) -> Group:
    """One group of a template."""
    rng = seeded("literal", seed, number)
    base = specify(template, f"literal:{seed}:{number}", rng)
    edits: list[tuple[str, Program]] = []
    wanted = rng.choices(range(_EDITS + 1), (0.45, 0.35, 0.2))[0]
    texts = {render(base).text}
    for kind, edit in edits_of(base, rng):
        if len(edits) == wanted:
            break
        module = render(edit)
        if (
            module.text not in texts
            and edit.seconds(edit.size) < _SLOWEST_EDIT
            and edit.memory(edit.size) < _LARGEST_EDIT
        ):
            texts.add(module.text)
            edits.append((kind, program(edit)))
    return Group(f"literal/{template}/{seed}-{number:05d}", f"literal/{template}", program(base), tuple(edits))


def specify(template: str, seed: str, rng: Random) -> Specification:
    """A specification of a program of a template, in a drawn style and size."""
    chosen = TEMPLATES[template]
    variant = 0 if rng.random() < 0.6 else rng.randrange(len(chosen.variants))
    statements = chosen.variants[variant].statements
    wrap = _repetitions(rng) if rng.random() < 0.12 and not _returns(statements) else 0
    specification = Specification(
        chosen,
        variant,
        chosen.low,
        seed,
        placement=rng.choices(PLACEMENTS, (5, 3, 3, 1, 2, 2, 1))[0],
        form=rng.choice(sizes.FORMS),
        depth=rng.choices(range(5), (10, 4, 2, 1, 1))[0],
        method=rng.random() < 0.2,
        wrap=wrap,
        early=rng.random() < 0.02,
        glue=tuple(rng.sample(range(len(GLUE)), rng.choices(range(4), (6, 2, 1, 1))[0])),
        parameter=rng.randrange(len(PARAMETERS)) if rng.random() < 0.15 else -1,
        decoys=tuple(rng.sample(range(len(DECOYS)), rng.choices(range(3), (7, 2, 1))[0])),
        docstring=rng.random() < 0.25,
        hints=rng.random() < 0.25,
        comments=int(rng.random() < 0.2),
        layout=rng.choice((0, 0, 0, 1, 4)),
        by_name=rng.random() < 0.3,
        swapped=rng.random() < 0.2,
    )
    if specification.placement == "class" and (specification.depth or not specification.method):
        specification = replace(specification, placement="module")
    return replace(specification, size=_size(specification, rng))


def _size(specification: Specification, rng: Random) -> int:
    low, high = specification.template.low, specification.template.high
    by_time = specification.code.seconds, rng.choices(_DECADES, [share for share, _, _ in _DECADES])[0]
    _, least, most = by_time[1]
    wanted = math.exp(rng.uniform(math.log(least), math.log(most)))
    size = sizes.size_for(lambda size: specification.seconds(size), wanted, low, high)
    if specification.code.memory(10 * low) > 2 * specification.code.memory(low) and rng.random() < 0.25:
        # Memory spans more decades than the time of cheap allocations does.
        wanted = math.exp(rng.uniform(math.log(100), math.log(_LARGEST)))
        by_memory = sizes.size_for(specification.code.memory, wanted, low, high)
        size = by_memory if specification.seconds(by_memory) < most else size
    if _is_constant(specification):
        size = round(math.exp(rng.uniform(math.log(low), math.log(min(high, 10**11)))))
    size = min(size, sizes.size_for(specification.code.memory, _LARGEST, low, high))
    if specification.template.high <= 60:
        return size
    return max(sizes.rounded(size, rng.choice((1, 1, 1, 2, 2, 3, 0, -2, -10))), low)


def _is_constant(specification: Specification) -> bool:
    template, cost = specification.template, specification.code.seconds
    return cost(template.low) * 1.5 > cost(min(template.high, 10**6))


def _repetitions(rng: Random) -> int:
    return sizes.rounded(round(math.exp(rng.uniform(math.log(3), math.log(3000)))), 1)


def _returns(statements: tuple[str, ...]) -> bool:
    return any("return" in line for line in statements)


def edits_of(base: Specification, rng: Random) -> Iterator[tuple[str, Specification]]:
    """Kinds of edits with the specification after each, in a random order; some change no text."""
    kinds = [
        "size",
        "size",
        "size",
        "variant",
        "variant",
        "variant",
        "wrap",
        "neutral",
        "neutral",
        "early",
        "depth",
        "placement",
    ]
    rng.shuffle(kinds)
    for kind in kinds:
        if kind == "size":
            yield from _resized(base, rng)
        elif kind == "variant" and len(base.template.variants) > 1:
            other = rng.choice([at for at in range(len(base.template.variants)) if at != base.variant])
            wrap = 0 if _returns(base.template.variants[other].statements) else base.wrap
            before, after = base.code.name, base.template.variants[other].name
            kind = f"to-{after if other else 'first'}" + (f"-from-{before}" if base.variant else "")
            yield kind, replace(base, variant=other, wrap=wrap)
        elif kind == "wrap" and base.wrap:
            yield ("unwrap-loop", replace(base, wrap=0)) if rng.random() < 0.6 else (
                "repeat-more", replace(base, wrap=base.wrap * rng.choice((2, 10, 100)))
            )  # fmt: skip
        elif kind == "wrap" and not _returns(base.code.statements):
            yield "wrap-loop", replace(base, wrap=_repetitions(rng))
        elif kind == "early":
            yield "early-exit" if not base.early else "no-early-exit", replace(base, early=not base.early)
        elif kind == "depth" and base.placement != "class":
            yield "helpers", replace(base, depth=rng.choice([depth for depth in range(4) if depth != base.depth]))
        elif kind == "placement":
            yield (
                "constant",
                replace(base, placement=rng.choice([p for p in PLACEMENTS if p not in ("class", base.placement)])),
            )
        elif kind == "neutral":
            yield neutral(base, rng)


def _resized(base: Specification, rng: Random) -> Iterator[tuple[str, Specification]]:
    factor = (
        math.exp(rng.uniform(math.log(2), math.log(1e5))) if rng.random() < 0.7 else rng.choice((2, 4, 10, 100, 1000))
    )
    digits = rng.choice((1, 2, -2, -10))
    span = base.template.high <= 60
    up = base.size + rng.randint(1, 6) if span else sizes.rounded(round(base.size * factor), digits)
    down = base.size - rng.randint(1, 6) if span else sizes.rounded(round(base.size / factor), digits)
    pairs = [("grow-size", min(up, base.template.high)), ("shrink-size", max(down, base.template.low))]
    rng.shuffle(pairs)
    for kind, size in pairs:
        if (size > base.size) is (kind == "grow-size") and size != base.size:
            yield kind, replace(base, size=size)


def neutral(base: Specification, rng: Random) -> tuple[str, Specification]:
    """An edit that should change no cost."""
    changes: dict[str, dict[str, object]] = {
        "rename": {"names": base.names + rng.randint(1, 9)},
        "comments": {"comments": 0 if base.comments else rng.randint(1, 9)},
        "docstring": {"docstring": not base.docstring},
        "hints": {"hints": not base.hints},
        "format": {"layout": base.layout ^ rng.choice((1, 2, 4, 6, 3, 5))},
        "order": {"swapped": not base.swapped, "decoys": base.decoys or (rng.randrange(len(DECOYS)),)},
        "imports": {"by_name": not base.by_name},
        "notation": {"form": rng.choice([form for form in sizes.FORMS if form != base.form])},
    }
    kind = rng.choice(sorted(changes))
    return f"{NEUTRAL}{kind}", replace(base, **changes[kind])  # type: ignore[arg-type]


def program(specification: Specification) -> Program:
    """The module of a specification, with smaller versions where it is predicted to be slow or large."""
    size, low = specification.size, specification.template.low
    points: tuple[tuple[int, Module], ...] = ()
    unusual = seeded(specification.seed, "slow").random() < _UNUSUAL
    most = MOST_SECONDS if unusual else _USUAL_MOST_SECONDS
    if specification.seconds(size) > most or specification.memory(size) > MOST_MEMORY:
        found: list[int] = []
        top = size
        seconds, memory = _POINT_SECONDS, _POINT_MEMORY
        for _ in range(_POINTS):
            top = min(
                max(sizes.size_for(specification.seconds, seconds, low, size), low),
                max(sizes.size_for(specification.memory, memory, low, size), low),
                top - 1 if found else top,
            )
            if top < low:
                break
            found.append(top)
            seconds, memory = seconds / _POINT_STEP, memory / _POINT_STEP
        points = tuple((at, render(replace(specification, size=at))) for at in reversed(found))
    return Program(specification, render(specification), points)
