"""Tables of costs at several sizes: only sizes that measurements or the text support, and nothing asked in vain."""

from __future__ import annotations

from dataclasses import replace

import pytest
from rlm_core.cost.analysis import work_facts
from rlm_core.inference.anchoring import AnchoredPredictor
from rlm_core.inference.model_store import builtin
from rlm_core.inference.predictor import Predictor
from rlm_core.inference.size_table import TABLE_SIZES, SizeTable, size_table, texts_for_table
from rlm_core.inference.sized_cost import MOST_SIZE
from rlm_core.inference.sized_predictor import SizedPredictor
from rlm_core.inference.student import OnnxPredictor
from rlm_core.types import Anchor, CodeText, Query, SizedCalls, SizeSpread, SizeValue

from tests.rlm_core.inference.test_anchoring import cost
from tests.sized_functions import NAMES

TOTAL = "def total(items: list[int]) -> int:\n    t = 0\n    for item in items:\n        t += item\n    return t\n"
SEND = "def send(orders: list[str]) -> None:\n    for order in orders:\n        fetch(order)\n"
TWO = "def two(xs: list[int], ys: list[int]) -> int:\n    return sum(x * y for x in xs for y in ys)\n"
QUERIES = [Query("latency"), Query("memory")]
SIZED = (SizedCalls({"orders": 10.0}, 1e-5, 4), SizedCalls({"orders": 500.0}, 5e-4, 4))


@pytest.fixture(scope="module")
def predictor() -> Predictor:
    return SizedPredictor(AnchoredPredictor(OnnxPredictor(builtin(), threads=1)))


def table(predictor: Predictor, code: CodeText) -> SizeTable | None:
    [answers] = predictor.predict([code], [QUERIES])
    texts = texts_for_table(code, answers)
    return size_table(texts, predictor.predict(texts, [QUERIES] * len(texts))) if texts else None


def code(text: str, *sizes: SizeValue) -> CodeText:
    return CodeText(text, "python", "call", work=work_facts(text), sizes=sizes)


def test_a_text_that_fixes_the_rest_has_a_cost_at_each_size(predictor: Predictor) -> None:
    found = table(predictor, code(TOTAL))
    assert found is not None
    assert (found.size, [row.value for row in found.rows]) == ("items", list(TABLE_SIZES))
    medians = [row.costs[0].median or 0.0 for row in found.rows]
    assert medians == sorted(medians)
    assert medians[2] > 50 * medians[1]


def test_given_sizes_of_other_inputs_stay(predictor: Predictor) -> None:
    assert table(predictor, code(TWO)) is None
    found = table(predictor, code(TWO, SizeValue("ys", 100.0, "comment")))
    assert found is not None
    assert found.size == "xs"
    assert {size.name for size in found.rows[0].costs[0].at.sizes} == {"xs", "ys"}


def test_without_a_number_at_any_size_there_is_no_table(predictor: Predictor) -> None:
    assert table(predictor, code(SEND)) is None
    constant = code("def first(items):\n    return fetch(items)\n")
    [answers] = predictor.predict([constant], [QUERIES])
    assert texts_for_table(constant, answers) == []
    assert texts_for_table(CodeText("int main() {}", "cpp", "program"), answers) == []


def test_a_number_that_other_functions_suggest_is_in_the_table(predictor: Predictor) -> None:
    found = table(predictor, code(NAMES))
    assert found is not None
    assert {cost.at.kind for row in found.rows for cost in row.costs} == {"predicted"}
    medians = [row.costs[0].median or 0.0 for row in found.rows]
    assert medians == sorted(medians)
    assert found.rows[-1].value <= MOST_SIZE


def test_a_curve_supports_the_sizes_that_it_covers(predictor: Predictor) -> None:
    anchor = Anchor(replace(cost(), sizes=(("orders", SizeSpread(10.0, 20.0, 500.0)),), sized=SIZED))
    found = table(predictor, replace(code(SEND), measured=(anchor,)))
    assert found is not None
    # 100k is more than ten times the largest measured size.
    assert [row.value for row in found.rows] == [10.0, 1000.0]
    assert {cost.at.kind for row in found.rows for cost in row.costs} == {"curve"}
