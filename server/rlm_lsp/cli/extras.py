"""Commands that need more than the base install say so in one line."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rlm_core import RlmError

_OF_TRAIN = ("torch", "pyarrow", "sklearn", "scipy", "onnx", "onnxscript", "matplotlib", "tensorboard")
_OF_RLM = ("transformers", "accelerate", "peft")
EXTRAS = dict.fromkeys(_OF_TRAIN, "train") | dict.fromkeys(_OF_RLM, "rlm") | {"plotly": "report"}


@contextmanager
def training_extra() -> Iterator[None]:
    """Turn a missing package of the extras that training needs into an error that names it and the way out.

    Raises:
        RlmError: a package of an extra is not installed.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in EXTRAS:
            raise
        raise RlmError(f"{package} is not installed; run: pip install '.[{EXTRAS[package]}]'") from None
