"""Functions at sizes at which their text does not fix their cost, with the features of the trees that judge them."""

from __future__ import annotations

from typing import Any

from rlm_core.cost.analysis import work_facts
from rlm_core.inference.input_growth import INPUT_GROWTH, InputGrowthHead
from rlm_core.inference.model_store import builtin
from rlm_core.types import LEVELS, CodeText

from tools.experiments.cold_sizes import Asked, asked

SEND = "def send(orders: list[str]) -> None:\n    for order in orders:\n        fetch(order)\n"
TOTAL = "def total(orders: list[int]) -> int:\n    t = 0\n    for order in orders:\n        t += order\n    return t\n"
LABEL: dict[str, Any] = {
    "package": "shop",
    "points": [
        {"factor": factor, "grown": ["orders"], "sizes": {"orders": 5 * factor}, "seconds": 1e-6 * factor}
        for factor in (1, 3, 10)
    ],
}
_GROWTH = 3


def rows_of(text: str) -> list[Asked]:
    code = CodeText(text, "python", "call", work=work_facts(text))
    quantiles = tuple(1e-6 * (1 + level) for level in LEVELS)
    head = list(InputGrowthHead(builtin() / INPUT_GROWTH).forests["latency"])
    return list(asked(LABEL, code, quantiles, head, of_facts=True))


def test_a_function_with_calls_of_unknown_cost_has_features_at_each_size() -> None:
    rows = rows_of(SEND)
    assert [row.factor for row in rows] == [1, 3, 10]
    assert len({len(row.features) for row in rows}) == 1
    growth = [row.features[_GROWTH] for row in rows]
    assert growth == sorted(growth)
    assert growth[-1] > growth[0] + 0.3


def test_a_function_whose_text_fixes_its_cost_at_sizes_is_left_out() -> None:
    assert rows_of(TOTAL) == []
