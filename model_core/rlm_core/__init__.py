r"""rlm-core: source text in, calibrated cost out.

    import rlm_core
    predictor = rlm_core.load()
    code = rlm_core.CodeText("def f(n):\n    return sum(range(n))", "python", "call")
    [[latency]] = predictor.predict([code], [[rlm_core.Query("latency")]])
    print(latency.median, latency.band)   # seconds

Nothing is run to predict, and importing this package imports no torch.
"""

from __future__ import annotations

import json
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
    """The predictor of a model directory; by default the one that ships with the package.

    Args:
        model: a directory written by ``rlm-lsp export``, or of a full model; None or ``"builtin"`` for the shipped
            model; or the address of a model server, like ``https://gpu-box:8765``.
        threads: of onnxruntime or PyTorch; 0 leaves the choice to it. A server decides for itself.

    Raises:
        ModelError: the directory is missing, incomplete or corrupt, or the server cannot be used.
    """
    if isinstance(model, str) and model.lower().startswith(("http://", "https://")):
        from .remote import RemotePredictor

        return RemotePredictor(model)
    directory = Path(__file__).parent / "builtin" if model in (None, "builtin") else Path(str(model))
    if is_full(directory):
        return _load_full(directory, threads)
    from .onnx_predictor import OnnxPredictor

    return OnnxPredictor(directory, threads=threads)


def is_full(directory: Path | str) -> bool:
    """Whether a directory says that it holds a full model; a damaged one is for its loader to explain."""
    try:
        card = json.loads((Path(directory) / "card.json").read_text(encoding="utf-8"))
        return str(card["format"]).startswith("rlm-full-")
    except (OSError, ValueError, KeyError, TypeError):
        return False


def _load_full(directory: Path, threads: int) -> Predictor:
    try:
        from .full.predictor import TorchPredictor
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("torch", "transformers"):
            raise
        raise ModelError(
            f"{directory}: a full model needs {error.name}; run: pip install 'rlm-lsp[rlm]', or name a smaller model"
        ) from None
    return TorchPredictor(directory, threads=threads)
