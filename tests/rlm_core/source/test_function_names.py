"""Names of functions by file, without parsing."""

from __future__ import annotations

import time

from rlm_core.source.call_graph import MAX_CANDIDATES
from rlm_core.source.function_names import CALL, FunctionNames


def source(*names: str) -> bytes:
    return b"class A:\n" + b"".join(f"    def {name}(self): pass\n".encode() for name in names)


def test_methods_are_found_and_functions_at_the_top_are_resolved_by_imports() -> None:
    names: FunctionNames[str] = FunctionNames()
    names.put("a", b"def top(): pass\n" + source("run") + b"    async def wait(self): pass\n")
    assert (names.files("run"), names.files("wait"), names.files("top")) == (["a"], ["a"], [])


def test_a_new_text_takes_the_place_of_the_old_one() -> None:
    names: FunctionNames[str] = FunctionNames()
    assert names.put("a", source("run"))
    assert not names.put("a", source("run") + b"        # a comment\n")
    assert names.put("a", source("walk"))
    assert (names.files("run"), names.files("walk")) == ([], ["a"])
    names.remove("a")
    assert (names.files("walk"), len(names)) == ([], 0)


def test_a_name_in_too_many_files_says_nothing() -> None:
    names: FunctionNames[int] = FunctionNames()
    for file in range(MAX_CANDIDATES + 1):
        names.put(file, source("run"))
    assert names.files("run") is None


def test_calls_in_a_text_without_brackets_are_sought_in_linear_time() -> None:
    began = time.process_time()
    assert CALL.findall(b"a" * 200_000 + b" f(x) g (y) 1h(z)") == [b"f"]
    assert time.process_time() - began < 1
