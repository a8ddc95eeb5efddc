"""Layers of ``torch.nn`` and pretrained transformers: their options, weights, and the operations of a call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ..concrete.values import UNKNOWN, Named, Value
from .functions import FUNCTIONS, pointwise, tensor
from .products import attention, matmul, plain_attention, recurrent
from .recorder import Recorder
from .shaping import viewed
from .values import Shape, Tensor, TorchLayer, dtype_of, tensors_in
from .windows import convolve, spread

CONTAINERS = frozenset({"Sequential", "ModuleList", "ModuleDict", "ParameterList", "ParameterDict"})

_CONV = "in_channels out_channels kernel_size stride padding"
_POOL = "kernel_size stride padding"
_RNN = "input_size hidden_size num_layers bias batch_first dropout bidirectional"
_ENCODER = "d_model nhead dim_feedforward dropout activation layer_norm_eps batch_first norm_first"
# The order of positional options of the layers that carry weights or sizes.
SIGNATURES: dict[str, str] = {
    "Linear": "in_features out_features bias", "LazyLinear": "out_features bias",
    "Bilinear": "in1_features in2_features out_features bias", "Embedding": "num_embeddings embedding_dim padding_idx",
    **{f"Conv{rank}d": f"{_CONV} dilation groups bias padding_mode" for rank in (1, 2, 3)},
    **{f"ConvTranspose{rank}d": f"{_CONV} output_padding groups bias dilation" for rank in (1, 2, 3)},
    **{f"BatchNorm{rank}d": "num_features eps momentum affine track_running_stats" for rank in (1, 2, 3)},
    **{f"InstanceNorm{rank}d": "num_features eps momentum affine track_running_stats" for rank in (1, 2, 3)},
    "SyncBatchNorm": "num_features eps momentum affine", "GroupNorm": "num_groups num_channels eps affine",
    "LayerNorm": "normalized_shape eps elementwise_affine bias", "RMSNorm": "normalized_shape eps elementwise_affine",
    **{f"MaxPool{rank}d": f"{_POOL} dilation return_indices ceil_mode" for rank in (1, 2, 3)},
    **{f"AvgPool{rank}d": f"{_POOL} ceil_mode count_include_pad" for rank in (1, 2, 3)},
    **{f"Adaptive{kind}Pool{rank}d": "output_size" for rank in (1, 2, 3) for kind in ("Avg", "Max")},
    "RNN": _RNN, "LSTM": _RNN, "GRU": _RNN,
    **dict.fromkeys(("RNNCell", "LSTMCell", "GRUCell"), "input_size hidden_size bias"),
    "MultiheadAttention": "embed_dim num_heads dropout bias add_bias_kv add_zero_attn kdim vdim batch_first",
    "TransformerEncoderLayer": _ENCODER, "TransformerDecoderLayer": _ENCODER,
    "TransformerEncoder": "encoder_layer num_layers norm", "TransformerDecoder": "decoder_layer num_layers norm",
    "Flatten": "start_dim end_dim", "Unflatten": "dim unflattened_size", "Softmax": "dim", "LogSoftmax": "dim",
    "Softmin": "dim", "GLU": "dim", "Upsample": "size scale_factor mode", "PixelShuffle": "upscale_factor",
    "PReLU": "num_parameters", "Unfold": "kernel_size dilation padding stride", "CosineSimilarity": "dim eps",
    **{f"{kind}Pad{rank}d": "padding" for kind in ("Zero", "Constant", "Reflection", "Replication",
    "Circular") for rank in (1, 2, 3)},
}  # fmt: skip
# Layers that are one function of their input, which most are named after.
_SPELLINGS = {name.replace("_", ""): name for name in FUNCTIONS}
_FUNCTION_LAYERS = """
AdaptiveAvgPool1d AdaptiveAvgPool2d AdaptiveAvgPool3d AdaptiveMaxPool1d AdaptiveMaxPool2d AdaptiveMaxPool3d
AvgPool1d AvgPool2d AvgPool3d CELU ChannelShuffle CosineEmbeddingLoss CosineSimilarity Dropout ELU Flatten GELU GLU
Hardshrink Hardsigmoid Hardswish Hardtanh HingeEmbeddingLoss HuberLoss L1Loss LeakyReLU LocalResponseNorm LogSigmoid
LogSoftmax MSELoss MarginRankingLoss MaxPool1d MaxPool2d MaxPool3d Mish NLLLoss PReLU PairwiseDistance PixelShuffle
RReLU ReLU ReLU6 SELU SiLU Sigmoid SmoothL1Loss Softmax Softmin Softplus Softshrink Softsign Tanh Tanhshrink Threshold
TripletMarginLoss Unflatten Unfold
"""
_PLAIN = {name: _SPELLINGS[name.lower()] for name in _FUNCTION_LAYERS.split()} | {
    **dict.fromkeys(("AlphaDropout", "Dropout1d", "Dropout2d", "Dropout3d"), "dropout"), "KLDivLoss": "kl_div",
    "BCELoss": "binary_cross_entropy", "BCEWithLogitsLoss": "binary_cross_entropy_with_logits",
    "CrossEntropyLoss": "cross_entropy", "Upsample": "interpolate", "Softmax2d": "softmax",
}  # fmt: skip
_GATES = {"RNN": 1, "GRU": 3, "LSTM": 4, "RNNCell": 1, "GRUCell": 3, "LSTMCell": 4}
# Options of a layer that its function knows under the same name.
_PASSED = frozenset({
    "kernel_size", "stride", "padding", "dilation", "ceil_mode", "return_indices", "output_size", "dim", "start_dim",
    "end_dim", "upscale_factor", "size", "scale_factor", "reduction", "margin",
})  # fmt: skip


def options_of(name: str, args: Sequence[Value], named: Named) -> Named:
    """The options of a layer from the arguments of its constructor."""
    return dict(zip(SIGNATURES.get(name, "").split(), args, strict=False)) | named


def build(name: str, args: Sequence[Value], named: Named, default_dtype: str) -> TorchLayer:
    """A layer from the arguments of its constructor; raises TypeError or ValueError for invalid ones."""
    options = options_of(name, args, named)
    dtype = dtype_of(options.get("dtype"), default_dtype)
    weights = {
        key: Tensor(tuple(int(size) for size in shape), dtype, parameter=True) for key, shape in _weights(name, options)
    }
    layer = TorchLayer(name, options, weights)
    if name in ("TransformerEncoder", "TransformerDecoder"):
        inner = options[SIGNATURES[name].split()[0]]
        for number in range(min(int(options["num_layers"]), 500)):
            weights.update(
                {f"{number}.{key}": Tensor(x.shape, x.dtype, parameter=True) for key, x in inner.weights.items()}
            )
    return layer


def _weights(name: str, options: Named) -> list[tuple[str, Shape]]:
    bias = options.get("bias", True) is not False
    weights: list[tuple[str, Any]] = []
    if name == "Linear":
        weights = [("weight", (options["out_features"], options["in_features"])), ("bias", (options["out_features"],))]
    elif name == "Bilinear":
        out = options["out_features"]
        weights = [("weight", (out, options["in1_features"], options["in2_features"])), ("bias", (out,))]
    elif name.startswith("Conv") and name in SIGNATURES:
        rank, transposed = int(name[-2]), "Transpose" in name
        groups, entering, leaving = options.get("groups", 1), options["in_channels"], options["out_channels"]
        channels = (entering, leaving // groups) if transposed else (leaving, entering // groups)
        weights = [("weight", (*channels, *spread(options["kernel_size"], rank))), ("bias", (leaving,))]
    elif name == "Embedding":
        return [("weight", (options["num_embeddings"], options["embedding_dim"]))]
    elif name == "PReLU":
        return [("weight", (options.get("num_parameters", 1),))]
    elif name.startswith(("BatchNorm", "SyncBatch", "GroupNorm")) or (
        name.startswith("Instance") and options.get("affine")
    ):
        size = (options["num_channels" if name == "GroupNorm" else "num_features"],)
        return [("weight", size), ("bias", size)] if options.get("affine", True) else []
    elif name in ("LayerNorm", "RMSNorm") and options.get("elementwise_affine", True):
        inner = spread(options["normalized_shape"], 1)
        weights = [("weight", inner), *([("bias", inner)] if name == "LayerNorm" else [])]
    elif name in _GATES:
        weights = _recurrent_weights(name, options)
    elif name == "MultiheadAttention":
        weights = _attention_weights(options["embed_dim"], "")
    elif name in ("TransformerEncoderLayer", "TransformerDecoderLayer"):
        width, inner = options["d_model"], options.get("dim_feedforward", 2048)
        blocks = 1 if name == "TransformerEncoderLayer" else 2
        weights = [part for block in range(blocks) for part in _attention_weights(width, f"{block}.")]
        weights += [("up", (inner, width)), ("up_bias", (inner,)), ("down", (width, inner)), ("down_bias", (width,))]
        weights += [(f"norm{number}", (2, width)) for number in range(blocks + 1)]
    return [(key, shape) for key, shape in weights if bias or not key.endswith("bias")]


def _attention_weights(width: int, prefix: str) -> list[tuple[str, Shape]]:
    shapes = {"in": (3 * width, width), "in_bias": (3 * width,), "out": (width, width), "out_bias": (width,)}
    return [(prefix + key, shape) for key, shape in shapes.items()]


def _recurrent_weights(name: str, options: Named) -> list[tuple[str, Shape]]:
    rows, width = _GATES[name] * options["hidden_size"], options["hidden_size"]
    directions = 2 if options.get("bidirectional") else 1
    weights: list[tuple[str, Shape]] = []
    for layer in range(min(options.get("num_layers", 1), 500)):
        entering = options["input_size"] if layer == 0 else width * directions
        for way in range(directions):
            prefix = f"{layer}.{way}"
            shapes = {"in": (rows, entering), "state": (rows, width), "in_bias": (rows,), "state_bias": (rows,)}
            weights += [(f"{prefix}.{key}", shape) for key, shape in shapes.items()]
    return weights


def call(recorder: Recorder, layer: TorchLayer, args: list[Value], named: Named) -> Value:
    """Call a layer; raises LookupError for an unknown kind, TypeError or ValueError for an input that does not fit."""
    name, options, weights = layer.name, layer.options, layer.weights
    if name in ("Identity", "Sequential", "Module"):
        return args[0] if args else UNKNOWN
    if name == "Pretrained":
        return _call_pretrained(recorder, layer, args, named)
    if name in _SPECIAL:
        return _SPECIAL[name](recorder, layer, args, named)
    if name.startswith("Conv") and name in SIGNATURES:
        x = tensor(args[0])
        return convolve(recorder, x, weights["weight"], weights.get("bias"), options, transposed="Transpose" in name)
    if name[:-2].endswith("Pad"):
        width = options["padding"]
        return FUNCTIONS["pad"](recorder, [args[0], spread(width, 2 * int(name[-2]))], {})
    passed = {key: value for key, value in options.items() if key in _PASSED}
    if name == "Flatten":
        passed.setdefault("start_dim", 1)
    elif name == "Unflatten":
        passed["sizes"] = options["unflattened_size"]
    return FUNCTIONS[_PLAIN[name]](recorder, args, passed)


def _by_weights(recorder: Recorder, layer: TorchLayer, args: list[Value], named: Named) -> Value:
    function = _WEIGHTED[layer.name]
    inputs = args[:1] if function in ("linear", "batch_norm") else args
    return FUNCTIONS[function](recorder, [*inputs, *layer.weights.values()], {})


def _recurrent(recorder: Recorder, layer: TorchLayer, args: list[Value], named: Named) -> Value:
    options, ways = layer.options, 2 if layer.options.get("bidirectional") else 1
    first = bool(options.get("batch_first"))
    x = tensor(args[0])
    return recurrent(recorder, x, _GATES[layer.name], options["hidden_size"], options.get("num_layers", 1), ways, first)


def _cell(recorder: Recorder, layer: TorchLayer, args: list[Value], named: Named) -> Value:
    x, gates = tensor(args[0]), _GATES[layer.name]
    width = layer.options["hidden_size"]
    y, _ = recurrent(recorder, x.view((1, *x.shape)), gates, width, 1, 1, False)
    state = viewed(recorder, y, (*x.shape[:-1], width))
    return (state, state) if gates == 4 else state


def _project(recorder: Recorder, x: Tensor, width: int) -> Tensor:
    """A linear layer with a bias to a width."""
    weight = Tensor((x.shape[-1], width), x.dtype)
    return matmul(recorder, x, weight, "linear")


def _attend(
    recorder: Recorder, x: Tensor, memory: Tensor, heads: int, first: bool, fused: bool
) -> tuple[Tensor, Tensor | None]:
    """Multi-head attention of x over memory, both (batch, length, width) or length first."""
    width = x.shape[-1]
    if memory is x:
        q = k = v = _split_heads(recorder, _project(recorder, x, 3 * width), heads, first, 3)
    else:
        q = _split_heads(recorder, _project(recorder, x, width), heads, first, 1)
        k = v = _split_heads(recorder, _project(recorder, memory, 2 * width), heads, first, 2)
    if fused:
        mixed, weights = attention(recorder, q, k, v), None
    else:
        mixed, weights = plain_attention(recorder, pointwise(recorder, "mul", [q]), k, v)
    joined = recorder.add("copy", "gather", [mixed], x.shape)
    return _project(recorder, joined, width), weights


def _split_heads(recorder: Recorder, x: Tensor, heads: int, first: bool, parts: int) -> Tensor:
    width = x.shape[-1] // parts
    batch, length = (x.shape[0], x.shape[1]) if first else (x.shape[1], x.shape[0])
    return x.view((batch, heads, length, width // heads), contiguous=False)


def _batched(x: Tensor) -> Tensor:
    return x if len(x.shape) == 3 else x.view((x.shape[0], 1, x.shape[1]))


def _multihead(recorder: Recorder, layer: TorchLayer, args: list[Value], named: Named) -> Value:
    x, first = tensor(args[0] if args else named["query"]), bool(layer.options.get("batch_first"))
    memory = args[1] if len(args) > 1 else named.get("key", x)
    inner = _batched(x)
    over = inner if memory is x else _batched(tensor(memory))
    weighted = (args[4] if len(args) > 4 else named.get("need_weights", True)) is not False
    y, weights = _attend(recorder, inner, over, int(layer.options["num_heads"]), first, not weighted)
    if weights is not None:
        batch, _, rows, columns = weights.shape
        weights = recorder.add("mean", "reduction", [weights], (batch, rows, columns))
    return y.view(x.shape), weights


def block(recorder: Recorder, options: Named, x: Tensor, memories: Sequence[Tensor]) -> Tensor:
    """A transformer block on (batch, length, width), or length first, with attention over itself and over memories."""
    heads, first = int(options["nhead"]), bool(options.get("batch_first"))
    for memory in (x, *memories):
        mixed, _ = _attend(recorder, x, memory, heads, first, True)
        x = _residual(recorder, x, mixed)
    inner = _project(recorder, x, int(options.get("dim_feedforward", 2048)))
    inner = pointwise(recorder, "dropout", [pointwise(recorder, "relu", [inner])])
    return _residual(recorder, x, _project(recorder, inner, x.shape[-1]))


def _residual(recorder: Recorder, x: Tensor, change: Tensor) -> Tensor:
    total = pointwise(recorder, "add", [x, pointwise(recorder, "dropout", [change])])
    return FUNCTIONS["layer_norm"](recorder, [total], {})  # type: ignore[no-any-return]


def _transformer(recorder: Recorder, layer: TorchLayer, args: list[Value], named: Named) -> Value:
    x = tensor(args[0])
    memories = [_batched(tensor(args[1]))] if "Decoder" in layer.name else []
    inner = layer.options[SIGNATURES[layer.name].split()[0]] if layer.name.endswith("coder") else layer
    y = _batched(x)
    for _ in range(min(int(layer.options.get("num_layers", 1)), 500)):
        y = block(recorder, inner.options, y, memories)
    return y.view(x.shape)


# Layers that are one function of their input and weights.
_WEIGHTED = {
    "Linear": "linear", "Bilinear": "bilinear", "Embedding": "embedding", "LayerNorm": "layer_norm",
    "RMSNorm": "rms_norm", "GroupNorm": "group_norm", "SyncBatchNorm": "batch_norm",
    **{f"{kind}Norm{rank}d": "batch_norm" for kind in ("Batch", "Instance") for rank in (1, 2, 3)},
}  # fmt: skip
_SPECIAL: dict[str, Callable[..., Value]] = {
    **dict.fromkeys(_WEIGHTED, _by_weights), **dict.fromkeys(("RNN", "LSTM", "GRU"), _recurrent),
    **dict.fromkeys(("RNNCell", "LSTMCell", "GRUCell"), _cell), "MultiheadAttention": _multihead,
    **dict.fromkeys(
        ("TransformerEncoder", "TransformerEncoderLayer", "TransformerDecoder", "TransformerDecoderLayer"), _transformer
    ),
}  # fmt: skip
KNOWN = frozenset(SIGNATURES) | frozenset(_PLAIN) | frozenset(_SPECIAL) | {"Identity"}


@dataclass(frozen=True, slots=True)
class TransformerSizes:
    """The sizes of a transformer; ``layers`` of the encoder and decoder together."""

    layers: int
    width: int
    inner: int
    heads: int
    vocabulary: int


# Published transformers that code loads by name from a model hub, by the sizes in their papers and configurations:
# name | layers | width | feed-forward | heads | vocabulary
_PRETRAINED_TABLE = """
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
_PRETRAINED = {
    name: TransformerSizes(*(int(size) for size in sizes))
    for name, *sizes in (line.split("|") for line in _PRETRAINED_TABLE.strip().splitlines())
}


