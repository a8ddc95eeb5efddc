"""Triton kernels (source or IR) and a query -> numbers for boosted trees: what the text does, how large, on what.

``describe`` reads the text once; ``features`` joins it with sizes, dtype and mode of the workload and with the data
sheet of the device. Roofline estimates follow Williams et al. 2009 (bytes over bandwidth, operations over peak). Where
the text and the sizes fix what the launches do, their times take the place of an estimate from the sizes alone.
Sizes, counts and seconds are log10, unknown is NaN.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from rlm_core.queries.devices import canonical_device, device_table
from rlm_core.queries.sizes import NAMED_ROLES, elements, products, read_sizes

from . import launch

ALONE = True
_CALL = r"\b(?:tl|triton\.language|tl\.math|libdevice|tl_math|math|tt|arith)\.(?:extra\.\w+\.)?"
_COUNTED = {
    "load": _CALL + r"load\b",
    "store": _CALL + r"store\b",
    "dot": _CALL + r"dot(?:_scaled)?\b",
    "exp": _CALL + r"(?:exp2?|sigmoid|softmax|erf|tanh|sin|cos|pow)\b",
    "log": _CALL + r"log2?(?:1p)?\b",
    "root": _CALL + r"r?sqrt(?:_rn)?\b",
    "atomic": _CALL + r"atomic_\w+",
    "sum": _CALL + r"(?:sum|reduce)\b",
    "max": _CALL + r"(?:max|min|argmax|argmin|maximum|minimum)\b",
    "where": _CALL + r"(?:where|select)\b",
    "scan": _CALL + r"(?:cumsum|cumprod|associative_scan|scan|sort|histogram)\b",
    "random": _CALL + r"(?:rand\w*|philox)\b",
    "transpose": _CALL + r"trans(?:pose)?\b|\.T\b",
    "program_id": _CALL + r"(?:program_id|get_program_id)\b",
    "block_pointer": _CALL + r"(?:make_block_ptr|make_tensor_ptr|advance)\b",
    "cast": r"\.to\(|\btt\.(?:fp_to_fp|bitcast)\b|\barith\.(?:ext|trunc)f\b",
    "div": r"(?<!/)/(?!/)|\barith\.divf\b",
    "remainder": r"//|%(?!\w)|\barith\.(?:rem|div)[su]i\b",
    "shift": r">>|<<|&(?!&)",
    "mask": r"\bmask\s*=|boundary_check",
    "constexpr": r"\bconstexpr\b",
    "stride": r"\bstride\w*",
    "config": r"\bConfig\(",
    "jit": r"@[\w.]*\bjit\b|\btt\.func\b",
    # Tried once between two closing brackets: where the first opening one is not a launch, no later one is.
    "launch": r"(?:^|(?<=[\]\n]))(?>[^\]\n]*?\w\[)(?>[^\]\n]*?(?:grid|lambda|\(|,))[^\]\n]*+\](?=\s*\()",
    "branch": r"\bif\b|\bscf\.if\b",
    "torch": r"\b(?:torch|F)\.\w+",
    "allocation": r"\b(?:torch\.)?(?:empty|zeros|ones|empty_like|zeros_like|full|new_empty)\(",
    "contiguous": r"\.contiguous\(|\.clone\(",
    "matmul_call": r"\b(?:torch\.)?(?:matmul|mm|bmm|addmm|einsum)\(|\s@\s|\b\w*linear\w*",
    "host_sync": r"\.item\(\)|\.tolist\(\)|\.cpu\(\)",
    "cdiv": r"\bcdiv\b",
    "power_of_2": r"\bnext_power_of_2\b",
    "float32": r"\bfloat32\b|\bf32\b",
    "half": r"\bb?float16\b|\bb?f16\b",
    "byte": r"\bu?int8\b|\bfloat8\w*|\bi8\b|\bfp8\w*",
    "integer": r"\bint(?:32|64)\b",
    "backward": r"\b\w*(?:bwd|backward|grad|dout|\bd[qkvxyw]\b)\w*",
    "forward": r"\b\w*(?:fwd|forward)\w*",
    "causal": r"causal",
    "softmax_state": r"\b(?:m_i|l_i|lse|alpha)\b",
}
_PATTERNS = {name: re.compile(pattern, re.IGNORECASE) for name, pattern in _COUNTED.items()}
_LOOP = re.compile(r"\s*(?:for|while)\b|.*\b(?:scf|cf)\.(?:for|while)\b")
_BLOCK = re.compile(r"['\"]?\b(\w*(?:BLOCK|TILE)\w*|[BN]_?[A-Z]?|R?[XY]BLOCK)['\"]?\s*[:=]\s*(\d+)")
_WARPS = re.compile(r"num_warps['\"]?\s*[:=]\s*(\d+)")
_STAGES = re.compile(r"num_stages['\"]?\s*[:=]\s*(\d+)")
_SIGNATURE = re.compile(r"\bjit\b[^\n]*\n(?:[ \t]*@[^\n]*\n){0,50}+[ \t]*def\s+\w+\s*\(([^)]{0,10000}+)\)")
# Of a text, a line and a word. Longer ones are data, and searching them takes a time that grows with their square.
_LONGEST_TEXT, _LONGEST_LINE, _LONGEST_WORD = 200_000, 2_000, 200
_LONG_LINE, _LONG_WORD = (
    re.compile(rf"({part}{{{longest}}}){part}+") for part, longest in (("[^\n]", _LONGEST_LINE), (r"\w", _LONGEST_WORD))
)
_POINTER = re.compile(r"ptr|^(?![MNK]\b)[A-Z]{1,3}\b|out|\*")
_MODES = {"forward": 0.0, "no-grad-forward": 0.0, "backward": 1.0, "full": 2.0}
_FLOOR = 6e-6  # seconds: what a launch costs when there is nothing to do, as measured on data-centre cards
# A data-centre card of 2020, where the device's figures are unknown.
_USUAL_BANDWIDTH, _USUAL_FP32, _USUAL_FP16 = 2e12, 2e13, 3e14
_WHOLE = -2  # of the values of ``_ROOFLINE_NAMES``: that of the whole launch
_SHAPES, _DIMENSIONS, _SCALARS, _OTHERS = 6, 4, 3, 3

_TEXT_NAMES = (
    *(f"count_{name}" for name in _COUNTED),
    "has_dot",
    "loops",
    "loop_depth",
    "loops_with_dot",
    "loops_with_load",
    "pointers",
    "parameters",
    "block_max",
    "block_min",
    "block_product",
    "warps",
    "stages",
    "characters",
    "words",
    "words_distinct",
    "loads_a_store",
)
_DEVICE_NAMES = ("bandwidth", "fp32", "fp16", "memory", "multiprocessors", "year", "is_amd", "balance")
_SIZE_NAMES = (
    *(f"tensor{place}_elements" for place in range(_SHAPES)),
    *(f"sorted{place}_elements" for place in range(4)),
    *(f"tensor0_dim{place}" for place in range(_DIMENSIONS)),
    *(f"tensor1_dim{place}" for place in range(_DIMENSIONS)),
    *(f"scalar{place}" for place in range(_SCALARS)),
    *(f"role_{role}" for role in NAMED_ROLES),
    *(f"other{place}" for place in range(_OTHERS)),
    "tensors",
    "rank",
    "elements",
    "dim_max",
    "dim_min",
    "dims_product",
    "dim_last",
    "rows_of_tensor0",
    "tensor0_share",
    "matmul",
    "three",
    "attention",
    "work_rows",
    "width",
    "width_max",
    "width_min",
    "mode",
    "autotuned",
    "positional",
    "timed_on_host",
)
_ROOFLINE_NAMES = (
    "bytes",
    "seconds_memory",
    "seconds_matmul",
    "seconds_three",
    "seconds_attention",
    "seconds_work",
    "seconds_roofline",
    "elements_a_multiprocessor",
)
ESTIMATE = "seconds_estimate"
_GAP = "estimate_over_roofline"
NAMES: tuple[str, ...] = (*_TEXT_NAMES, *_DEVICE_NAMES, *_SIZE_NAMES, *_ROOFLINE_NAMES, *launch.NAMES, ESTIMATE, _GAP)

# Known where the text and the sizes fix what the launches do: the errors of such predictions are much smaller.
WORK = "launch_known"

# What a launch costs does not fall when one of these grows: constraints for the trees that read them.
MONOTONIC: tuple[str, ...] = ("bytes", "seconds_memory", "seconds_matmul", "seconds_attention", "seconds_roofline")
# What generalises to unseen kernels. Shapes by position rank sizes worse than the roofline estimates made of them.
SELECTED: tuple[str, ...] = (
    *_TEXT_NAMES,
    *_DEVICE_NAMES,
    *("mode", "autotuned", "positional", "width", "tensors", "rank", "timed_on_host"),
    *MONOTONIC,
    *launch.SELECTED,
    ESTIMATE,
    _GAP,
)


@dataclass(frozen=True, slots=True)
class Described:
    """A text with its features: the values of the first ones, in order, and whether it multiplies matrices."""

    text: str
    values: tuple[float, ...]
    has_dot: bool


@lru_cache(maxsize=4096)
def describe(text: str) -> Described:
    """Counts and block sizes of a kernel's text (as ``kernel_text`` makes it, or IR)."""
    whole = text
    text = _LONG_WORD.sub(r"\1", _LONG_LINE.sub(r"\1", text[:_LONGEST_TEXT]))
    counts = {name: len(pattern.findall(text)) for name, pattern in _PATTERNS.items()}
    loops = _loops(text)
    parameters = [part.strip() for match in _SIGNATURE.findall(text) for part in match.split(",") if part.strip()]
    blocks = [int(size) for _, size in _BLOCK.findall(text) if 1 < int(size) <= 65536]
    warps = [int(number) for number in _WARPS.findall(text)]
    stages = [int(number) for number in _STAGES.findall(text)]
    words = re.findall(r"\w+", text)
    has_dot = counts["dot"] + counts["matmul_call"] > 0
    values = (
        *(math.log10(1 + count) for count in counts.values()),
        float(has_dot),
        float(len(loops)),
        float(max((depth for depth, _, _ in loops), default=0)),
        float(sum(has_dot for _, has_dot, _ in loops)),
        float(sum(has_load for _, _, has_load in loops)),
        float(sum(bool(_POINTER.search(part)) for part in parameters)),
        float(len(parameters)),
        _log(max(blocks, default=0)),
        _log(min(blocks, default=0)),
        _log(math.prod(sorted(set(blocks))[-2:]) if blocks else 0),
        float(max(warps)) if warps else math.nan,
        float(max(stages)) if stages else math.nan,
        _log(len(text)),
        _log(len(words)),
        _log(len(set(words))),
        counts["load"] / (1 + counts["store"]),
    )
    return Described(whole, values, has_dot)


