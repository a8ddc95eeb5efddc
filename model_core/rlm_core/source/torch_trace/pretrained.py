"""Published transformers that code loads by name from a model hub, by the sizes in their papers and configurations.

The source of such a module tells a name alone; the sizes of the well-known ones are facts that a reader would look up.
"""

from __future__ import annotations

from dataclasses import dataclass

from .layers import block
from .products import matmul
from .recorder import Recorder
from .values import Layer, Tensor, Value


@dataclass(frozen=True, slots=True)
class Sizes:
    """Layers of the encoder and decoder together, widths, heads and vocabulary."""

    layers: int
    width: int
    inner: int
    heads: int
    vocabulary: int


# name | layers | width | feed-forward | heads | vocabulary
_TABLE = """
gpt2|12|768|3072|12|50257
gpt2-medium|24|1024|4096|16|50257
gpt2-large|36|1280|5120|20|50257
gpt2-xl|48|1600|6400|25|50257
distilgpt2|6|768|3072|12|50257
gpt-neo-125m|12|768|3072|12|50257
gpt-neo-1.3b|24|2048|8192|16|50257
gpt-neo-2.7b|32|2560|10240|20|50257
opt-125m|12|768|3072|12|50272
opt-350m|24|1024|4096|16|50272
opt-1.3b|24|2048|8192|32|50272
opt-2.7b|32|2560|10240|32|50272
opt-6.7b|32|4096|16384|32|50272
bart-base|12|768|3072|12|50265
bart-large|24|1024|4096|16|50265
bert-base-uncased|12|768|3072|12|30522
bert-large-uncased|24|1024|4096|16|30522
distilbert-base-uncased|6|768|3072|12|30522
roberta-base|12|768|3072|12|50265
roberta-large|24|1024|4096|16|50265
bigbird-roberta-base|12|768|3072|12|50358
electra-small-discriminator|12|256|1024|4|30522
electra-base-discriminator|12|768|3072|12|30522
reformer-enwik8|12|1024|4096|8|258
llama-2-7b-hf|32|4096|11008|32|32000
mistral-7b-v0.1|32|4096|14336|32|32000
"""
_SIZES = {
    name: Sizes(*(int(size) for size in sizes))
    for name, *sizes in (line.split("|") for line in _TABLE.strip().splitlines())
}


def load(name: str) -> Layer:
    """The model of a name such as ``facebook/opt-1.3b``; raises KeyError for one that is not in the table."""
    sizes = _SIZES[name.rpartition("/")[2].lower()]
    width, inner = sizes.width, sizes.inner
    parts = {"attention": (4, width, width), "up": (inner, width), "down": (width, inner)}
    shapes = {f"{layer}.{part}": shape for layer in range(sizes.layers) for part, shape in parts.items()}
    weights = {key: Tensor(shape, parameter=True) for key, shape in shapes.items()}
    weights["embedding"] = Tensor((sizes.vocabulary, width), parameter=True)
    return Layer("Pretrained", {"sizes": sizes}, weights)


def call(recorder: Recorder, model: Layer, tokens: Tensor) -> Value:
    """Token numbers (batch, length) -> logits (batch, length, vocabulary)."""
    sizes: Sizes = model.options["sizes"]
    table = model.weights["embedding"]
    x = recorder.add("embedding", "gather", [tokens], (*tokens.shape, sizes.width), dtype=table.dtype)
    options = {"nhead": sizes.heads, "dim_feedforward": sizes.inner, "batch_first": True}
    for _ in range(sizes.layers):
        x = block(recorder, options, x, ())
    return matmul(recorder, x, Tensor((sizes.width, sizes.vocabulary), table.dtype), "linear")
