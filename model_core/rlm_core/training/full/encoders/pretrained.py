"""Pretrained checkpoints, by hub name or folder, as encoder modules of transformers.

Only JSON, SentencePiece and safetensors files are fetched and read: no pickle and no code from the model's repository.
Every failure is one line that says what to do.

Modules are built by their constructors and the weights put in by name, every one of them, instead of by transformers'
``from_pretrained``. From version 5 on, that one builds on the meta device and hands out uninitialised memory for
whatever the checkpoint does not hold: buffers such as rotary frequencies and the embedding scale, unless the class
restores them, which the code published with older models does not do (transformers pull requests 42309, 42941,
45096; issue 45902). It also fills weights whose names moved with random values and only warns: ``T5Gemma2TextEncoder``
finds none of its weights in a full T5Gemma 2 checkpoint. Either way the encoder runs and says nothing about its text,
so :func:`check_signal` also looks at what comes out.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import safetensors
import torch
from torch import Tensor, nn

from rlm_core.errors import ModelError

from ..hub import EXTRA, one_line_errors
from .base import TextEncoder, encode

_FILES = ["*.json", "*.safetensors", "*.model"]
MODES = ("frozen", "lora", "full")
PRECISIONS = {"float32": torch.float32, "bfloat16": torch.bfloat16}
_SAMPLE = 256  # values of a tensor that a fingerprint reads
_ADAPTED = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
# An encoder's weights inside a whole model, as the releases of transformers have named them.
_PREFIX = re.compile(r"^(?:model\.)?(?:encoder\.)?(?:text_model\.)?(?=(?:layers|embed_tokens|norm)\.)")
_PROBES = ("def first(x):\n    return x + 1\n", "while queue and 3 < limit: total *= queue.pop()")
_LEAST_SIGNAL = 1e-3


@dataclass(frozen=True, slots=True)
class T5GemmaSettings:
    """Which pretrained encoder, and what of it is trained.

    Attributes:
        base: hub name or folder.
        revision: commit on the hub; None: the newest, which is then kept.
        mode: one of :data:`MODES`.
        max_tokens: longest text.
        precision: ``float32``, ``bfloat16`` or ``auto``: bfloat16 on a GPU that has it, unless all is trained.
        attention: ``auto`` or a name that transformers knows. T5Gemma caps its attention scores, which the fused
            kernel of PyTorch cannot: there ``auto`` is FlashAttention 2 where installed, else plain matrix products.
        rank, alpha, dropout: of the adapters.
        fingerprint: of the base's weights, once loaded.
        regress_lm: run as regress-lm does: attention scores are not capped, and long texts keep their start.

    Raises:
        ModelError: a setting has no such value.
    """

    base: str
    revision: str | None = None
    mode: str = "lora"
    max_tokens: int = 2048
    precision: str = "auto"
    attention: str = "auto"
    rank: int = 16
    alpha: float = 32.0
    dropout: float = 0.05
    fingerprint: str = ""
    regress_lm: bool = False

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            raise ModelError(f"encoder: mode is {self.mode!r}; it must be one of {', '.join(MODES)}")
        if self.precision not in ("auto", *PRECISIONS):
            raise ModelError(f"encoder: precision is {self.precision!r}; it must be auto, float32 or bfloat16")
        if self.max_tokens < 1 or self.rank < 1:
            raise ModelError("encoder: max_tokens and rank must be at least 1")


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


def find_checkpoint(name: str, revision: str | None = None) -> Checkpoint:
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
    if revision is not None:
        with contextlib.suppress(Exception):  # a commit never changes: if all of it is here, the hub is not needed
            folder = Path(hub.snapshot_download(name, revision=revision, allow_patterns=_FILES, local_files_only=True))
            return Checkpoint(name, folder, revision)
    with one_line_errors(name, revision, folder=True):
        folder = Path(hub.snapshot_download(name, revision=revision, allow_patterns=_FILES))
    return Checkpoint(name, folder, folder.name)


def read_config(checkpoint: Checkpoint) -> dict[str, Any]:
    """The checkpoint's ``config.json``.

    Raises:
        ModelError: the folder is not a checkpoint.
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
                for name in file.keys():  # noqa: SIM118 the handle is not a mapping
                    yield name, lambda name=name, file=file: file.get_tensor(name)
        except (OSError, safetensors.SafetensorError) as error:
            raise ModelError(f"{path}: cannot be read ({error}); fetch the checkpoint again") from None