def features(described: Described, workload: Mapping[str, str], device: str | None) -> npt.NDArray[np.float32]:
    """All features of a query about a described text. Shape ``(len(NAMES),)``; NaN where unknown."""
    card = device_table().get(canonical_device(device) or "") if device else None
    bandwidth = (card.memory_bandwidth if card else None) or math.nan
    fp32 = (card.fp32_flops if card else None) or math.nan
    fp16 = (card.fp16_flops if card else None) or fp32
    units = float((card.multiprocessors if card else None) or math.nan)
    about_device = (
        _log(bandwidth),
        _log(fp32),
        _log(fp16),
        _log((card.memory if card else None) or 0),
        _log(units),
        float((card.year if card else None) or math.nan),
        float(card.id.startswith("amd")) if card else math.nan,
        _log(fp16 / bandwidth),
    )
    sizes = read_sizes(workload)
    counts = [float(math.prod(shape)) for shape in sizes.shapes]
    dims = [dimension for shape in sizes.shapes for dimension in shape]
    total, work = elements(sizes), products(sizes)
    first = sizes.shapes[0] if sizes.shapes else ()
    second = sizes.shapes[1] if len(sizes.shapes) > 1 else ()
    about_sizes = (
        *_padded([_log(count) for count in counts], _SHAPES),
        *_padded([_log(count) for count in sorted(counts, reverse=True)], 4),
        *_padded([_log(part) for part in first], _DIMENSIONS),
        *_padded([_log(part) for part in second], _DIMENSIONS),
        *_padded([_log(abs(number)) for number in sizes.scalars], _SCALARS),
        *(_log(sizes.named[role]) for role in NAMED_ROLES),
        *_padded([_log(number) for number in sizes.others], _OTHERS),
        float(len(counts)),
        float(max((len(shape) for shape in sizes.shapes), default=0)),
        _log(total),
        _log(max(dims, default=0)),
        _log(min(dims, default=0)),
        _log(math.prod(set(dims))) if dims else math.nan,
        _log(first[-1] if first else 0),
        _log(math.prod(first[:-1]) if first else 0),
        counts[0] / total if counts and total else math.nan,
        _log(work["matmul"]),
        _log(work["three"]),
        _log(work["attention"]),
        _log(work["rows"]),
        sizes.widths[0] if sizes.widths else math.nan,
        max(sizes.widths, default=math.nan),
        min(sizes.widths, default=math.nan),
        _MODES.get(workload.get("mode", ""), math.nan),
        float("autotuned" in workload),
        float(bool(sizes.shapes)),
        float(workload.get("timed") == "host"),
    )
    is_wide = sizes.width > 2 and "tf32" not in workload.get("dtype", "")
    bandwidth = bandwidth if bandwidth == bandwidth else _USUAL_BANDWIDTH
    peak = fp32 if is_wide else fp16
    peak = peak if peak == peak else _USUAL_FP32 if is_wide else _USUAL_FP16
    memory = total * sizes.width / bandwidth
    products_seen = max(work["matmul"], work["attention"]) if described.has_dot else work["implied"]
    arithmetic = 2 * products_seen / peak
    passes = 1 + _MODES.get(workload.get("mode", ""), 0.0)
    roofline = (
        _log(total * sizes.width),
        _log(memory),
        _log(2 * work["matmul"] / peak),
        _log(2 * work["three"] / peak),
        _log(2 * work["attention"] / peak),
        _log(work["rows"] * sizes.width / bandwidth),
        _log(_FLOOR + passes * max(memory, arithmetic)),
        _log(total / units),
    )
    launched = launch.features_of(described.text, workload, device)
    estimate = float(launched[launch.NAMES.index(launch.ESTIMATE)])
    # A pass backwards takes about twice as long as the one forwards, whose launches are read.
    estimate += math.log10(3) if workload.get("mode") == "full" else 0.0
    estimate = estimate if estimate == estimate else roofline[_WHOLE]
    last = (*launched, estimate, estimate - roofline[_WHOLE])
    return np.array((*described.values, *about_device, *about_sizes, *roofline, *last), np.float32)


def _loops(text: str) -> list[tuple[int, bool, bool]]:
    """Return for each loop its depth, itself included, and whether it multiplies matrices and loads."""
    found: list[list[int]] = []
    # Indentation and place in ``found`` of the loops that the line stands in; IR is indented too.
    stack: list[tuple[int, int]] = []
    for line in text.split("\n"):
        stripped = line.lstrip()
        if not stripped or stripped[0] in ")]}":
            continue
        indent = len(line[: len(line) - len(stripped)].expandtabs(4))
        while stack and stack[-1][0] >= indent:
            stack.pop()
        for _, place in stack:
            found[place][1] |= bool(_PATTERNS["dot"].search(line))
            found[place][2] |= bool(_PATTERNS["load"].search(line))
        if _LOOP.match(line):
            stack.append((indent, len(found)))
            found.append([len(stack), 0, 0])
    return [(depth, bool(has_dot), bool(has_load)) for depth, has_dot, has_load in found]


def _padded(values: list[float], length: int) -> list[float]:
    return (values + [math.nan] * length)[:length]


def _log(value: float) -> float:
    return math.log10(value) if value > 0 else math.nan
