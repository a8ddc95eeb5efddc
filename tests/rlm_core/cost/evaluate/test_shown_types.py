"""What the text shows of the types of values, and what an operation on an unknown type counts as."""

from __future__ import annotations

import math

import pytest
from rlm_core.cost.analysis import work_facts
from rlm_core.queries.analysis import Analyser
from rlm_core.source.parsed import ParsedSource
from rlm_core.types import WorkFacts


def facts_of(text: str) -> WorkFacts:
    """The facts of the last unit of a file."""
    work = Analyser().analyse(ParsedSource(text.encode(), "python"), None)[-1].code.work
    assert work is not None
    return work


@pytest.mark.parametrize(
    ("operation", "name"),
    [
        ("a + b", "+"),
        ("a < b", "<"),
        ("-a", "-"),
        ("len(a)", "len"),
        ("str(a)", "str"),
        ("a[b]", "[]"),
        ("a[1:b]", "[:]"),
        ("a.size", ".size"),
        ("b in a", "in"),
        ("f'{a}'", "format"),
        ("[x for x in a]", "iter"),
    ],
)
def test_an_operation_on_an_unknown_type_may_run_any_code(operation: str, name: str) -> None:
    facts = facts_of(f"def f(a, b):\n    return {operation}\n")
    assert name in dict(facts.unknown)
    assert facts.opaque > 0
    assert not facts.fixed


@pytest.mark.parametrize(
    "text",
    [
        "def f(a: int, b: int):\n    return a + b * a < b\n",
        "def f(a: 'float', b: Optional[int]):\n    return a / b\n",
        "def f(a: int | None):\n    return -a\n",
        "def f(a: str):\n    return f'{a}!' in a\n",
        "def f(a: list[int], i: int):\n    return a[i] + len(a)\n",
        "def f(a: tuple[int, str]):\n    return a[0] + 1\n",
        "def f(a: Mapping[str, int], key: str):\n    return a[key] + 1\n",
        "from pathlib import Path\n\ndef f(a: Path, b: str):\n    return a / b\n",
        "import pathlib\n\ndef f(a: pathlib.Path):\n    return a / 'x' / 'y'\n",
    ],
)
def test_a_type_hint_says_what_an_operation_runs(text: str) -> None:
    assert facts_of(text).unknown == ()


def test_a_hint_of_a_local_name_is_believed_where_nothing_else_is_known() -> None:
    assert facts_of("def f(load):\n    n: int = load()\n    return n + 1\n").unknown == (("load()", 1.0),)


@pytest.mark.parametrize("operation", ["p / m / 'b'", "p.joinpath(m)", "p / f'{m}.txt'"])
def test_what_only_a_path_has_says_that_it_is_one(operation: str) -> None:
    facts = facts_of(f"def f(p, m):\n    return {operation}\n")
    assert dict(facts.types)["p"] == "pathlib.Path"
    assert facts.latency.typical > 1e-6


def test_methods_of_two_types_show_none() -> None:
    assert facts_of("def f(a):\n    a.append(1)\n    a.items()\n").types == ()


def test_membership_in_a_list_looks_at_its_items() -> None:
    growth = facts_of("def f(a: list[str], b: str):\n    return b in a\n").latency.growth
    assert [entry.size for entry in growth] == ["a"]


OWN_CLASS = """
class Vector:
    size: int

    def __init__(self, parts):
        self.parts = list(parts)

    def __add__(self, other):
        return sum(range(1000))

    def __len__(self):
        return sum(range(1000))

    def __getitem__(self, index):
        return sum(range(1000))

    def __setitem__(self, index, value):
        sum(range(1000))

    def __contains__(self, item):
        return bool(sum(range(1000)))

    def __eq__(self, other):
        return bool(sum(range(1000)))

    def __iter__(self):
        return iter([sum(range(1000))])

    def __enter__(self):
        return sum(range(1000))

    def __exit__(self, kind, error, trace):
        return None

def f(a: Vector, b: Vector):
    """


@pytest.mark.parametrize(
    "statement",
    ["a + b", "len(a)", "a[0]", "a[0] = 1", "1 in a", "a == b", "[x for x in a]", "for x in a: pass", "with a: pass"],
)
def test_an_operator_of_an_own_class_costs_what_its_method_costs(statement: str) -> None:
    facts = facts_of(f"{OWN_CLASS}{statement}\n")
    assert facts.opaque == 0
    assert facts.latency.typical > 5e-6


def test_attributes_of_an_own_class_are_known() -> None:
    assert facts_of(f"{OWN_CLASS}return a.size + 1\n").unknown == ()
    assert "a.parts" in [entry.size for entry in facts_of(f"{OWN_CLASS}return sorted(a.parts)\n").latency.growth]


def test_types_given_from_elsewhere_count_where_the_text_shows_none() -> None:
    text = "def f(a, b):\n    return a / b\n"
    assert work_facts(text).unknown  # type: ignore[union-attr]
    known = work_facts(text, types={"a": "pathlib.Path", "b": "str"})
    assert known is not None
    assert known.unknown == ()
    assert known.types == ()


def test_an_unknown_operation_in_a_loop_counts_as_often_as_it_runs() -> None:
    facts = facts_of("def f(a):\n    for _ in range(20):\n        a.b\n")
    assert facts.unknown == ((".b", 20.0),)
    assert facts.opaque == 20


def test_a_hint_of_a_result_is_believed_where_the_body_says_nothing() -> None:
    text = "def size(a) -> int:\n    return a.b\n\ndef f(a):\n    return size(a) + 1\n"
    assert facts_of(text).unknown == ((".b", 1.0),)


def test_the_result_of_an_unlisted_function_of_the_standard_library_has_a_kind() -> None:
    text = "import tarfile\n\ndef f(path):\n    return tarfile.is_tarfile(path) + 1\n"
    assert facts_of(text).unknown == (("tarfile.is_tarfile()", 1.0),)


@pytest.mark.parametrize(
    "text",
    [
        "def f(a: list[int] | None = None):\n    if a is None:\n        return sum(range(10**6))\n",
        "def f(a: Optional[str]):\n    if a is None:\n        return sum(range(10**6))\n",
        "def f(a=None):\n    if a is None:\n        return sum(range(10**6))\n    a.append(1)\n",
        "import re\n\ndef f(a):\n    if re.match('a', a) is None:\n        return sum(range(10**6))\n",
        "def f():\n    if {'a': 1}.get(input()) is None:\n        return sum(range(10**6))\n",
        "def f(a):\n    b = [] if a else None\n    if b is None:\n        return sum(range(10**6))\n",
    ],
)
def test_what_may_be_none_decides_no_branch(text: str) -> None:
    known = facts_of(text).latency.known
    assert known.least < 1e-3 < known.most


def test_more_operations_than_a_float_holds_are_counted_by_a_finite_number() -> None:
    loop = "for _ in range(10 ** 200):"
    facts = facts_of(f"def f(a):\n    {loop}\n        {loop}\n            a.b + a.c\n")
    assert math.isfinite(facts.opaque)
    assert facts.opaque > 1e6
