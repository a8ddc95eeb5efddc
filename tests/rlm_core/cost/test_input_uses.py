"""How a function uses its inputs: which ones there are, and where they stand in its syntax."""

from __future__ import annotations

import time

import pytest
from rlm_core.cost.input_uses import OF_INPUT, USES, input_uses


def uses(text: str, name: str) -> dict[str, float]:
    """The counts of an input that are not zero."""
    features = input_uses(text).features(name)
    return {use: count for use, count in zip((*USES, *OF_INPUT), features, strict=True) if count}


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("for x in items:\n        y = x", {"loops": 1}),
        ("for x in items:\n        if x:\n            return x", {"loops": 1, "loops_that_may_end_early": 1}),
        ("return [x for x in items]", {"comprehensions": 1}),
        ("return [[y for y in items] for x in other]", {"comprehensions": 1, "deepest_loop": 1, "in_loops": 1}),
        ("while items:\n        y = 1", {"while_tests": 1, "in_loops": 1}),
        ("for i in range(items):\n        y = 1", {"loops": 1, "ranges": 1}),
        ("return sorted(items)", {"passed_to_builtins": 1}),
        ("return send(items)", {"passed_to_others": 1}),
        ("for y in other:\n        send(items)", {"passed_to_others": 1, "passed_in_loops": 1, "in_loops": 1}),
        ("return f(items, 1)", {"passed_to_others": 1, "passed_to_itself": 1}),
        ("return items.copy()", {"methods": 1, "attributes": 1}),
        ("return items[0]", {"items_taken": 1}),
        ("return items[1:]", {"slices": 1}),
        ("return 1 in items", {"searched": 1}),
        ("return items == other", {"compared": 1}),
        ("return len(items)", {"lengths": 1}),
        ("return isinstance(items, str)", {"type_tests": 1}),
        ("if items:\n        y = 1", {"truth_tests": 1}),
        ("y = items", {"stored": 1}),
        ("y += items", {"added_to": 1}),
        ("return f'{items}'", {"formatted": 1}),
        ("if other:\n        return items", {"returned": 1, "in_branches": 1}),
    ],
)
def test_each_use_is_counted(body: str, expected: dict[str, float]) -> None:
    assert uses(f"def f(items, other):\n    {body}\n", "items") == expected | {"all": 1, "is_parameter": 1}


def test_a_local_name_counts_as_the_input_that_it_is() -> None:
    text = "def f(self):\n    queue = self.jobs.queue\n    for one in queue:\n        print(one)\n"
    assert uses(text, "self.jobs.queue") == {
        "loops": 1, "all": 2, "stored": 1, "attributes_deep": 2,
    }  # fmt: skip


def test_parameters_that_take_the_rest_are_marked() -> None:
    text = "def f(*args, **options):\n    return g(args, options)\n"
    assert uses(text, "args")["is_rest"] == uses(text, "options")["is_rest"] == 1


@pytest.mark.parametrize(
    ("parameter", "expected"),
    [
        ("n=3", {"default_is_number": 1}),
        ("*, n=2.5", {"default_is_number": 1}),
        ("n=None", {"default_is_none": 1}),
        ("n=True", {}),
        ("n: int", {"hint_is_number": 1}),
        ("n: str | None = None", {"hint_is_text": 1, "default_is_none": 1}),
        ("n: list[int]", {"hint_is_container": 1}),
        ("n: 't.Optional[collections.abc.Sequence[str]]'", {"hint_is_container": 1}),
        ("n: Order", {}),
    ],
)
def test_defaults_and_type_hints_of_parameters_are_features(parameter: str, expected: dict[str, float]) -> None:
    found = uses(f"def f(m, {parameter}):\n    return g(n)\n", "n")
    assert {name: value for name, value in found.items() if name.startswith(("default", "hint"))} == expected


def test_an_object_is_an_input_itself_only_if_it_is_used_as_a_container() -> None:
    assert input_uses("def f(self):\n    return self.name\n").inputs == ("self.name",)
    assert input_uses("def f(self):\n    return len(self)\n").inputs == ("self",)


def test_the_inputs_that_are_used_most_come_first_and_there_are_at_most_twelve() -> None:
    names = [f"n{number}" for number in range(20)]
    body = "".join(f"    a({name})\n" for name in names)
    found = input_uses(f"def f({', '.join(names)}):\n{body}    b(n7)\n").inputs
    assert found[0] == "n7"
    assert len(found) == 12


@pytest.mark.parametrize(
    "text", ["return a" + ".b" * 10_000, "return a" + "()" * 50, "\n    ".join(["a.b = a.c"] * 5_000)]
)
def test_deep_and_long_texts_are_read_in_linear_time(text: str) -> None:
    began = time.process_time()
    assert len(input_uses(f"def f(a):\n    {text}\n").inputs) <= 2
    assert time.process_time() - began < 2


@pytest.mark.parametrize("text", ["", "x = 1\n", "def f(:\n", "class A:\n    pass\n"])
def test_a_text_without_a_function_has_no_inputs(text: str) -> None:
    assert input_uses(text).inputs == ()
    assert not any(input_uses(text).features("items")[: len(USES)])
