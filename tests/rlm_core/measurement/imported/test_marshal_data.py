"""Plain data in marshal format is what Python reads, and other bytes are refused."""

from __future__ import annotations

import marshal
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rlm_core.measurement.imported.marshal_data import MarshalError, plain_data

atoms = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary()
plain = st.recursive(
    atoms, lambda inner: st.lists(inner) | st.tuples(inner, inner) | st.dictionaries(st.text(), inner), max_leaves=20
)


@given(plain, st.sampled_from([0, 1, 2, 3, 4]))
def test_reads_what_python_writes(value: Any, version: int) -> None:
    assert plain_data(marshal.dumps(value, version)) == value


@given(st.binary() | st.tuples(plain, st.integers(0, 200), st.binary(min_size=1, max_size=3)))
def test_damaged_input_is_an_error_or_other_data(content: bytes | tuple[Any, int, bytes]) -> None:
    if isinstance(content, tuple):
        value, place, patch = content
        whole = marshal.dumps(value)
        content = whole[:place] + patch + whole[place + len(patch) :]
    with suppress(MarshalError):
        plain_data(content)


def test_refuses_code_objects() -> None:
    code = compile("1", "f.py", "eval")
    with pytest.raises(MarshalError, match="type 'c'"):
        plain_data(marshal.dumps({("f.py", 1, "f"): code}))


def test_refuses_deep_data() -> None:
    value: list[Any] = []
    for _ in range(1000):
        value = [value]
    with pytest.raises(MarshalError, match="levels"):
        plain_data(marshal.dumps(value))


def test_a_length_allocates_nothing() -> None:
    with pytest.raises(MarshalError, match="a length of"):
        plain_data(b"(\xff\xff\xff\x7f")
