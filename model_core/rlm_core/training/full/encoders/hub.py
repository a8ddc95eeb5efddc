"""Pretrained checkpoints by hub name or folder: where their files are and what they hold.

Only JSON, SentencePiece and safetensors files are fetched and read: no pickle and no code of the model's own. Whatever
goes wrong is one line that says what to do.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import safetensors
from torch import Tensor

from rlm_core.errors import ModelError

EXTRA = "pip install 'rlm-lsp[rlm]'"
_FILES = ["*.json", "*.safetensors", "*.model"]
_SAMPLE = 256  # values of a tensor that a fingerprint reads


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A checkpoint on this machine: ``revision`` is the hub's commit, None for a folder of the user's."""

    name: str
    folder: Path
    revision: str | None


def need(module: str) -> Any:
    """An optional package.

    Raises:
        ModelError: it is not installed.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.split(".")[0]
        raise ModelError(f"pretrained encoders need {package} ({error}); run {EXTRA}") from None


def find(name: str, revision: str | None = None) -> Checkpoint:
    """The checkpoint of a folder or, fetched when it is not cached, of a hub name such as ``google/t5gemma-s-s-ul2``.

    Raises:
        ModelError: there is no such model, it is gated, or the hub cannot be reached.
    """
    path = Path(name).expanduser()
    if path.is_dir():
        return Checkpoint(str(path.resolve()), path.resolve(), None)
    if path.exists():
        raise ModelError(f"{name}: is a file; give the folder with config.json and *.safetensors, or a hub name")
    hub = need("huggingface_hub")
    errors = need("huggingface_hub.errors")
    if revision is not None:
        with contextlib.suppress(Exception):  # a commit never changes: when all of it is here, ask nobody
            folder = Path(hub.snapshot_download(name, revision=revision, allow_patterns=_FILES, local_files_only=True))
            return Checkpoint(name, folder, revision)
    page = f"https://huggingface.co/{name}"
    try:
        folder = Path(hub.snapshot_download(name, revision=revision, allow_patterns=_FILES))
    except errors.HFValidationError:
        raise ModelError(f"{name}: no such folder, and no hub name (owner/model); check the path") from None
    except errors.GatedRepoError:
        raise ModelError(
            f"{name}: gated; accept its terms at {page}, then run `hf auth login` or set HF_TOKEN"
        ) from None
    except errors.RevisionNotFoundError:
        raise ModelError(f"{name}: the hub has no revision {revision}; take one that {page} lists") from None
    except errors.RepositoryNotFoundError:
        raise ModelError(
            f"{name}: no such folder, and not on the hub or private; check the name, or run `hf auth login`"
        ) from None
    except errors.LocalEntryNotFoundError:
        raise ModelError(
            f"{name}: not in the local cache, and the hub cannot be reached (no network, or HF_HUB_OFFLINE is set); "
            f"connect once, or run `hf download {name}` elsewhere and give its folder"
        ) from None
    except Exception as error:  # whatever else a transfer can raise is for the user to know, in one line
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise ModelError(f"{name}: could not be fetched from the hub ({reason}); try again") from None
    return Checkpoint(name, folder, folder.name)


def settings(checkpoint: Checkpoint) -> dict[str, Any]:
    """The checkpoint's ``config.json``.

    Raises:
        ModelError: the folder is no checkpoint.
    """
    path = checkpoint.folder / "config.json"
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except OSError:
        raise ModelError(
            f"{checkpoint.name}: no checkpoint of transformers (config.json is missing); give the folder that "
            "save_pretrained wrote"
        ) from None
    except ValueError as error:
        raise ModelError(f"{path}: not JSON ({error}); fetch the checkpoint again") from None
    if not isinstance(data, dict):
        raise ModelError(f"{path}: not a model's configuration; fetch the checkpoint again")
    return data


def tensors(checkpoint: Checkpoint) -> Iterator[tuple[str, Any]]:
    """Names and lazily read weights (``handle()`` gives the tensor) of all safetensors files of a checkpoint.

    Raises:
        ModelError: there are none, or one is missing or damaged.
    """
    folder = checkpoint.folder
    index = folder / "model.safetensors.index.json"
    if index.is_file():
        paths = sorted({folder / name for name in json.loads(index.read_text(encoding="utf-8"))["weight_map"].values()})
    else:
        paths = sorted(folder.glob("*.safetensors"))
    if not paths:
        pickled = any(folder.glob("*.bin")) or any(folder.glob("*.pt"))
        why = "its weights are pickled, which could run code" if pickled else "it holds no *.safetensors"
        raise ModelError(f"{checkpoint.name}: {why}; save it with save_pretrained(..., safe_serialization=True)")
    for path in paths:
        try:
            with safetensors.safe_open(path, "pt") as file:
                for name in file.keys():  # noqa: SIM118 the handle is no mapping
                    yield name, lambda name=name, file=file: file.get_tensor(name)
        except (OSError, safetensors.SafetensorError) as error:
            raise ModelError(f"{path}: cannot be read ({error}); fetch the checkpoint again") from None


def excerpt(name: str, weight: Tensor) -> bytes:
    """What a fingerprint reads of a weight: name, shape and first values."""
    values = weight.flatten()[:_SAMPLE].float().numpy().tobytes()
    return f"{name}{tuple(weight.shape)}".encode() + values


def fingerprint(excerpts: dict[str, bytes]) -> str:
    """16 hexadecimal digits that tell checkpoints apart, from the :func:`excerpt` of each weight."""
    return hashlib.sha256(b"".join(excerpts[name] for name in sorted(excerpts))).hexdigest()[:16]
