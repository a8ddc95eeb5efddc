"""Records are dataclasses that the type checker keeps immutable; a copy has some fields changed."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from rlm_core.cost.domain.quantities import ONE, ZERO
from rlm_core.cost.domain.records import replace
from rlm_core.cost.domain.values import NONE, UNKNOWN, Value


@pytest.mark.parametrize("value", [UNKNOWN, NONE, Value("list", size=ONE, item=NONE, payload=(NONE,), optional=True)])
@pytest.mark.parametrize("changes", [{}, {"bytes": ONE}, {"constant": 3, "number": ZERO, "payload": None, "name": "n"}])
def test_a_copy_is_that_of_the_standard_library(value: Value, changes: dict[str, Any]) -> None:
    before = [getattr(value, field.name) for field in dataclasses.fields(value)]
    copy = replace(value, **changes)
    expected = dataclasses.replace(value, **changes)
    assert (copy, copy.payload) == (expected, expected.payload)
    assert copy is not value
    assert [getattr(value, field.name) for field in dataclasses.fields(value)] == before


def test_a_field_that_there_is_not_is_an_error() -> None:
    with pytest.raises(KeyError):
        replace(UNKNOWN, colour="red")  # type: ignore[call-arg]


def test_the_type_checker_takes_a_record_for_a_frozen_dataclass() -> None:
    value = Value("int")
    value.kind = "float"  # type: ignore[misc]  # which mypy would call unused if it allowed this
    assert value == Value("float")
