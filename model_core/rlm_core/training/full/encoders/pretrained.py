"""Pretrained encoders into modules of transformers: configuration, all weights by name, tokenizer, adapters.

Modules are built by their constructors and the weights put in by name, every one of them, instead of by transformers'
``from_pretrained``. From version 5 on, that one builds on the meta device and hands out uninitialised memory for
whatever the checkpoint does not hold: buffers such as rotary frequencies and the embedding scale, unless the class
restores them, which the code that is published beside older models does not (transformers pull requests 42309, 42941,
45096; issue 45902). It also fills weights whose names moved with random values and only warns: ``T5Gemma2TextEncoder``
finds none of its weights in a full T5Gemma 2 checkpoint. Either way the encoder runs and says nothing about its text,
so :func:`check_signal` also looks at what comes out.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from rlm_core.errors import ModelError

from . import hub
from .base import TextEncoder, encode

if TYPE_CHECKING:
    from .t5gemma import T5GemmaSettings

_ADAPTED = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
# An encoder's weights inside a whole model, as the releases of transformers have named them.
_PREFIX = re.compile(r"^(?:model\.)?(?:encoder\.)?(?:text_model\.)?(?=(?:layers|embed_tokens|norm)\.)")
_PROBES = ("def first(x):\n    return x + 1\n", "while queue and 3 < limit: total *= queue.pop()")
_LEAST_SIGNAL = 1e-3


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
    transformers: Any, checkpoint: hub.Checkpoint, data: dict[str, Any], settings: T5GemmaSettings
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
        attention = "flash_attention_2" if flash else "eager" if capped else "sdpa"
    accelerate = hub.need("accelerate")
    try:
        with accelerate.init_empty_weights(include_buffers=False):
            # Buffers in full precision, whatever the checkpoint was stored in.
            return config, build._from_config(part, dtype=torch.float32, attn_implementation=attention, **extra)
    except (ValueError, ImportError) as error:
        reason = str(error).strip().splitlines()[0]
        cure = "fetch the checkpoint again" if settings.attention == "auto" else "set `attention` to auto"
        raise ModelError(f"{checkpoint.name}: {reason}; {cure}") from None


def weights(
    checkpoint: hub.Checkpoint, module: nn.Module, dtype: torch.dtype, version: str
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
    for name, read in hub.tensors(checkpoint):
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
        excerpts[short] = hub.excerpt(short, weight)
    missing = sorted(own.keys() - found.keys())
    if missing or strange:
        what = f"{len(missing)} weights are missing (`{missing[0]}`)" if missing else f"`{strange[0]}` has no place"
        raise ModelError(
            f"{checkpoint.name}: {what} in the encoder of transformers {version}, so it would say nothing about its "
            "text; install the release that saved the checkpoint, or save it again with this one"
        )
    return found, hub.fingerprint(excerpts)


def tokenizer(transformers: Any, checkpoint: hub.Checkpoint) -> Any:
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
    """Put adapters beside all matrices of the layers; only they are trained."""
    peft = hub.need("peft")
    config = peft.LoraConfig(
        r=settings.rank, lora_alpha=settings.alpha, lora_dropout=settings.dropout, target_modules=_ADAPTED
    )
    peft.inject_adapter_in_model(config, module)
    for name, weight in module.named_parameters():
        weight.requires_grad_("lora_" in name)
        if weight.requires_grad:
            weight.data = weight.data.float()
