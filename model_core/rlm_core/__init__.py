r"""rlm-core: source text in, calibrated cost out.

    import rlm_core
    predictor = rlm_core.load()
    code = rlm_core.CodeText("def f(n):\n    return sum(range(n))", "python", "call")
    [[latency]] = predictor.predict([code], [[rlm_core.Query("latency")]])
    print(latency.median, latency.band)   # seconds

Nothing is run to predict, and importing this package imports no torch.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from .errors import DataError, ModelError, RlmError, SourceError
from .types import Band, Callee, CodeText, Prediction, Query, Unit

if TYPE_CHECKING:
    from .predictor import Predictor

__version__ = "0.1.0"
__all__ = [
    "Band",
    "Callee",
    "CodeText",
    "DataError",
    "ModelError",
    "Prediction",
    "Query",
    "RlmError",
    "SourceError",
    "Unit",
    "load",
]


def load(model: Path | str | None = None, *, threads: int = 0) -> Predictor:
    """The predictor of an exported model directory; by default the one that ships with the package.

    Args:
        model: a directory written by ``rlm-lsp export``; None or ``"builtin"`` for the shipped model.
        threads: onnxruntime threads; 0 leaves the choice to it.

    Raises:
        ModelError: the directory is missing, incomplete or corrupt.
    """
    from .onnx_predictor import OnnxPredictor

    directory = Path(__file__).parent / "builtin" if model in (None, "builtin") else Path(str(model))
    return OnnxPredictor(directory, threads=threads)
