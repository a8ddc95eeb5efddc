"""HAT transformers (arXiv 2005.14187, section 3): the averages of a label row -> an encoder and decoder as one network.

The labels tell an architecture by averages over its layers only, so the network is the one that is as even as they
allow: every layer has the average feed-forward width and the number of heads nearest to the average; how many encoder
layers a decoder layer attends to (1 to 3) is spread so that the average is exact. The decoder is written for all
target positions at once, as it is exported; the measurement ran it position by position with a beam of five.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import onnx
from onnx import TensorProto
from rlm_core.errors import DataError

from .writer import Tensor, Writer

_QKV = 512  # width of queries, keys and values, whatever the width of the layer
_HEADS = (1, 2, 4, 8, 16)
_OPSET = 23  # the first with the operator Attention


@dataclass(frozen=True, slots=True)
class Task:
    """Lengths and vocabularies; ``shared``: the output layer is the transposed target embedding."""

    length: int
    source_words: int
    target_words: int
    shared: bool


# Sentence lengths and options are those of the origin's latency script. Vocabularies: WMT'14 En-De is fixed there;
# IWSLT'14 and WMT'14 En-Fr are fairseq's; WMT'19 En-De is the paper's 49.6 thousand.
TASKS = {
    "iwslt14deen": Task(23, 8848, 6632, shared=False),
    "wmt14ende": Task(30, 32768, 32768, shared=True),
    "wmt14enfr": Task(30, 44512, 44512, shared=True),
    "wmt19ende": Task(30, 49600, 49600, shared=True),
}


@dataclass(frozen=True, slots=True)
class Sizes:
    """An architecture: widths, heads, and for each decoder layer how many encoder layers it attends to."""

    encoder_width: int
    encoder_layers: int
    encoder_hidden: int
    encoder_heads: int
    decoder_width: int
    decoder_hidden: int
    decoder_heads: int
    cross_heads: int
    attended: tuple[int, ...]

    def __str__(self) -> str:
        return (
            f"e{self.encoder_width}x{self.encoder_layers}f{self.encoder_hidden}h{self.encoder_heads} "
            f"d{self.decoder_width}f{self.decoder_hidden}h{self.decoder_heads}c{self.cross_heads}"
            f"a{''.join(map(str, self.attended))}"
        )


def parse(row: Mapping[str, str]) -> Sizes:
    """The columns of a label row -> the evenest architecture with those averages.

    Raises:
        DataError: a column is missing or is not a number.
    """
    try:
        layers = round(float(row["decoder_layer_num"]))
        total = round(layers * float(row["decoder_arbitrary_ende_attn_avg"]))
        share, extra = divmod(total, layers)
        return Sizes(
            encoder_width=round(float(row["encoder_embed_dim"])),
            encoder_layers=round(float(row["encoder_layer_num"])),
            encoder_hidden=round(float(row["encoder_ffn_embed_dim_avg"])),
            encoder_heads=_nearest(row["encoder_self_attention_heads_avg"]),
            decoder_width=round(float(row["decoder_embed_dim"])),
            decoder_hidden=round(float(row["decoder_ffn_embed_dim_avg"])),
            decoder_heads=_nearest(row["decoder_self_attention_heads_avg"]),
            cross_heads=_nearest(row["decoder_ende_attention_heads_avg"]),
            attended=(share + 1,) * extra + (share,) * (layers - extra),
        )
    except (KeyError, ValueError, ZeroDivisionError) as error:
        raise DataError(f"HAT row: {error} is missing or not a number") from None


def _nearest(average: str) -> int:
    return min(_HEADS, key=lambda heads: abs(math.log(heads / float(average))))


def key(task: str, sizes: Sizes) -> str:
    """Task and sizes in short."""
    return f"{task} {sizes}"


def build(task: str, sizes: Sizes) -> onnx.ModelProto:
    """The network of an architecture for one sentence of the task's length.

    Raises:
        DataError: the task is unknown.
    """
    if task not in TASKS:
        raise DataError(f"{task!r}: not a task of HAT; choose from {', '.join(TASKS)}")
    what = TASKS[task]
    w = Writer("hat", opset=_OPSET)
    x, _ = _embedded(w, "source", what.source_words, what.length, sizes.encoder_width)
    memory: list[Tensor] = []
    for _ in range(sizes.encoder_layers):
        x = _residual_norm(w, x, _self_attention(w, x, sizes.encoder_heads, causal=False))
        x = _residual_norm(w, x, _feed_forward(w, x, sizes.encoder_hidden))
        memory.append(x)
    y, embedding = _embedded(w, "target", what.target_words, what.length, sizes.decoder_width)
    for attended in sizes.attended:
        y = _residual_norm(w, y, _self_attention(w, y, sizes.decoder_heads, causal=True))
        y = _residual_norm(w, y, _cross_attention(w, y, _last(w, memory, attended), sizes.cross_heads))
        y = _residual_norm(w, y, _feed_forward(w, y, sizes.decoder_hidden))
    words = w.transpose(embedding, 1, 0) if what.shared else w.weight(sizes.decoder_width, what.target_words)
    return w.model(w.op("MatMul", [y, words], (*y.shape[:2], what.target_words)))


def _embedded(w: Writer, name: str, words: int, length: int, width: int) -> tuple[Tensor, Tensor]:
    """Scaled word vectors plus positions ``(1, length, width)``, and the embedding ``(words, width)``."""
    tokens = w.input(name, (1, length), TensorProto.INT64)
    embedding = w.weight(words, width)
    x = w.op("Gather", [embedding, tokens], (1, length, width), axis=0)
    x = w.multiply(x, w.constant(np.array(math.sqrt(width), np.float32)))
    return w.add(x, w.weight(length, width)), embedding


def _linear(w: Writer, x: Tensor, width: int) -> Tensor:
    y = w.op("MatMul", [x, w.weight(x.shape[-1], width)], (*x.shape[:-1], width))
    return w.add(y, w.weight(width))


def _residual_norm(w: Writer, x: Tensor, y: Tensor) -> Tensor:
    width = x.shape[-1]
    return w.op("LayerNormalization", [w.add(x, y), w.weight(width), w.weight(width)], x.shape, axis=-1)


def _feed_forward(w: Writer, x: Tensor, hidden: int) -> Tensor:
    return _linear(w, w.relu(_linear(w, x, hidden)), x.shape[-1])


def _last(w: Writer, memory: Sequence[Tensor], layers: int) -> Tensor:
    """The outputs of the last encoder layers, one after another along the sentence."""
    if layers == 1:
        return memory[-1]
    chosen = list(memory[: -layers - 1 : -1])
    batch, length, width = chosen[0].shape
    return w.op("Concat", chosen, (batch, length * layers, width), axis=1)


def _self_attention(w: Writer, x: Tensor, heads: int, *, causal: bool) -> Tensor:
    q, k, v = (_linear(w, x, _QKV) for _ in range(3))
    return _attention(w, x.shape[-1], q, k, v, heads, is_causal=int(causal))


def _cross_attention(w: Writer, x: Tensor, memory: Tensor, heads: int) -> Tensor:
    q, k, v = _linear(w, x, _QKV), _linear(w, memory, _QKV), _linear(w, memory, _QKV)
    return _attention(w, x.shape[-1], q, k, v, heads)


def _attention(w: Writer, width: int, q: Tensor, k: Tensor, v: Tensor, heads: int, **more: int) -> Tensor:
    """Scaled dot-product attention of ``(1, length, 512)`` queries, keys and values, mapped back to ``width``."""
    mixed = w.op("Attention", [q, k, v], q.shape, q_num_heads=heads, kv_num_heads=heads, **more)
    return _linear(w, mixed, width)
