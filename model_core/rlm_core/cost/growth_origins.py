"""The places that make a cost grow faster than in proportion to sizes, or that cost more per item than they have to.

They are facts of the unit's text.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

from rlm_core.types import CostOrigin, CostTerm, Cure, SourceLine

from .cures import PER_ITEM, cure_of
from .domain.origins import PendingOrigin, is_growing
from .domain.quantities import Quantity, degree

_LARGE = 1000.0
_MOST, _MOST_TEXT = 4, 60
_STEEP = 1.0


def growth_origins(
    origins: Sequence[PendingOrigin], terms_of: Callable[[Quantity], tuple[CostTerm, ...]]
) -> tuple[CostOrigin, ...]:
    """The places of steep growth that cost most at large sizes, the most expensive first, then those of other cures."""
    growing = [origin for origin in origins if is_growing(origin.amount)]
    steep = [origin for origin in growing if _is_steep(origin.amount)]
    steep.sort(key=lambda origin: -_large(_steep_part(origin.amount)))
    others = [origin for origin in growing if not _is_steep(origin.amount)]
    others = sorted(others, key=lambda origin: -_large(origin.amount))
    curable = [origin for origin in others if cure_of(origin) in PER_ITEM]
    return tuple(
        CostOrigin(
            source_line(origin.node),
            tuple(source_line(loop) for loop in origin.loops),
            cure_of(origin),
            terms_of(_with_applied(origin, others)),
        )
        for origin in (*steep[:_MOST], *curable[:_MOST])
    )


def _with_applied(origin: PendingOrigin, others: Sequence[PendingOrigin]) -> Quantity:
    """The amount of a place; of a call that applies a function to rows with what that function costs."""
    if cure_of(origin) is not Cure.COLUMNS:
        return origin.amount
    same = (other.amount for other in others if other.node is origin.node and other.loops == origin.loops)
    return sum(same, Quantity({}))


def _large(amount: Quantity) -> float:
    """The likely amount at large sizes."""
    return amount.evaluate(lambda name: _LARGE)[1]


def _is_steep(amount: Quantity) -> bool:
    base, power, _ = degree(max(amount.terms, key=degree))
    return base > 1 or power > _STEEP


def _steep_part(amount: Quantity) -> Quantity:
    return Quantity({key: amount.terms[key] for key in amount.terms if degree(key)[0] > 1 or degree(key)[1] > _STEEP})


def source_line(node: ast.AST) -> SourceLine:
    """A loop's header, a comprehension's loops, or another piece of syntax, as text on one line."""
    match node:
        case ast.For() | ast.AsyncFor():
            target = ast.unparse(node.target)
            target = target[1:-1] if isinstance(node.target, ast.Tuple) and target.startswith("(") else target
            text = f"for {target} in {ast.unparse(node.iter)}"
        case ast.While():
            text = f"while {ast.unparse(node.test)}"
        case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
            text = "".join(ast.unparse(part) for part in node.generators).strip()
        case _:
            text = ast.unparse(node).partition("\n")[0]
    short = text if len(text) <= _MOST_TEXT else f"{text[: _MOST_TEXT - 1]}…"
    return SourceLine(getattr(node, "lineno", 1) - 1, short)