def excerpt(name: str, weight: Tensor) -> bytes:
    """Return the part of a weight that a fingerprint covers: name, shape and first values."""
    values = weight.flatten()[:_SAMPLE].float().numpy().tobytes()
    return f"{name}{tuple(weight.shape)}".encode() + values


def fingerprint(excerpts: dict[str, bytes]) -> str:
    """16 hexadecimal digits that identify a checkpoint, from the :func:`excerpt` of each weight."""
    return hashlib.sha256(b"".join(excerpts[name] for name in sorted(excerpts))).hexdigest()[:16]


def check_signal(encoder: TextEncoder, where: str) -> None:
    """Make sure that encodings depend on the text.

    Raises:
        ModelError: a buffer is unusable, or two different programs are encoded alike.
    """
    way_out = "use a release of transformers that knows this model natively (4.57 or later), and fetch the model again"
    for name, buffer in encoder.named_buffers():
        if buffer.is_floating_point() and not (bool(buffer.isfinite().all()) and bool(buffer.any())):
            raise ModelError(f"{where}: `{name}` was not initialised; {way_out}")
    tokens = encoder.tokenize(_PROBES)
    if np.array_equal(tokens.ids[0], tokens.ids[1]):
        raise ModelError(f"{where}: the tokenizer gives different texts the same tokens; fetch the tokenizer's files")
    with torch.no_grad():
        first, second = (states.mean(0) for states in encode(encoder, tokens.ids))
    signal = float((first - second).norm() / torch.maximum(first.norm(), second.norm()))
    if not signal > _LEAST_SIGNAL:  # nor may it be NaN
        raise ModelError(f"{where}: encodings do not depend on the text (difference {signal:.1e}); {way_out}")


def empty(
    transformers: Any, checkpoint: Checkpoint, data: dict[str, Any], settings: T5GemmaSettings
) -> tuple[Any, Any]:
    """The whole model's configuration, and the encoder with real buffers but without memory for its weights.

    Raises:
        ModelError: the checkpoint holds no T5Gemma, or this transformers does not know it.
    """
    kind = data.get("model_type")
    if kind not in ("t5gemma", "t5gemma2"):
        if "auto_map" in data:
            raise ModelError(
                f"{checkpoint.name}: needs code from its own repository, which is never run here; give the T5Gemma "
                "checkpoint that it was trained from"
            )
        raise ModelError(f"{checkpoint.name}: holds a {kind} model; give a T5Gemma or T5Gemma 2 checkpoint")
    old = ModelError(
        f"{checkpoint.name}: transformers {transformers.__version__} has no text encoder for {kind}; run "
        "pip install -U transformers"
    )
    try:
        config = transformers.AutoConfig.from_pretrained(checkpoint.folder, trust_remote_code=False)
    except Exception as error:  # the library raises nearly anything when a value is wrong
        if kind not in transformers.CONFIG_MAPPING:
            raise old from None
        reason = " ".join(str(error).split())
        raise ModelError(f"{checkpoint.folder / 'config.json'}: {reason}; fetch the checkpoint again") from None
    try:
        if kind == "t5gemma":
            config.is_encoder_decoder = False
            if settings.regress_lm:
                config.encoder.attn_logit_softcapping = config.decoder.attn_logit_softcapping = None
            build, part, extra = transformers.T5GemmaEncoderModel, config, {}
            capped = config.encoder.attn_logit_softcapping is not None
        else:
            # The class of the whole encoder would build a vision tower.
            from transformers.models.t5gemma2.modeling_t5gemma2 import T5Gemma2TextEncoder

            build, part = T5Gemma2TextEncoder, config.encoder.text_config
            extra, capped = {"eoi_token_index": config.eoi_token_index}, False
    except (ImportError, AttributeError):
        raise old from None
    attention = settings.attention
    if attention == "auto":
        flash = capped and torch.cuda.is_available() and transformers.utils.is_flash_attn_2_available()
        # Releases that cap in plain products alone do not offer the fused kernel, even where nothing is capped.
        fused = not capped and build._supports_sdpa
        attention = "flash_attention_2" if flash else "sdpa" if fused else "eager"
    accelerate = need("accelerate")
    try:
        with accelerate.init_empty_weights(include_buffers=False):
            # Buffers in full precision, whatever the checkpoint was stored in.
            return config, build._from_config(part, dtype=torch.float32, attn_implementation=attention, **extra)
    except (ValueError, ImportError) as error:
        reason = str(error).strip().splitlines()[0]
        cure = "fetch the checkpoint again" if settings.attention == "auto" else "set `attention` to auto"
        raise ModelError(f"{checkpoint.name}: {reason}; {cure}") from None


