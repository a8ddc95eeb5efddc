r"""rlm-core: source text in, calibrated cost out.

    import rlm_core
    predictor = rlm_core.load()
    code = rlm_core.CodeText("def f(n):\n    return sum(range(n))", "python", "call")
    [[latency]] = predictor.predict([code], [[rlm_core.Query("latency")]])
    print(latency.median, latency.band)   # seconds

Nothing is run to predict, and importing this package imports no torch.
"""

from __future__ import annotations

from . import no_telemetry  # noqa: F401 (first: it sets what libraries read when they are imported)
from .errors import DataError, ModelError, RlmError, SourceError
from .loading import load
from .types import Band, Callee, CodeText, Prediction, Query, SizeValue, Unit

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
    "SizeValue",
    "SourceError",
    "Unit",
    "load",
]
