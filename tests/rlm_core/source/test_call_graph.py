"""Callees: names are resolved as Python would, over the modules of the same package, two levels deep."""

from __future__ import annotations

import pytest
from rlm_core.source.call_graph import MAX_CALLEES, CallGraph
from rlm_core.source.module_index import ModuleIndex, index_module
from rlm_core.source.parsed import ParsedSource

Found = list[tuple[str, int]]


def callees(source: str, qualname: str, others: dict[str, str] | None = None, dotted: str = "pkg.main") -> Found:
    """First line and level of what ``qualname`` of ``source`` calls, with ``others`` as the package's other modules."""
    texts = {dotted: source, **(others or {})}
    indices: dict[str, ModuleIndex] = {}
    for name, text in texts.items():
        is_package = any(other.startswith(f"{name}.") for other in texts)
        indices[name] = index_module(ParsedSource(text.encode(), "python"), name, is_package=is_package)
    module = indices[dotted]
    found = CallGraph(indices.get).callees(module, module.units[qualname])
    return [(callee.text.strip().split("\n")[0], callee.depth) for callee in found]


def test_a_function_of_the_same_file_is_a_callee() -> None:
    assert callees("def f():\n    return g(1)\n\ndef g(x):\n    return x\n", "f") == [("def g(x):", 1)]


def test_what_a_callee_calls_is_level_2_and_no_further() -> None:
    source = "def a(): b()\ndef b(): c()\ndef c(): d()\ndef d(): pass\n"
    assert callees(source, "a") == [("def b(): c()", 1), ("def c(): d()", 2)]


def test_callees_come_in_the_order_of_the_calls_and_once() -> None:
    source = "def a():\n    c()\n    b()\n    c()\ndef b(): pass\ndef c(): pass\n"
    assert callees(source, "a") == [("def c(): pass", 1), ("def b(): pass", 1)]


def test_recursion_names_no_callee() -> None:
    assert callees("def a(n): return b(n)\ndef b(n): return a(n) + b(n)\n", "a") == [
        ("def b(n): return a(n) + b(n)", 1)
    ]


def test_a_callee_on_both_levels_counts_as_the_nearer() -> None:
    source = "def a():\n    b()\n    c()\ndef b(): c()\ndef c(): pass\n"
    assert [level for _, level in callees(source, "a")] == [1, 1]


def test_builtins_and_unknown_names_are_no_callees() -> None:
    assert callees("def f(x):\n    return len(x) + missing(x) + x.strip()\n", "f") == []


def test_a_nested_function_is_part_of_the_text_already() -> None:
    assert callees("def f():\n    def g(): pass\n    return g()\n", "f") == []


def test_calls_inside_a_nested_function_count_for_the_outer_one() -> None:
    assert callees("def f():\n    def g(): return h()\n    return g\ndef h(): pass\n", "f") == [("def h(): pass", 1)]


@pytest.mark.parametrize("call", ["self.g()", "cls.g()", "A.g()", "super().g()"])
def test_a_method_is_found_through_its_class_and_its_bases(call: str) -> None:
    source = f"class Base:\n    def g(self): pass\n\nclass A(Base):\n    def f(self, cls):\n        return {call}\n"
    assert callees(source, "A.f") == [("def g(self): pass", 1)]


def test_the_nearest_definition_of_a_method_wins() -> None:
    source = (
        "class Base:\n    def g(self): return 'base'\n\n"
        "class A(Base):\n    def g(self): return 'own'\n    def f(self): return self.g()\n"
        "    def h(self): return super().g()\n"
    )
    assert callees(source, "A.f") == [("def g(self): return 'own'", 1)]
    assert callees(source, "A.h") == [("def g(self): return 'base'", 1)]


def test_making_an_object_calls_its_constructor() -> None:
    source = "class A:\n    def __init__(self): pass\n\ndef f():\n    return A()\n"
    assert callees(source, "f") == [("def __init__(self): pass", 1)]


def test_a_method_of_an_unknown_object_counts_when_its_name_is_unique() -> None:
    once = "class A:\n    def run(self): pass\n\ndef f(x):\n    return x.run()\n"
    assert callees(once, "f") == [("def run(self): pass", 1)]
    assert callees(once + "\nclass B:\n    def run(self): pass\n", "f") == []


