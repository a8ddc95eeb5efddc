"""Labels of Triton kernels and PyTorch modules + git repositories -> rows of basis ``kernel`` and ``module``.

The text is what ``units.kernels`` and ``units.modules`` make of the measured source, read by blob id; the query has
device, sizes, dtype, mode and backend. Positional arguments are ``arg0``, ``arg1`` ...; a shape is ``4096x128``; a
number is a scalar. Dtypes have one spelling (``torch.float16`` is ``fp16``); several are joined by ``+`` in the order
given. Repeats of one (text, device, workload) are one row with their median.

A group is an idea or a problem and is never in two splits: the same idea from several sources (RMS norm of three
libraries, softmax of two benchmarks, ``nn.Softmax`` and its kernels) has one name in the table below.
"""

from __future__ import annotations

import hashlib
import json
import re
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlm_core.errors import DataError
from rlm_core.queries.devices import canonical_device
from rlm_core.queries.sizes import dtype_name
from rlm_core.source.canonical import canonical
from rlm_core.source.torch_modules import module_text
from rlm_core.source.triton_kernels import kernel_text

from .builder import Progress, RowBuilder, read_labels
from .cache import find_repository, read_blobs
from .splits import merge_groups

# Whole or partial names, in lower case with single underscores -> idea; the first match wins. Kernels and problems of a
# single operation are looked up here.
_IDEAS = tuple(
    (re.compile(pattern), idea)
    for pattern, idea in (
        (r"fused_linear_(cross|ce)|linear_cross_entropy", "fused_linear_cross_entropy"),
        (r"fused_linear_jsd|distill_\w+_loss", "fused_linear_distillation"),
        (r"(fused_linear_)?(dpo|cpo|orpo|simpo|grpo|kto)_loss", "fused_linear_preference"),
        (r"cross_?entropy|(^|_)ce_loss", "cross_entropy"),
        (r"kl_?div|(^|_)jsd(_|$)", "kl_div"),
        (r"(^|_)tvd(_|$)", "tvd"),
        (r"rms_matmul|rms_rbe", "rms_matmul_rope"),
        (r"rms_?norm", "rms_norm"),
        (r"layer_?norm", "layer_norm"),
        (r"group_?norm", "group_norm"),
        (r"batch_?norm", "batch_norm"),
        (r"instance_?norm", "instance_norm"),
        (r"l2_?norm|l1_?norm|frobenius", "vector_norm"),
        (r"retention", "retention"),
        (
            r"rwkv|hgrn|recurrent_delta|gla_|delta_fwd|dqkg|gate_recurrence|linear_attn|lightning_att",
            "linear_attention",
        ),
        (r"bmm_chunk|chunk_(scan|state)|state_passing|selective_scan", "state_space"),
        (r"neighborhood_att", "neighborhood_attention"),
        (r"multi_token_att", "multi_token_attention"),
        (r"softmax_reducev|token_att|flash_decode|reduce_segments", "decode_attention"),
        (r"att(entio)?n|scaled_?dot_?product", "attention"),
        (r"sparsemax", "sparsemax"),
        (r"log_?sum_?exp", "logsumexp"),
        (r"softmax", "softmax"),
        (r"rope|rotary|(^|_)rbe_", "rope"),
        (r"swiglu|geglu|silu_and_mul", "glu"),
        (r"(^|_)moe(_|$)", "moe"),
        (r"conv_?transpose(d)?_?1d", "conv_transposed_1d"),
        (r"conv_?transpose(d)?_?2d", "conv_transposed_2d"),
        (r"conv_?transpose(d)?_?3d", "conv_transposed_3d"),
        (r"short_conv", "short_conv"),
        (r"conv_depthwise", "conv_depthwise"),
        (r"conv_?(standard_|pointwise_)?1d", "conv_1d"),
        (r"conv_?(standard_|pointwise_)?2d", "conv_2d"),
        (r"conv_?(standard_|pointwise_)?3d", "conv_3d"),
        (r"mat(rix)?_?vec(tor)?", "matvec"),
        (r"lora|bgmv|sgmv", "lora"),
        (
            r"dequant\w*_matmul|matmul_dequant|int4_matmul|int8_\w*matmul|int_scaled|a8w8|matmul_quant",
            "quantized_matmul",
        ),
        (r"matrix_scalar|transpose$", "matrix_elementwise"),
        (r"(^|_)(addmm|bmm|mm|mat_?mul|gemm)(_|$)|matrix_multiplication|tensor_matrix", "matmul"),
        (r"quantize_kv|quantize_copy_kv|destindex|kcache|kv_cache|reshape_and_cache|cache_transform", "cache_copy"),
        (r"quantiz|dequantize|f8_conversion|fp4_to", "quantize"),
        (r"embedding", "embedding"),
        (r"dropout", "dropout"),
        (r"cumsum", "cumsum"),
        (r"arg(max|min)", "argmax"),
        (r"max_pool", "max_pooling"),
        (r"(avg|average)_pool", "average_pooling"),
        (r"vector_addition|^add(_value)?$|masked_add", "add"),
        (r"matrix_reduction", "max"),
    )
)
# Single operations: the group is named for the operation.
_OPERATION = re.compile(
    r"(relu|leaky_?relu|selu|gelu|elu|swish|sigmoid|tanh|hard_?sigmoid|hard_?tanh|softplus|softsign|abs|sin|cos|exp|erf"
    r"|log1p|log|sqrt|rsqrt|floor|trunc|reciprocal|asin|pow|signbit|isfinite|sub|mul|div|max|mean|sum|min|std|prod)"
    r"(?:_strided_buffer|_triton_kernel|_kernel|_reduction(?:_over_a_dimension)?)?\Z"
)
# Networks that differ in a size or in which of their outputs they return.
_NETWORKS = tuple(
    (re.compile(pattern), idea)
    for pattern, idea in ((r"^(lstm|ltsm)", "lstm"), (r"^gru", "gru"), (r"^vanilla_?rnn", "rnn"))
)
_LEVEL = re.compile(r"level_?(\d+)/(?:task_)?(\d+)(?:_(.*))?\Z")
_SIZE = re.compile(r"_bs\d+_seq\d+\Z|_(?:large|small)batch\Z|_1gpu\Z|_decode\Z")
_FIELDS = frozenset({"repo", "kernel_id", "language", "device", "latency_ms", "source_path"})
_KERNELS = frozenset({"triton", "pytorch+triton"})
# FP32 is what PyTorch makes of a problem that names no dtype.
_DEFAULT_MODULE_DTYPE = "float32"
# Sizes of the models that a label names instead of sizes, from their published configurations.
_MODELS = {
    "llama_2_7b": (4096, 32000),
    "llama_3_8b": (4096, 128256),
    "qwen2.5_7b": (3584, 152064),
    "qwen2.5_14b": (5120, 152064),
    "qwen2.5_72b": (8192, 152064),
    "deepseek_v2_lite": (2048, 102400),
    "deepseek_v3": (7168, 129280),
}
_NOT_SIZES = frozenset({"mode", "dtype", "warmup", "repetitions", "layout", "sweep_dim"})
_VARIANTS = {"liger_tiled": "tiled", "liger_in_place": "in-place", "liger-fp32-accum": "fp32-accumulation"}


