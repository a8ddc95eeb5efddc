"""Groups of literal work: repeatable, various, and every edit changes what its kind says."""

from __future__ import annotations

import ast
from collections import Counter

import pytest

from tools.counterfactual.literal.generator import MOST_SECONDS, NEUTRAL, Group, edits_of, generate, program, specify
from tools.counterfactual.literal.rendering import Specification, render
from tools.counterfactual.literal.templates import TEMPLATES
from tools.counterfactual.vocabulary import seeded


@pytest.fixture(scope="module")
def groups() -> list[Group]:
    return list(generate(3, 0, 200))


def test_a_seed_and_number_give_the_same_group_wherever_the_run_starts(groups: list[Group]) -> None:
    assert list(generate(3, 20, 24)) == groups[20:24]
    assert [group.base.module for group in generate(4, 0, 5)] != [group.base.module for group in groups[:5]]


def test_templates_take_turns(groups: list[Group]) -> None:
    assert len({group.family for group in groups}) == len(groups)


def test_styles_vary(groups: list[Group]) -> None:
    specifications = [group.base.specification for group in groups]
    assert len({spec.placement for spec in specifications}) >= 6
    assert {spec.depth for spec in specifications} >= {0, 1, 2}
    assert 0.05 < sum(spec.method for spec in specifications) / len(specifications) < 0.4
    assert len({group.base.module.name for group in groups}) > 80


def test_predicted_costs_span_many_decades(groups: list[Group]) -> None:
    seconds = sorted(group.base.specification.seconds(group.base.specification.size) for group in groups)
    assert seconds[0] < 3e-7
    assert seconds[-1] > 1
    assert sum(value > 0.05 for value in seconds) < 0.15 * len(seconds)


def test_slow_programs_bring_smaller_versions_of_themselves(groups: list[Group]) -> None:
    programs = [program for group in groups for program in (group.base, *(edit for _, edit in group.edits))]
    slow = [program for program in programs if program.specification.seconds(program.specification.size) > MOST_SECONDS]
    assert slow
    for one in slow:
        sizes = [size for size, _ in one.points]
        assert sizes == sorted(set(sizes))
        assert all(size <= one.specification.size for size in sizes)
        assert one.specification.seconds(sizes[-1]) < 0.1 or sizes[-1] <= one.specification.template.low


def test_every_edit_changes_the_text(groups: list[Group]) -> None:
    for group in groups:
        texts = [group.base.module.text, *(edit.module.text for _, edit in group.edits)]
        assert len(set(texts)) == len(texts)


def specification(template: str, number: int = 0) -> Specification:
    return specify(template, f"test:{number}", seeded("test", number))


@pytest.mark.parametrize("template", ["membership-set", "sort-in-loop", "fibonacci", "np-elementwise", "count-loop"])
def test_edits_change_what_their_kind_says(template: str) -> None:
    kinds: Counter[str] = Counter()
    for number in range(60):
        base = specification(template, number)
        for kind, edit in edits_of(base, seeded(number)):
            kinds[kind] += 1
            if kind == "grow-size":
                assert edit.size > base.size
            elif kind == "shrink-size":
                assert edit.size < base.size
            elif kind.startswith("to-"):
                assert edit.variant != base.variant
                assert edit.size == base.size
            elif kind == "wrap-loop":
                assert f"range({edit.wrap})" in render(edit).text
            elif kind == "unwrap-loop":
                assert f"range({base.wrap})" in render(base).text
            elif kind == "early-exit":
                assert "return" in render(edit).text.replace(render(base).text, "")
            elif kind.startswith(NEUTRAL):
                assert (edit.size, edit.variant, edit.wrap, edit.early) == (
                    base.size, base.variant, base.wrap, base.early
                )  # fmt: skip
    assert {"grow-size", "shrink-size", "wrap-loop", "early-exit"} <= kinds.keys()
    assert any(kind.startswith("to-") for kind in kinds)
    assert any(kind.startswith(NEUTRAL) for kind in kinds)


def _result(text: str, name: str) -> object:
    namespace: dict[str, object] = {}
    exec(text, namespace)
    work = namespace[name]
    assert callable(work)
    return work()


def test_neutral_edits_return_the_same() -> None:
    for number in range(40):
        base = specification("count-loop", number)
        if base.method or base.parameter >= 0:
            continue
        base = Specification(**{name: getattr(base, name) for name in base.__slots__} | {"size": 50})
        for kind, edit in edits_of(base, seeded(number)):
            if kind.startswith(NEUTRAL):
                before, after = render(base), render(edit)
                assert _result(before.text, before.name) == _result(after.text, after.name)


def test_a_size_edit_changes_nothing_but_the_size() -> None:
    for template in sorted(TEMPLATES)[::9]:
        base = specification(template)
        larger = Specification(**{name: getattr(base, name) for name in base.__slots__} | {"size": base.size + 1})
        before, after = render(base).text, render(larger).text
        assert len(before.splitlines()) == len(after.splitlines()) or base.placement == "factors"
        ast.parse(after)


def test_a_fast_program_is_measured_at_its_size() -> None:
    base = specification("count-loop")
    small = Specification(**{name: getattr(base, name) for name in base.__slots__} | {"size": 10, "wrap": 0})
    assert program(small).points == ()