@pytest.mark.parametrize("name", ["append", "get", "add", "split", "popleft", "most_common", "match", "readline"])
def test_a_method_of_an_unknown_object_that_a_container_has_too_is_no_callee(name: str) -> None:
    source = f"class A:\n    def {name}(self): pass\n\n    def g(self): return self.{name}()\n\n"
    source += f"def f(x):\n    return x.{name}(1)\n"
    assert callees(source, "f") == []
    assert callees(source, "A.g") == [(f"def {name}(self): pass", 1)]


@pytest.mark.parametrize(
    ("statement", "call"),
    [
        ("from .tools import work", "work()"),
        ("from .tools import work as w", "w()"),
        ("from pkg.tools import work", "work()"),
        ("from . import tools", "tools.work()"),
        ("from . import tools as t", "t.work()"),
        ("from pkg import tools", "tools.work()"),
        ("import pkg.tools", "pkg.tools.work()"),
        ("import pkg.tools as t", "t.work()"),
        ("try:\n    from .fast import work\nexcept ImportError:\n    from .tools import work", "work()"),
        ("if True:\n    from .tools import work", "work()"),
    ],
)
def test_imports_lead_into_the_package(statement: str, call: str) -> None:
    others = {"pkg": "", "pkg.tools": "def work(): pass\n"}
    assert callees(f"{statement}\n\ndef f():\n    return {call}\n", "f", others) == [("def work(): pass", 1)]


def test_a_relative_import_may_climb() -> None:
    others = {"pkg": "", "pkg.sub": "", "pkg.tools": "def work(): pass\n"}
    source = "from ..tools import work\n\ndef f():\n    return work()\n"
    assert callees(source, "f", others, dotted="pkg.sub.deep") == [("def work(): pass", 1)]


def test_a_name_that_a_package_passes_on_is_followed() -> None:
    others = {"pkg.sub": "from .impl import work\n", "pkg.sub.impl": "def work(): pass\n"}
    source = "from .sub import work\n\ndef f():\n    return work()\n"
    assert callees(source, "f", {"pkg": "", **others}) == [("def work(): pass", 1)]


def test_an_imported_base_class_is_searched() -> None:
    others = {"pkg": "", "pkg.base": "class Base:\n    def g(self): pass\n"}
    source = "from .base import Base\n\nclass A(Base):\n    def f(self): return self.g()\n"
    assert callees(source, "A.f", others) == [("def g(self): pass", 1)]


def test_a_method_of_an_imported_class_is_found() -> None:
    others = {"pkg": "", "pkg.base": "class Base:\n    @staticmethod\n    def g(): pass\n"}
    found = callees("from .base import Base\n\ndef f():\n    return Base.g()\n", "f", others)
    assert found == [("@staticmethod", 1)]


def test_circular_imports_end() -> None:
    others = {"pkg": "", "pkg.a": "from .b import x\n", "pkg.b": "from .a import x\n"}
    assert callees("from .a import x\n\ndef f():\n    return x()\n", "f", others) == []


def test_circular_base_classes_end() -> None:
    assert callees("class A(B): pass\nclass B(A):\n    def f(self): return self.g()\n", "B.f") == []


def test_base_classes_are_searched_once_each() -> None:
    # Without that, the time grows with the number of ways through the classes: 24 lines took 89 s.
    names = [f"C{i}" for i in range(40)]
    source = "".join(
        f"class {name}({', '.join(other for other in names if other != name)}):\n"
        f"    def m(self):\n        return self.nope()\n"
        for name in names
    )
    assert callees(source, "C0.m") == []
    module = index_module(ParsedSource(source.encode(), "python"), "pkg.main")
    assert CallGraph().call_sites(module, module.units["C0.m"]).unresolved == 1


def test_a_level_has_a_bounded_number_of_callees() -> None:
    names = [f"g{number}" for number in range(MAX_CALLEES + 5)]
    body = "".join(f"    {name}()\n" for name in names)
    source = f"def f():\n{body}" + "".join(f"def {name}(): pass\n" for name in names)
    assert callees(source, "f") == [(f"def {name}(): pass", 1) for name in names[:MAX_CALLEES]]


def test_the_last_definition_of_a_name_wins() -> None:
    source = "def g(): return 1\ndef g(): return 2\ndef f(): return g()\n"
    assert callees(source, "f") == [("def g(): return 2", 1)]
