"""The facts of two texts of one unit: how much their work differs, and whether the facts decide which costs more.

Input: the texts before and after an edit, with the facts of each. What one of them shows of a type counts for the
other, and parts of unknown cost that both share cancel. Where costs depend on different sizes, the sizes decide, and
the texts do not show them: the text with less work was then the faster one in about half of the functions that were
rewritten to be faster, and in 87 % where the facts decide (docs/design/cost-analysis.md).
"""

from __future__ import annotations

import math
from dataclasses import replace

from rlm_core.cost.analysis import TYPICAL_CALL_SECONDS
from rlm_core.cost.at_sizes import names_of
from rlm_core.cost.domain.called_names import written_calls
from rlm_core.cost.domain.syntax import parsed_function
from rlm_core.queries.function_sizes import inputs_of
from rlm_core.types import CodeText, WorkFacts

from .growth_facts import input_growth
from .work_mixture import LEAST_WORK, facts_of, log_work

_MORE = 1 + 1e-6
# Where the known work of one text is so many times that of the other, operations on unknown types do not turn it round.
_CLEAR = 2.0
# Of rewritten functions with so many times the work by added sizes, 10 of 10 cost more; with less, 3 of 6. These few
# pairs chose the number, so it is not confirmed on others.
_FAR = math.log10(3.0)
# So many times the work is a change that no agreement with the model has to confirm.
_CLEARLY_MORE = math.log10(5.0)
_UNNAMED = "?"
# The latency below which 90 % of the functions of the labels are, in seconds.
_LONG_CALL_SECONDS = 1.5e-4


def with_pair_facts(before: CodeText, after: CodeText) -> tuple[CodeText, CodeText]:
    """Two texts of a function with their facts: what one of them shows of a parameter's type counts for the other.

    Where only one shows a type, both are analysed again with their callees alone, so that both know the same.
    """
    first, second = facts_of(before), facts_of(after)
    if first is not None and second is not None:
        shown, also_shown = dict(first.types), dict(second.types)
        is_clear = not (first.opaque or second.opaque or first.unknown_calls or second.unknown_calls)
        if not is_clear and shown.keys() != also_shown.keys():
            types = shown | also_shown
            again = [facts_of(replace(code, work=None), types) for code in (before, after)]
            if None not in again:
                first, second = again
    return replace(before, work=first), replace(after, work=second)


def work_moved(before: WorkFacts | None, after: WorkFacts | None, metric: str) -> float:
    """Log10 of the work of a text over that of another, waits of known length included; 0 where there are no facts."""
    if before is None or after is None:
        return 0.0
    return log_work(after, metric) - log_work(before, metric)


def is_decided(before: CodeText, after: CodeText, metric: str) -> bool:
    """Return whether the facts of two texts say which costs more.

    Costs that depend on different inputs, or in another way on sizes that are those of no input, decide nothing, unless
    one of the texts only adds to the other. Nor do facts where one of the texts is too large to be read.
    """
    if before.work is None or after.work is None:
        return True
    if bool(before.work.nodes) != bool(after.work.nodes):
        return False
    sizes, others = _inputs(before, before.work, metric), _inputs(after, after.work, metric)
    if sizes != others:
        fewer, more = (before, after) if sizes < others else (after, before)
        is_part = sizes < others or sizes > others
        return is_part and _UNNAMED not in sizes ^ others and _only_adds(fewer, more, metric)
    if _UNNAMED in sizes and input_growth(before, metric) != input_growth(after, metric):
        return False
    return _is_decided_by_the_known(before.work, after.work, metric)


def _only_adds(fewer: CodeText, more: CodeText, metric: str) -> bool:
    """Return whether a text calls all that another one calls, and costs far more by sizes of inputs that it adds."""
    assert fewer.work is not None
    assert more.work is not None
    others = dict(more.work.unknown)
    has_calls = any(name.endswith("()") and times > others.get(name, 0.0) * _MORE for name, times in fewer.work.unknown)
    return not has_calls and work_moved(fewer.work, more.work, metric) >= _FAR


def _inputs(code: CodeText, work: WorkFacts, metric: str) -> set[str]:
    """The inputs whose sizes a cost depends on; sizes of no input have one name."""
    inputs = inputs_of(code.text, work)
    return {inputs.get(name, _UNNAMED) for name in names_of(work.of(metric).terms)}


