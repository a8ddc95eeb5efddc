"""Sizes of workloads: names of sizes and dtypes (roles of sizes are tested with the features that use them)."""

from __future__ import annotations

import pytest
from rlm_core.queries.sizes import DEFAULTS, canonical_workload, default_name, dtype_name, is_sized, read_sizes


@pytest.mark.parametrize(
    ("given", "name"),
    [("torch.float16", "fp16"), ("bfloat16", "bf16"), ("float8_e4m3fn", "fp8"), ("long", "int64"), ("odd", "odd")],
)
def test_dtypes_have_one_spelling(given: str, name: str) -> None:
    assert dtype_name(given) == name


def test_the_model_knows_every_size_of_the_table() -> None:
    for name, size in DEFAULTS.items():
        if name != "dtype":
            assert any(read_sizes({name: size}).named.values()), name
    assert read_sizes({"dtype": DEFAULTS["dtype"]}).width == 2


def test_names_of_one_meaning_are_replaced_by_those_that_the_model_reads() -> None:
    workload = {"nrows": "8", "rows": "9", "odd": "1", "arg12": "4x4", "H": "2", "seqlen_q": "7"}
    assert canonical_workload(workload) == {
        "M": "8",
        "rows": "9",
        "odd": "1",
        "arg12": "4x4",
        "num_heads": "2",
        "seq_len": "7",
    }
    assert is_sized({"rows": "9"})
    assert is_sized({"arg0": "4x4"})
    assert not is_sized({"odd": "1"})


def test_a_name_that_only_labels_use_is_read_but_has_no_default() -> None:
    assert default_name("bt") is None
    assert read_sizes({"BT": "64", "M": "32"}).named["tokens"] == 64
