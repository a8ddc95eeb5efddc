"""Commands that need more than the base install say so in one line."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rlm_core import RlmError

TRAINING = frozenset(
    {"torch", "transformers", "accelerate", "pyarrow", "sklearn", "scipy", "onnx", "onnxscript", "matplotlib"}
)


@contextmanager
def training_extra() -> Iterator[None]:
    """Turn a missing package of the ``[train]`` extra into an error that names it and the way out.

    Raises:
        RlmError: a package of the extra is not installed.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in TRAINING:
            raise
        raise RlmError(f"{package} is not installed; run: pip install '.[train]'") from None
