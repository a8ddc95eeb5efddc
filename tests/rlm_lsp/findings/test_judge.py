"""The judge: which predictions and ratios are findings, how severe they are and what they say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st
from rlm_core import Prediction
from rlm_core.inference.anchoring import AnchoredPredictor
from rlm_core.inference.calibration import bands
from rlm_core.queries.analysis import AnalysedUnit, Analyser
from rlm_core.source.parsed import ParsedSource
from rlm_core.source.units import find_units
from rlm_core.types import (
    Amount,
    Anchor,
    CalibrationSource,
    CodeText,
    CostRatio,
    GrowthClass,
    GrowthEstimate,
    Metric,
    Query,
    Span,
    Unit,
    Wait,
    WaitKind,
    WorkFacts,
)
from rlm_lsp.budgets.comments import read_comments
from rlm_lsp.budgets.rules import ActiveBudget, Rules
from rlm_lsp.budgets.syntax import Budget
from rlm_lsp.findings.finding import DEFAULT_CRITERIA, Confidence, Criteria, Finding, RegressionRule
from rlm_lsp.findings.judge import (
    Compare,
    Predict,
    cases_of,
    computing_only,
    criteria_of,
    judge,
    malformed,
    over_budget,
    read_rules,
)
from rlm_lsp.findings.regressions import LEAST_COSTS, RevisedCosts, grown, is_own_change, new_endless
from rlm_lsp.history.comparison import GrowthRise, WaitChange, unit_diffs
from rlm_lsp.settings.model import Settings, Severity

from tests.fakes import NO_NUMBER, quantiles
from tests.rlm_core.inference.test_anchoring import cost

from .support import LengthPredictor

[UNIT] = find_units(ParsedSource(b"def f(n):\n    return n\n", "python"))
SPAN = Span(0, 2, 0, 9, 2, 9)


def predicted(median: float, metric: Metric = "latency", basis: str = "call", **changes: object) -> Prediction:
    found = quantiles(median)
    fields: dict[str, object] = {"quantiles": found, "bands": bands(found, 50, 500, CalibrationSource("x"))} | changes
    return Prediction(basis, metric, "x86-64", {}, "m", median, floor=0.0, truncated=False, **fields)  # type: ignore[arg-type]


def findings(budget: Budget, prediction: Prediction, confidence: Confidence | None = None) -> list[Finding]:
    rules = Rules((ActiveBudget(budget, SPAN, configured=False),))
    return over_budget(UNIT, rules, [prediction], confidence or Confidence())


def changed(ratio: float, metric: Metric = "latency") -> CostRatio:
    found = quantiles(ratio, 1.1)
    return CostRatio("call", metric, "x86-64", "m", ratio, bands(found, 50, 500, CalibrationSource("x")), found)


def test_a_finding_says_what_how_sure_where_and_why() -> None:
    [finding] = findings(Budget("latency", 1e-3), predicted(4e-3))
    assert finding.code == "over-budget"
    assert finding.severity == "error"
    assert finding.span == UNIT.name
    assert finding.probability == pytest.approx(0.995, abs=0.003)
    assert finding.message == (
        "latency of f is predicted to exceed its budget of 1 ms (over 99 % probability):"
        " 2–8 ms (80 % band, median 4 ms)"
    )
    assert finding.budget == "latency < 1 ms"
    [place] = finding.related
    assert (place.span, place.path) == (SPAN, None)


@pytest.mark.parametrize(
    ("median", "severity"),
    [(0.5e-3, None), (1e-3, None), (1.7e-3, "information"), (2.2e-3, "warning"), (8e-3, "error")],
)
def test_a_finding_is_as_severe_as_it_is_sure(median: float, severity: str | None) -> None:
    assert [finding.severity for finding in findings(Budget("latency", 1e-3), predicted(median))] == (
        [severity] if severity else []
    )


def test_an_accuracy_is_to_stay_above_its_budget() -> None:
    budget = Budget("accuracy", 0.9)
    low = predicted(0.5, "accuracy", "network", quantiles=tuple(0.5 + i / 1000 for i in range(17)))
    [finding] = findings(budget, low)
    assert "accuracy of f on x86-64 is predicted to fall below its budget of 90 %" in finding.message
    high = predicted(0.95, "accuracy", "network", quantiles=tuple(0.95 + i / 1000 for i in range(17)))
    assert findings(budget, high) == []


def test_a_model_that_abstains_says_nothing() -> None:
    silent = Prediction("call", "latency", "x86-64", {}, "m", None, (), 0.0, False, NO_NUMBER)
    assert findings(Budget("latency", 1e-12), silent, Confidence(least=0.0, information=0.0)) == []
    unknown = CostRatio("call", "latency", "x86-64", "m", None, (), (), NO_NUMBER)
    assert grown(UNIT, Rules(), [unknown]) == []


@given(st.floats(1e-9, 1e3), st.floats(1e-9, 1e3), st.floats(0.5, 0.99))
def test_there_is_a_finding_exactly_when_the_model_is_sure_enough(median: float, value: float, least: float) -> None:
    found = findings(Budget("latency", value), predicted(median), Confidence(least, 0.0))
    assert len(found) == (predicted(median).above(value) >= least)


def test_a_regression_says_by_how_much_and_since_when() -> None:
    [finding] = grown(UNIT, Rules(), [changed(2.0), changed(1.2, "memory")], criteria=Criteria(revision="v1.0"))
    assert finding.code == "regression"
    assert finding.metric == "latency"
    assert finding.message == (
        "latency of f is predicted to grow about 2× since v1.0 (over 99 % probability of at least 1.5×)"
    )
    assert grown(UNIT, Rules(), [changed(2.0)], criteria=Criteria(regression=RegressionRule(3.0, 0.8))) == []
    assert grown(UNIT, Rules(ignored=frozenset({"latency"})), [changed(2.0)]) == []


def test_all_costs_of_a_unit_that_have_grown_are_one_finding() -> None:
    rise = GrowthRise("latency", GrowthEstimate("n", 0.9), GrowthEstimate("n^2", 0.85, ("xs",)))
    [finding] = grown(UNIT, Rules(), [changed(2.0), changed(3.0, "memory")], rises=[rise])
    assert (finding.code, finding.metric, finding.rise) == ("regression", "latency", rise)
    assert finding.message == (
        "latency of f is predicted to grow about 2× since HEAD (over 99 % probability of at least 1.5×);"
        " its peak memory about 3× (over 99 % probability of at least 1.5×);"
        " its latency is predicted to grow as n^2 in xs instead of n (85 % probability)"
    )


@pytest.mark.parametrize("metric", ["latency", "memory"])
def test_a_function_that_stays_cheap_does_not_regress(metric: Metric) -> None:
    least, change = LEAST_COSTS[metric], changed(3.0, metric)
    for cost_now, count in (({metric: least * 0.99}, 0), ({metric: least * 1.01}, 1), ({}, 1)):
        assert len(grown(UNIT, Rules(), [change], cost_now)) == count


@pytest.mark.parametrize(
    ("before", "after", "found"),
    [("n", "n^2", True), ("1", "n^2", True), ("n", "mn", True), ("1", "n", False), ("n", "n log n", False)],
)
def test_a_rise_beyond_n_log_n_is_a_finding(before: GrowthClass, after: GrowthClass, found: bool) -> None:
    rise = GrowthRise("latency", GrowthEstimate(before, 0.9), GrowthEstimate(after, 0.9))
    assert bool(grown(UNIT, Rules(), [], rises=[rise])) == found


def test_what_only_calls_something_that_has_changed_has_not_changed_itself() -> None:
    def units(text: str) -> dict[str, CodeText]:
        parsed = ParsedSource(text.encode(), "python")
        return {entry.unit.qualname: entry.code for entry in Analyser().analyse(parsed)}

    before = units("N = 10\n\ndef f(xs):\n    return g(xs)\n\ndef g(xs):\n    return xs[:N]\n")
    hinted = "def f(values: list) -> list:\n    # a comment\n    return g(values)\n"
    callee = units(f"N = 10\n\n{hinted}\ndef g(xs):\n    return sorted(xs)\n")
    assert [is_own_change(before[name], callee[name]) for name in "fg"] == [False, True]
    constant = units("N = 10**6\n\ndef f(xs):\n    return g(xs)\n\ndef g(xs):\n    return xs[:N]\n")
    assert not is_own_change(before["g"], constant["g"])


def test_a_higher_accuracy_is_no_regression() -> None:
    assert grown(UNIT, Rules(), [changed(2.0, "accuracy")]) == []


def test_a_malformed_budget_is_an_error_at_its_place() -> None:
    source = b"# rlm: latency < 1\ndef f(): pass\n"
    units: list[Unit] = find_units(ParsedSource(source, "python"))
    [finding] = malformed(read_comments(ParsedSource(source, "python"), units).malformed)
    assert (finding.code, finding.severity, finding.qualname) == ("malformed-budget", "error", "f")
    assert finding.budget == "latency < 1"
    assert (finding.span.start_byte, finding.span.end_byte) == (17, 18)


@pytest.mark.parametrize(
    ("revision", "named"), [("HEAD", "HEAD"), ("0123456789" * 4, "012345678901"), ("v1.2", "v1.2")]
)
def test_messages_name_a_commit_by_few_digits(revision: str, named: str) -> None:
    assert criteria_of(Settings(), revision=revision).revision == named


def test_severities_come_from_the_settings() -> None:
    severity: dict[Severity, float] = {"information": 0.5, "warning": 0.7, "error": 1.0}
    confidence = criteria_of(Settings(budget_confidence=0.6, severity=severity)).confidence
    assert [confidence.severity(p) for p in (0.55, 0.65, 0.75, 0.999)] == [None, "information", "warning", "warning"]


@pytest.mark.parametrize(
    ("probability", "severity"), [(0.79, None), (0.8, "information"), (0.9, "warning"), (0.995, "error")]
)
def test_the_default_settings_give_the_documented_severities(probability: float, severity: str | None) -> None:
    assert criteria_of(Settings()).confidence.severity(probability) == severity


def ask(model: LengthPredictor, *, compares: bool = True) -> tuple[Predict, Compare]:
    """The callbacks of the judge, answered by a predictor."""

    def predict(questions: Sequence[tuple[CodeText, Sequence[Query]]]) -> Sequence[Sequence[Prediction]]:
        return model.predict([code for code, _ in questions], [queries for _, queries in questions])

    def compare(
        questions: Sequence[tuple[CodeText, CodeText, Sequence[Query]]],
    ) -> Sequence[Sequence[CostRatio]] | None:
        pairs = [(before, after) for before, after, _ in questions]
        return model.compare(pairs, [queries for *_, queries in questions]) if compares else None

    return predict, compare


SOURCE = (
    "# rlm: latency < 1 µs\ndef f(n): return n\n\n# rlm: memory < 1 B\ndef odd(n): return n\n\ndef g(n): return n + n\n"
)


@pytest.mark.parametrize("compares", [True, False])
def test_the_judge_checks_budgets_and_compares_what_has_changed(compares: bool) -> None:
    parsed = ParsedSource(SOURCE.encode(), "python")
    units = Analyser().analyse(parsed)
    before = Analyser().analyse(ParsedSource(b"def g(n):0\n", "python"))
    rules, malformed_comments = read_rules(parsed, units, ())
    assert malformed_comments == []
    cases = cases_of(units, rules, unit_diffs(before, units), Criteria())
    assert [case.analysed.unit.qualname for case in cases] == ["f", "odd", "g"]
    model = LengthPredictor()
    over, abstained, grown = judge(model, cases, *ask(model, compares=compares))
    assert [finding.code for finding in over.findings] == ["over-budget"]
    assert (abstained.findings, abstained.abstained) == ([], [NO_NUMBER])
    assert [finding.metric for finding in grown.findings] == (["latency"] if compares else [])


def test_units_without_budget_and_change_are_not_judged() -> None:
    parsed = ParsedSource(SOURCE.encode(), "python")
    units = Analyser().analyse(parsed)
    rules, _ = read_rules(parsed, units, ())
    same = unit_diffs(units, units)
    assert [case.analysed.unit.qualname for case in cases_of(units, rules, same, Criteria())] == ["f", "odd"]
    assert cases_of(units, rules, same, Criteria(), only_changes=True) == []


NETWORK = WorkFacts(waits=(Wait(WaitKind.NETWORK, 1, "requests.get"),))


def with_work(text: str, work: WorkFacts) -> list[AnalysedUnit]:
    """The units of a text with the given facts."""
    units = Analyser().analyse(ParsedSource(text.encode(), "python"))
    return [replace(entry, code=replace(entry.code, work=work)) for entry in units]


class GrowthPredictor(LengthPredictor):
    """Also knows that texts with two loops are quadratic in their first parameter, and others linear."""

    def predict(self, texts: Sequence[CodeText], queries: Sequence[Sequence[Query]]) -> list[list[Prediction]]:
        answers = super().predict(texts, queries)
        return [
            [replace(answer, growth=self.growth(code.text)) for answer in line if answer.metric == "latency"]
            for code, line in zip(texts, answers, strict=True)
        ]

    @staticmethod
    def growth(text: str) -> GrowthEstimate:
        return GrowthEstimate("n^2" if text.count("for") == 2 else "n", 0.85 if "unsure" in text else 0.95, ("xs",))


LINEAR = "def f(xs):\n    return [x for x in xs]\n"
QUADRATIC = "def f(xs):\n    return [x for x in xs for y in xs]\n"


def judged(before: str, after: str, criteria: Criteria = DEFAULT_CRITERIA, comment: str = "") -> list[Finding]:
    parsed = ParsedSource(f"{comment}{after}".encode(), "python")
    units = Analyser().analyse(parsed)
    earlier = Analyser().analyse(ParsedSource(before.encode(), "python"))
    rules, _ = read_rules(parsed, units, ())
    model = GrowthPredictor()
    [judgement] = judge(model, cases_of(units, rules, unit_diffs(earlier, units), criteria), *ask(model))
    return [finding for finding in judgement.findings if finding.code == "growth"]


def test_a_growth_class_that_rises_is_a_finding() -> None:
    [finding] = judged(LINEAR, QUADRATIC, Criteria(revision="v1.0"))
    assert (finding.severity, finding.metric, finding.probability) == ("information", "latency", 0.95)
    assert finding.budget == "latency n^2"
    assert finding.message == (
        "latency of f is predicted to grow as n^2 in xs since v1.0, instead of n (95 % probability), from line 2,"
        " for x in xs for y in xs"
    )
    assert judged(QUADRATIC, LINEAR) == []
    assert judged(LINEAR, LINEAR.replace("x for", "-x for")) == []


def test_a_rise_counts_where_both_sides_are_sure_enough() -> None:
    unsure = QUADRATIC.replace("xs", "unsure")
    assert [finding.severity for finding in judged(LINEAR, unsure, Criteria(growth=0.8))] == ["information"]
    assert judged(LINEAR, unsure, Criteria(growth=0.9)) == []
    assert judged(LINEAR, QUADRATIC, comment="# rlm: ignore latency\n") == []


def test_a_loop_that_may_not_end_says_its_line() -> None:
    change = WaitChange(NETWORK.waits, endless=1, seconds=(0.001, 10.0))
    [finding] = new_endless(UNIT, Rules(), change, "v1.0")
    assert (finding.code, finding.severity, finding.budget) == ("wait", "information", "endless")
    assert finding.message == "f now may not end (line 2), unlike at v1.0"
    assert new_endless(UNIT, Rules(ignored=frozenset({"latency"})), change) == []


def test_a_wait_that_is_new_in_an_edit_has_no_finding_and_a_loop_that_may_not_end_has() -> None:
    before = with_work("def f():\n    requests_get_0\n", WorkFacts())
    model = LengthPredictor()
    for work, messages in (
        (NETWORK, []),
        (WorkFacts(endless=1), ["f now may not end (line 2), unlike at HEAD"]),
    ):
        after = with_work("def f():\n    requests.get(0)\n", work)
        cases = cases_of(after, [Rules()], unit_diffs(before, after), Criteria())
        [judgement] = judge(model, cases, *ask(model))
        assert [finding.message for finding in judgement.findings] == messages
        assert all(finding.work == work for finding in judgement.findings)


@pytest.mark.parametrize("severity", [DEFAULT_CRITERIA.confidence, Confidence(0.5, 1.0, 1.0, 0.5)])
def test_what_is_compared_is_information_however_sure_it_is(severity: Confidence) -> None:
    criteria = replace(DEFAULT_CRITERIA, confidence=severity)
    rise = GrowthRise("latency", GrowthEstimate("n", 1.0), GrowthEstimate("2^n", 1.0))
    for found in (
        grown(UNIT, Rules(), [changed(1000.0)], criteria=criteria),
        grown(UNIT, Rules(), [], rises=[rise], criteria=criteria),
        new_endless(UNIT, Rules(), WaitChange(endless=1)),
    ):
        assert [finding.severity for finding in found] == ["information"]


class Alarmist(LengthPredictor):
    """Predicts that all that is compared costs ten times as much, and is exponential where it was linear."""

    def predict(self, texts: Sequence[CodeText], queries: Sequence[Sequence[Query]]) -> list[list[Prediction]]:
        answers = super().predict(texts, queries)
        growth = GrowthEstimate("2^n" if len(self.batches) % 2 else "n", 1.0)
        return [[replace(answer, median=1.0, growth=growth) for answer in line] for line in answers]

    def compare(
        self, pairs: Sequence[tuple[CodeText, CodeText]], queries: Sequence[Sequence[Query]]
    ) -> list[list[CostRatio]]:
        return [[replace(changed(10.0), metric=query.metric) for query in line] for line in queries]


NAMES = ("f", "g", "h")
BODIES = (
    "return [x for x in xs]",
    "return {0}(xs)",
    "return [{0}(x) for x in xs]",
    "time.sleep(N)",
    "while N: pass",
    "return list(range(N))",
    "return get(xs)  # {0}",
)
File = tuple[str, int, dict[str, tuple[str, str, bool]]]
FILES = st.tuples(
    st.sampled_from(["import time", "import time\nfrom requests import get"]),
    st.sampled_from([0, 1, 10**7]),
    st.dictionaries(
        st.sampled_from(NAMES), st.tuples(st.sampled_from(BODIES), st.sampled_from(NAMES), st.booleans()), min_size=1
    ),
)


def units_of(file: File) -> tuple[ParsedSource, list[AnalysedUnit]]:
    """A file of functions, some with a budget, that call each other and depend on a constant."""
    header, constant, functions = file
    texts = [
        f"{'# rlm: latency < 1 ns' if has_budget else ''}\ndef {name}(xs):\n    {body.format(callee)}\n"
        for name, (body, callee, has_budget) in functions.items()
    ]
    parsed = ParsedSource("\n".join([header, f"N = {constant}", *texts]).encode(), "python")
    return parsed, Analyser().analyse(parsed)


@settings(deadline=None, max_examples=60)
@given(FILES, FILES, st.booleans())
def test_a_unit_whose_text_and_callees_are_unchanged_has_no_finding_but_over_budget(
    before: File, after: File, mostly_same: bool
) -> None:
    if mostly_same:
        after = (after[0], after[1], before[2] | dict(list(after[2].items())[:1]))
    (_, earlier), (parsed, units) = units_of(before), units_of(after)
    rules, _ = read_rules(parsed, units, ())
    cases = cases_of(units, rules, unit_diffs(earlier, units), DEFAULT_CRITERIA, only_changes=True)
    known = {(entry.unit.qualname, entry.code.text, entry.code.callees) for entry in earlier}
    model = Alarmist()
    for case, judgement in zip(cases, judge(model, cases, *ask(model)), strict=True):
        code = case.analysed.code
        if (case.analysed.unit.qualname, code.text, code.callees) in known:
            assert {finding.code for finding in judgement.findings} <= {"over-budget"}
            event("unchanged")


def test_a_budget_that_does_not_cover_a_wait_says_so() -> None:
    [unit] = with_work("def f():\n    return get()\n", NETWORK)
    rules = Rules((ActiveBudget(Budget("latency", 10.0), SPAN, configured=False),))
    [finding] = computing_only(unit, rules, [predicted(1e-3), predicted(1e3, "memory")])
    assert (finding.code, finding.severity, finding.budget) == ("wait", "information", "latency < 10 s")
    assert finding.message == (
        "the budget of f, 10 s, covers computing only: it does not include the wait for the network (line 2)"
    )
    assert computing_only(unit, Rules(), [predicted(1e-3)]) == []
    known = WorkFacts(waits=(Wait(WaitKind.TIME, 1, "sleep", Amount(1.0, 1.0, 1.0)),))
    assert computing_only(with_work("def f(): 0\n", known)[0], rules, [predicted(1.0)]) == []
    memory = Rules((ActiveBudget(Budget("memory", 10.0), SPAN, configured=False),))
    assert computing_only(unit, memory, [predicted(1e-3)]) == []


@pytest.mark.parametrize("median", [1e-6, 2e-6, 4e-6])
@pytest.mark.parametrize("factor", [1.0, 4.0])
def test_a_budget_is_judged_on_what_was_measured_or_carried_over(median: float, factor: float) -> None:
    its = cost(median, median / 2, median * 4)
    source = b"# rlm: latency < 3us\ndef f(n):\n    return n\n"
    parsed = ParsedSource(source, "python")
    [unit] = Analyser().analyse(parsed)
    before = replace(unit.code, text=unit.code.text[: round(len(unit.code.text) / factor)])
    anchor = Anchor(its, before if factor != 1 else None)
    unit = replace(unit, code=replace(unit.code, measured=(anchor,)))
    rules, _ = read_rules(parsed, [unit], ())
    model = AnchoredPredictor(LengthPredictor())
    cases = cases_of([unit], rules, unit_diffs((), [unit]), DEFAULT_CRITERIA)

    def predict(questions: Sequence[tuple[CodeText, Sequence[Query]]]) -> Sequence[Sequence[Prediction]]:
        return model.predict([code for code, _ in questions], [queries for _, queries in questions])

    [judgement] = judge(model, cases, predict, lambda questions: None)
    # The text alone is predicted to take far longer than the budget allows.
    assert len(unit.code.text) * 1e-6 > 3e-6
    assert bool(judgement.findings) == (median * factor > 3e-6)


ONE_LOOP = "def f(edges):\n    ends = set()\n    for edge in edges:\n        ends.add(edge)\n    return ends\n"
TWO_LOOPS = ONE_LOOP.replace("        ends.add(edge)\n", "        for other in edges:\n            ends.add(other)\n")


@pytest.mark.parametrize("ratio", [9.0, 1 / 9])
def test_a_function_has_changed_only_where_both_texts_fix_its_cost(ratio: float) -> None:
    answers = [predicted(1e-3)], [predicted(1e-3 * ratio)]
    for change, is_known in ((changed(ratio), True), (replace(changed(ratio), agreed=0.5), False)):
        costs = RevisedCosts.of([change], answers, RegressionRule())
        assert bool(costs.larger) is (is_known and ratio > 1)
        assert costs.is_faster is (is_known and ratio < 1)
