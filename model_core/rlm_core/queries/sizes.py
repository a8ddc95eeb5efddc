"""A workload -> its sizes: tensors and scalars by position, named sizes by the role of their name.

The table of names and default sizes is here. Nothing is executed, so what a launch moves and computes is estimated from
shapes alone; there are several rough estimates, and the model learns which one holds for which text.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass

_SHAPE = re.compile(r"\d+(?:x\d+)*\Z")
_ARGUMENT = re.compile(r"arg(\d+)\Z")
_BYTES = {
    "fp64": 8.0,
    "int64": 8.0,
    "complex64": 8.0,
    "complex128": 16.0,
    "fp32": 4.0,
    "tf32": 4.0,
    "int32": 4.0,
    "fp16": 2.0,
    "bf16": 2.0,
    "int16": 2.0,
    "fp8": 1.0,
    "int8": 1.0,
    "uint8": 1.0,
    "bool": 1.0,
    "int4": 0.5,
    "fp4": 0.5,
}
_DTYPES = {
    "float64": "fp64",
    "double": "fp64",
    "float32": "fp32",
    "float": "fp32",
    "tfloat32": "tf32",
    "float16": "fp16",
    "half": "fp16",
    "bfloat16": "bf16",
    "long": "int64",
    "int": "int32",
    "short": "int16",
}
# Name in a default workload | role | default | names that the model reads, in order of precedence (with `*`: in labels
# only, not in kernel arguments) | further names of kernel arguments. Defaults are the sizes of one layer of a language
# model of 7 billion parameters on a batch that fills a GPU; ``tokens`` is batch times sequence.
_TABLE = """
M|tokens|4096|*bt m num_tokens n_rows rows total_tokens|nrows num_rows n_tokens
n_elements|tokens|4194304|n_elements num_elements numel xnumel|nelements n_element total_elements size length
batch|batch|4|b bsz batch batch_size bs|z
seq_len|sequence|2048|t s seq_len seqlen seq l n_ctx *avg_seq_q *max_seqlens_q *max_seq_q|seq_len_q seqlen_q \
max_seqlen_q
kv_len|keys|2048|*avg_seq_k *max_seqlens_k *max_seq_k seq_len_k kv_len|seqlen_k max_seqlen_k n_ctx_k
hidden_size|width|4096|h hidden_size|hidden
N|width|4096|n d hidden_dim embed_dim n_cols cols c dim|ncols num_cols rnumel r0_numel ynumel
vocab_size|vocabulary|32000|v vocab_size vocab|
intermediate_size|inner|11008|intermediate_size intermediate_dim *ffn_local *i ffn_dim|
num_heads|heads|32|num_heads num_query_heads num_q_heads *num_attention_heads hq nheads q_heads|n_heads
head_dim|head_width|128|head_dim head_size block_dmodel hdim|d_head
num_experts|experts|8|e num_experts|n_experts
K|depth|4096|k|
|kernel||*kernel_size|
|channels||*c_in *in_channels|
"""
_ROWS = [line.split("|") for line in _TABLE.strip().splitlines()]
_ROLES: dict[str, list[str]] = {}
for _, _role, _, _read, _ in _ROWS:
    _ROLES.setdefault(_role, []).extend(_read.replace("*", "").split())
NAMED_ROLES = tuple(_ROLES)
DEFAULTS: Mapping[str, str] = {name: size for name, _, size, _, _ in _ROWS if name} | {"dtype": "fp16"}
_DEFAULT_NAMES = {
    spelling: name
    for name, _, _, read, further in _ROWS
    for spelling in (*read.split(), *further.split())
    if not spelling.startswith("*")
}
_ATTENTION = frozenset({"seq_len", "kv_len", "head_dim"})


@dataclass(frozen=True, slots=True)
class WorkloadSizes:
    """The sizes of a workload.

    ``shapes`` of tensor arguments in order, ``scalars`` by position, ``named`` sizes by role, ``others`` with unknown
    names, and the ``widths`` of the dtypes in bytes per value.
    """

    shapes: tuple[tuple[int, ...], ...]
    scalars: tuple[float, ...]
    named: Mapping[str, float]
    others: tuple[float, ...]
    widths: tuple[float, ...]

    @property
    def width(self) -> float:
        """Bytes per value of the main dtype, 4 when the workload names none."""
        return self.widths[0] if self.widths else 4.0


def read_sizes(workload: Mapping[str, str]) -> WorkloadSizes:
    """The sizes in a workload; values that are not numbers are ignored."""
    shapes: dict[int, tuple[int, ...]] = {}
    scalars: dict[int, float] = {}
    named: dict[str, float] = {}
    for name, text in workload.items():
        match = _ARGUMENT.match(name)
        if match and "x" in text and _SHAPE.match(text):
            shapes[int(match[1])] = tuple(int(part) for part in text.split("x"))
        elif (number := _number(text)) is None:
            if "x" in text and _SHAPE.match(text):
                named[name.lower()] = float(math.prod(int(part) for part in text.split("x")))
        elif match:
            # One number may be a vector's length or a scalar argument; sizes above a few are mostly lengths.
            scalars[int(match[1])] = number
        else:
            named[name.lower()] = number
    for index, number in scalars.items():
        if number >= 1 and number == int(number) and (not shapes or number >= 16):
            shapes.setdefault(index, (int(number),))
    roles = {
        role: next((named[name] for name in names if named.get(name, 0) >= 1), 0.0) for role, names in _ROLES.items()
    }
    if {"n", "c", "h", "w", "k"} <= named.keys():
        # A convolution over images: pixels are the rows of its matrix product, K its outputs.
        roles |= {"tokens": named["n"] * named["h"] * named["w"], "width": named["c"] * max(roles["kernel"], 1.0)}
        roles["depth"] = named["k"]
    elif {"c", "h"} <= named.keys():
        roles["width"] = named["c"] * named["h"]
    known = {name for names in _ROLES.values() for name in names}
    rest = sorted((value for name, value in named.items() if name not in known and value > 1), reverse=True)
    dtypes = workload.get("dtype", "").split("+")
    widths = tuple(_BYTES[name] for name in dtypes if name in _BYTES)
    ordered = tuple(shapes[index] for index in sorted(shapes))
    return WorkloadSizes(ordered, tuple(scalars[index] for index in sorted(scalars)), roles, tuple(rest), widths)


def is_sized(workload: Mapping[str, str]) -> bool:
    """Return whether the model can read from a workload how large a launch is."""
    sizes = read_sizes(workload)
    return bool(sizes.shapes) or any(sizes.named.values())


def default_name(name: str, others: Collection[str] = ()) -> str | None:
    """The name of the default size for a kernel argument called ``name`` among ``others``; None for an unknown one."""
    known = _DEFAULT_NAMES.get(name.lower())
    if name.lower() == "h" and any(_DEFAULT_NAMES.get(other.lower()) in _ATTENTION for other in others):
        return "num_heads"
    return known


def workload_name(name: str, default: str | None) -> str:
    """The name of a size in a workload: that of its argument where the model reads it, else that of its default."""
    if default is None or default == "num_heads":
        return default or name
    if default == "head_dim" and len(name) == 1:
        return default
    return name if any(read_sizes({name: "2"}).named.values()) else default


def canonical_workload(workload: Mapping[str, str]) -> dict[str, str]:
    """A kernel's workload with the names that the model reads in place of others with the same meaning."""
    return {
        name if _ARGUMENT.match(name) else workload_name(name, default_name(name, workload)): value
        for name, value in workload.items()
    }


