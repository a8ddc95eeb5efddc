"""Loads, stores and atomics: bytes under masks, reuse, sectors, strides, extents."""

from __future__ import annotations

from rlm_core.cost.torch_trace.values import Tensor

from .programs import facts_of, likely


def test_a_mask_limits_the_bytes() -> None:
    facts = facts_of("i = tl.arange(0, 64)\ntl.store(y_ptr + i, tl.load(x_ptr + i, mask=i < 10), mask=i < 20)")
    assert likely(facts, "loaded", "stored") == [40, 80]
    assert facts.known


def test_a_mask_of_data_is_a_range() -> None:
    facts = facts_of("i = tl.arange(0, 64)\nx = tl.load(x_ptr + i)\ntl.store(y_ptr + i, x, mask=(x > 0) & (i < 10))")
    stored = facts.counts["stored"]
    assert (stored.least, stored.most) == (0, 40)


def test_the_type_of_the_tensor_gives_the_width() -> None:
    body = "i = tl.arange(0, 64)\ntl.store(y_ptr + i, tl.load(x_ptr + i))"
    facts = facts_of(body, x_ptr=Tensor((64,), "fp16"), y_ptr=Tensor((64,), "int64"))
    assert likely(facts, "loaded", "stored") == [128, 512]


def test_the_same_addresses_count_once_within_a_program() -> None:
    facts = facts_of("i = tl.arange(0, 64)\nfor k in range(100):\n    tl.load(x_ptr + i)\ntl.load(x_ptr + i)")
    assert likely(facts, "loaded", "loaded_once") == [101 * 256, 256]


def test_strides_and_sectors() -> None:
    near = facts_of("tl.load(x_ptr + tl.arange(0, 64))")
    far = facts_of("tl.load(x_ptr + 16 * tl.arange(0, 64))")
    tile = facts_of("tl.load(x_ptr + 100 * tl.arange(0, 16)[:, None] + tl.arange(0, 16)[None, :])")
    assert (near.strides, far.strides, tile.strides) == (("contiguous",), ("strided",), ("contiguous",))
    assert likely(near, "sectors") == [256]
    assert likely(far, "sectors") == [64 * 32]


def test_addresses_that_data_decide_are_gathered() -> None:
    facts = facts_of("i = tl.load(y_ptr + tl.arange(0, 64))\ntl.load(x_ptr + i)", y_ptr=Tensor((64,), "int32"))
    assert likely(facts, "loaded", "gathered") == [512, 256]
    assert "gather" in facts.strides


def test_a_start_that_data_decide_keeps_the_stride() -> None:
    facts = facts_of("start = tl.load(y_ptr)\ntl.load(x_ptr + start + tl.arange(0, 64))", y_ptr=Tensor((1,), "int32"))
    assert likely(facts, "gathered") == [0]
    assert facts.strides == ("scalar", "contiguous")


def test_atomics_load_and_store() -> None:
    facts = facts_of("i = tl.arange(0, 32)\ntl.atomic_add(y_ptr + i, 1.0, mask=i < n)", n=10)
    assert likely(facts, "atomics", "loaded", "stored") == [10, 40, 40]


def test_block_pointers_are_checked_where_they_say_so() -> None:
    block = "p = tl.make_block_ptr(x_ptr, (10, 20), (20, 1), (0, 16), (16, 16), (1, 0))\n"
    assert likely(facts_of(block + "tl.load(p, boundary_check=(0, 1))"), "loaded") == [4 * 10 * 4]
    assert likely(facts_of(block + "tl.load(p)"), "loaded") == [4 * 256]
    moved = block + "p = tl.advance(p, (0, 2))\ntl.load(p, boundary_check=(1,))"
    assert likely(facts_of(moved), "loaded") == [4 * 16 * 2]


def test_the_footprint_is_what_programs_touch_between_them() -> None:
    body = "i = tl.program_id(0) * 64 + tl.arange(0, 64)\ntl.load(x_ptr + tl.arange(0, 64))\ntl.store(y_ptr + i, 1.0)"
    facts = facts_of(body, (10,))
    assert facts.footprint == 64 * 4 + 640 * 4
