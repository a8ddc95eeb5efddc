"""Sentences about work facts: lines of the file, the largest first, and only what matters."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rlm_core import Prediction, Query, load
from rlm_core.queries.analysis import AnalysedUnit, Analyser
from rlm_core.source.parsed import ParsedSource
from rlm_core.types import (
    Amount,
    Band,
    Cause,
    CauseKind,
    CostFacts,
    CostRatio,
    Growth,
    GrowthClass,
    GrowthEstimate,
    Wait,
    WaitKind,
    WorkFacts,
)
from rlm_lsp.rendering.agent_answers import ratio_line, unit_lines
from rlm_lsp.rendering.growth_words import curable_lines, curable_place, growth_lines
from rlm_lsp.rendering.json_rows import unit_row
from rlm_lsp.rendering.prediction_cells import cost_rows, notes
from rlm_lsp.rendering.work_words import costly_lines, facts, unknown_waits

from .hovers import whole_hover

pytestmark = pytest.mark.timeout(30)

MakePrediction = Callable[..., Prediction]
# The function is in lines 3 and 4 of its file: line 0 of its text is line 3.
SOURCE = b"import time\n\ndef f(n):\n    return n\n"
ONE_SECOND = Amount(1.0, 1.0, 1.0)
# The analysis knows how often some loops run, and takes typical sizes for the others.
COSTS = b"""
import time

def total(data: bytes):
    result = 0
    for _ in range(10_000):
        for byte in data:
            result += byte
    return result

def squares(n: int):
    return [[i * j for i in range(n)] for j in range(3_000)]

def lines(texts):
    for _ in range(500):
        for text in texts:
            words = sorted(text.split(","))
            for word in words:
                print(word.upper(), sum(map(ord, word)))

def table(rows):
    first = [0] * 10_000_000
    second = [[cell for cell in row] for row in rows for _ in range(100_000)]
    return first, second

def polls(jobs):
    time.sleep(0.5)
    for job in jobs:
        time.sleep(0.01)
        for i in range(100_000):
            job.run(i)

def counts():
    total = 0
    for i in range(1_000):
        for j in range(1_000):
            total += sum(range(20)) + i * j
    return total

def walk(node, depth=18):
    return 1 if depth == 0 else walk(node, depth - 1) + walk(node, depth - 1)
