"""Two ways to write the softmax of rows in Triton, with the functions that launch them."""

FAST = """\
import torch
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x_ptr, y_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    place = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * columns + place, mask=place < columns, other=-float("inf"))
    x = tl.exp(x - tl.max(x, axis=0))
    tl.store(y_ptr + row * columns + place, x / tl.sum(x, axis=0), mask=place < columns)


def softmax(x):
    y = torch.empty_like(x)
    rows, columns = x.shape
    softmax_kernel[(rows,)](x, y, columns, BLOCK=triton.next_power_of_2(columns))
    return y
"""
# One element after another, in one program for each row.
SLOW = """\
import torch
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x_ptr, y_ptr, columns):
    row = tl.program_id(0)
    largest = -float("inf")
    for place in range(columns):
        largest = tl.maximum(largest, tl.load(x_ptr + row * columns + place))
    total = 0.0
    for place in range(columns):
        total += tl.exp(tl.load(x_ptr + row * columns + place) - largest)
    for place in range(columns):
        x = tl.load(x_ptr + row * columns + place)
        tl.store(y_ptr + row * columns + place, tl.exp(x - largest) / total)


def softmax(x):
    y = torch.empty_like(x)
    rows, columns = x.shape
    softmax_kernel[(rows,)](x, y, columns)
    return y
"""
SIZES = {"arg0": "4096x4096", "dtype": "fp16"}