def _is_decided_by_the_known(before: WorkFacts, after: WorkFacts, metric: str) -> bool:
    """Return whether the known parts of two costs say which is larger.

    Parts of unknown cost that both share cancel. Those of one text alone can only make it cost more: they decide
    nothing where the other text has such parts too, or more known work. Operations on unknown types are mostly cheap:
    they only count where the known work is about the same.
    """
    first, second = dict(before.unknown), dict(after.unknown)
    removed = {name for name, times in first.items() if times > second.get(name, 0.0) * _MORE}
    added = {name for name, times in second.items() if times > first.get(name, 0.0) * _MORE}
    known, also_known = _known_work(before, metric), _known_work(after, metric)
    if max(known, also_known) >= _CLEAR * max(min(known, also_known), LEAST_WORK[metric]):
        removed, added = ({name for name in names if name.endswith("()")} for names in (removed, added))
    moved = also_known - known
    return not (removed and added) and (not added or moved >= 0) and (not removed or moved <= 0)


def _known_work(facts: WorkFacts, metric: str) -> float:
    """Seconds or bytes of a text at large sizes without its unknown calls."""
    guessed = facts.unknown_calls * TYPICAL_CALL_SECONDS if metric == "latency" else 0.0
    return facts.of(metric).large - guessed


def outweighs_unknown(before: WorkFacts | None, after: WorkFacts | None, metric: str, ratio: float) -> bool:
    """Return whether a cost may be said to be ``ratio`` times another, next to the unknown cost that both have.

    Parts that both texts share cancel where the question is which one costs more, but not where it is how many times:
    calls of unknown cost in the earlier text count as what 90 % of measured functions cost at most.
    """
    if before is None or after is None or not before.unknown_calls:
        return True
    if metric != "latency":
        return False
    shared = before.unknown_calls * _LONG_CALL_SECONDS
    known, also_known = (
        max(work.latency.typical - work.unknown_calls * TYPICAL_CALL_SECONDS, 0.0) for work in (before, after)
    )
    return also_known + shared >= ratio * (known + shared)


def is_clear(before: CodeText, after: CodeText, metric: str) -> bool:
    """Return whether the facts alone show that a text costs several times what another one does, for large inputs.

    Both texts were read, they call the same functions of unknown cost equally often, the facts decide which of them
    costs more, and the known work is at least five times as much. The cheaper text has no more operations on unknown
    types, which may cost what only the other text shows, and makes no object that the other does not: an inherited
    ``__init__`` may be one that was not read. A loop over ``*args`` alone is not large: a call has few.
    """
    first, second = (code.work for code in with_pair_facts(before, after))
    if first is None or second is None or not (first.nodes and second.nodes) or second.opaque < first.opaque:
        return False
    if work_moved(first, second, metric) < _CLEARLY_MORE or second.of(metric).typical < first.of(metric).typical:
        return False
    calls, others = (_unknown_calls(facts) for facts in (first, second))
    is_same = calls.keys() == others.keys() and all(math.isclose(calls[name], others[name]) for name in calls)
    pair = replace(before, work=first), replace(after, work=second)
    return (
        is_same
        and math.isclose(first.unknown_calls, second.unknown_calls)
        and not _has_other_objects(before.text, after.text)
        and bool(_inputs(pair[1], second, metric) - _star_parameters(after.text))
        and is_decided(*pair, metric)
    )


def _has_other_objects(before: str, after: str) -> bool:
    """Return whether a text calls a class, by its usual spelling, that another text does not call."""
    calls, others = written_calls(before), written_calls(after)
    if calls is None or others is None:
        return True
    return any(name.lstrip("_")[:1].isupper() and name not in others for name in calls.lines)


def _star_parameters(text: str) -> set[str]:
    """The names of the parameters that take any number of arguments."""
    node = parsed_function(text)
    starred = (node.args.vararg, node.args.kwarg) if node is not None else ()
    return {parameter.arg for parameter in starred if parameter is not None}


def _unknown_calls(facts: WorkFacts) -> dict[str, float]:
    return {name: times for name, times in facts.unknown if name.endswith("()")}


def takes_the_same_memory(before: WorkFacts | None, after: WorkFacts | None) -> bool:
    """Return whether two texts show all their memory, and the amounts differ by at most the smallest object."""
    if before is None or after is None or not (before.nodes and after.nodes):
        return False
    if before.unknown_calls or after.unknown_calls or before.memory.growth != after.memory.growth:
        return False
    first, second = ((cost.known.likely, cost.typical, cost.large) for cost in (before.memory, after.memory))
    return all(abs(a - b) <= LEAST_WORK["memory"] for a, b in zip(first, second, strict=True))
