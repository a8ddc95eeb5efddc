"""A model's directory, name or address -> a predictor.

The one place that knows all three implementations of ``Predictor``: the embedded student, the full model in PyTorch and
the client of a model server. Each is imported when a model of its kind is loaded.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from .errors import ModelError

if TYPE_CHECKING:
    from .inference.predictor import Predictor


def load(model: Path | str | None = None, *, threads: int = 0) -> Predictor:
    """The predictor of a model directory; by default the one that ships with the package.

    Args:
        model: a directory written by ``rlm-lsp export``, or of a full model; None or ``"builtin"`` for the shipped
            model; or the address of a model server, like ``https://gpu-box:8765``.
        threads: of onnxruntime or PyTorch; 0 leaves the choice to it. A server decides for itself.

    A student that did not ship with the package is first tried in a child process.

    Raises:
        ModelError: the directory is missing, incomplete or corrupt, or the server cannot be used.
    """
    if isinstance(model, str) and is_remote(model):
        from .serving.client import RemotePredictor

        return RemotePredictor(model)
    from .inference.model_store import BUILTIN, builtin

    directory = builtin() if model in (None, BUILTIN) else Path(str(model))
    if is_full(directory):
        return _load_full(directory, threads)
    if directory.resolve() != builtin().resolve():
        from .inference.model_trial import try_model

        try_model(directory)
    from .inference.student import OnnxPredictor

    return OnnxPredictor(directory, threads=threads)


def is_remote(model: str) -> bool:
    """Return whether a model is named by the address of a model server."""
    return model.lower().startswith(("http://", "https://"))


def is_full(directory: Path | str) -> bool:
    """Return whether a directory's card names a full model; False if it cannot be read, which the loader explains."""
    from .inference.card import read_model_card

    try:
        return read_model_card(Path(directory)).is_full
    except ModelError:
        return False


def _load_full(directory: Path, threads: int) -> Predictor:
    try:
        from .training.full.predictor import TorchPredictor
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("torch", "transformers"):
            raise
        raise ModelError(
            f"{directory}: a full model needs {error.name}; run: pip install '.[rlm]', or name a smaller model"
        ) from None
    return TorchPredictor(directory, threads=threads)


def load_corrected(model: Path | str | None = None, *, threads: int = 0, stored: bool = False) -> Predictor:
    """:func:`rlm_core.load` and :func:`with_corrections` in one; ``stored`` is whether :func:`with_stored` is between.

    Raises:
        ModelError: the directory is missing, incomplete or corrupt.
    """
    from .inference.adaptation.predictor import with_corrections

    base = load(model, threads=threads)
    return with_corrections(with_stored(base, model) if stored else base)


def with_stored(base: Predictor, model: Path | str | None = None) -> Predictor:
    """The predictor of a model, whose answers are kept on the disk if it is an embedded one."""
    from .inference.stored_predictions import StoredPredictor

    digest = model_digest(model)
    return StoredPredictor(base, digest) if digest is not None else base


def model_digest(model: Path | str | None = None) -> bytes | None:
    """A digest of an embedded model; None for other models and for what is not a model."""
    from .files import read_regular
    from .inference.card import CARD, MAX_CARD_BYTES
    from .inference.model_store import BUILTIN, builtin
    from .queries.entry_store import digest_of

    if isinstance(model, str) and is_remote(model):
        return None
    directory = builtin() if model in (None, BUILTIN) else Path(str(model))
    try:
        # The card has the checksums of the other files, which are compared when the model is loaded.
        return digest_of(read_regular(directory / CARD, MAX_CARD_BYTES)) if not is_full(directory) else None
    except OSError:
        return None
