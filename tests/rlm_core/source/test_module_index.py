"""The index of a file: what its functions call, and the types that its texts show."""

from __future__ import annotations

import ast
from dataclasses import asdict

from rlm_core.source.module_index import ModuleIndex, index_module, index_units, merged
from rlm_core.source.parsed import ParsedSource
from rlm_core.source.units import find_functions

TEXT = """import os
from .other import helper as h

LIMIT = 3


class Shop(Base):
    SIZE = 4

    def __init__(self, path: str):
        self.store = Store(path)
        self.path = path

    def total(self, items):
        for item in items:
            if item:
                self.store.add(h(item))
        return [cost(item) for item in range(10)]


def free(shop: Shop):
    return shop.total(os.listdir())
"""


def indexed(text: str, known: ModuleIndex | None = None) -> ModuleIndex:
    parsed = ParsedSource(text.encode(), "python")
    return index_units(find_functions(parsed.source, parsed.root), parsed.root, "package.shop", known=known)


def test_a_file_is_indexed_with_its_names_calls_and_types() -> None:
    index = index_module(ParsedSource(TEXT.encode(), "python"), "package.shop")
    assert list(index.units) == ["Shop.__init__", "Shop.total", "free"]
    assert index.imports == {"os": ("os", None), "h": ("package.other", "helper")}
    assert index.bases == {"Shop": ["Base"]}
    assert index.classes["Shop"].startswith("class Shop(Base):\n    SIZE = 4\n")
    assert (index.constants["LIMIT"], index.constants["Shop.SIZE"]) == ("3", "4")
    assert index.attributes == {"Shop": {"store": "Store", "path": "str"}}
    calls = {call.name: call for call in index.calls[index.units["Shop.total"].text]}
    assert (calls["add"].target, calls["add"].loops, calls["add"].branches) == ("self.store", 1, 1)
    assert (calls["cost"].loops, calls["h"].loops) == (1, 1)
    assert index.types[index.units["free"].text] == {"shop": "Shop"}


def test_functions_of_a_known_index_are_taken_over() -> None:
    before = indexed(TEXT)
    edited = TEXT.replace("return shop.total(os.listdir())", "return [shop.total(h(1)) for _ in os.listdir()]")
    after = indexed(edited, before)
    assert asdict(after) == asdict(indexed(edited))
    kept = before.units["Shop.total"].text
    assert after.calls[kept] is before.calls[kept]
    assert before.units["free"].text not in after.calls


def test_a_function_that_moved_into_another_class_sets_the_attributes_of_that_class() -> None:
    before = indexed(TEXT)
    moved = TEXT.replace("class Shop(Base)", "class Store(Base)")
    assert indexed(moved, before).attributes == {"Store": {"store": "Store", "path": "str"}}


def test_the_index_of_a_file_is_that_of_its_parts() -> None:
    first, second = TEXT.split("\n\n\ndef free")
    parts = merged([indexed(first), indexed("def free" + second)], "package.shop")
    assert set(parts.units) == set(indexed(TEXT).units)
    assert parts.calls == indexed(TEXT).calls


def test_a_class_is_kept_without_its_methods() -> None:
    text = """
@dataclass(order=True)
class Line(Base):
    \"\"\"Text.\"\"\"

    name: str
    tags: list[str] = field(
        default_factory=list
    )

    def total(self):
        return 1
"""
    kept = indexed(text).classes["Line"]
    tree = ast.parse(kept).body[0]
    assert isinstance(tree, ast.ClassDef)
    assert [ast.unparse(part) for part in tree.body] == [
        "name: str", "tags: list[str] = field(default_factory=list)", "pass",
    ]  # fmt: skip
    assert ast.unparse(tree.decorator_list[0]) == "dataclass(order=True)"
