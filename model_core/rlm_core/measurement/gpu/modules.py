"""Generated PyTorch modules of many kinds and realistic sizes, written as files: the source of training kernels.

Each is composed from a seed: a stem, a few blocks of one family (attention, gated feed-forward, convolution,
normalisation, reduction, recurrence, loss, element-wise) and sizes drawn from those that networks have. A file has
the class ``Model``, ``get_inputs`` and ``get_init_inputs``; nothing here imports torch.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

_WIDTHS = (64, 96, 128, 192, 256, 320, 384, 512, 640, 768, 1024, 1280, 1536, 2048, 2560, 3072, 4096, 5120)
_TOKENS = (16, 64, 128, 196, 256, 512, 577, 1024, 2048, 4096)
_BATCHES = (1, 2, 4, 8, 16, 32, 64)
_CHANNELS = (3, 16, 24, 32, 48, 64, 96, 128, 192, 256, 512)
_IMAGES = (14, 28, 32, 56, 64, 112, 128, 224)
_CLASSES = (10, 100, 1000, 8192, 32000, 50257)
_MOST = 2**26
_ACTIVATIONS = ("relu", "gelu", "silu", "tanh", "sigmoid", "softplus", "hardswish", "elu", "mish", "leaky_relu")
_REDUCTIONS = ("mean", "sum", "amax", "amin", "logsumexp", "var")


@dataclass(frozen=True, slots=True)
class GeneratedModule:
    """One module as a file: its family and its source text."""

    family: str
    source: str


@dataclass(frozen=True, slots=True)
class _Parts:
    """Lines of ``__init__`` and of ``forward`` (which begins with ``x``), and the shapes of its inputs."""

    layers: tuple[str, ...]
    steps: tuple[str, ...]
    inputs: tuple[str, ...]


def write_module(seed: int, number: int) -> GeneratedModule:
    """The ``number``-th module of a seed: the same every time, whatever else is written."""
    draw = random.Random(f"{seed}/{number}")  # noqa: S311 (no secret)
    family = list(FAMILIES)[number % len(FAMILIES)]
    parts = FAMILIES[family](draw)
    return GeneratedModule(family, _file(family, parts))


def _file(family: str, parts: _Parts) -> str:
    names = ["x", *(f"x{place}" for place in range(1, len(parts.inputs)))]
    layers = "\n".join(f"        {line}" for line in parts.layers) or "        pass"
    steps = "\n".join(f"        {line}" for line in parts.steps)
    inputs = ", ".join(parts.inputs)
    return f'''"""Composed from a seed: {family}."""

import torch
import torch.nn.functional as F
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
{layers}

    def forward(self, {", ".join(names)}):
{steps}
        return x


def get_inputs():
    return [{inputs}]


def get_init_inputs():
    return []
'''


def _sequence(draw: random.Random, most: int = _MOST) -> tuple[int, int, int]:
    """Batch, tokens and width of a sequence that is not too large."""
    while True:
        batch, tokens, width = draw.choice(_BATCHES), draw.choice(_TOKENS), draw.choice(_WIDTHS)
        if batch * tokens * width <= most:
            return batch, tokens, width


def _image(draw: random.Random) -> tuple[int, int, int]:
    while True:
        batch, channels, side = draw.choice(_BATCHES), draw.choice(_CHANNELS), draw.choice(_IMAGES)
        if batch * channels * side * side <= _MOST // 2:
            return batch, channels, side


def _normalisation(draw: random.Random, width: int) -> str:
    return draw.choice((f"nn.LayerNorm({width})", f"nn.RMSNorm({width})"))


def _pointwise(draw: random.Random) -> str:
    """A line that keeps the shape of ``x``."""
    number = round(draw.uniform(0.1, 3.0), 3)
    return draw.choice(
        (
            f"x = F.{draw.choice(_ACTIVATIONS)}(x)",
            f"x = x * {number} + {round(draw.uniform(-1, 1), 3)}",
            "x = x * torch.sigmoid(x)",
            f"x = x.clamp(-{number}, {number})",
            f"x = torch.where(x > {number}, x, x.square())",
            "x = torch.exp(-x.abs())",
            "x = torch.sin(x) * torch.cos(x)",
            "x = (x.abs() + 1e-6).sqrt()",
            "x = torch.log1p(x.square())",
        )
    )


def _elementwise(draw: random.Random) -> _Parts:
    batch, tokens, width = _sequence(draw)
    shape = f"torch.randn({batch}, {tokens}, {width})"
    steps = [_pointwise(draw) for _ in range(draw.randint(1, 6))]
    inputs = [shape]
    for place in range(1, draw.randint(1, 4)):
        steps.append(f"x = x {draw.choice('+-*')} x{place}")
        inputs.append(draw.choice((shape, f"torch.randn({width})", f"torch.randn({batch}, 1, {width})")))
    steps += [_pointwise(draw) for _ in range(draw.randint(0, 2))]
    return _Parts((), tuple(steps), tuple(inputs))


def _norms(draw: random.Random) -> _Parts:
    batch, tokens, width = _sequence(draw)
    layers, steps = (
        [f"self.norm = {_normalisation(draw, width)}"],
        [_pointwise(draw) for _ in range(draw.randint(0, 2))],
    )
    inputs = [f"torch.randn({batch}, {tokens}, {width})"]
    if draw.random() < 0.5:
        steps.append("x = x + x1")
        inputs.append(inputs[0])
    steps.append("x = self.norm(x)")
    if draw.random() < 0.4:
        layers.append(f"self.scale = nn.Parameter(torch.ones({width}))")
        steps.append("x = x * self.scale")
    steps += [_pointwise(draw) for _ in range(draw.randint(0, 2))]
    return _Parts(tuple(layers), tuple(steps), tuple(inputs))


def _reductions(draw: random.Random) -> _Parts:
    batch, tokens, width = _sequence(draw)
    steps = [_pointwise(draw) for _ in range(draw.randint(0, 3))]
    kind = draw.choice(("softmax", "log_softmax", "cumsum", "argmax", "normalize", *_REDUCTIONS))
    axis = draw.choice((-1, 1))
    if kind in ("softmax", "log_softmax"):
        steps.append(f"x = F.{kind}(x, dim={axis})")
    elif kind == "normalize":
        steps.append(f"x = F.normalize(x, dim={axis})")
    elif kind in ("cumsum", "argmax"):
        steps.append(f"x = torch.{kind}(x, dim={axis})")
    else:
        steps.append(f"x = torch.{kind}(x, dim={axis}{', keepdim=True' if draw.random() < 0.3 else ''})")
    return _Parts((), tuple(steps), (f"torch.randn({batch}, {tokens}, {width})",))


def _feed_forward(draw: random.Random) -> _Parts:
    batch, tokens, width = _sequence(draw, _MOST // 4)
    hidden = width * draw.choice((2, 3, 4))
    activation, bias = draw.choice(_ACTIVATIONS[:5]), draw.choice(("True", "False"))
    layers = [f"self.up = nn.Linear({width}, {hidden}, bias={bias})"]
    layers.append(f"self.down = nn.Linear({hidden}, {width}, bias={bias})")
    steps = [f"x = self.down(F.{activation}(self.up(x)))"]
    if draw.random() < 0.5:
        layers.append(f"self.gate = nn.Linear({width}, {hidden}, bias={bias})")
        steps = [f"x = self.down(F.{activation}(self.gate(x)) * self.up(x))"]
    if draw.random() < 0.6:
        layers.append(f"self.norm = {_normalisation(draw, width)}")
        steps = ["y = x", "x = self.norm(x)", *steps, "x = x + y"]
    return _Parts(tuple(layers), tuple(steps), (f"torch.randn({batch}, {tokens}, {width})",))


def _attention(draw: random.Random) -> _Parts:
    while True:
        batch, tokens, width = _sequence(draw, _MOST // 8)
        head = draw.choice((32, 64, 128))
        if width % head == 0 and batch * (width // head) * tokens * tokens <= _MOST:
            break
    heads = width // head
    split = f"({batch}, {tokens}, {heads}, {head}).transpose(1, 2)"
    layers = [f"self.qkv = nn.Linear({width}, {3 * width}, bias={draw.choice(('True', 'False'))})"]
    steps = [f"q, k, v = (part.reshape{split} for part in self.qkv(x).chunk(3, dim=-1))"]
    steps.append(f"scores = q @ k.transpose(-2, -1) * {head**-0.5:.6f}")
    if draw.random() < 0.5:
        layers.append(f'self.register_buffer("mask", torch.ones({tokens}, {tokens}, dtype=torch.bool).triu(1))')
        steps.append('scores = scores.masked_fill(self.mask, float("-inf"))')
    steps.append(f"x = (torch.softmax(scores, dim=-1) @ v).transpose(1, 2).reshape({batch}, {tokens}, {width})")
    return _Parts(tuple(layers), tuple(steps), (f"torch.randn({batch}, {tokens}, {width})",))


def _rotary(draw: random.Random) -> _Parts:
    batch, tokens, _ = _sequence(draw, _MOST // 32)
    heads, head = draw.choice((4, 8, 16, 32)), draw.choice((64, 128))
    half = head // 2
    layers = [
        f"angles = torch.outer(torch.arange({tokens}).float(), 10000.0 ** (-torch.arange(0, {half}).float() / {half}))",
        'self.register_buffer("cos", torch.cat([angles.cos(), angles.cos()], dim=-1))',
        'self.register_buffer("sin", torch.cat([angles.sin(), angles.sin()], dim=-1))',
    ]
    turned = f"torch.cat([-x[..., {half}:], x[..., :{half}]], dim=-1)"
    steps = [f"x = x * self.cos.to(x.dtype) + {turned} * self.sin.to(x.dtype)"]
    return _Parts(tuple(layers), tuple(steps), (f"torch.randn({batch}, {heads}, {tokens}, {head})",))


def _convolution(draw: random.Random) -> _Parts:
    batch, channels, side = _image(draw)
    layers, steps = [], []
    for place in range(draw.randint(1, 3)):
        out, kernel = draw.choice(_CHANNELS[1:9]), draw.choice((1, 3, 3, 5))
        depthwise = draw.random() < 0.25
        out = channels if depthwise else out
        groups = channels if depthwise else 1
        layers.append(
            f"self.conv{place} = nn.Conv2d({channels}, {out}, {kernel}, padding={kernel // 2}, groups={groups})"
        )
        steps.append(f"x = self.conv{place}(x)")
        if draw.random() < 0.7:
            layers.append(f"self.norm{place} = nn.BatchNorm2d({out})")
            steps.append(f"x = self.norm{place}(x)")
        steps.append(f"x = F.{draw.choice(_ACTIVATIONS[:7])}(x)")
        channels = out
    if side >= 4 and draw.random() < 0.4:
        steps.append(f"x = F.{draw.choice(('max_pool2d', 'avg_pool2d'))}(x, 2)")
    return _Parts(tuple(layers), tuple(steps), (f"torch.randn({batch}, {_first(layers)}, {side}, {side})",))


def _first(layers: list[str]) -> int:
    return int(layers[0].split("Conv2d(")[1].split(",")[0])


def _pooling(draw: random.Random) -> _Parts:
    batch, channels, side = _image(draw)
    kind = draw.choice(
        ("max_pool2d(x, 2)", "avg_pool2d(x, 2)", "adaptive_avg_pool2d(x, 1)", "interpolate(x, scale_factor=2)")
    )
    steps = [_pointwise(draw) for _ in range(draw.randint(0, 2))] + [f"x = F.{kind}"]
    return _Parts((), tuple(steps), (f"torch.randn({batch}, {channels}, {side}, {side})",))


def _losses(draw: random.Random) -> _Parts:
    rows, classes = draw.choice((64, 256, 1024, 2048)), draw.choice(_CLASSES)
    kind = draw.choice(("cross_entropy", "mse_loss", "smooth_l1_loss", "kl_div", "cosine_similarity"))
    logits = f"torch.randn({rows}, {classes})"
    if kind == "cross_entropy":
        return _Parts((), ("x = F.cross_entropy(x, x1)",), (logits, f"torch.randint(0, {classes}, ({rows},))"))
    if kind == "kl_div":
        step = "x = F.kl_div(F.log_softmax(x, dim=-1), F.softmax(x1, dim=-1), reduction='batchmean')"
        return _Parts((), (step,), (logits, logits))
    return _Parts((), (f"x = F.{kind}(x, x1)",), (logits, logits))


def _embedding(draw: random.Random) -> _Parts:
    batch, tokens, width = _sequence(draw, _MOST // 4)
    words = draw.choice(_CLASSES[2:])
    layers = [f"self.words = nn.Embedding({words}, {width})", f"self.places = nn.Embedding({tokens}, {width})"]
    layers.append(f"self.norm = {_normalisation(draw, width)}")
    steps = [f"x = self.words(x) + self.places(torch.arange({tokens}, device=x.device))", "x = self.norm(x)"]
    return _Parts(tuple(layers), tuple(steps), (f"torch.randint(0, {words}, ({batch}, {tokens}))",))


def _layout(draw: random.Random) -> _Parts:
    batch, tokens, width = _sequence(draw)
    steps = [
        draw.choice(
            (
                "x = x.transpose(1, 2).contiguous()",
                "x = torch.cat([x, x * 2], dim=-1)",
                "x = x.flip(1) + x",
                "x = torch.roll(x, 1, dims=1) - x",
                f"x = x.reshape({batch}, -1).t().contiguous()",
                "x = F.pad(x, (1, 1)) * 0.5",
                "x = torch.stack(x.chunk(2, dim=-1), dim=1).contiguous()",
            )
        )
    ]
    return _Parts((), (*steps, _pointwise(draw)), (f"torch.randn({batch}, {tokens}, {width})",))


FAMILIES: dict[str, Callable[[random.Random], _Parts]] = {
    "element-wise": _elementwise,
    "normalisation": _norms,
    "reduction": _reductions,
    "feed-forward": _feed_forward,
    "attention": _attention,
    "rotary": _rotary,
    "convolution": _convolution,
    "pooling": _pooling,
    "loss": _losses,
    "embedding": _embedding,
    "layout": _layout,
}
