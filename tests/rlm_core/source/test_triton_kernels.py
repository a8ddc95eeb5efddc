"""Triton kernels in Python files, in what torch.compile writes, and in Triton IR: which, and with which text."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rlm_core.source.canonical import canonical
from rlm_core.source.parsed import ParsedSource
from rlm_core.source.triton_kernels import find_kernels, find_ttir, kernel_text
from rlm_core.types import Unit

FILE = """\
import torch
import triton
import triton.language as tl

BLOCK = 1024
UNUSED = 3


def configs():
    return [triton.Config({"SIZE": 64}, num_warps=4)]


@triton.jit
def helper(x):
    return x * 2


@triton.autotune(configs=configs(), key=["n"])
@triton.jit
def scale(x_ptr, n, SIZE: tl.constexpr):
    tl.store(x_ptr, helper(tl.load(x_ptr)))


@triton.jit
def other(x_ptr):
    pass


class Op:
    @staticmethod
    def forward(x):
        scale[(1,)](x, x.numel(), SIZE=BLOCK)


def launch_other(x):
    other[(1,)](x)


def test_scale():
    scale[(1,)](torch.ones(3), 3, 64)


def unrelated():
    return 1
"""

COMPILED = """\
from torch._inductor.async_compile import AsyncCompile
async_compile = AsyncCompile()

triton_poi_fused_add_0 = async_compile.triton('triton_poi_fused_add_0', '''
import triton
import triton.language as tl

@triton_heuristics.pointwise(size_hints={'x': 4096})
@triton.jit
def triton_poi_fused_add_0(in_ptr0, out_ptr0, xnumel, XBLOCK : tl.constexpr):
    tl.store(out_ptr0, tl.load(in_ptr0) + 1)
''', device_str='cuda')

def call(args):
    return args
