"""One node in words: the text for kernel, width, stride, attributes and constants, and back.

A slot is one of these words with its long form; an empty short form means the default (the width of the input, stride
1, padding that keeps the size). Blocks that differ in some slots are written once with holes instead.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import quote, unquote

from .graph import POOLS, Attribute, Constant, Operand, Shape
from .shapes import integers, same_padding

RESERVED = frozenset({"dw", "bias", "in"})
_WINDOWED = ("Conv", "ConvTranspose", *POOLS)
_KERNEL = re.compile(rf"({'|'.join(_WINDOWED)})(\d+(?:x\d+)*)(?:/(\d+(?:x\d+)*))?$")
_INTEGER = re.compile(r"-?\d+$")
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*$")


@dataclass(frozen=True, slots=True)
class NodeSlot:
    """``short``: the word outside a block, maybe empty; ``full``: as a block argument; ``glue``: what precedes."""

    key: str
    short: str
    full: str
    glue: str = " "


@dataclass(frozen=True, slots=True)
class NodeWords:
    """An operator, its slots, and the operands that no slot implies: an edge, a slot (``int``) or None if left out."""

    operator: str
    slots: tuple[NodeSlot, ...]
    operands: tuple[Operand | int, ...]


def shape_text(shape: Shape) -> str:
    """``1x3x32x32``; ``()`` for a scalar, ``*`` for an unknown rank."""
    if shape is None:
        return "*"
    return "x".join(str(size) for size in shape) or "()"


def shape_of(text: str) -> Shape:
    """The inverse of :func:`shape_text`.

    Raises:
        ValueError: it is not a shape.
    """
    if text == "*":
        return None
    if text == "()":
        return ()
    sizes = text.split("x")
    if not all(re.fullmatch(r"\d+|[A-Z]|\?", size) for size in sizes):
        raise ValueError(f"not a shape: {text!r}")
    return tuple(int(size) if size.isdigit() else size for size in sizes)


def constant_text(constant: Constant, dtype: str) -> str:
    """``{64x64}``, ``{=0.5}``, ``{8:int8}``; ``[1,-1]`` for a small int64 vector. ``dtype``: the default."""
    values = None if constant.values is None else ",".join(_number(value) for value in constant.values)
    if constant.dtype == "int64" and len(constant.shape) == 1 and values is not None:
        return f"[{values}]"
    kind = "" if constant.dtype == dtype else f":{constant.dtype}"
    return f"{{{'x'.join(map(str, constant.shape))}{kind}{'' if values is None else f'={values}'}}}"


def constant_of(text: str, dtype: str) -> Constant:
    """The inverse of :func:`constant_text`.

    Raises:
        ValueError: it is not a constant.
    """
    if text.startswith("["):
        numbers = [int(item) for item in text[1:-1].split(",") if item]
        return Constant((len(numbers),), "int64", tuple(numbers))
    head, equals, tail = text[1:-1].partition("=")
    sizes, colon, kind = head.partition(":")
    shape = tuple(int(size) for size in sizes.split("x") if size)
    kind = kind if colon else dtype
    parse = float if "float" in kind else int
    return Constant(shape, kind, tuple(parse(item) for item in tail.split(",") if item) if equals else None)


def attribute_text(value: Attribute) -> str:
    """A number, a word or a list in brackets; a float always has a point or an exponent."""
    if isinstance(value, tuple):
        return f"[{','.join(attribute_text(item) for item in value)}]"
    if isinstance(value, str):
        return value if _PLAIN.match(value) and value not in ("inf", "nan") else "'" + quote(value, safe="")
    text = _number(value)
    return text if isinstance(value, int) or re.search(r"[.en]", text) else text + "."


def attribute_of(text: str) -> Attribute:
    """The inverse of :func:`attribute_text`.

    Raises:
        ValueError: it is none.
    """
    if text.startswith("["):
        return tuple(attribute_of(item) for item in text[1:-1].split(",") if item)  # type: ignore[return-value]
    if text.startswith("'"):
        return unquote(text[1:])
    if _INTEGER.match(text):
        return int(text)
    try:
        return float(text)
    except ValueError:
        if _PLAIN.match(text):
            return text
        raise


def _number(value: float) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(int(value))


def describe(
    operator: str,
    operands: Sequence[Operand],
    attributes: Sequence[tuple[str, Attribute]],
    shapes: Sequence[Shape],
    dtype: str,
) -> NodeWords:
    """A node in words. ``shapes``: of the operands; ``dtype``: that of most weights."""
    rest = dict(attributes)
    slots: list[NodeSlot] = []
    kept: list[Operand] = list(operands)
    first = shapes[0] if shapes else None
    if operator in ("Conv", "ConvTranspose") and _implied_convolution(operator, operands, first, rest, dtype):
        weight = operands[1].shape  # type: ignore[union-attr]
        group, channels = int(rest.pop("group", 1)), int(first[1])  # type: ignore[arg-type, index]
        width = weight[0] if operator == "Conv" else weight[1] * group
        slots += _window(weight[2:], rest)
        slots.append(NodeSlot("width", "" if width == channels else str(width), str(width)))
        slots.append(_group(group, channels))
        slots.append(_bias(len(operands) > 2))
        kept = list(operands[:1])
    elif operator in POOLS and integers(rest.get("kernel_shape")):
        slots += _window(integers(rest["kernel_shape"]), rest)
    elif operator == "BatchNormalization" and _implied_norm(operands, first, dtype):
        kept = list(operands[:1])
    elif operator in ("Gemm", "MatMul") and _implied_product(operator, operands, first, rest, dtype):
        straight = operator == "MatMul" or not rest.pop("transB", 0)
        weight = operands[1].shape  # type: ignore[union-attr]
        slots.append(NodeSlot("width", str(weight[1 if straight else 0]), str(weight[1 if straight else 0])))
        if operator == "Gemm":
            slots.append(NodeSlot("order", "transB=0" if straight else "", "transB=0" if straight else "transB=1"))
            slots.append(_bias(len(operands) > 2))
        kept = list(operands[:1])
    for name in sorted(rest):
        text = f"{name}={attribute_text(rest[name])}"
        slots.append(NodeSlot(f"@{name}", text, text))
    positions: list[Operand | int] = []
    for number, operand in enumerate(kept):
        if isinstance(operand, Constant):
            positions.append(len(slots))
            text = constant_text(operand, dtype)
            slots.append(NodeSlot(f"#{number}", text, text, ""))
        else:
            positions.append(operand)
    return NodeWords(operator, tuple(slots), tuple(positions))


def _implied_convolution(
    operator: str, operands: Sequence[Operand], shape: Shape, attributes: dict[str, Attribute], dtype: str
) -> bool:
    weight = operands[1] if len(operands) > 1 else None
    if not _weight(weight, dtype) or len(weight.shape) < 3:  # type: ignore[union-attr]
        return False
    sizes, group = weight.shape, attributes.get("group", 1)  # type: ignore[union-attr]
    if shape is None or len(shape) != len(sizes) or not isinstance(shape[1], int) or not isinstance(group, int):
        return False
    fits = shape[1] == sizes[1] * group if operator == "Conv" else shape[1] == sizes[0] and group > 0
    width = sizes[0] if operator == "Conv" else sizes[1] * group
    bias = operands[2] if len(operands) > 2 else None
    biased = len(operands) == 2 or (_weight(bias, dtype) and bias.shape == (width,))  # type: ignore[union-attr]
    return fits and biased and 0 not in sizes


def _implied_norm(operands: Sequence[Operand], shape: Shape, dtype: str) -> bool:
    if len(operands) != 5 or shape is None or len(shape) < 2:
        return False
    return all(_weight(operand, dtype) and operand.shape == (shape[1],) for operand in operands[1:])  # type: ignore[union-attr]


def _implied_product(
    operator: str, operands: Sequence[Operand], shape: Shape, attributes: dict[str, Attribute], dtype: str
) -> bool:
    weight = operands[1] if len(operands) > 1 else None
    if not shape or not _weight(weight, dtype) or len(weight.shape) != 2 or "transA" in attributes:  # type: ignore[union-attr]
        return False
    rows, width = weight.shape  # type: ignore[union-attr]
    if operator == "Gemm" and attributes.get("transB", 0):
        rows, width = width, rows
    bias = operands[2] if len(operands) > 2 else None
    biased = len(operands) == 2 or (_weight(bias, dtype) and bias.shape == (width,))  # type: ignore[union-attr]
    return rows == shape[-1] and biased and attributes.get("transB", 1) == 1


def _weight(operand: Operand, dtype: str) -> bool:
    """Return whether an operand is a constant of the default dtype without values."""
    return isinstance(operand, Constant) and operand.dtype == dtype and operand.values is None


def _window(kernel: Sequence[int], rest: dict[str, Attribute]) -> list[NodeSlot]:
    """The slots of a window; removes their attributes from ``rest``."""
    rank = len(kernel)
    rest.pop("kernel_shape", None)
    dilations = integers(rest.pop("dilations", ())) or (1,) * rank
    strides = integers(rest.pop("strides", ())) or (1,) * rank
    pads = integers(rest.pop("pads", ())) or (0,) * (2 * rank)
    usual = (0,) * (2 * rank) if "auto_pad" in rest else same_padding(kernel, dilations)
    padding = "p" + (str(pads[0]) if len(set(pads)) == 1 else "x".join(map(str, pads)))
    stride, dilation = (_even(values) for values in (strides, dilations))
    return [
        NodeSlot("kernel", "x".join(map(str, kernel)), "x".join(map(str, kernel)), ""),
        NodeSlot("stride", "" if stride == "1" else stride, stride, "/"),
        NodeSlot("pads", "" if pads == usual else padding, padding),
        NodeSlot("dilation", "" if dilation == "1" else f"d{dilation}", f"d{dilation}"),
    ]


def _even(values: Sequence[int]) -> str:
    return str(values[0]) if len(set(values)) == 1 else "x".join(map(str, values))


def _group(group: int, channels: int) -> NodeSlot:
    if group == 1:
        return NodeSlot("group", "", "g1")
    return NodeSlot("group", "dw", "dw") if group == channels else NodeSlot("group", f"g{group}", f"g{group}")


def _bias(present: bool) -> NodeSlot:
    return NodeSlot("bias", "bias" if present else "", "bias" if present else "")


def split_operator(text: str) -> tuple[str, str, str]:
    """``Conv3x3/2`` -> operator, kernel and stride, the last two empty where they are not written."""
    match = _KERNEL.match(text)
    return (match[1], match[2], match[3] or "") if match else (text, "", "")


def unpack(
    operator: str, kernel_text: str, stride_text: str, words: Sequence[str], first: Shape, dtype: str, *, alone: bool
) -> tuple[tuple[Constant, ...], dict[str, Attribute]]:
    """The implied constants and the attributes that the words of a node mean.

    ``first``: the shape of its input; ``alone``: that input is its only operand in the text.

    Raises:
        ValueError: a word has no meaning here.
    """
    attributes: dict[str, Attribute] = {}
    meanings: dict[str, str] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if equals:
            attributes[name] = attribute_of(value)
        else:
            meanings[_kind(word)] = word
    if (
        operator == "BatchNormalization"
        and alone
        and first is not None
        and len(first) > 1
        and isinstance(first[1], int)
    ):
        return (Constant((first[1],), dtype),) * 4, attributes
    if kernel_text:
        return _unpack_window(operator, kernel_text, stride_text, meanings, attributes, first, dtype)
    if operator in ("Gemm", "MatMul") and "width" in meanings and first and isinstance(first[-1], int):
        width = int(meanings["width"])
        turned = operator == "Gemm" and attributes.pop("transB", 1) == 1
        if turned:
            attributes["transB"] = 1
        weight = Constant((width, first[-1]) if turned else (first[-1], width), dtype)
        return ((weight, Constant((width,), dtype)) if "bias" in meanings else (weight,)), attributes
    if meanings:
        raise ValueError(f"{operator} cannot be followed by {' '.join(meanings.values())!r}")
    return (), attributes


def _unpack_window(
    operator: str,
    kernel_text: str,
    stride_text: str,
    meanings: dict[str, str],
    attributes: dict[str, Attribute],
    first: Shape,
    dtype: str,
) -> tuple[tuple[Constant, ...], dict[str, Attribute]]:
    kernel = tuple(map(int, kernel_text.split("x")))
    rank = len(kernel)
    strides = _spread(stride_text or "1", rank)
    dilations = _spread(meanings.get("dilation", "d1")[1:], rank)
    pads = (0,) * (2 * rank) if "auto_pad" in attributes else same_padding(kernel, dilations)
    if "pads" in meanings:
        pads = _spread(meanings["pads"][1:], 2 * rank)
    attributes |= {name: value for name, value in (("strides", strides), ("dilations", dilations)) if set(value) != {1}}
    if any(pads):
        attributes["pads"] = pads
    if operator in POOLS:
        attributes["kernel_shape"] = kernel
        return (), attributes
    if first is None or len(first) != rank + 2 or not isinstance(first[1], int):
        raise ValueError(f"{operator} needs an input of {rank + 2} axes with a known number of channels")
    channels = first[1]
    width = int(meanings.get("width", channels))
    group = channels if "dw" in meanings.values() else int(meanings.get("group", "g1")[1:])
    if group != 1:
        attributes["group"] = group
    shape = (width, channels // group) if operator == "Conv" else (channels, width // group)
    weight = Constant((*shape, *kernel), dtype)
    return ((weight, Constant((width,), dtype)) if "bias" in meanings else (weight,)), attributes


def _spread(text: str, count: int) -> tuple[int, ...]:
    sizes = tuple(map(int, text.split("x")))
    return sizes * count if len(sizes) == 1 else sizes


def _kind(word: str) -> str:
    if word.isdigit():
        return "width"
    if word in ("dw", "bias"):
        return "group" if word == "dw" else word
    kinds = {"p": "pads", "d": "dilation", "g": "group"}
    if re.fullmatch(r"[pdg]\d+(x\d+)*", word):
        return kinds[word[0]]
    raise ValueError(f"{word!r} is not valid here")
