"""What a label says about one call -> a workload: tensor shapes, named sizes, dtype and mode as text.

Positions are ``arg0``, ``arg1`` ...; a shape is ``4096x128``; a number is a scalar argument. Named values keep their
names. Dtypes have one spelling (``torch.float16`` is ``fp16``), several are joined by ``+`` in the order given.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

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


def dtype_name(name: str) -> str:
    """The one spelling of a dtype: ``torch.float16`` and ``half`` are ``fp16``; an unknown one stays as it is."""
    short = str(name).strip().lower().removeprefix("torch.").removeprefix("tl.")
    if short.startswith(("float8", "fp8")):
        return "fp8"
    return _DTYPES.get(short, short)


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
