"""Functions that launch kernels: grids, arguments, configurations."""

from __future__ import annotations

from rlm_core.cost.torch_trace.values import Tensor
from rlm_core.cost.triton_launch.host import launch_facts, read_program

from .programs import COPY, likely, program_of

TUNED = """
@triton.autotune([triton.Config({"BLOCK": 64 << i}, num_warps=1 << i, num_stages=2) for i in range(3)], key=["n"])
@triton.heuristics({"EVEN": lambda args: args["n"] % args["BLOCK"] == 0})
@triton.jit
def kernel(x_ptr, n, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if EVEN:
        tl.load(x_ptr + i)
    else:
        tl.load(x_ptr + i, mask=i < n)

def run(x):
    grid = lambda meta: (triton.cdiv(x.shape[0], meta["BLOCK"]),)
    kernel[grid](x, x.shape[0])
"""


def test_a_launch_has_its_grid_and_arguments() -> None:
    program = program_of(COPY)
    trace = program.run(program.functions["run"], [Tensor((100, 10), "fp16")], {})
    [launch] = trace.launches
    [variant] = launch.variants
    assert (variant.grid, variant.arguments["n"], variant.warps) == ((4,), 1000, 4)
    assert [operation.name for operation in trace.operations] == ["empty"]
    [facts] = launch_facts(launch)
    assert likely(facts, "loaded", "stored") == [2000, 2000]
    assert trace.complete


def test_each_configuration_of_a_tuned_kernel_is_a_variant() -> None:
    program = program_of(TUNED)
    [launch] = program.run(program.functions["run"], [Tensor((1024,))], {}).launches
    found = [(variant.grid, variant.warps, variant.arguments["EVEN"]) for variant in launch.variants]
    assert found == [((16,), 1, True), ((8,), 2, True), ((4,), 4, True)]
    assert {facts.counts["loaded"].likely for facts in launch_facts(launch)} == {4096}


def test_a_block_size_that_is_set_elsewhere_is_tried_small_and_large() -> None:
    given = '[triton.Config({"BLOCK": 64 << i}, num_warps=1 << i, num_stages=2) for i in range(3)]'
    text = TUNED.replace(given, "tuned_elsewhere()")
    assert text != TUNED
    program = program_of(text)
    [launch] = program.run(program.functions["run"], [Tensor((1000,))], {}).launches
    assert [variant.arguments["BLOCK"] for variant in launch.variants] == [32, 128]
    assert {facts.counts["loaded"].likely for facts in launch_facts(launch)} == {4000}


def test_several_launches_in_order_and_in_loops() -> None:
    program = program_of(COPY + "\ndef twice(x):\n    for _ in range(3):\n        run(run(x))\n")
    assert len(program.run(program.functions["twice"], [Tensor((64,))], {}).launches) == 6


def test_a_grid_that_is_not_known_has_no_variant() -> None:
    program = program_of(COPY.replace("n = x.numel()", "n = count(x)"))
    [launch] = program.run(program.functions["run"], [Tensor((64,))], {}).launches
    assert launch.variants == ()


def test_texts_without_kernels_and_texts_that_do_not_parse() -> None:
    assert read_program("def f(x):\n    return x\n") is None
    assert read_program("def f(:\n") is None


def test_a_function_that_does_not_end_is_cut_off() -> None:
    program = program_of(COPY + "\ndef forever(x):\n    while True:\n        run(x)\n\ndef again(x):\n    again(x)\n")
    assert not program.run(program.functions["forever"], [Tensor((64,))], {}).complete
    assert not program.run(program.functions["again"], [Tensor((64,))], {}).complete
