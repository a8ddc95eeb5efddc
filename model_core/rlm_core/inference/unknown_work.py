"""Functions whose cost is that of something unknown: no inputs, and a call of a function that nothing is known of.

What such a call costs is learned from functions that other code calls with inputs. This says nothing of a function that
gets none, such as an entry point.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace

from rlm_core.cost.domain.syntax import parsed_function
from rlm_core.types import Abstention, AbstentionCode, CodeText, Prediction, WorkFacts

LONG_CALL_SECONDS = 1.5e-4
"""The latency that 90 % of measured functions are below."""


def without_unknown(predictions: Sequence[Prediction], code: CodeText, facts: WorkFacts | None) -> list[Prediction]:
    """The predictions for one unit; a function without inputs whose cost is that of an unknown call has no latency.

    Of 3,529 measured functions 14 have no parameters. Of 346 benchmarks of four projects, which get no inputs either,
    35 % are inside their band of 80 %, and half take at least 30 times the median.
    """
    called = unknown_call(code, facts)
    if called is None:
        return list(predictions)
    missing = Abstention(AbstentionCode.UNKNOWN_CALL, {"call": called})
    return [
        replace(prediction, median=None, bands=(), quantiles=(), abstained=missing)
        if prediction.metric == "latency" and prediction.abstained is None
        else prediction
        for prediction in predictions
    ]


def unknown_call(code: CodeText, facts: WorkFacts | None) -> str | None:
    """The unknown function that a function without inputs calls, such as ``run()``; None if known work outweighs it.

    A function of the program is not unknown, even where the analysis left some of its calls unread: the model reads it.
    """
    if facts is None or not facts.nodes or (code.language, code.basis) != ("python", "call"):
        return None
    node = parsed_function(code.text)
    # What is inside another function or a class has its inputs from there.
    if isinstance(node, ast.Lambda) or node is None or code.text[:1].isspace() or any(ast.iter_child_nodes(node.args)):
        return None
    parts = list(ast.walk(node))
    names = [part for part in parts if isinstance(part, ast.Name)]
    bound = {part.id for part in names if isinstance(part.ctx, ast.Store)}
    bound |= {part.name for part in parts if isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))}
    outside = {part.id for part in names} - bound
    read = {getattr(parsed_function(callee.text), "name", None) for callee in code.callees}
    for name, times in facts.unknown:
        if name.endswith("()") and name[:-2].partition(".")[0] in outside and name[:-2].rpartition(".")[2] not in read:
            return name if facts.latency.known.likely < LONG_CALL_SECONDS * times else None
    return None