def kernel_group(name: str) -> str:
    """The group of a kernel by its name in a benchmark, such as ``softmax_optimize``."""
    folded = fold(name)
    return f"kernel/{_idea(folded) or folded}"


def operator_group(name: str) -> str:
    """The group of a PyTorch operator, fused or single: single ones share the group of their kernels."""
    folded = fold(name)
    single = not re.search(r"fused|_(?:and|add|mul|div|sub|dropout|gelu|linear|sqrt|exp|tanh|mean|abs)(?:_|\Z)", folded)
    idea = _idea(folded) if single else None
    return f"kernel/{idea}" if idea else f"problem/operator-{re.sub(r'_dropout_sub$', '_dropout', folded)}"


def problem_group(level: str, number: str, name: str) -> str:
    """The group of a KernelBench problem; ``name`` is that of its file, without number and suffix."""
    folded = fold(name)
    if level == "1" and (idea := _idea(folded)):
        return f"kernel/{idea}"
    for pattern, network in _NETWORKS:
        if pattern.search(folded):
            return f"problem/{network}"
    return f"problem/level{level}-{fold(_SIZE.sub('', name)) if level in '45' else number}"


def problem_of(kernel_id: str, source_path: str) -> tuple[str, str, str] | None:
    """Level, number and name of a KernelBench problem from its label; None when the label is of something else."""
    match = _LEVEL.search(kernel_id.removesuffix("/forward"))
    if match is None:
        return None
    name = match[3]
    if name is None:
        name = re.sub(r"^\d+_", "", source_path.rsplit("/", 1)[-1].removesuffix(".py"))
    return match[1], match[2], name


def fold(name: str) -> str:
    """A name in lower case, words joined by one underscore."""
    return re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")


def _idea(folded: str) -> str | None:
    if match := _OPERATION.match(folded):
        return match[1].replace("_", "")
    return next((idea for pattern, idea in _IDEAS if pattern.search(folded)), None)


@dataclass(frozen=True, slots=True)
class _Text:
    """A text that rows are about and the group that its label's name gives it."""

    text: str
    language: str
    group: str
    source: str


