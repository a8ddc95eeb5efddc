"""Costs at known sizes: arithmetic where the text fixes the rest, curves where it was measured, bounds elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import pytest
from rlm_core.cost.analysis import work_facts
from rlm_core.cost.at_sizes import depends_on_nothing
from rlm_core.inference.anchoring import AnchoredPredictor
from rlm_core.inference.model_store import builtin
from rlm_core.inference.predictor import Predictor
from rlm_core.inference.revisions import compare_revisions
from rlm_core.inference.sized_predictor import SizedPredictor
from rlm_core.inference.student import OnnxPredictor
from rlm_core.queries.function_sizes import text_at
from rlm_core.types import (
    Anchor,
    CodeText,
    HoldsFor,
    MeasuredPrediction,
    Prediction,
    Query,
    SizedCalls,
    SizedPrediction,
    SizeSpread,
    SizeValue,
)

from tests.rlm_core.inference.test_anchoring import cost
from tests.sized_functions import NAMES

LATENCY, MEMORY = Query("latency"), Query("memory")
TOTAL = "def total(items: list[int]) -> int:\n    t = 0\n    for item in items:\n        t += item\n    return t\n"
SEND = "def send(orders: list[str]) -> None:\n    for order in orders:\n        fetch(order)\n"
ITEMS = SizeValue("items", 10_000.0, "comment", "line 1")
SIZED = (SizedCalls({"items": 10.0}, 1e-5, 4), SizedCalls({"items": 100.0}, 1e-4, 4))


@pytest.fixture(scope="module")
def predictor() -> Predictor:
    return SizedPredictor(AnchoredPredictor(OnnxPredictor(builtin(), threads=1)))


def code(text: str = TOTAL, *sizes: SizeValue, measured: Sequence[Anchor] = ()) -> CodeText:
    return CodeText(text, "python", "call", work=work_facts(text), sizes=sizes, measured=tuple(measured))


def latency(predictor: Predictor, text: CodeText) -> Prediction:
    [[answer]] = predictor.predict([text], [[LATENCY]])
    return answer


def anchor(**values: object) -> Anchor:
    return Anchor(replace(cost(), **values))  # type: ignore[arg-type]


def test_a_text_without_sizes_is_answered_as_before(predictor: Predictor) -> None:
    assert isinstance(predictor, SizedPredictor)
    [line] = predictor.predict([code()], [[LATENCY, MEMORY]])
    [base] = predictor.base.predict([code()], [[LATENCY, MEMORY]])
    assert line == base
    assert line[0].holds_for is HoldsFor.SMALL_INPUTS


def test_a_cost_that_the_text_fixes_is_predicted_at_the_sizes(predictor: Predictor) -> None:
    answer = latency(predictor, code(TOTAL, ITEMS))
    assert isinstance(answer, SizedPrediction)
    assert answer.at.kind == "arithmetic"
    assert answer.at.sizes == (ITEMS,)
    assert answer.holds_for is HoldsFor.GIVEN_SIZES
    assert answer.small == latency(predictor, code())
    assert answer.median is not None
    assert answer.band is not None
    # A Python loop adds up ten thousand numbers in some hundred microseconds.
    assert 5e-5 < answer.median < 2e-3
    assert answer.band.source.task.startswith("fixed/")


def test_it_agrees_with_a_text_that_has_the_size_in_it(predictor: Predictor) -> None:
    loop = "def f(n: int) -> int:\n    t = 0\n    for i in range({}):\n        t += i * i\n    return t\n"
    sized = latency(predictor, code(loop.format("n"), SizeValue("n", 20_000.0, "settings")))
    literal = latency(predictor, code(loop.format(20_000)))
    assert sized.median == pytest.approx(literal.median, rel=0.5)
    assert literal.holds_for is HoldsFor.ALL_INPUTS


def test_more_items_cost_more(predictor: Predictor) -> None:
    answers = [latency(predictor, code(TOTAL, replace(ITEMS, value=10.0**power))) for power in range(2, 7)]
    medians = [answer.median or 0.0 for answer in answers]
    assert all(large > 5 * small for small, large in pairwise(medians))


def test_a_band_is_wider_the_more_a_cost_is_above_that_for_small_inputs(predictor: Predictor) -> None:
    assert isinstance(predictor, SizedPredictor)
    ratios = []
    for value in (100.0, 10_000.0, 1e8, 1e9):
        at_sizes = text_at(code(TOTAL), [replace(ITEMS, value=value)])
        assert at_sizes is not None
        [[text]] = predictor.base.predict([at_sizes], [[LATENCY]])
        answer = latency(predictor, code(TOTAL, replace(ITEMS, value=value)))
        assert answer.median == text.median
        assert answer.quantiles == tuple(sorted(answer.quantiles))
        assert answer.band is not None
        assert text.band is not None
        ratios.append((answer.band.high / answer.band.low) / (text.band.high / text.band.low))
    assert 1 < ratios[0] < ratios[1] < ratios[2]
    assert ratios[3] == pytest.approx(ratios[2], rel=0.1)  # no further than measurements go


@pytest.mark.parametrize("value", [1_000.0, 100_000.0])
def test_the_band_of_a_loop_that_may_end_early_reaches_further_down(predictor: Predictor, value: float) -> None:
    found = (
        "def f(items: list[int]) -> int:\n    for item in items:\n        if item < 0:\n            {}\n    return 1\n"
    )
    all_items, early = (
        latency(predictor, code(found.format(body), replace(ITEMS, value=value))) for body in ("item = 0", "return 0")
    )
    assert isinstance(early, SizedPrediction)
    assert early.at.kind == "arithmetic"
    assert early.band is not None
    assert all_items.band is not None
    assert early.median is not None
    assert early.quantiles == tuple(sorted(early.quantiles))
    assert 0 < early.band.low < early.median
    # The least is one iteration of about 0.1 µs: half of the way to it is a tenth or less.
    assert early.band.low < all_items.band.low / 5
    assert early.band.high > early.median


def test_where_calls_stay_unknown_there_is_a_bound_that_names_them(predictor: Predictor) -> None:
    answer = latency(predictor, code(SEND, SizeValue("orders", 10_000.0, "settings")))
    assert isinstance(answer, SizedPrediction)
    assert answer.at.kind == "bound"
    assert [(call.name, call.times) for call in answer.at.calls] == [("fetch()", 10_000.0)]
    assert 1e-5 < answer.at.least < 1e-2
    # The number is still the one for small inputs, and says so.
    assert answer.median == answer.small.median
    assert answer.holds_for is HoldsFor.SMALL_INPUTS


def test_where_functions_like_it_were_measured_there_is_a_number_above_the_bound(predictor: Predictor) -> None:
    answer = latency(predictor, code(NAMES, SizeValue("orders", 100.0, "settings")))
    assert isinstance(answer, SizedPrediction)
    assert (answer.at.kind, answer.source, answer.holds_for) == ("predicted", "predicted", HoldsFor.GIVEN_SIZES)
    assert answer.small == latency(predictor, code(NAMES))
    assert answer.median is not None
    assert answer.band is not None
    assert answer.band.low >= answer.at.least
    assert answer.median > 3 * (answer.small.median or 0.0)
    # A hundred times two methods of a text: some microseconds.
    assert 2e-6 < answer.median < 1e-4
    assert answer.above(answer.band.high) == pytest.approx(0.1)


def test_memory_at_sizes_that_the_text_does_not_fix_stays_that_for_small_inputs(predictor: Predictor) -> None:
    [[answer]] = predictor.predict([code(NAMES, SizeValue("orders", 100.0, "settings"))], [[MEMORY]])
    assert answer.holds_for is HoldsFor.SMALL_INPUTS


def test_what_was_measured_or_waits_has_no_predicted_number_at_sizes(predictor: Predictor) -> None:
    size = SizeValue("orders", 100.0, "settings")
    measured = latency(predictor, code(NAMES, size, measured=[anchor(sizes=(("orders", SizeSpread(3.0, 5.0, 9.0)),))]))
    waiting = latency(predictor, code(NAMES.replace("    found", "    input()\n    found", 1), size))
    queries = latency(predictor, code(NAMES.replace("order.name.strip().lower()", "session.query(order).all()"), size))
    for answer in (measured, waiting, queries):
        assert not isinstance(answer, SizedPrediction) or answer.at.kind == "bound"


def test_a_size_that_the_cost_does_not_depend_on_changes_nothing(predictor: Predictor) -> None:
    assert latency(predictor, code(TOTAL, SizeValue("other", 5.0, "comment"))) == latency(predictor, code())


def test_a_measurement_holds_at_the_sizes_at_which_it_was_made(predictor: Predictor) -> None:
    measured = [anchor(sizes=(("items", SizeSpread(3.0, 12.0, 40.0)),))]
    for value, source in ((12.0, "recorded"), (40.0, "comment")):
        answer = latency(predictor, code(TOTAL, SizeValue("items", value, source), measured=measured))  # type: ignore[arg-type]
        assert isinstance(answer, MeasuredPrediction)
        assert answer.holds_for is HoldsFor.MEASURED_SIZES


def test_a_curve_gives_the_cost_at_a_size_that_it_covers(predictor: Predictor) -> None:
    measured = [anchor(sizes=(("items", SizeSpread(10.0, 20.0, 100.0)),), sized=SIZED)]
    answer = latency(predictor, code(TOTAL, replace(ITEMS, value=1000.0), measured=measured))
    assert isinstance(answer, SizedPrediction)
    assert (answer.at.kind, answer.source, answer.at.beyond) == ("curve", "curve", 10.0)
    assert answer.median == pytest.approx(1e-3)
    assert answer.small.source == "measured"
    assert answer.above(1e-4) > 0.9


def test_a_curve_is_for_the_other_sizes_at_which_it_was_measured(predictor: Predictor) -> None:
    spreads = (("items", SizeSpread(10.0, 20.0, 100.0)), ("width", SizeSpread(2.0, 3.0, 5.0)))
    measured = [anchor(sizes=spreads, sized=SIZED)]
    kinds = []
    for width in (3.0, 500.0):
        sizes = (replace(ITEMS, value=1000.0), SizeValue("width", width, "settings"))
        answer = latency(predictor, code(TOTAL, *sizes, measured=measured))
        assert isinstance(answer, SizedPrediction)
        kinds.append(answer.at.kind)
    assert kinds == ["curve", "arithmetic"]


def test_beyond_the_curve_the_text_decides(predictor: Predictor) -> None:
    measured = [anchor(sizes=(("items", SizeSpread(10.0, 20.0, 100.0)),), sized=SIZED)]
    answer = latency(predictor, code(TOTAL, ITEMS, measured=measured))
    assert isinstance(answer, SizedPrediction)
    assert answer.at.kind == "arithmetic"
    unknown = latency(predictor, code(SEND, SizeValue("orders", 10_000.0, "settings"), measured=measured))
    assert isinstance(unknown, SizedPrediction)
    assert unknown.at.kind == "bound"
    assert unknown.source == "measured"


def test_two_texts_are_compared_at_the_sizes(predictor: Predictor) -> None:
    pairs = TOTAL.replace("        t += item\n", "        for other in items:\n            t += item * other\n")
    [[at_sizes]] = predictor.compare([(code(TOTAL), code(pairs, ITEMS))], [[LATENCY]]) or []
    [[small]] = predictor.compare([(code(TOTAL), code(pairs))], [[LATENCY]]) or []
    assert at_sizes.sizes == (ITEMS,)
    assert not small.sizes
    assert at_sizes.ratio is not None
    assert small.ratio is not None
    assert at_sizes.ratio > 1000 > small.ratio


def test_of_revisions_only_texts_that_fix_their_cost_without_sizes_say_more(predictor: Predictor) -> None:
    first, second = (f"def f():\n    for _ in range({count}):\n        pass\n" for count in (1000, 5000))
    said = {}
    for label, sizes in (("fixed", ()), ("given", (ITEMS,))):
        [[ratio]] = compare_revisions(predictor, [(code(first), code(second, *sizes))], [[LATENCY]]) or []
        said[label] = ratio.direction
    assert said == {"fixed": "higher", "given": None}


def test_the_share_of_comparable_units_is_about_small_inputs(predictor: Predictor) -> None:
    answer = latency(predictor, code(TOTAL, ITEMS))
    assert predictor.percentile(answer, "python") == predictor.percentile(latency(predictor, code()), "python")


def test_a_wait_of_unknown_length_fixes_no_cost() -> None:
    text = "def f(urls: list[str]) -> None:\n    import requests\n    for url in urls:\n        requests.get(url)\n"
    at_sizes = text_at(code(text), [SizeValue("urls", 10.0, "query")])
    assert at_sizes is not None
    assert at_sizes.work is not None
    assert not depends_on_nothing(at_sizes.work, "latency")
