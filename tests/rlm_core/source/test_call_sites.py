"""Call sites: which functions of a package a call may run, and what is around it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rlm_core.source.call_graph import MAX_CANDIDATES, CallGraph, ResolvedCalls
from rlm_core.source.function_names import FunctionNames
from rlm_core.source.module_index import ModuleIndex, index_module
from rlm_core.source.parsed import ParsedSource


def resolved(source: str, qualname: str, others: dict[str, str] | None = None) -> ResolvedCalls:
    """The calls of a function of ``pkg.main``, with ``others`` as the other modules of ``pkg``."""
    texts = {"pkg.main": source, "pkg": "", **(others or {})}
    names: FunctionNames[str] = FunctionNames()
    indices: dict[str, ModuleIndex] = {}
    for dotted, text in texts.items():
        is_package = any(other.startswith(f"{dotted}.") for other in texts)
        indices[dotted] = index_module(ParsedSource(text.encode(), "python"), dotted, is_package=is_package)
        names.put(dotted, text.encode())

    def named(name: str) -> list[ModuleIndex] | None:
        files = names.files(name)
        return [indices[file] for file in files] if files is not None else None

    module = indices["pkg.main"]
    return CallGraph(indices.get, named).call_sites(module, module.units[qualname])


def places(calls: ResolvedCalls) -> list[list[str]]:
    """The qualified names of each site's candidates."""
    return [[unit.qualname for _, unit in site.candidates] for site in calls.sites]


HELPER = "class Helper:\n    def run(self): return 1\n    def stop(self): return 2\n"


@pytest.mark.parametrize(
    "body",
    [
        "def f(x: Helper):\n    return x.run()\n",
        "def f(x: 'Helper'):\n    return x.run()\n",
        "def f(x: Helper | None = None):\n    return x.run()\n",
        "from typing import Optional\ndef f(x: Optional[Helper]):\n    return x.run()\n",
        "def f():\n    x = Helper()\n    return x.run()\n",
        "def f():\n    return Helper().run()\n",
        "shared = Helper()\ndef f():\n    return shared.run()\n",
        "def f(make):\n    x: Helper = make()\n    return x.run()\n",
    ],
)
def test_an_assignment_or_annotation_shows_the_type_of_an_object(body: str) -> None:
    assert places(resolved(HELPER + "class Other:\n    def run(self): return 3\n" + body, "f"))[-1] == ["Helper.run"]


@pytest.mark.parametrize(
    "init",
    [
        "def __init__(self):\n        self.x = Helper()",
        "def __init__(self, x: Helper):\n        self.x = x",
        "def __init__(self, x):\n        self.x: Helper = x",
        "x: Helper\n    def __init__(self): pass",
        "x = Helper()\n    def __init__(self): pass",
    ],
)
def test_the_type_of_an_attribute_holds_in_all_methods_and_subclasses(init: str) -> None:
    source = (
        f"{HELPER}class Other:\n    def run(self): return 3\n"
        f"class A:\n    {init}\n    def f(self): return self.x.run()\n"
        "class B(A):\n    def g(self): return self.x.run()\n"
    )
    assert places(resolved(source, "A.f")) == [["Helper.run"]]
    assert places(resolved(source, "B.g")) == [["Helper.run"]]


def test_types_are_followed_through_imports_aliases_and_re_exports() -> None:
    others = {"pkg.deep": HELPER, "pkg.api": "from .deep import Helper as Helper\n"}
    for line in ("from .api import Helper as H", "from pkg.api import Helper as H"):
        assert places(resolved(f"{line}\ndef f(x: H):\n    return x.run()\n", "f", others)) == [["Helper.run"]]
    assert places(resolved("from . import api\ndef f(x: api.Helper):\n    return x.run()\n", "f", others)) == [
        ["Helper.run"]
    ]


def test_methods_are_looked_up_in_base_classes_of_other_modules() -> None:
    source = "from .deep import Helper\nclass A(Helper):\n    def run(self): return super().run() + self.stop()\n"
    assert places(resolved(source, "A.run", {"pkg.deep": HELPER})) == [["Helper.run"], ["Helper.stop"]]


def test_a_method_of_an_unknown_object_may_be_any_of_those_with_its_name() -> None:
    source = "def f(x):\n    return x.encode_all()\n"
    others = {f"pkg.m{i}": f"class C{i}:\n    def encode_all(self): return {i}\n" for i in range(2)}
    assert places(resolved(source, "f", others)) == [["C0.encode_all", "C1.encode_all"]]


