"""Models of google-deepmind/regress-lm: converts a training checkpoint to a full model with the same probabilities.

Its ``.pt`` holds a dictionary with the weights under ``model_state``; :mod:`.checkpoint_reader` reads it. The caller
supplies what it does not hold: the tokenizer and the format of the numbers.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from torch import Tensor

from rlm_core.errors import DataError, ModelError

from .checkpoint_reader import read_checkpoint
from .decoder import regress_lm_config
from .encoders.base import TextEncoder
from .encoders.pretrained import T5GemmaSettings
from .encoders.t5gemma import T5GemmaEncoder
from .model import FullModel
from .numbers import NumberFormat
from .regress_lm_encoder import RegressLmEncoder, RegressLmSizes

# In the order in which a value is looked up: NaN is the special token NAN; INVALID can only be given by name.
SPECIAL = (("NAN", "nan"), ("INF", "inf"), ("NINF", "-inf"), ("INVALID", "nan"))
_HEADS = 8
# Parts of T5Gemma 2 for images; their layers have the names of those of the text encoder.
_IMAGES = re.compile(r"(^|\.)(vision_tower|multi_modal_projector)\.")
_DECODER = {
    "self_attn.in_proj_": "self_qkv.",
    "self_attn.out_proj.": "self_out.",
    "multihead_attn.out_proj.": "cross_out.",
    "linear1.": "up.",
    "linear2.": "down.",
    "norm1.": "norm1.",
    "norm2.": "norm2.",
    "norm3.": "norm3.",
}


def ieee(
    base: int = 10,
    exponent_digits: int = 1,
    mantissa_digits: int = 4,
    special: tuple[tuple[str, str], ...] = (),
    separator: bool = False,
) -> NumberFormat:
    """Its ``IEEEFloatTokenizer``; ``special`` tokens as :data:`SPECIAL`, ``separator`` for ``AppendPadTokenizer``."""
    return NumberFormat(
        order="exponent-first",
        base=base,
        mantissa_digits=mantissa_digits,
        exponent_digits=exponent_digits,
        unique=False,
        rounding="down",
        special=special,
        separator=separator,
    )


def p10(
    mantissa_digits: int = 4,
    exponent_range: int = 10,
    special: tuple[tuple[str, str], ...] = (),
    separator: bool = False,
) -> NumberFormat:
    """Its ``P10Tokenizer``; the other settings as for :func:`ieee`."""
    return NumberFormat(
        order="exponent-last",
        mantissa_digits=mantissa_digits,
        exponent_range=exponent_range,
        unique=False,
        special=special,
        separator=separator,
    )


def special_tokens(names: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Return the special tokens of these names, as :func:`ieee` and :func:`p10` take them.

    Raises:
        DataError: regress-lm has no special token of a name.
    """
    wanted = {name.upper() for name in names}
    known = [name for name, _ in SPECIAL]
    if unknown := sorted(wanted.difference(known)):
        raise DataError(f"--special {unknown[0]}: unknown; give {', '.join(known)}")
    return tuple(token for token in SPECIAL if token[0] in wanted)


def t5gemma_encoder(base: str, max_tokens: int) -> T5GemmaEncoder:
    """Return the encoder that :func:`convert` takes for a T5Gemma model, as regress-lm runs it.

    Raises:
        ModelError: the base cannot be had, does not fit this transformers, or reads fewer tokens.
    """
    return T5GemmaEncoder(T5GemmaSettings(base, mode="full", max_tokens=max_tokens, regress_lm=True))


