"""Sizes of workloads: names of dtypes (roles of sizes are tested with the features that use them)."""

from __future__ import annotations

import pytest
from rlm_core.queries.sizes import dtype_name


@pytest.mark.parametrize(
    ("given", "name"),
    [("torch.float16", "fp16"), ("bfloat16", "bf16"), ("float8_e4m3fn", "fp8"), ("long", "int64"), ("odd", "odd")],
)
def test_dtypes_have_one_spelling(given: str, name: str) -> None:
    assert dtype_name(given) == name