"""


def unit(work: WorkFacts | None) -> AnalysedUnit:
    [analysed] = Analyser().analyse(ParsedSource(SOURCE, "python"))
    return replace(analysed, code=replace(analysed.code, work=work))


def waiting(*waits: Wait) -> AnalysedUnit:
    return unit(WorkFacts(waits=waits))


def causing(*causes: Cause, metric: str = "latency") -> AnalysedUnit:
    costs = CostFacts(causes=causes)
    return unit(WorkFacts(memory=costs) if metric == "memory" else WorkFacts(latency=costs))


@pytest.mark.parametrize(
    ("wait", "text"),
    [
        (Wait(WaitKind.TIME, 1, "time.sleep", ONE_SECOND), "line 4 sleeps 1 s"),
        (Wait(WaitKind.TIME, 1, "time.sleep", Amount(0.5, 1.0, 2.0)), "line 4 sleeps 500 ms to 2 s"),
        (Wait(WaitKind.TIME, 1, "time.sleep", Amount(0.0, 0.6, 2.0), 0.3), "line 4 may sleep up to 2 s"),
        (
            Wait(WaitKind.TIME, 1, "time.sleep", Amount(0.0, 0.5, 0.5), per=("jobs",)),
            "line 4 sleeps 500 ms for each item of `jobs`",
        ),
        (
            Wait(WaitKind.TIME, 1, "time.sleep", Amount(0.0, 0.5, 0.5), per=("?4",)),
            "line 4 sleeps 500 ms in each iteration",
        ),
        (
            Wait(WaitKind.TIME, 1, "time.sleep", Amount(0.0, 0.0, 5.0), 0.05, on_error=True),
            "line 4 may sleep up to 5 s after an error",
        ),
        (
            Wait(WaitKind.TIME, 1, "time.sleep"),
            "line 4 sleeps for an unknown time",
        ),
        (Wait(WaitKind.TIME, 1, "page.wait", ONE_SECOND), "line 4 waits 1 s (`page.wait`)"),
        (Wait(WaitKind.NETWORK, 1, "requests.get"), "line 4 waits for the network (`requests.get`)"),
        (Wait(WaitKind.NETWORK, 1, "requests.get", None, 0.5), "line 4 may wait for the network (`requests.get`)"),
        (
            Wait(WaitKind.THREAD, 1, "done.wait", Amount(0.0, 1.0, 5.0)),
            "line 4 waits for a thread up to 5 s (`done.wait`)",
        ),
        (Wait(WaitKind.PROCESS, 1, "subprocess.run"), "line 4 waits for a process (`subprocess.run`)"),
        (Wait(WaitKind.USER, 1, "input"), "line 4 waits for the user (`input`)"),
    ],
)
def test_a_wait_names_its_line_in_the_file(make_prediction: MakePrediction, wait: Wait, text: str) -> None:
    assert facts(waiting(wait), [make_prediction(1e-6, 2e-6)]) == [text]


def test_waits_of_one_call_share_a_clause(make_prediction: MakePrediction) -> None:
    gets = [Wait(WaitKind.NETWORK, line, "get") for line in (9, 2, 0, 30, 31)]
    sleeps = [Wait(WaitKind.TIME, line, "sleep", ONE_SECOND) for line in (1, 5)]
    assert facts(waiting(*sleeps, *gets), [make_prediction(2.0, 2.1)]) == [
        "lines 3, 5, 12 and 2 more wait for the network (`get`)",
        "lines 4 and 8 sleep 2 s together",
    ]


@pytest.mark.parametrize(
    ("cause", "text"),
    [
        (Cause(CauseKind.LOOP, 1, "for i in range(10**7)", 0.3, 1e7), "line 4 runs 10,000,000 times: about 300 ms"),
        (Cause(CauseKind.LOOP, 1, "while n", 0.3), "line 4 runs a loop: about 300 ms"),
        (Cause(CauseKind.CALL, 1, "sorted", 0.3, 1), "line 4 calls `sorted`: about 300 ms"),
        (Cause(CauseKind.CALL, 1, "re.compile", 0.3, 4000), "line 4 calls `re.compile` 4,000 times: about 300 ms"),
        (Cause(CauseKind.RECURSION, 1, "f", 0.3, 1.3e6), "`f` (line 4) calls itself 1,300,000 times: about 300 ms"),
        (Cause(CauseKind.NUMBER, 1, "2 ** n", 0.3), "line 4 computes with large numbers (`2 ** n`): about 300 ms"),
        (Cause(CauseKind.ALLOCATION, 1, "np.zeros", 0.3), "line 4 allocates (`np.zeros`): about 300 ms"),
    ],
)
def test_a_cause_names_its_line_and_amount(make_prediction: MakePrediction, cause: Cause, text: str) -> None:
    assert facts(causing(cause), [make_prediction(0.3, 0.4)]) == [text]


def test_a_pattern_that_backtracks_is_a_worst_case_and_not_a_part(make_prediction: MakePrediction) -> None:
    loop = Cause(CauseKind.LOOP, 0, "while n", 0.3)
    patterns = [
        Cause(CauseKind.PATTERN, 1, pattern, 1e9, worst_case=growth)
        for pattern, growth in (("a*a*$", Growth("", 3.0)), ("(a+)+$", Growth("", 0.0, base=2.0)))
    ]
    assert facts(causing(loop, *patterns), [make_prediction(0.3, 0.4)]) == [
        "line 3 runs a loop: about 300 ms",
        "in the worst case, line 4 takes time that grows as 2^n with the length of the text, to match `(a+)+$`",
    ]
    # A quadratic one is too usual to be worth a line.
    usual = Cause(CauseKind.PATTERN, 1, r"\s+$", 1e9, worst_case=Growth("", 2.0))
    assert facts(causing(usual), [make_prediction(0.3, 0.4)]) == []


def test_a_call_that_waits_has_one_clause(make_prediction: MakePrediction) -> None:
    costs = CostFacts(causes=(Cause(CauseKind.CALL, 1, "get", 0.3), Cause(CauseKind.CALL, 1, "read", 0.2)))
    waits = (Wait(WaitKind.NETWORK, 1, "get"), Wait(WaitKind.NETWORK, 1, "read"))
    assert facts(unit(WorkFacts(costs, waits=waits)), [make_prediction(0.3, 0.4)]) == [
        "line 4 waits for the network (`get` and `read`)"
    ]


def test_a_recursion_says_where_it_is(make_prediction: MakePrediction) -> None:
    cause = Cause(CauseKind.RECURSION, 0, "f", 0.3)
    assert facts(causing(cause), [make_prediction(0.3, 0.4)]) == ["`f` (line 3) calls itself: about 300 ms"]
    callee = Cause(CauseKind.RECURSION, 1, "fib", 0.3)
    assert facts(causing(callee), [make_prediction(0.3, 0.4)]) == [
        "line 4 calls `fib`, which calls itself: about 300 ms"
    ]


def test_growth_says_which_line_it_comes_from_in_each_form() -> None:
    text = (
        b"def unpaid(orders, payments):\n    paid = [payment.order for payment in payments]\n"
        b"    return [order for order in orders if order.id not in paid]\n"
    )
    [analysed] = Analyser().analyse(ParsedSource(text, "python"))
    [[latency]] = load().predict([analysed.code], [[Query("latency")]])
    growth = "grows about as `orders` \u00d7 `payments` (80 % probability)"
    assert growth_lines(analysed, [latency]) == [
        f"latency {growth}, from line 3, `order.id not in paid`: a `set` finds an item without looking at all others"
    ]
    note = "grows about as orders \u00d7 payments, from line 3 (80 % probability)"
    assert [row.note for row in cost_rows("a.py", analysed, [latency])] == [note]
    assert unit_lines("a.py", analysed, [latency])[0].endswith(f"; {note}")
    [origin] = unit_row("a.py", analysed, latency)["growth_from"]
    assert origin == {
        "line": 3,
        "text": "order.id not in paid",
        "loops": [{"line": 3, "text": "for order in orders if order.id not in paid"}],
        "cure": "set",
    }


def test_sizes_without_a_name_are_not_shown(make_prediction: MakePrediction) -> None:
    estimate = GrowthEstimate("mn", 1.0, ("?2", "cols"))
    assert growth_lines(unit(None), [make_prediction(growth=estimate)]) == [
        "latency grows about as mn in the sizes of inputs"
    ]


def test_amounts_are_parts_of_the_number_that_is_shown(make_prediction: MakePrediction) -> None:
    loop, call = Cause(CauseKind.LOOP, 0, "for", 4.5e-3, 10_000), Cause(CauseKind.CALL, 1, "g", 3e-3, 10)
    work = WorkFacts(CostFacts(typical=5e-3, causes=(loop, call)), unknown_sizes=1)
    answer = make_prediction(0.9e-3, 1.1e-3, median=1e-3)
    # The call is in the loop or next to it: together they would be more than the whole.
    assert facts(unit(work), [answer]) == ["line 3 runs 10,000 times: about 900 µs"]
    known = replace(work, waits=(Wait(WaitKind.TIME, 0, "time.sleep", Amount(0.5e-3, 0.5e-3, 0.5e-3)),))
    assert facts(unit(known), [answer]) == ["line 3 sleeps 500 µs", "line 3 runs 10,000 times: about 450 µs"]
    # What is not predicted has no amount at sizes that nothing supports.
    assert facts(unit(work), [replace(answer, median=None, bands=())]) == [
        "line 3 runs 10,000 times",
        "line 4 calls `g` 10 times",
    ]
    assert facts(unit(replace(work, unknown_sizes=0)), [replace(answer, median=None, bands=())]) == [
        "line 3 runs 10,000 times: about 4.5 ms"
    ]


def test_an_allocation_is_given_in_bytes(make_prediction: MakePrediction) -> None:
    cause = Cause(CauseKind.ALLOCATION, 0, "", 8e8)
    assert facts(causing(cause, metric="memory"), [make_prediction(7e8, 9e8, metric="memory")]) == [
        "line 3 allocates 760 MiB"
    ]


@pytest.mark.parametrize(("amount", "is_named"), [(0.3, True), (0.1, True), (0.02, False)])
def test_only_causes_of_a_quarter_of_the_cost_are_named(
    make_prediction: MakePrediction, amount: float, is_named: bool
) -> None:
    cause = Cause(CauseKind.LOOP, 0, "for", amount, 10)
    assert bool(facts(causing(cause), [make_prediction(0.3, 0.4)])) is is_named


def test_small_causes_are_not_named_whatever_their_share(make_prediction: MakePrediction) -> None:
    assert not facts(causing(Cause(CauseKind.CALL, 0, "len", 9e-6)), [make_prediction(9e-6, 1e-5)])
    small = causing(Cause(CauseKind.ALLOCATION, 0, "", 2.0**19), metric="memory")
    assert not facts(small, [make_prediction(2.0**19, 2.0**20, metric="memory")])


def test_at_most_three_facts_are_named_the_largest_first(make_prediction: MakePrediction) -> None:
    causes = [Cause(CauseKind.CALL, line, f"g{line}", 0.3 + line / 100, 1) for line in range(5)]
    work = WorkFacts(CostFacts(causes=tuple(causes)), waits=(Wait(WaitKind.USER, 0, "input"),), endless=1)
    assert facts(unit(work), [make_prediction(1.0, 1.0)]) == [
        "line 4 may not end",
        "line 3 waits for the user (`input`)",
        "line 7 calls `g4`: about 340 ms",
    ]


def test_a_line_is_named_once_per_metric(make_prediction: MakePrediction) -> None:
    loop, call = Cause(CauseKind.LOOP, 1, "for", 0.3, 100), Cause(CauseKind.CALL, 1, "sorted", 0.29, 100)
    assert facts(causing(call, loop), [make_prediction(0.3, 0.4)]) == ["line 4 runs 100 times: about 300 ms"]


def test_a_loop_is_not_named_next_to_the_line_in_it_that_costs(make_prediction: MakePrediction) -> None:
    body = ["for i in range(500):", "    for j in range(2000):", "        g()", "for k in range(9):", "    h()"]
    text = "\n    ".join(["def f():", *body])
    [analysed] = Analyser().analyse(ParsedSource(f"{text}\n".encode(), "python"))
    causes = (
        Cause(CauseKind.LOOP, 1, "range(500)", 0.15, 500),
        Cause(CauseKind.LOOP, 2, "range(2000)", 0.149, 1e6),
        Cause(CauseKind.LOOP, 4, "range(9)", 0.12, 9),
        Cause(CauseKind.CALL, 5, "h", 0.1, 9),
    )
    analysed = replace(analysed, code=replace(analysed.code, work=WorkFacts(CostFacts(causes=causes))))
    assert facts(analysed, [make_prediction(0.3, 0.4)]) == [
        "line 3 runs 1,000,000 times: about 150 ms",
        "line 6 calls `h` 9 times: about 100 ms",
    ]


def test_a_program_does_not_wait_for_the_input_that_its_judge_gives(make_prediction: MakePrediction) -> None:
    program = waiting(Wait(WaitKind.USER, 0, "input"))
    assert not facts(program, [make_prediction(basis="program")])
    assert not unknown_waits(program, make_prediction(basis="program"))


def test_no_facts_no_words(make_prediction: MakePrediction) -> None:
    assert facts(unit(None), [make_prediction()]) == facts(unit(WorkFacts()), [make_prediction()]) == []
    assert growth_lines(unit(None), [make_prediction()]) == []


@pytest.mark.parametrize(
    ("growth_class", "probability", "sizes", "text"),
    [
        ("n^2", 1.0, ("values",), "latency grows about as n^2 in `values`"),
        ("n log n", 0.82, ("values",), "latency grows about as n log n in `values` (82 % probability)"),
        ("mn", 1.0, ("rows", "cols"), "latency grows about as `rows` × `cols`"),
        ("n", 0.9, ("a", "b"), "latency grows about as n in `a` and `b` (90 % probability)"),
        ("n", 1.0, ("X.1",), "latency grows about as n in `X.shape[1]`"),
        ("2^n", 0.8, (), "latency grows about as 2^n in the size of an input (80 % probability)"),
        ("1", 0.8, (), "latency does not grow with the inputs (80 % probability)"),
    ],
)
def test_growth_names_the_class_and_the_inputs(
    make_prediction: MakePrediction, growth_class: GrowthClass, probability: float, sizes: tuple[str, ...], text: str
) -> None:
    prediction = make_prediction(growth=GrowthEstimate(growth_class, probability, sizes))
    assert growth_lines(unit(None), [prediction]) == [text]


def test_a_growth_that_only_some_texts_cause_is_one_of_the_worst_case(make_prediction: MakePrediction) -> None:
    prediction = make_prediction(growth=GrowthEstimate("2^n", 0.9, ("text",), in_worst_case=True))
    [line] = growth_lines(unit(None), [prediction])
    assert line == "latency grows about as 2^n in `text` in the worst case (90 % probability)"


@pytest.mark.parametrize(("growth_class", "probability"), [("other", 0.9), ("n", 0.79), ("1", 0.79)])
def test_an_unclear_growth_is_not_named(
    make_prediction: MakePrediction, growth_class: GrowthClass, probability: float
) -> None:
    assert not growth_lines(unit(None), [make_prediction(growth=GrowthEstimate(growth_class, probability))])


@pytest.mark.parametrize("growth_class", ["1", "n", "2^n"])
def test_growth_below_80_per_cent_leaves_no_trace(make_prediction: MakePrediction, growth_class: GrowthClass) -> None:
    plain, other = make_prediction(), make_prediction(growth=GrowthEstimate("n log n", 1.0, ("n",)))
    change = CostRatio("call", "latency", "x86-64", "m", 2.0, (Band(1.5, 3.0, 0.8),), (2.0,) * 17)

    def shown(answer: Prediction) -> list[object]:
        analysed = unit(WorkFacts())
        hover = whole_hover(analysed, [answer], markdown=True)
        lines = [ratio_line("f", change, other, answer), *unit_lines("a.py", analysed, [answer])]
        return [hover, *lines, cost_rows("a.py", analysed, [answer]), unit_row("a.py", analysed, answer)]

    unsure, sure = (replace(plain, growth=GrowthEstimate(growth_class, p, ("n",))) for p in (0.799, 0.8))
    assert shown(unsure) == shown(plain)
    for one, without in zip(shown(sure), shown(plain), strict=True):
        assert one != without


def test_the_growth_of_memory_is_named_where_it_differs(make_prediction: MakePrediction) -> None:
    quadratic, linear = GrowthEstimate("n^2", 1.0, ("n",)), GrowthEstimate("n", 1.0, ("n",))
    latency = make_prediction(growth=quadratic)
    assert growth_lines(unit(None), [latency, make_prediction(metric="memory", growth=linear)]) == [
        "latency grows about as n^2 in `n`",
        "peak memory grows about as n in `n`",
    ]
    assert len(growth_lines(unit(None), [latency, make_prediction(metric="memory", growth=quadratic)])) == 1


def test_an_endless_latency_and_a_constant_memory_have_no_growth(make_prediction: MakePrediction) -> None:
    linear, constant = GrowthEstimate("n", 1.0, ("n",)), GrowthEstimate("1", 1.0)
    predictions = [make_prediction(growth=linear), make_prediction(metric="memory", growth=constant)]
    assert growth_lines(unit(None), predictions) == ["latency grows about as n in `n`"]
    assert growth_lines(unit(WorkFacts(endless=0)), predictions) == []


def test_facts_without_a_probability_say_nothing_about_growth(make_prediction: MakePrediction) -> None:
    assert growth_lines(unit(WorkFacts(CostFacts(growth=(Growth("n", 2.0),)))), [make_prediction()]) == []


def test_the_hover_shows_facts_and_what_the_number_leaves_out(make_prediction: MakePrediction) -> None:
    waits = (Wait(WaitKind.NETWORK, 1, "requests.get"),)
    work = WorkFacts(waits=waits)
    answer = make_prediction(growth=GrowthEstimate("n", 1.0, ("n",)))
    lines = whole_hover(unit(work), [answer], markdown=True).splitlines()
    first = lines.index("- line 4 waits for the network (`requests.get`)")
    assert lines[first + 1 : first + 3] == [
        "- latency grows about as n in `n`",
        "- the predicted latency does not include the wait for the network (line 4)",
    ]
    assert "`" not in whole_hover(unit(work), [make_prediction()], markdown=False)


def test_a_timeout_bounds_a_wait_that_the_number_leaves_out(make_prediction: MakePrediction) -> None:
    bounded = waiting(Wait(WaitKind.THREAD, 1, "done.wait", Amount(0.0, 1.0, 5.0)))
    assert unknown_waits(bounded, make_prediction()) == "the wait for a thread (line 4)"
    assert not unknown_waits(waiting(Wait(WaitKind.TIME, 1, "sleep", ONE_SECOND)), make_prediction())


def test_an_endless_loop_is_not_in_the_number(make_prediction: MakePrediction) -> None:
    assert unknown_waits(unit(WorkFacts(endless=0)), make_prediction()) == "line 3, which may not end"


@given(st.text(max_size=200), st.sampled_from(CauseKind))
def test_names_from_the_source_never_break_the_list(
    make_prediction: MakePrediction, name: str, kind: CauseKind
) -> None:
    clauses = facts(causing(Cause(kind, 0, name, 1.0)), [make_prediction(1.0, 2.0)])
    assert all("\n" not in clause and clause.count("`") in (0, 2) and len(clause) < 150 for clause in clauses)


_AMOUNT = re.compile(r"(?:about|sleeps?|allocates) ([\d.e]+) (ns|µs|ms|s|B|KiB|MiB|GiB)(?! to)")
_SCALES = {"ns": 1e-9, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "B": 1.0, "KiB": 2.0**10, "MiB": 2.0**20, "GiB": 2.0**30}


def test_what_dominates_a_cost_is_within_the_number_that_is_shown() -> None:
    predictor, amounts = load(), 0
    units = Analyser().analyse(ParsedSource(COSTS, "python"))
    queries = [Query("latency"), Query("memory")]
    answers = predictor.predict([entry.code for entry in units], [queries] * len(units))
    for entry, line in zip(units, answers, strict=True):
        for answer in line:
            shown = [float(a) * _SCALES[u] for fact in facts(entry, [answer]) for a, u in _AMOUNT.findall(fact)]
            amounts += len(shown)
            # Both are rounded to two digits.
            assert answer.band is None or sum(shown) <= 1.06 * answer.band.high, entry.unit.qualname
    assert amounts > 4


def test_the_lines_that_cost_most_run_wait_or_call(make_prediction: MakePrediction) -> None:
    loop = Cause(CauseKind.LOOP, 2, "", 0.3, 1e6)
    small = Cause(CauseKind.CALL, 3, "len", 1e-6)
    wait = Wait(WaitKind.TIME, 1, "time.sleep", Amount(2.0, 2.0, 2.0))
    found = costly_lines(unit(WorkFacts(CostFacts(causes=(small, loop)))), make_prediction(0.3, 0.4))
    assert [words for _, words in found] == ["runs 1,000,000 times"]
    slept = costly_lines(unit(WorkFacts(CostFacts(causes=(loop,)), waits=(wait,))), make_prediction(2.3, 2.4))
    assert [words for _, words in slept] == ["waits 2 s"]
    assert not costly_lines(unit(None), make_prediction(0.3, 0.4))


def test_rows_of_a_table_are_named_with_what_reads_them_faster() -> None:
    text = b"def totals(orders):\n    return [row['price'] * row['count'] for _, row in orders.iterrows()]\n"
    [analysed] = Analyser().analyse(ParsedSource(text, "python"))
    [[latency]] = load().predict([analysed.code], [[Query("latency")]])
    place = "much of the latency is from line 2, `for _, row in orders.iterrows()`"
    cure = "`itertuples`, or a `zip` of the columns, makes no `Series` for each row"
    assert curable_lines(analysed, [latency]) == [f"{place}: {cure}"]
    assert cure in whole_hover(analysed, [latency], markdown=True)
    assert curable_place(analysed, [latency]) == (1, "for _, row in orders.iterrows()")
    assert place.replace("`", "") in notes(analysed, [latency])
    [origin] = unit_row("a.py", analysed, latency)["curable"]
    assert origin == {"line": 2, "text": "for _, row in orders.iterrows()", "loops": [], "cure": "tuples"}
    [[memory]] = load().predict([analysed.code], [[Query("memory")]])
    assert curable_lines(analysed, [memory]) == unit_row("a.py", analysed, memory)["curable"] == []


def test_a_line_that_a_growth_names_is_not_named_twice() -> None:
    text = b"def f(words: list[str], known: list[str]):\n    return [word for word in words if word in sorted(known)]\n"
    [analysed] = Analyser().analyse(ParsedSource(text, "python"))
    [[latency]] = load().predict([analysed.code], [[Query("latency")]])
    assert latency.growth is not None
    assert latency.growth.is_claim
    assert "once before the loop" in " ".join(growth_lines(analysed, [latency]))
    assert curable_lines(analysed, [latency]) == []
