"""Seed -> generated functions, each with edits of it: the same seed gives the same functions.

Families take turns, so every family has about as many functions. Kinds of edits that fit few functions are drawn
first, so that no kind stays rare.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

from . import syntax
from .edits import EDITS, edited, kinds
from .grammar import Expansion
from .programs import Program, parse, render
from .templates import FAMILIES
from .values import HINTS, Argument
from .vocabulary import DOMAINS, SYNONYMS, VERBS, Domain, seeded

COST_EDITS = 3
# The edits that programmers make most; the others weigh 1.
WEIGHTS = {
    "wrap-loop": 2.5,
    "grow-size": 2.5,
    "shrink-size": 1.5,
    "nest-over-same": 2,
    "work-in-loop": 2,
    "sort-added": 1.5,
}
NEUTRAL_SHARE = 0.4
_MOST_CHARACTERS = 1600


@dataclass(frozen=True, slots=True)
class Group:
    """A base function and its edits by kind; the whole group is in one split."""

    name: str
    family: str
    base: Program
    edits: tuple[tuple[str, Program], ...]


def generate(seed: int, count: int) -> Iterator[Group]:
    """``count`` groups, family by family in turn; texts are distinct."""
    texts: set[str] = set()
    used: Counter[str] = Counter()
    made = 0
    for number in range(count * 3):
        if made == count:
            return
        family = sorted(FAMILIES)[number % len(FAMILIES)]
        rng = seeded("counterfactual", seed, number)
        double = rng.random() < 0.7
        program = _program(family, rng, double=double)
        if program is None or program.text in texts:
            continue
        edits = tuple(_edits(program, rng, used, double=double))
        if not edits:
            continue
        texts.add(program.text)
        made += 1
        yield Group(f"counterfactual/{family}/{seed}-{number:05d}", f"edits/{family}", program, edits)


def _program(family: str, rng: Random, *, double: bool) -> Program | None:
    domain = DOMAINS[rng.choice(sorted(DOMAINS))]
    expansion = Expansion(FAMILIES[family], domain, rng)
    parameters = sorted(expansion.parameters, key=lambda parameter: isinstance(parameter[1], str))
    name = _name(family, domain, rng)
    if any(f"def {name}(" in helper for helper in expansion.helpers):
        name = f"run_{name}"
    hinted = rng.random() < 0.3
    header = ", ".join(_parameter(parameter, value, hinted=hinted) for parameter, value in parameters)
    text = f"def {name}({header}):\n" + "\n".join(f"    {line}" for line in expansion.lines)
    function = parse(text)
    helpers = [parse(helper) for found in expansion.helpers for helper in _definitions(found)]
    for node in (function, *helpers):
        _use_synonyms(node, rng)
    owner = ""
    fields: tuple[str, ...] = ()
    if rng.random() < 0.15:
        owner = f"{domain.item.title()}{rng.choice(('Service', 'Store', 'Report', 'Manager'))}"
        fields = _fields(function)
        _make_method(function, set(fields))
    arguments = tuple(value for _, value in parameters if isinstance(value, Argument))
    rendered = render(function, double=double, method=bool(owner))
    if len(rendered) > _MOST_CHARACTERS:
        return None
    order = [parameter for parameter, value in parameters if isinstance(value, Argument)]
    # The object takes its fields first, the call the rest: arguments follow that order.
    by_name = dict(zip(order, arguments, strict=True))
    sequence = [*fields, *(name for name in order if name not in fields)]
    return Program(
        name,
        owner,
        rendered,
        tuple(render(helper, double=double) for helper in helpers),
        fields,
        tuple(by_name[parameter] for parameter in sequence),
    )


def _definitions(text: str) -> list[str]:
    return [ast.unparse(node) for node in ast.parse(text).body]


def _parameter(name: str, value: Argument | str, *, hinted: bool) -> str:
    if isinstance(value, str):
        return f"{name}: int = {value}" if hinted else f"{name}={value}"
    return f"{name}: {HINTS[value.kind]}" if hinted else name


def _name(family: str, domain: Domain, rng: Random) -> str:
    words = family.replace("-", "_")
    verb = rng.choice(VERBS)
    return rng.choice(
        (
            words,
            f"{verb}_{words}",
            f"{verb}_{domain.items}",
            f"{domain.item}_{words}",
            f"_{words}",
            f"{verb}_{domain.text}s",
        )
    )


def _use_synonyms(function: ast.FunctionDef, rng: Random) -> None:
    parameters = {argument.arg for argument in function.args.args}
    names = {node.id for node in ast.walk(function) if isinstance(node, ast.Name)} | parameters
    names |= {node.arg for node in ast.walk(function) if isinstance(node, ast.arg)}
    swap: dict[str, str] = {}
    for name in sorted(syntax.stored(function) - parameters):
        new = rng.choice(SYNONYMS.get(name, (name,)))
        if new not in names and new not in swap.values():
            swap[name] = new
    syntax.rename(function, swap)


def _fields(function: ast.FunctionDef) -> tuple[str, ...]:
    stored = syntax.stored(function)
    plain = function.args.args[: len(function.args.args) - len(function.args.defaults)]
    return tuple(argument.arg for argument in plain if argument.arg not in stored)


def _make_method(function: ast.FunctionDef, fields: set[str]) -> None:
    function.args.args = [ast.arg("self"), *(found for found in function.args.args if found.arg not in fields)]

    def change(node: ast.AST) -> ast.AST | None:
        if isinstance(node, ast.Name) and node.id in fields:
            return ast.Attribute(ast.Name("self", ast.Load()), node.id, ast.Load())
        return None

    syntax.replace(function, change)


def _edits(program: Program, rng: Random, used: Counter[str], *, double: bool) -> Iterator[tuple[str, Program]]:
    texts = {(program.text, program.helpers)}
    room = {True: int(rng.random() < NEUTRAL_SHARE), False: COST_EDITS}
    for kind in sorted(kinds(), key=lambda kind: used[kind] / WEIGHTS.get(kind, 1) * rng.uniform(0.5, 1.5)):
        neutral = kind in EDITS and EDITS[kind].neutral
        changed = edited(program, kind, rng, double=double) if room[neutral] else None
        if changed is None or (changed.text, changed.helpers) in texts:
            continue
        texts.add((changed.text, changed.helpers))
        room[neutral] -= 1
        used[kind] += 1
        yield kind, changed