def load_pretrained(name: str) -> TorchLayer:
    """The model with a name such as ``facebook/opt-1.3b``; raises KeyError for an unknown one."""
    sizes = _PRETRAINED[name.rpartition("/")[2].lower()]
    width, inner = sizes.width, sizes.inner
    parts = {"attention": (4, width, width), "up": (inner, width), "down": (width, inner)}
    shapes = {f"{layer}.{part}": shape for layer in range(sizes.layers) for part, shape in parts.items()}
    weights = {key: Tensor(shape, parameter=True) for key, shape in shapes.items()}
    weights["embedding"] = Tensor((sizes.vocabulary, width), parameter=True)
    return TorchLayer("Pretrained", {"sizes": sizes}, weights)


def _call_pretrained(recorder: Recorder, model: TorchLayer, args: list[Value], named: Named) -> Value:
    """Token numbers (batch, length) -> logits (batch, length, vocabulary)."""
    sizes: TransformerSizes = model.options["sizes"]
    table, tokens = model.weights["embedding"], (tensors_in(args) or tensors_in(named))[0]
    x = recorder.add("embedding", "gather", [tokens], (*tokens.shape, sizes.width), dtype=table.dtype)
    options = {"nhead": sizes.heads, "dim_feedforward": sizes.inner, "batch_first": True}
    for _ in range(sizes.layers):
        x = block(recorder, options, x, ())
    return matmul(recorder, x, Tensor((sizes.width, sizes.vocabulary), table.dtype), "linear")
