"""The kinds of edits: what each is called, whether the function returns the same after it, whether it costs nothing.

A program goes in, an edited program comes out, or None where the edit has no place in it.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random

from . import edits_containers as containers
from . import edits_neutral, edits_ways, edits_work
from .programs import Program, parse, render


@dataclass(frozen=True, slots=True)
class Edit:
    """A kind of edit; ``same_result`` lets a measurement check it, ``neutral`` says that its cost should not change."""

    kind: str
    apply: Callable[[ast.FunctionDef, Random], bool]
    same_result: bool = False
    neutral: bool = False


_WORK = (
    edits_work.wrap_loop, edits_work.nest_over_same, edits_work.repeat_pass, edits_work.grow_size,
    edits_work.shrink_size, edits_work.nest_comprehension, edits_work.all_pairs, edits_work.drop_break,
    edits_work.stop_early, edits_work.fewer_elements, edits_work.sort_added,
)  # fmt: skip
_SAME = (
    edits_work.work_in_loop, edits_work.copy_argument, edits_work.trace_in_loop, edits_work.validate_elements,
    containers.list_for_set, containers.scan_for_lookup, containers.pop_front, containers.slice_rest,
    edits_ways.recurse, edits_ways.loop_for_comprehension, edits_ways.list_for_generator, edits_ways.inline_in_loop,
    containers.concatenate, containers.rebuild, containers.sort_for_heap, containers.list_for_deque,
    containers.read_all, edits_ways.drop_cache, edits_ways.add_cache, edits_ways.loop_for_sum, edits_ways.index_loop,
    edits_ways.repeat_call,
)  # fmt: skip
_NEUTRAL = (
    edits_neutral.rename_local, edits_neutral.type_hints, edits_neutral.reorder, edits_neutral.flip_comparison,
    edits_neutral.spell_out_addition, edits_neutral.name_the_result, edits_neutral.swap_branches,
    edits_neutral.guard_loop,
)  # fmt: skip


def _kind(apply: Callable[[ast.FunctionDef, Random], bool]) -> str:
    return apply.__name__.replace("_", "-")


EDITS: dict[str, Edit] = {
    edit.kind: edit
    for edit in (
        *(Edit(_kind(apply), apply) for apply in _WORK),
        *(Edit(_kind(apply), apply, same_result=True) for apply in _SAME),
        *(Edit(_kind(apply), apply, same_result=True, neutral=True) for apply in _NEUTRAL),
    )
}
CALLEE = "callee:"  # the prefix of the kind of an edit that is made to a helper
_IN_CALLEES = (
    "wrap-loop",
    "grow-size",
    "shrink-size",
    "drop-cache",
    "nest-comprehension",
    "work-in-loop",
    "repeat-pass",
)


def edited(program: Program, kind: str, rng: Random, *, double: bool) -> Program | None:
    """``program`` after an edit of ``kind``, None where it has no place or changes no text."""
    edit = EDITS[kind.removeprefix(CALLEE)]
    if not kind.startswith(CALLEE):
        function = parse(program.text)
        if not edit.apply(function, rng):
            return None
        text = render(function, double=double, method=bool(program.owner))
        return replace(program, text=text) if text != program.text else None
    if not program.helpers:
        return None
    at = rng.randrange(len(program.helpers))
    function = parse(program.helpers[at])
    if not edit.apply(function, rng):
        return None
    helper = render(function, double=double)
    if helper == program.helpers[at]:
        return None
    return replace(program, helpers=(*program.helpers[:at], helper, *program.helpers[at + 1 :]))


def kinds() -> tuple[str, ...]:
    """All kinds of edits, those of helpers last."""
    return (*EDITS, *(CALLEE + kind for kind in _IN_CALLEES))
