"""Triton's IR -> what the first program of a function does."""

from __future__ import annotations

import pytest
from rlm_core.cost.triton_launch.ir_program import ir_facts
from rlm_core.cost.triton_launch.ir_text import IrType, read_functions, read_type
from rlm_core.source.triton_kernels import find_ttir

SUM = """
module {
  tt.func public @row_sum(%x: !tt.ptr<f16> {tt.divisibility = 16 : i32} loc("x"(#loc)), %y: !tt.ptr<f32>, %N: i32) attributes {noinline = false} {
    %zero = arith.constant 0.000000e+00 : f32
    %c0 = arith.constant 0 : i32
    %c128 = arith.constant 128 : i32
    %row = tt.get_program_id x : i32
    %range = tt.make_range {end = 128 : i32, start = 0 : i32} : tensor<128xi32>
    %bound = tt.splat %N : i32 -> tensor<128xi32>
    %start = arith.muli %row, %N : i32
    %base = tt.addptr %x, %start : !tt.ptr<f16>, i32
    %bases = tt.splat %base : !tt.ptr<f16> -> tensor<128x!tt.ptr<f16>>
    %total = scf.for %i = %c0 to %N step %c128 iter_args(%sum = %zero) -> (f32)  : i32 {
      %i_0 = tt.splat %i : i32 -> tensor<128xi32>
      %at = arith.addi %i_0, %range : tensor<128xi32>
      %mask = arith.cmpi slt, %at, %bound : tensor<128xi32>
      %p = tt.addptr %bases, %at : tensor<128x!tt.ptr<f16>>, tensor<128xi32>
      %v = tt.load %p, %mask : tensor<128x!tt.ptr<f16>>
      %w = arith.extf %v : tensor<128xf16> to tensor<128xf32>
      %e = math.exp %w : tensor<128xf32>
      %part = "tt.reduce"(%e) <{axis = 0 : i32}> ({
      ^bb0(%a: f32, %b: f32):
        %c = arith.addf %a, %b : f32
        tt.reduce.return %c : f32
      }) : (tensor<128xf32>) -> f32
      %next = arith.addf %sum, %part : f32
      scf.yield %next : f32
    }
    %out = tt.addptr %y, %row : !tt.ptr<f32>, i32
    %is_first = arith.cmpi eq, %row, %c0 : i32
    scf.if %is_first {
      tt.store %out, %total : !tt.ptr<f32>
    } else {
      tt.store %out, %zero : !tt.ptr<f32>
      tt.store %out, %zero : !tt.ptr<f32>
    }
    tt.return
  }
}
"""  # noqa: E501
DOT = """
tt.func public @dot(%a: !tt.ptr<bf16>, %c: !tt.ptr<f32>) {
  %range = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32>
  %column = tt.expand_dims %range {axis = 1 : i32} : tensor<16xi32> -> tensor<16x1xi32>
  %c16 = arith.constant dense<16> : tensor<16x1xi32>
  %rows = arith.muli %column, %c16 : tensor<16x1xi32>
  %row = tt.expand_dims %range {axis = 0 : i32} : tensor<16xi32> -> tensor<1x16xi32>
  %rows_0 = tt.broadcast %rows : tensor<16x1xi32> -> tensor<16x16xi32>
  %row_0 = tt.broadcast %row : tensor<1x16xi32> -> tensor<16x16xi32>
  %at = arith.addi %rows_0, %row_0 : tensor<16x16xi32>
  %as = tt.splat %a : !tt.ptr<bf16> -> tensor<16x16x!tt.ptr<bf16>>
  %p = tt.addptr %as, %at : tensor<16x16x!tt.ptr<bf16>>, tensor<16x16xi32>
  %x = tt.load %p : tensor<16x16x!tt.ptr<bf16>>
  %y = tt.trans %x {order = array<i32: 1, 0>} : tensor<16x16xbf16> -> tensor<16x16xbf16>
  %zero = arith.constant dense<0.000000e+00> : tensor<16x16xf32>
  %z = tt.dot %x, %y, %zero : tensor<16x16xbf16> * tensor<16x16xbf16> -> tensor<16x16xf32>
  %cs = tt.splat %c : !tt.ptr<f32> -> tensor<16x16x!tt.ptr<f32>>
  %q = tt.addptr %cs, %at : tensor<16x16x!tt.ptr<f32>>, tensor<16x16xi32>
  tt.store %q, %z : tensor<16x16x!tt.ptr<f32>>
  tt.return
}
"""


def test_the_first_program_of_a_reduction() -> None:
    [unit] = find_ttir(SUM.encode())
    facts = ir_facts(unit.text, {"n": 1000})
    assert facts is not None
    assert facts.known
    counts = {name: facts.counts[name].likely for name in ("loaded", "stored", "special", "scalar")}
    # Eight iterations; the mask cuts the last one short. Each adds 128 numbers, and their sum to the total.
    assert counts == {"loaded": 2 * 1000, "stored": 4, "special": 8 * 128, "scalar": 8 * (128 + 1)}


def test_a_loop_without_a_known_end_has_no_limit() -> None:
    [unit] = find_ttir(SUM.encode())
    facts = ir_facts(unit.text, {})
    assert facts is not None
    assert not facts.known


def test_a_product_of_blocks() -> None:
    [unit] = find_ttir(DOT.encode())
    facts = ir_facts(unit.text, {})
    assert facts is not None
    assert facts.known
    assert facts.counts["loaded"].least == 2 * 16 * 16
    assert facts.counts["stored"].least == 4 * 16 * 16
    assert facts.counts["dot"].least == 2 * 16**3


def test_operations_without_a_rule_leave_the_program_unknown() -> None:
    [unit] = find_ttir(DOT.replace("tt.trans", "tt.other").encode())
    facts = ir_facts(unit.text, {})
    assert facts is not None
    assert not facts.known


@pytest.mark.parametrize(
    "text",
    ["", "tt.func public @f() {", "tt.func public @f() {\n" * 40, SUM.replace("%bound = ", "%other = "),
     "tt.func public @f() {\n^bb0:\n%a = arith.constant 1 : i32\n^bb1:\n}"],
)  # fmt: skip
def test_other_texts_have_no_facts(text: str) -> None:
    assert ir_facts(text, {"N": 10}) is None


def test_a_long_loop_is_followed_in_part() -> None:
    [unit] = find_ttir(SUM.encode())
    facts = ir_facts(unit.text, {"N": 2**31 - 1})
    assert facts is not None
    assert facts.counts["loaded"].likely == 2 * (2**31 - 1)


def test_types() -> None:
    assert read_type("tensor<4x8x!tt.ptr<f16>>") == IrType((4, 8), "fp16", True)
    assert read_type("!tt.ptr<f32, 1>") == IrType((), "fp32", True)
    assert read_type("tensor<128xi1>") == IrType((128,), "bool", False)
    assert list(read_functions(DOT)["dot"].parameters) == ["%a", "%c"]