def elements(sizes: WorkloadSizes) -> float:
    """About how many values all tensors of a call hold together; 0 when nothing is known."""
    if sizes.shapes:
        return float(sum(math.prod(shape) for shape in sizes.shapes))
    named = sizes.named
    rows, width, vocabulary, inner = _rows(named), named["width"], named["vocabulary"], named["inner"]
    if named["tokens"] and width and named["depth"]:
        return named["tokens"] * (named["depth"] + width) + named["depth"] * width
    if named["channels"] and named["sequence"]:
        return max(named["batch"], 1.0) * named["channels"] * named["sequence"] ** 2
    if width and vocabulary:
        # The table or head of a vocabulary, read once.
        return width * (rows + vocabulary)
    heads = named["heads"] * max(named["head_width"], 64.0)
    columns = max(vocabulary, inner, width, heads) or named["experts"] or 1.0
    return rows * columns + width * inner * max(named["experts"], 1.0)


def products(sizes: WorkloadSizes) -> dict[str, float]:
    """Rough counts of multiply-adds under several readings of the shapes; 0 where a reading does not apply.

    ``implied`` are those that the names imply, even when the text has no matrix product (a whole layer is timed).
    """
    named = sizes.named
    rows, width = _rows(named), named["width"]
    heads, head_width = max(named["heads"], 1.0), max(named["head_width"], 64.0)
    keys = named["keys"] or named["sequence"]
    result = dict.fromkeys(("matmul", "three", "attention", "rows", "implied"), 0.0)
    if sizes.shapes:
        shapes = [shape for shape in sizes.shapes if len(shape) > 1]
        counts = sorted((float(math.prod(shape)) for shape in shapes), reverse=True)
        if len(counts) > 2:
            result["three"] = math.sqrt(counts[0] * counts[1] * counts[2])
        if len(shapes) > 1:
            result["matmul"] = _matmul(shapes[0], shapes[1])
            result["attention"] = _attention(shapes)
        result["rows"] = counts[0] if counts else float(max(math.prod(shape) for shape in sizes.shapes))
        return result
    if named["depth"] and named["tokens"] and width:
        result["matmul"] = named["tokens"] * width * named["depth"]
    elif named["vocabulary"] and width:
        result["matmul"] = rows * width * named["vocabulary"]
    elif named["inner"] and width:
        # A gated layer of a transformer: two products before the activation, one after it.
        result["matmul"] = result["implied"] = 3 * rows * width * named["inner"] * max(named["depth"], 1.0)
    if keys and (named["heads"] or named["keys"]):
        result["attention"] = max(named["batch"], 1.0) * max(named["sequence"], 1.0) * keys * heads * head_width
    result["rows"] = rows * max(width, 1.0)
    return result


