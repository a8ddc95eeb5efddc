"""The workload of a label of a Triton kernel or PyTorch module: sizes, dtypes, mode and backend in one spelling.

Positional arguments are ``arg0``, ``arg1`` ...; a shape is ``4096x128``; a number is a scalar. Dtypes have one spelling
(``torch.float16`` is ``fp16``); several are joined by ``+`` in the order given.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rlm_core.queries.sizes import dtype_name

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
_NOT_SIZES = frozenset({"mode", "dtype", "pass", "warmup", "repetitions", "layout", "sweep_dim"})
_VARIANTS = {"liger_tiled": "tiled", "liger_in_place": "in-place", "liger-fp32-accum": "fp32-accumulation"}


def benchmark_of(label: Mapping[str, Any]) -> str:
    """The name of the benchmark that a label is from."""
    return str(label["kernel_id"]).split("/", 1)[0]


def is_host_timed(label: Mapping[str, Any]) -> bool:
    """Return whether the figure is the wall time of a Python function with its launches, as that of loops in C is."""
    return "wrapper" in label


def config_blob(label: Mapping[str, Any]) -> str | None:
    """The name in the repository of the file that overrides a problem's sizes."""
    path = label.get("config_path")
    return f"{label['commit']}:{path}" if path and "\n" not in path else None


def label_workload(label: Mapping[str, Any], contents: Mapping[str, str]) -> dict[str, str] | None:
    """The workload of a label; None when the file that holds its sizes cannot be read."""
    given, benchmark = label.get("input_size"), benchmark_of(label)
    dtypes = [str(name) for name in label.get("dtypes_in_harness") or label.get("input_extra") or ()]
    if isinstance(given, dict) and isinstance(label.get("dtype"), dict):  # tensors in the order of the arguments
        dtypes, given = [*map(str, label["dtype"].values())], [*given.values()]
    elif label.get("dtype"):
        dtypes.append(str(label["dtype"]))
    autotuned = {"autotuned": "best"} if label.get("config") or benchmark in ("vllm_triton_backend", "aiter") else {}
    if isinstance(given, list) and not label.get("backend"):
        return positional(given, dtypes) | autotuned
    if (config := config_blob(label)) is not None:
        try:
            given = merged_configs(json.loads(contents[config]))
        except (KeyError, ValueError, TypeError, AttributeError):
            return None
    # A string names a setting whose sizes are in the source.
    model_size = "vocab_size" if "cross_entropy" in label["kernel_id"] else "hidden_size"
    if isinstance(given, list):
        workload = positional(given, dtypes)
    else:
        given = given if isinstance(given, dict) else {}
        workload = named(given, [*dtypes, *_other_dtypes(label)], model_size) | autotuned
    if benchmark == "liger":
        workload["mode"] = str(label["mode"])
        variant = _VARIANTS.get(str(label.get("provider")))
        if variant is not None:
            workload["variant"] = variant
    if isinstance(given, dict) and "pass" in given:
        workload["mode"] = str(given["pass"])
    if is_host_timed(label):
        workload["timed"] = "host"
    if label.get("backend"):
        workload["backend"] = backend(label["backend"])
        workload.setdefault("dtype", dtype_name(_DEFAULT_MODULE_DTYPE))
    return workload


def _other_dtypes(label: Mapping[str, Any]) -> list[str]:
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
            if name == "dtype" or name.endswith("dtype_str"):
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
