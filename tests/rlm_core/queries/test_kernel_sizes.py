"""At which sizes kernels are asked: comments, else benchmarks, else the table; and what in a comment cannot be read."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rlm_core.queries.analysis import Analyser
from rlm_core.queries.kernel_arguments import kernel_arguments
from rlm_core.queries.kernel_sizes import MOST_LINES, FileSizes, UnitSizes, sizes_of
from rlm_core.queries.query_vector import has_sizes
from rlm_core.source.parsed import ParsedSource
from rlm_core.source.units import find_units

HEAD = "import triton\nimport triton.language as tl\n\n"
SCALE = """\
@triton.jit
def scale(x_ptr, n_elements, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(x_ptr + offsets, tl.load(x_ptr + offsets), mask=offsets < n_elements)
"""
MATMUL = """\
@triton.autotune(configs=[], key=["M", "N", "K"])
@triton.jit
def matmul(a_ptr, b_ptr, c_ptr, M, N, K, stride_am):
    tl.store(c_ptr, tl.load(a_ptr) + tl.load(b_ptr))
"""


def read(text: str) -> FileSizes:
    source = text.encode()
    return sizes_of(ParsedSource(source, "python"), find_units(ParsedSource(source, "python")))


def of(text: str, name: str = "scale") -> UnitSizes:
    [found] = [sizes for unit, sizes in read(HEAD + text).units.items() if unit.qualname == name]
    return found


def problems(text: str) -> list[tuple[str, str]]:
    """The characters that each problem is about, and what it says."""
    source = (HEAD + text).encode()
    found = read(HEAD + text).problems
    lines = source.split(b"\n")
    for problem in found:
        span = problem.span
        assert "\n" not in problem.text
        # Bytes and columns mean the same characters.
        in_line = lines[span.start_line][span.start_column : span.end_column]
        assert in_line == source[span.start_byte : span.end_byte]
        assert span.start_line == span.end_line
        assert in_line.strip() == in_line != b""
    return [(source[p.span.start_byte : p.span.end_byte].decode(), p.text) for p in found]


@pytest.mark.parametrize(
    "text",
    [
        f"# rlm: sizes M=1024 dtype=fp16\n{SCALE}",
        f"# what it is\n#rlm:sizes M = 1_024, dtype=torch.float16\n# and more\n{SCALE}",
        SCALE.replace("def scale", "# rlm: sizes M=1024 dtype=half\ndef scale"),
        SCALE.replace("    offsets", "    # rlm: sizes M=1024 dtype=fp16\n    offsets"),
        SCALE.replace("):\n", "):  # rlm: sizes M=1024 dtype=fp16\n"),
        f"{SCALE}    # rlm: sizes M=1024 dtype=fp16\n",
        f"def other():\n    pass\n# rlm: sizes M=1024 dtype=fp16\n{SCALE}",
        f"class Op:\n    # rlm: sizes M=1024 dtype=fp16\n    {SCALE.replace(chr(10), chr(10) + '    ')}",
    ],
)
def test_a_comment_above_or_inside_a_kernel_is_a_workload(text: str) -> None:
    [found] = read(HEAD + text).units.values()
    assert found == UnitSizes(({"M": "1024", "dtype": "fp16"},), "comment")
    assert problems(text) == []


def test_several_lines_are_several_workloads_in_their_order() -> None:
    lines = "# rlm: sizes M=1 N=2\n# rlm: sizes M=3 N=4\n# rlm: sizes M=1 N=2\n"
    assert of(lines + SCALE).workloads == ({"M": "1", "N": "2"}, {"M": "3", "N": "4"})


def test_a_comment_takes_precedence_over_the_rest_of_the_file() -> None:
    text = f"{MATMUL}\n\n# rlm: sizes arg0=64x128\n{SCALE}"
    assert of(text) == UnitSizes(({"arg0": "64x128"},), "comment")
    assert of(text, "matmul").origin == "autotune"


def test_names_of_the_same_meaning_become_the_models() -> None:
    assert of(f"# rlm: sizes size=64\n{SCALE}").workloads == ({"n_elements": "64"},)
    assert of(f"# rlm: sizes Z=4 H=32 N_CTX=512 HEAD_DIM=64\n{SCALE}").workloads == (
        {"batch": "4", "num_heads": "32", "N_CTX": "512", "HEAD_DIM": "64"},
    )


@pytest.mark.parametrize(
    ("said", "where", "part"),
    [
        ("M=64 q4", "q4", "`q4` is not NAME=VALUE; write it like"),
        ("M=", "M=", "is not NAME=VALUE"),
        ("=64", "=64", "is not NAME=VALUE"),
        ("M=0", "0", "`0` is not a size"),
        ("M=1e", "1e", "neither a size nor a word"),
        ("M=64xx2", "64xx2", "neither a size nor a word"),
        (f"M={'9' * 19}", "9" * 19, "is not a size"),
        ("M=64 dtype=fp99", "fp99", "unknown type `fp99`"),
        ("M=64 M=65", "M", "`M` is given twice"),
        ("dtype=fp16", "dtype=fp16", "no size; write it like"),
        ("", "# rlm: sizes", "no size; write it like"),
        ("µ=64", "µ=64", "unknown size `µ`"),
        ("width_of_it=64", "width_of_it=64", "unknown size `width_of_it`"),
    ],
)
def test_mistakes_are_reported_with_their_span(said: str, where: str, part: str) -> None:
    [(found, text)] = problems(f"# µµ rlm\n# rlm: sizes {said}\n{SCALE}")
    assert found == where
    assert part in text
    # A line that is half understood is not asked.
    assert of(f"# rlm: sizes {said}\n{SCALE}").origin == "default"


@pytest.mark.parametrize(
    "text", [f"# rlm: sizes M=64\n\n{SCALE}", f"{SCALE}\n\n# rlm: sizes M=64\nx = 1\n", "# rlm: sizes M=64\n"]
)
def test_a_comment_without_a_kernel_is_reported(text: str) -> None:
    [(where, said)] = problems(text)
    assert where == "# rlm: sizes M=64"
    assert said.startswith("no function, kernel or module has these sizes")


def test_there_is_an_end_to_the_lines() -> None:
    lines = "".join(f"# rlm: sizes M={number}\n" for number in range(1, MOST_LINES + 2))
    assert len(of(lines + SCALE).workloads) == MOST_LINES
    [(where, said)] = problems(lines + SCALE)
    assert where == f"# rlm: sizes M={MOST_LINES + 1}"
    assert f"at most {MOST_LINES} lines" in said


def test_strings_and_other_comments_are_none_of_ours() -> None:
    text = f's = "# rlm: sizes q"\n# rlm: latency < 1 ms\n# rlm: sizeso M\n{SCALE}'
    assert problems(text) == []
    assert of(text).origin == "default"


def test_functions_have_no_sizes() -> None:
    assert read("def f(M, N):\n    return M\n") == FileSizes({}, ())


def test_default_sizes_can_be_chosen() -> None:
    source = (HEAD + SCALE).encode()
    units = find_units(ParsedSource(source, "python"))
    [sizes] = sizes_of(ParsedSource(source, "python"), units, {"N_elements": "77", "dtype": "bf16"}).units.values()
    assert sizes.workloads == ({"n_elements": "77", "dtype": "bf16"},)


def test_the_analysis_hands_the_workloads_on() -> None:
    source = f"{HEAD}# rlm: sizes M=64\n{SCALE}\ndef f(): pass\n".encode()
    kernel, function = Analyser().analyse(ParsedSource(source, "python"))
    assert kernel.code.workloads == ((("M", "64"),),)
    assert kernel.sizes is not None
    assert kernel.sizes.origin == "comment"
    assert (function.code.workloads, function.sizes) == ((), None)
    [chosen, _] = Analyser(default_sizes=lambda path: {"n_elements": "5"}).analyse(
        ParsedSource((HEAD + SCALE).encode() + b"\ndef f(): 0", "python")
    )
    assert dict(chosen.code.workloads[0])["n_elements"] == "5"


def test_kernels_written_by_torch_compile_are_queried_at_their_sizes() -> None:
    text = '''
async_compile = AsyncCompile()
add = async_compile.triton('add', """
import triton
import triton.language as tl
@triton.jit
def add(in_ptr0, out_ptr0, xnumel, XBLOCK : tl.constexpr):
    xnumel = 65536
    tl.store(out_ptr0, tl.load(in_ptr0))
""", device_str='cuda')
'''
    [sizes] = read(text).units.values()
    assert sizes == UnitSizes(({"xnumel": "65536", "dtype": "fp16"},), "default")


MODULE = """import torch
from torch import nn

class Net(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.up = nn.Linear(width, 10)

    def forward(self, x):
        return self.up(x)
"""
CALLED = f"{MODULE}\nprint(Net()(torch.randn(8, 64)))\n"


def test_a_comment_above_a_module_takes_precedence_over_calls_and_layers() -> None:
    text = CALLED.replace("class Net", "# rlm: sizes x=4x128 width=128\nclass Net")
    assert of(text, "Net") == UnitSizes(({"x": "4x128", "width": "128"},), "comment")
    assert not problems(text)


def test_a_call_takes_precedence_over_the_layers_and_these_over_the_settings() -> None:
    units = find_units(ParsedSource(CALLED.encode(), "python"))
    defaults = {"x": "2x2"}
    [called] = sizes_of(ParsedSource(CALLED.encode(), "python"), units, defaults).units.values()
    assert called == UnitSizes(({"x": "8x64"},), "call", 12, "Net()(torch.randn(8, 64))")
    [layers] = sizes_of(ParsedSource(MODULE.encode(), "python"), units, defaults).units.values()
    assert layers == UnitSizes(({"x": "32x64"},), "layers")
    unknown = MODULE.replace("width=64", "width")
    parsed = ParsedSource(unknown.encode(), "python")
    [default] = sizes_of(parsed, find_units(parsed), defaults).units.values()
    assert default == UnitSizes((defaults,), "default")
    assert not sizes_of(parsed, find_units(parsed)).units


def test_a_statement_that_does_not_parse_leaves_the_sizes_of_the_others() -> None:
    assert of(f"{CALLED}\ndef broken(:\n    x = (\n", "Net").workloads == ({"x": "8x64"},)


def test_the_pointers_of_a_kernel_have_sizes_by_their_names() -> None:
    text = SCALE.replace("n_elements", "amount")
    pointer = kernel_arguments(text, "scale").pointers[0]
    [found] = of(f"# rlm: sizes {pointer}=64x128\n{text}").workloads
    assert found == {"arg0": "64x128"}


@given(st.text(alphabet=st.sampled_from("MNK=xX_,. 0189fpd#é:"), max_size=30))
def test_whatever_a_comment_says_it_is_a_workload_or_a_problem(said: str) -> None:
    text = f"# rlm: sizes {said}\n{SCALE}"
    malformed = problems(text)
    found = of(text)
    assert (found.origin == "comment") == (not malformed)
    assert all(has_sizes(workload) for workload in found.workloads)
