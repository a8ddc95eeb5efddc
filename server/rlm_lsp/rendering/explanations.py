"""Why a prediction is what it is, in Markdown: what the text says about the cost, and what each statement changes.

Input: a unit, the query and the effects of its statements. Output: one text, which editors show as it is.
"""

from __future__ import annotations

from collections.abc import Mapping

from rlm_core.inference.explain import Explanation, strongest
from rlm_core.queries.analysis import AnalysedUnit
from rlm_core.types import Query

from . import labels
from .abstentions import reason
from .escaping import code_span, markdown, table
from .growth_words import curable_lines, growth_lines
from .work_words import facts

_SHOWN_STATEMENTS = 10
_NOTE = "This shows how the model reads a statement; it is not a measurement."


def explanation_text(analysed: AnalysedUnit, query: Query, explanation: Explanation, lines: Mapping[int, int]) -> str:
    """Explain a prediction: the facts that dominate it first, then the statements with the largest effects.

    ``lines`` gives for each line of the unit's text that an effect names the 0-based line of its document.
    """
    qualname = analysed.unit.qualname
    name = "this file" if qualname == "<file>" else code_span(qualname)
    predictions = [explanation.prediction]
    clauses = [
        *facts(analysed, predictions),
        *growth_lines(analysed, predictions),
        *curable_lines(analysed, predictions),
    ]
    known = [f"- {clause[:1].upper()}{clause[1:]}." for clause in clauses]
    parts = [f"What the code of {name} says about its {query.metric}:\n\n" + "\n".join(known)] if known else []
    if explanation.abstained is not None:
        why = reason(explanation.abstained, markdown)
        parts.append(f"The {query.metric} of {name} cannot be explained because {why}.")
    elif not explanation.effects:
        parts.append(f"{name[:1].upper()}{name[1:]} has no statement that can be left out.")
    else:
        parts.append(
            f"Statements that the {query.metric} of {name} depends on: the ratio of the prediction with and without the"
            " statement."
        )
        rows = [
            (_lines(lines[effect.line], lines[effect.last_line]), labels.times(effect.ratio), code_span(effect.text))
            for effect in strongest(explanation, _SHOWN_STATEMENTS)
        ]
        parts.append(table([("line", "ratio", "statement"), *rows]))
        if explanation.skipped:
            parts.append(f"{explanation.skipped} more statements were not tried.")
        parts.append(_NOTE)
    return "\n\n".join(parts)


def _lines(first: int, last: int) -> str:
    """``7``, or ``7–9`` for a statement of several lines; 1-based."""
    return f"{first + 1}" if first == last else f"{first + 1}–{last + 1}"