def convert(
    path: Path,
    numbers: NumberFormat,
    tokenizer: Path | None = None,
    encoder: T5GemmaEncoder | None = None,
    max_tokens: int = 2048,
    heads: int = _HEADS,
    precision: str = "float32",
) -> FullModel:
    """A regress-lm checkpoint as a full model in evaluation mode.

    Args:
        path: the ``.pt`` file.
        numbers: :func:`ieee` or :func:`p10` with the settings of its training.
        tokenizer: of a vanilla encoder, a SentencePiece ``.model`` or a ``tokenizer.json``.
        encoder: of a T5Gemma model instead: its base from :func:`t5gemma_encoder`; takes the checkpoint's weights.
        max_tokens: of a vanilla encoder, the longest text.
        heads: of a vanilla encoder.
        precision: of a vanilla encoder's matrix products, ``float32`` or ``bfloat16``.

    Raises:
        ModelError: the checkpoint cannot be read, or the settings do not fit it.
    """
    state = read_checkpoint(path)
    theirs = {name.removeprefix("encoder."): weight for name, weight in state.items() if name.startswith("encoder.")}
    text_encoder: TextEncoder
    if encoder is not None:
        _load_t5gemma(path, encoder, theirs)
        text_encoder = encoder
    elif tokenizer is not None:
        try:
            sizes = RegressLmSizes(1, heads=heads, width=2 * heads, max_tokens=max_tokens, precision=precision)
            text_encoder = RegressLmEncoder.from_state(theirs, sizes, tokenizer)
        except ModelError as error:
            raise ModelError(f"{path}: {error}") from None
    else:
        raise ModelError(f"{path}: does not hold its tokenizer; give it, or the base model of a T5Gemma encoder")
    vocabulary, width = state["tgt_tok_emb.weight"].shape
    if vocabulary != len(numbers.names) or text_encoder.width != width:
        raise ModelError(
            f"{path}: has {vocabulary} number tokens, the number format {len(numbers.names)}; give the order, base, "
            "digits and special values of its training"
        )
    layers = 1 + max(int(name.split(".")[2]) for name in state if name.startswith("decoder.layers."))
    places = int(state["places"]) - 1
    objectives, left = divmod(places, numbers.positions)
    if not objectives or left:
        raise ModelError(
            f"{path}: has {places} places for number tokens, the format takes {numbers.positions} a number; give "
            "the digits of its training"
        )
    model = FullModel(regress_lm_config(numbers, width, layers, objectives), text_encoder)
    try:
        model.decoder.load_state_dict(_decoder(state, width))
    except (RuntimeError, KeyError) as error:
        raise ModelError(f"{path}: not regress-lm's decoder ({str(error).splitlines()[0]})") from None
    return model.eval()


def _decoder(state: dict[str, Tensor], width: int) -> dict[str, Tensor]:
    """The decoder's weights by our names."""
    found = {
        "embed.weight": state["tgt_tok_emb.weight"],
        "logits.weight": state["generator.weight"],
        "logits.bias": state["generator.bias"],
    }
    for name, weight in state.items():
        if not name.startswith("decoder.layers."):
            continue
        _, _, layer, rest = name.split(".", 3)
        own = f"layers.{layer}."
        if rest.startswith("multihead_attn.in_proj_"):
            part = rest.removeprefix("multihead_attn.in_proj_")
            found[f"{own}cross_q.{part}"], found[f"{own}cross_kv.{part}"] = weight.split([width, 2 * width])
        else:
            prefix = next((prefix for prefix in _DECODER if rest.startswith(prefix)), "")
            found[own + rest.replace(prefix, _DECODER.get(prefix, ""), 1)] = weight
    return found


def _load_t5gemma(path: Path, encoder: T5GemmaEncoder, theirs: dict[str, Tensor]) -> None:
    """Give a T5Gemma encoder the checkpoint's weights, whatever their modules were nested in."""
    nested = re.compile(r"^(?:\w+\.)*?(?=(?:layers|embed_tokens|norm)\.)")
    found = {nested.sub("", name): weight for name, weight in theirs.items() if not _IMAGES.search(name)}
    own = {name: nested.sub("", name) for name in encoder.weights()}
    if not own:
        raise ModelError(f"{path}: brings all weights of its encoder; load the base model in mode full")
    missing = [name for name, short in own.items() if short not in found]
    if missing:
        raise ModelError(f"{path}: has no `{missing[0]}`; give the T5Gemma model that it was trained from")
    try:
        # regress-lm gives the embedding as many rows as its tokenizer has ids.
        encoder.resize_vocabulary(len(found["embed_tokens.weight"]))
        encoder.load_weights({name: found[short] for name, short in own.items()})
    except ModelError as error:
        raise ModelError(f"{path}: {error}") from None