class TritonBuilder(RowBuilder):
    """Rows of one label file or of a folder of them, with sources from repositories in a source cache.

    Raises:
        DataError: there is no label file, or a row lacks a field.
    """

    def __init__(self, labels: Path, cache: Path, split: str = "auto", *, download: bool = True) -> None:
        files = sorted((*labels.glob("*.jsonl"), *labels.glob("*.jsonl.gz"))) if labels.is_dir() else [labels]
        if not files:
            raise DataError(f"{labels}: holds no .jsonl or .jsonl.gz file; name the folder of the Triton labels")
        super().__init__(split)
        self._labels = [row for path in files for row in read_labels(path, _FIELDS, "Triton")]
        self._cache, self._download = cache, download
        self.groups: dict[str, Counter[str]] = {}

    def rows(self, progress: Progress = lambda done, total: None) -> Iterator[dict[str, Any]]:
        """All rows; ``groups`` then holds the number of rows of each group by basis."""
        found = list(self._found(progress))
        texts = {id(text): text for text, *_ in found}.values()
        # Both languages are written in Python's syntax.
        merged = merge_groups((canonical(text.text, "python"), text.group) for text in texts)
        cells: dict[tuple[str, str, str, str], list[float]] = defaultdict(list)
        first: dict[tuple[str, str, str, str], tuple[_Text, dict[str, str], str, str]] = {}
        for text, label, workload, device in found:
            basis = "kernel" if text.language == "triton" else "module"
            cell = (basis, text.text, device, json.dumps(workload, sort_keys=True))
            cells[cell].append(label["latency_ms"] * 1e-3)
            first.setdefault(cell, (text, workload, device, label["kernel_id"]))
        self._units = len({cell[:2] for cell in cells})
        self.groups = {"kernel": Counter(), "module": Counter()}
        for cell, values in cells.items():
            text, workload, device, name = first[cell]
            group = merged[text.group]
            self.groups[cell[0]][group] += 1
            self._rows += 1
            digest = hashlib.sha256("\0".join(cell).encode(errors="replace")).hexdigest()[:16]
            yield {
                "id": f"triton/{name}/{digest}",
                "text": text.text,
                "callees": [],
                "language": text.language,
                "basis": cell[0],
                "metric": "latency",
                "device": device,
                "workload": workload,
                "value": statistics.median(values),
                "group": group,
                "family": group,
                "held_out": "kernel" if cell[0] == "kernel" else "problem",
                "split": self._split_of(group),
                "source": text.source,
            }

    def _found(self, progress: Progress) -> Iterator[tuple[_Text, dict[str, Any], dict[str, str], str]]:
        by_repository: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for label in self._labels:
            reason = _unusable(label)
            if reason is not None:
                self._leave_out(reason, label["kernel_id"])
            else:
                by_repository[label["repo"]].append(label)
        done = len(self._labels) - sum(map(len, by_repository.values()))
        for repository, labels in by_repository.items():
            path = find_repository(self._cache, repository, download=self._download)
            if path is None:
                self._leave_out("repository not found", repository, len(labels))
            else:
                names = {label["source_blob"]: None for label in labels}
                names |= {name: None for label in labels if (name := _config(label)) is not None}
                contents = {
                    name: content.decode("utf-8", errors="replace")
                    for name, content in read_blobs(path, names)
                    if content is not None
                }
                yield from self._usable(repository, labels, contents)
            done += len(labels)
            progress(done, len(self._labels))

    def _usable(
        self, repository: str, labels: list[dict[str, Any]], contents: dict[str, str]
    ) -> Iterator[tuple[_Text, dict[str, Any], dict[str, str], str]]:
        texts: dict[tuple[str, str], _Text] = {}
        for label in labels:
            where = f"{repository}@{label['source_blob']}:{label['source_path']}"
            source = contents.get(label["source_blob"])
            device = canonical_device(label["device"])
            workload = _workload(label, contents)
            if source is None:
                self._leave_out("blob not in the repository", where)
            elif not source.strip():
                self._leave_out("empty source", where)
            elif device is None:
                self._leave_out(f"unknown device {label['device']}", label["kernel_id"])
            elif workload is None:
                self._leave_out("sizes not in the repository", label["kernel_id"])
            elif not label["latency_ms"] > 0:
                self._leave_out("no positive time", label["kernel_id"])
            else:
                key = (label["source_blob"], _unit_name(label))
                if key not in texts:
                    texts[key] = _text(label, source, where)
                yield texts[key], label, workload, device


def _unusable(label: dict[str, Any]) -> str | None:
    if label["language"] == "baseline":
        return "baseline of another library, its source is not named"
    if label["language"] not in (*_KERNELS, "pytorch"):
        return f"language {label['language']} is not supported"
    if not label.get("source_blob"):
        return "source not named by the labels"
    return None


def _benchmark(label: dict[str, Any]) -> str:
    return str(label["kernel_id"]).split("/", 1)[0]


def _unit_name(label: dict[str, Any]) -> str:
    """Which part of a file a label is about."""
    return str(label.get("kernel_name") or label["kernel_id"])