def _matmul(left: tuple[int, ...], right: tuple[int, ...]) -> float:
    """M*N*K of ``(..., M, K)`` and ``(K, N)``, ``(N, K)`` or ``(..., K, N)``; 0 when no dimension is shared."""
    inner = left[-1]
    if inner not in right:
        return 0.0
    others = list(right)
    others.remove(inner)
    if len(right) == len(left) > 2:
        # The batch is shared too.
        for dimension in left[:-2]:
            if dimension in others:
                others.remove(dimension)
    return float(math.prod(left)) * math.prod(others)


def _attention(shapes: list[tuple[int, ...]]) -> float:
    """Query-key products of ``(batch, heads, sequence, width)``, ``(tokens, heads, width)`` or two matrices."""
    query, keys = shapes[0], shapes[1]
    if len(query) == len(keys) == 4:
        return float(math.prod(query)) * keys[2]
    if len(query) == len(keys) == 3:
        return float(math.prod(query)) * keys[0]
    return 0.0


def _rows(named: Mapping[str, float]) -> float:
    return named["tokens"] or max(named["batch"], 1.0) * max(named["sequence"], 1.0)


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def dtype_name(name: str) -> str:
    """The one spelling of a dtype: ``torch.float16`` and ``half`` are ``fp16``; an unknown one stays as it is."""
    short = str(name).strip().lower().removeprefix("torch.").removeprefix("tl.")
    if short.startswith(("float8", "fp8")):
        return "fp8"
    return _DTYPES.get(short, short)