def weights(
    checkpoint: Checkpoint, module: nn.Module, dtype: torch.dtype, version: str
) -> tuple[dict[str, Tensor], str]:
    """The encoder's weights out of a checkpoint of the whole model, by the module's names, and their fingerprint.

    Raises:
        ModelError: the module would be left without a weight, or a weight without a place.
    """
    own = dict(module.named_parameters())
    # The module's own names may begin with the part's name too.
    names = {_PREFIX.sub("", name): name for name in own}
    found: dict[str, Tensor] = {}
    excerpts: dict[str, bytes] = {}
    strange: list[str] = []
    for name, read in tensors(checkpoint):
        short = _PREFIX.sub("", name)
        if not short.startswith(("layers.", "embed_tokens.", "norm.")):
            continue
        if short not in names:
            strange.append(name)
            continue
        weight = read()
        if weight.shape != own[names[short]].shape:
            raise ModelError(
                f"{checkpoint.name}: `{name}` has the shape {tuple(weight.shape)}, config.json says "
                f"{tuple(own[names[short]].shape)}; fetch the checkpoint again"
            )
        found[names[short]] = weight.to(dtype)
        excerpts[short] = excerpt(short, weight)
    missing = sorted(own.keys() - found.keys())
    if missing or strange:
        what = f"{len(missing)} weights are missing (`{missing[0]}`)" if missing else f"`{strange[0]}` has no place"
        raise ModelError(
            f"{checkpoint.name}: {what} in the encoder of transformers {version}, so its vectors would not depend on "
            "the text; install the release that saved the checkpoint, or save it again with this one"
        )
    return found, fingerprint(excerpts)


def tokenizer(transformers: Any, checkpoint: Checkpoint) -> Any:
    """The checkpoint's tokenizer.

    Raises:
        ModelError: files are missing.
    """
    try:
        return transformers.AutoTokenizer.from_pretrained(
            checkpoint.folder, trust_remote_code=False, local_files_only=True
        )
    except Exception as error:  # the library raises nearly anything when files are missing
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise ModelError(f"{checkpoint.name}: the tokenizer cannot be read ({reason}); fetch its files too") from None


def adapt(module: nn.Module, settings: T5GemmaSettings) -> None:
    """Add adapters to all matrices of the layers; only the adapters are trained."""
    peft = need("peft")
    config = peft.LoraConfig(
        r=settings.rank, lora_alpha=settings.alpha, lora_dropout=settings.dropout, target_modules=_ADAPTED
    )
    peft.inject_adapter_in_model(config, module)
    for name, weight in module.named_parameters():
        weight.requires_grad_("lora_" in name)
        if weight.requires_grad:
            weight.data = weight.data.float()
