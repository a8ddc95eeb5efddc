"""Models of google-deepmind/regress-lm: converts a training checkpoint to a full model with the same probabilities.

Its ``.pt`` holds a dictionary with the weights under ``model_state``; :mod:`.checkpoint_reader` reads it. The caller
supplies what it does not hold: the tokenizer and the format of the numbers.

Its text encoder has pre-norm layers with LayerNorm, biases, rotary positions and ReLU, and a SentencePiece vocabulary
or a ``tokenizer.json``. Long texts keep their start, as those models were trained. Its rotary positions turn
neighbouring pairs of a head; ours turn halves, so the rows of the query and key matrices are put in that order when the
weights come in.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import sentencepiece
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from rlm_core.errors import DataError, ModelError
from rlm_core.training.student.network import rotary, rotate

from .checkpoint_reader import read_checkpoint
from .decoder import regress_lm_config
from .encoders.base import TextEncoder, Tokens
from .encoders.pretrained import T5GemmaSettings
from .encoders.t5gemma import T5GemmaEncoder
from .model import FullModel
from .numbers import NumberFormat

_QUERIES = 512
_PRECISIONS = {"float32": torch.float32, "bfloat16": torch.bfloat16}
_NAMES = {"norm1": "norm1", "norm2": "norm2", "out_proj": "out", "linear1": "up", "linear2": "down"}
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


@dataclass(frozen=True, slots=True)
class RegressLmSizes:
    """Sizes of the encoder. ``precision`` (``float32`` or ``bfloat16``) is that of its matrix products."""

    vocabulary: int
    width: int = 512
    layers: int = 2
    heads: int = 8
    hidden: int = 2048
    max_tokens: int = 2048
    precision: str = "float32"

    def __post_init__(self) -> None:
        if self.precision not in _PRECISIONS:
            raise ModelError(f"encoder: precision {self.precision!r}; it must be float32 or bfloat16")
        if self.width % self.heads or self.width // self.heads % 2:
            raise ModelError(
                f"encoder: width {self.width} is not an even multiple of {self.heads} heads; give its heads"
            )


class _Layer(nn.Module):
    """One pre-norm layer; norms and the sum of all layers stay in single precision."""

    def __init__(self, sizes: RegressLmSizes) -> None:
        super().__init__()
        self.heads = sizes.heads
        self.norm1, self.norm2 = nn.LayerNorm(sizes.width), nn.LayerNorm(sizes.width)
        dtype = _PRECISIONS[sizes.precision]
        self.qkv = nn.Linear(sizes.width, 3 * sizes.width, dtype=dtype)
        self.out = nn.Linear(sizes.width, sizes.width, dtype=dtype)
        self.up = nn.Linear(sizes.width, sizes.hidden, dtype=dtype)
        self.down = nn.Linear(sizes.hidden, sizes.width, dtype=dtype)

    def forward(self, x: Tensor, mask: Tensor | None, cosine: Tensor, sine: Tensor) -> Tensor:
        """``(batch, tokens, width)`` in and out; ``mask (batch, 1, 1, tokens)`` is True at real tokens."""
        batch, tokens, width = x.shape
        dtype = self.qkv.weight.dtype
        qkv = self.qkv(self.norm1(x).to(dtype)).view(batch, tokens, 3, self.heads, width // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)  # each (batch, heads, tokens, size)
        q, k = rotate(q, cosine, sine).to(dtype), rotate(k, cosine, sine).to(dtype)
        mixed = _attend(q, k, v, mask)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, tokens, width))
        return x + self.down(F.relu(self.up(self.norm2(x).to(dtype))))  # type: ignore[no-any-return]


class RegressLmEncoder(TextEncoder):
    """The encoder with a tokenizer file: a SentencePiece ``.model`` or a ``tokenizer.json``.

    Raises:
        ModelError: the tokenizer cannot be read or has another vocabulary.
    """

    kind = "regress-lm"

    def __init__(self, sizes: RegressLmSizes, tokenizer: Path) -> None:
        super().__init__()
        self.sizes, self._file = sizes, (f"tokenizer{tokenizer.suffix}", _bytes(tokenizer))
        self._split, size, self.pad_id = _reader(tokenizer, self._file[1])
        if size != sizes.vocabulary:
            raise ModelError(
                f"{tokenizer}: has {size} token ids, the weights have {sizes.vocabulary}; give the tokenizer that the "
                "model was trained with"
            )
        self.width, self.max_tokens = sizes.width, sizes.max_tokens
        self.embed = nn.Embedding(sizes.vocabulary, sizes.width)
        self.layers = nn.ModuleList(_Layer(sizes) for _ in range(sizes.layers))
        self.norm = nn.LayerNorm(sizes.width)
        self.trained = frozenset(name for name, _ in self.named_parameters())
        self._recompute = False

    def tokenize(self, texts: Sequence[str]) -> Tokens:
        """Token ids of the plain text; the end of long texts is cut away."""
        rows = [self._split(text) or [self.pad_id] for text in texts]
        kept = [np.array(row[: self.max_tokens], np.int64) for row in rows]
        return Tokens(kept, [len(row) - len(own) for row, own in zip(rows, kept, strict=True)])

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        """See :meth:`TextEncoder.forward`."""
        x = self.embed(ids)
        cosine, sine = rotary(ids.shape[1], self.width // self.sizes.heads, ids.device)
        keys = None if bool(mask.all()) else mask[:, None, None, :]
        for layer in self.layers:
            if self._recompute and torch.is_grad_enabled():
                x = checkpoint(layer, x, keys, cosine, sine, use_reentrant=False)
            else:
                x = layer(x, keys, cosine, sine)
        normed: Tensor = self.norm(x)
        return normed

    def recompute(self, on: bool) -> None:
        """See :meth:`TextEncoder.recompute`."""
        self._recompute = on

    def to_json(self) -> dict[str, Any]:
        """See :meth:`TextEncoder.to_json`."""
        return {"kind": self.kind, "tokenizer": self._file[0], **asdict(self.sizes)}

    @classmethod
    def from_json(cls, data: dict[str, Any], folder: Path) -> Self:
        """See :meth:`TextEncoder.from_json`."""
        sizes = {name: value for name, value in data.items() if name not in ("kind", "tokenizer")}
        return cls(RegressLmSizes(**sizes), folder / Path(str(data["tokenizer"])).name)

    def save_files(self, folder: Path) -> None:
        """See :meth:`TextEncoder.save_files`."""
        (folder / self._file[0]).write_bytes(self._file[1])

    @classmethod
    def from_state(cls, state: dict[str, Tensor], sizes: RegressLmSizes, tokenizer: Path) -> Self:
        """The encoder with the weights that regress-lm's ``VanillaEncoder`` calls by the names in ``state``.

        ``sizes`` says heads, longest text and precision; the rest is read off the weights.

        Raises:
            ModelError: weights are missing or misshapen, or the tokenizer does not fit.
        """
        try:
            vocabulary, width = state["embedding.weight"].shape
            layers = 1 + max(int(name.split(".")[1]) for name in state if name.startswith("layers."))
            hidden = len(state["layers.0.linear1.weight"])
            sizes = replace(sizes, vocabulary=vocabulary, width=width, layers=layers, hidden=hidden)
            weights = {"embed.weight": state["embedding.weight"]}
            for part in ("weight", "bias"):
                weights[f"norm.{part}"] = state[f"norm.{part}"]
                for layer in range(layers):
                    theirs, ours = f"layers.{layer}.", f"layers.{layer}."
                    for name, own in _NAMES.items():
                        weights[f"{ours}{own}.{part}"] = state[f"{theirs}{name}.{part}"]
                    q, k, v = (state[f"{theirs}{name}_proj.{part}"] for name in "qkv")
                    weights[f"{ours}qkv.{part}"] = torch.cat([_halves(q, sizes.heads), _halves(k, sizes.heads), v])
        except (KeyError, ValueError) as error:
            raise ModelError(
                f"not the weights of a vanilla encoder of regress-lm ({error}); see its encoder type"
            ) from None
        encoder = cls(sizes, tokenizer)
        encoder.load_weights(weights)
        return encoder.eval()


def _attend(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
    """Attention over ``(batch, heads, tokens, size)``.

    On CPUs the fused kernel gains nothing from bfloat16; plain products of one head and some queries at a time, whose
    scores stay in the cache, take less than half as long.
    """
    if q.device.type != "cpu" or q.dtype != torch.bfloat16 or mask is not None:
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    keys = k.transpose(-1, -2) * q.shape[-1] ** -0.5
    heads = zip(q.flatten(0, 1), keys.flatten(0, 1), v.flatten(0, 1), strict=True)
    rows = [(part @ key).softmax(-1) @ value for query, key, value in heads for part in query.split(_QUERIES)]
    return torch.cat(rows).view(q.shape)


def _halves(rows: Tensor, heads: int) -> Tensor:
    """Rows of a query or key matrix, in each head the even ones first, then the odd ones."""
    turned: Tensor = rows.unflatten(0, (heads, -1, 2)).transpose(1, 2).flatten(0, 2)
    return turned


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ModelError(f"{path}: cannot be read ({error.strerror}); give a .model or tokenizer.json file") from None


def _reader(path: Path, content: bytes) -> tuple[Callable[[str], list[int]], int, int]:
    """Text -> ids, the number of ids, and the id of padding."""
    advice = "give a SentencePiece .model or a tokenizer.json"
    if path.suffix == ".model":
        try:
            model = sentencepiece.SentencePieceProcessor(model_proto=content)
        except (RuntimeError, OSError):
            raise ModelError(f"{path}: not a SentencePiece model; {advice}") from None
        return lambda text: list(model.EncodeAsIds(text)), int(model.GetPieceSize()), max(int(model.pad_id()), 0)
    try:
        import tokenizers
    except ImportError:
        raise ModelError(f"{path}: needs the package tokenizers; run pip install '.[train]'") from None
    try:
        fast = tokenizers.Tokenizer.from_str(content.decode())
    except Exception as error:  # the library raises nothing narrower
        raise ModelError(f"{path}: not a tokenizer.json ({error}); {advice}") from None
    fast.no_truncation()
    fast.no_padding()
    pad = fast.token_to_id("<pad>")
    return lambda text: list(fast.encode(text).ids), fast.get_vocab_size(), 0 if pad is None else pad


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