def _text(label: dict[str, Any], source: str, where: str) -> _Text:
    name = _unit_name(label).split("/", 1)[-1].removesuffix(".py").rstrip(".")
    if label["language"] in _KERNELS:
        chosen = {name} if _benchmark(label) == "vllm_triton_backend" else None
        return _Text(kernel_text(source, chosen), "triton", kernel_group(name), where)
    problem = problem_of(label["kernel_id"], label["source_path"])
    if problem is None:
        return _Text(module_text(source, name), "pytorch", operator_group(name), where)
    return _Text(module_text(source), "pytorch", problem_group(*problem), where)


def _config(label: dict[str, Any]) -> str | None:
    """The name in the repository of the file that overrides a problem's sizes."""
    path = label.get("config_path")
    return f"{label['commit']}:{path}" if path and "\n" not in path else None


def _workload(label: dict[str, Any], contents: dict[str, str]) -> dict[str, str] | None:
    """The workload of a label; None when the file that holds its sizes cannot be read."""
    given, benchmark = label.get("input_size"), _benchmark(label)
    dtypes = [str(name) for name in label.get("dtypes_in_harness") or label.get("input_extra") or ()]
    if isinstance(given, list):
        return positional(given, dtypes)
    if (config := _config(label)) is not None:
        try:
            given = merged_configs(json.loads(contents[config]))
        except (KeyError, ValueError, TypeError, AttributeError):
            return None
    # A string names a setting whose sizes are in the source.
    model_size = "vocab_size" if "cross_entropy" in label["kernel_id"] else "hidden_size"
    given = given if isinstance(given, dict) else {}
    workload = named(given, [*dtypes, *_other_dtypes(label)], model_size)
    if benchmark == "liger":
        workload["mode"] = str(label["mode"])
        variant = _VARIANTS.get(str(label.get("provider")))
        if variant is not None:
            workload["variant"] = variant
    if benchmark in ("vllm_triton_backend", "aiter"):
        workload["autotuned"] = "best"
    if label.get("backend"):
        workload["backend"] = backend(label["backend"])
        workload.setdefault("dtype", dtype_name(_DEFAULT_MODULE_DTYPE))
    return workload


def _other_dtypes(label: dict[str, Any]) -> list[str]:
    """Dtypes that only the name of a GEMM says: activations and weights of 8 bits."""
    return ["fp8"] if "a8w8_blockscale" in label["kernel_id"] else []


def dtype_text(names: Iterable[str]) -> str:
    """Several dtypes in first-seen order, joined by ``+``."""
    return "+".join(dict.fromkeys(dtype_name(name) for name in names if name))


def positional(values: Sequence[Any], dtypes: Iterable[str] = ()) -> dict[str, str]:
    """The workload of a call by position: lists are shapes (empty: a scalar tensor), the rest are scalars."""
    workload = {f"arg{number}": _value(value) for number, value in enumerate(values)}
    return workload | _dtype(dtypes)


def named(sizes: Mapping[str, Any], dtypes: Iterable[str] = (), model_size: str = "hidden_size") -> dict[str, str]:
    """The workload of a call by name; a nested mapping (``config``) is flattened, an outer name wins over an inner.

    A model named instead of sizes gives the one that counts: ``hidden_size`` or ``vocab_size``.
    """
    flat: dict[str, Any] = {}
    found = list(dtypes)
    for mapping in (*(value for value in sizes.values() if isinstance(value, Mapping)), sizes):
        for name, value in mapping.items():
            if name == "dtype":
                found.append(str(value))
            elif name not in _NOT_SIZES and value is not None and not isinstance(value, Mapping):
                flat[name] = value
    if (model := _MODELS.get(str(flat.get("model_config")))) is not None:
        flat = {model_size: model[0] if model_size == "hidden_size" else model[1]} | flat
    return {name: _value(value) for name, value in flat.items()} | _dtype(found)


def backend(name: str) -> str:
    """The backend of a module's measurement: ``eager``, ``compile`` (inductor, default mode) or ``compile-<mode>``."""
    if name in ("torch", "eager"):
        return "eager"
    mode = name.removeprefix("torch_compile").removeprefix("_inductor").strip("_")
    return "compile" if mode in ("", "default") else f"compile-{mode}"


def merged_configs(config: Mapping[str, Any]) -> dict[str, Any]:
    """The one setting of a robust-kbench configuration: its input, initialisation and shared values together."""
    merged: dict[str, Any] = {}
    for part in ("input", "init", "shared"):
        for entry in config.get(f"single_{part}_configs") or []:
            merged |= entry
    return merged


def _dtype(names: Iterable[str]) -> dict[str, str]:
    text = dtype_text(names)
    return {"dtype": text} if text else {}


def _value(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return "x".join(str(part) for part in value) if value else "1"
    return str(value)
