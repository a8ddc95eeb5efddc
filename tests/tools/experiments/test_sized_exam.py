"""The exam of costs at sizes: the kinds of answers, and the figures of each."""

from __future__ import annotations

from typing import Any

from rlm_core.cost.analysis import work_facts
from rlm_core.inference.adaptation.predictor import with_corrections
from rlm_core.inference.model_store import builtin
from rlm_core.inference.student import OnnxPredictor
from rlm_core.types import CodeText

from tests.sized_functions import NAMES
from tools.experiments.sized_exam import judged, loops_over, report

SEND = "def f(orders: list[str]) -> None:\n    for order in orders:\n        fetch(order)\n"
TOTAL = "def f(orders: list[int]) -> int:\n    t = 0\n    for order in orders:\n        t += order\n    return t\n"
LABEL: dict[str, Any] = {
    "package": "shop",
    "points": [
        {"factor": factor, "grown": ["orders"], "sizes": {"orders": 5 * factor}, "seconds": 3e-7 * factor}
        for factor in (1, 3, 10)
    ],
}


def test_answers_are_counted_by_kind() -> None:
    predictor = with_corrections(OnnxPredictor(builtin(), threads=1), cpu=False)
    rows = [
        row
        for text in (SEND, TOTAL, NAMES)
        for row in judged(predictor, LABEL, CodeText(text, "python", "call", work=work_facts(text)))
    ]
    assert {row.factor for row in rows} == {1, 10}
    found = report(rows)
    assert found["asked"] == 6
    assert (found["arithmetic"], found["bound"], found["predicted"]) == (2, 2, 2)
    assert found["predicted, figures"]["10 times"]["answers"] == 1
    assert found["arithmetic, figures"]["all"]["answers"] == 2
    assert 0 <= found["bounds that hold"] <= 1


def test_a_loop_over_an_input_is_found() -> None:
    assert loops_over(SEND, ["orders"])
    assert not loops_over("def f(orders):\n    return len(orders)\n", ["orders"])