"""

IR = b"""\
#loc = loc("a.py":1:0)
module {
  tt.func private @twice(%arg0: f32 loc("x")) -> f32 attributes {noinline = false} {
    tt.return %arg0 : f32 loc(#loc)
  } loc(#loc)
  tt.func public @scale(%arg0: !tt.ptr<f32> {tt.divisibility = 16 : i32} loc("x")) attributes {noinline = false} {
    %0 = tt.load %arg0 : !tt.ptr<f32> loc(#loc1)
    %1 = tt.call @twice(%0) : (f32) -> f32
    tt.return loc(#loc)
  } loc(#loc)
  tt.func public @"a b"() {
  }
}
"""


def kernels(source: str) -> dict[str, Unit]:
    data = source.encode()
    return {unit.qualname: unit for unit in find_kernels(ParsedSource(data, "python"))}


def test_each_kernel_is_a_unit_of_kind_kernel_with_its_decorators_in_the_span() -> None:
    found = kernels(FILE)
    assert list(found) == ["helper", "scale", "other"]
    unit = found["scale"]
    assert (unit.kind, unit.language, unit.basis) == ("kernel", "triton", "kernel")
    data = FILE.encode()
    assert data[unit.span.start_byte : unit.span.end_byte].startswith(b"@triton.autotune")
    assert data[unit.name.start_byte : unit.name.end_byte] == b"scale"
    assert data[: unit.header.end_byte].endswith(b"SIZE: tl.constexpr):")


def test_the_text_of_a_kernel_holds_what_it_calls_what_launches_it_and_what_tunes_it() -> None:
    text = kernels(FILE)["scale"].text
    for part in ("def scale", "def helper", "@triton.autotune", "def configs", "def forward", "BLOCK = 1024"):
        assert part in text
    for part in ("import", "test_scale", "unrelated", "other", "UNUSED"):
        assert part not in text
    assert text.index("BLOCK") < text.index("def helper") < text.index("def scale") < text.index("def forward")
    assert kernel_text(FILE, {"scale"}) == text


def test_all_kernels_of_a_file_are_read_when_none_is_chosen() -> None:
    text = kernel_text(FILE)
    assert "def other" in text
    assert "def launch_other" in text
    assert "unrelated" not in text


@pytest.mark.parametrize("source", ["def f():\n    return 1\n", "", "import triton\n\ndef f(: pass"])
def test_a_file_without_kernels_keeps_its_text(source: str) -> None:
    assert kernel_text(source) == source


def test_a_name_that_is_no_kernel_of_the_file_keeps_the_whole_text() -> None:
    assert kernel_text(FILE, {"absent"}) == FILE


@pytest.mark.parametrize(
    ("lines", "decorator"),
    [
        ("from triton import jit", "@jit"),
        ("from triton import jit as compiled", "@compiled(do_not_specialize=['n'])"),
        ("import triton as t", "@t.jit"),
        ("from vendor import triton", "@triton.jit()"),
        ("import triton.language as tl\nimport triton", "@triton.heuristics({})\n@ triton.jit"),
        ("try:\n    import triton\nexcept ImportError:\n    pass", "@triton.runtime.jit"),
    ],
)
def test_every_spelling_of_triton_jit_is_known(lines: str, decorator: str) -> None:
    assert list(kernels(f"{lines}\n\n{decorator}\ndef f(x):\n    pass\n")) == ["f"]


@pytest.mark.parametrize("lines", ["from numba import jit", "import jax\nfrom jax import jit", "jit = None"])
def test_another_jit_is_no_kernel(lines: str) -> None:
    assert kernels(f"{lines}\n\n@jit\ndef f(x):\n    return x\n") == {}


def test_a_kernel_that_torch_compile_wrote_is_found_inside_its_string() -> None:
    unit = kernels(COMPILED)["triton_poi_fused_add_0"]
    data = COMPILED.encode()
    assert data[unit.name.start_byte : unit.name.end_byte] == b"triton_poi_fused_add_0"
    assert COMPILED.split("\n")[unit.name.start_line].startswith("def triton_poi_fused_add_0")
    assert unit.text.startswith("@triton_heuristics.pointwise(size_hints={'x': 4096})\n@triton.jit\n")
    assert "import" not in unit.text
    assert kernel_text(COMPILED) == unit.text


def test_each_public_function_of_triton_ir_is_a_unit_without_locations() -> None:
    scale, other = find_ttir(IR)
    assert (scale.kind, scale.language, scale.qualname) == ("kernel", "ttir", "scale")
    assert other.qualname == "a b"
    assert "loc(" not in scale.text
    assert "tt.load %arg0 : !tt.ptr<f32>\n" in scale.text
    assert "@twice(%arg0: f32) -> f32" in scale.text
    assert IR[scale.span.start_byte : scale.span.end_byte].endswith(b"  }")
    assert IR[: scale.header.end_byte].endswith(b"attributes {noinline = false}")
    assert IR.split(b"\n")[scale.span.end_line] == b"  } loc(#loc)"


@pytest.mark.parametrize(
    "text",
    [
        "tt.func public @k(%arg0: i32) {\n" + " " * 200_000 + "x\n}\n",
        "tt.func public @k() {\n" + ' loc("' * 40_000 + "\n}\n",
        "tt.func public @k() {\n" + "loc(" * 50_000 + "\n}\n",
        "tt.func public @k() {\n" + 'loc("a"' + "()" * 50_000 + "\n}\n",
        "tt.func public @k() {\n" + '\\"' * 100_000 + "\n}\n",
        "tt.func public @k() {\n" * 10_000,
        "tt.func public @k\n" * 10_000,
        "".join(f"tt.func private @h{i}() {{\n tt.call @h{i + 1}\n}}\n" for i in range(1_000))
        + "tt.func public @k() { \n tt.call @h0 }\n" * 1_000,
        "tt.func" + " " * 200_000,
        'tt.func @"' * 20_000,
    ],
)
def test_no_triton_ir_takes_a_time_that_grows_with_the_square_of_its_length(text: str) -> None:
    began = time.process_time()
    units = find_ttir(text.encode())
    assert sum(len(unit.text) for unit in units) < 2**23
    for unit in units[:10]:
        canonical(unit.text, "ttir")
    canonical(text, "ttir")
    assert time.process_time() - began < 5


@given(st.text(alphabet="@tritonjdefus .:()[]{}'\n#\\%", max_size=80))
def test_odd_text_raises_nothing(text: str) -> None:
    kernels(f"import triton\n{text}")
    kernel_text(text)
    find_ttir(text.encode())
    find_ttir(f"tt.func public @f({text}".encode())