def test_a_name_of_too_many_methods_is_unresolved() -> None:
    count = MAX_CANDIDATES + 1
    others = {f"pkg.m{i}": f"class C{i}:\n    def encode_all(self): return {i}\n" for i in range(count)}
    calls = resolved("def f(x):\n    return x.encode_all()\n", "f", others)
    assert (calls.sites, calls.unresolved) == ((), 1)


def test_an_abstract_method_represents_its_implementations() -> None:
    source = (
        "class Base:\n    def f(self): return self.cost_of()\n    def cost_of(self): raise NotImplementedError\n"
        "class A(Base):\n    def cost_of(self): return 1\nclass B(Base):\n    def cost_of(self): return 2\n"
    )
    assert places(resolved(source, "Base.f")) == [["A.cost_of", "B.cost_of"]]


def test_reading_a_property_is_a_call_and_reading_an_attribute_is_not() -> None:
    source = (
        "class A:\n    @property\n    def size(self): return 1\n    def run(self): return 2\n"
        "    def f(self): return self.size + self.other + bool(self.run)\n"
    )
    assert places(resolved(source, "A.f")) == [["A.size"]]


def test_calls_outside_of_the_package_are_counted_apart_from_unknown_ones() -> None:
    calls = resolved(
        "import os\ndef f(x, callback):\n    os.getcwd()\n    len(x)\n    x.append(1)\n    callback()\n", "f"
    )
    assert (calls.sites, calls.outside, calls.unresolved) == ((), 3, 1)


def test_loops_branches_and_literal_trip_counts_are_those_around_the_call() -> None:
    source = (
        "def g(): pass\n"
        "def f(xs):\n"
        "    for i in range(100):\n        for j in range(2, 5):\n            g()\n"
        "    if xs:\n        [g() for x in xs]\n"
        "    while xs:\n        g()\n"
    )
    found = [(site.loops, site.branches, site.times) for site in resolved(source, "f").sites]
    assert found == [(2, 0, 300.0), (1, 1, 1.0), (1, 0, 1.0)]


def test_a_loop_around_a_nested_function_is_not_around_its_calls() -> None:
    source = "def g(): pass\nfor i in range(3):\n    def f():\n        g()\n"
    assert [(site.loops, site.times) for site in resolved(source, "f").sites] == [(0, 1.0)]


def test_equal_calls_are_one_site_whose_times_add_up() -> None:
    assert [site.times for site in resolved("def g(): pass\ndef f():\n    g()\n    g()\n", "f").sites] == [2.0]


def test_recursion_is_no_call_site() -> None:
    assert resolved("def f(n):\n    return f(n - 1)\n", "f").sites == ()


@pytest.mark.parametrize(
    "source",
    [
        "class A(B):\n    def f(self): return self.x.run()\nclass B(A):\n    pass\n",
        "class A(A):\n    def f(self): return self.x.run()\n",
        "class A:\n    x: A\n    def f(self, x=1):\n        self.x = x\n        return self.x.x.x.run()\n",
        "from .main import A\nclass B(A):\n    def f(self): return self.x.run()\nA = B()\n",
    ],
)
def test_cyclic_classes_and_imports_terminate(source: str) -> None:
    qualname = "A.f" if "class A" in source else "B.f"
    assert resolved(source, qualname).sites == ()


NAMES = ("alpha", "beta", "gamma_", "delta")


@given(st.permutations(NAMES), st.permutations(range(4)))
def test_new_names_and_another_order_of_definitions_change_no_site(names: list[str], order: list[int]) -> None:
    def module(names: list[str] | tuple[str, ...], order: list[int] | range) -> str:
        a, b, c, d = names
        parts = [
            f"def {a}(x):\n    {b}(x)\n    x.{d}()\n    for i in x:\n        {c}(i)\n",
            f"def {b}(x):\n    return {a}(x)\n",
            f"def {c}(x):\n    return 3\n",
            f"class K:\n    def {d}(self):\n        return 4\n",
        ]
        return "".join(parts[place] for place in order)

    def shape(names: list[str] | tuple[str, ...], order: list[int] | range) -> list[tuple[str, int]]:
        calls = resolved(module(names, order), names[0])
        new = dict(zip(names, NAMES, strict=True))
        return [(new[site.candidates[0][1].qualname.rpartition(".")[2]], site.loops) for site in calls.sites]

    assert shape(names, order) == shape(NAMES, range(4))
