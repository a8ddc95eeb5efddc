"""Functions of ``triton.language`` that access memory: loads, stores, atomics, block pointers, descriptors."""

from __future__ import annotations

import ast
from collections.abc import Callable

from ..concrete.values import UNKNOWN, Named, Value
from ..domain.records import replace
from .accesses import access, block_pointers
from .arithmetic import binary
from .blocks import argument, shape_argument
from .program import Program
from .values import BlockPointer, Data, Pointer, dtype_of, shape_of


def _pointers(program: Program, pointer: Value, args: list[Value], named: Named, first: int) -> tuple[Value, Value]:
    """The pointers and the mask of a load (``first`` argument after the pointer) or store."""
    mask = argument(args, named, first, "mask")
    if not isinstance(pointer, BlockPointer):
        return pointer, True if mask is None else mask
    checked = named.get("boundary_check", mask if isinstance(mask, tuple) else ())
    return block_pointers(program.tally, pointer, checked if isinstance(checked, tuple) else (checked,))


def _load(program: Program, node: ast.Call, args: list[Value], named: Named) -> Value:
    pointer = args[0] if args else named.get("pointer", UNKNOWN)
    if isinstance(pointer, BlockPointer) and pointer.checked and len(args) > 1:  # a descriptor's method
        pointer = replace(pointer, offsets=tuple(args[1]))
        args = args[:1]
    pointer, mask = _pointers(program, pointer, args, named, 1)
    if not isinstance(pointer, Pointer) or mask is UNKNOWN:
        program.tally.unknown += 1
        return UNKNOWN if mask is not UNKNOWN else Data(shape_of(pointer), dtype_of(pointer))
    shape = access(program.tally, node.lineno * 1000 + node.col_offset, "loaded", pointer, mask)
    return Data(shape, pointer.dtype)


def _store(program: Program, node: ast.Call, args: list[Value], named: Named) -> Value:
    pointer = args[0] if args else named.get("pointer", UNKNOWN)
    value = args[1] if len(args) > 1 else named.get("value")
    if isinstance(pointer, BlockPointer) and pointer.checked and len(args) > 2:
        pointer = replace(pointer, offsets=tuple(args[1]))
        value, args = args[2], args[:1]
    pointer, mask = _pointers(program, pointer, args, named, 2)
    if not isinstance(pointer, Pointer) or mask is UNKNOWN:
        program.tally.unknown += 1
        return None
    access(program.tally, node.lineno * 1000 + node.col_offset, "stored", pointer, mask, shape_of(value))
    return None


def _atomic(program: Program, node: ast.Call, args: list[Value], named: Named) -> Value:
    pointer = args[0] if args else named.get("pointer", UNKNOWN)
    place = 3 if node.func.attr == "atomic_cas" else 2  # type: ignore[attr-defined]
    mask = True if place == 3 else argument(args, named, place, "mask", True)
    if not isinstance(pointer, Pointer) or mask is UNKNOWN:
        program.tally.unknown += 1
        return UNKNOWN
    data = shape_of(args[1] if len(args) > 1 else named.get("val"))
    site = node.lineno * 1000 + node.col_offset
    return Data(access(program.tally, site, "atomics", pointer, True if mask is None else mask, data), pointer.dtype)


def _make_block_ptr(program: Program, node: ast.Call, args: list[Value], named: Named) -> Value:
    names = ("base", "shape", "strides", "offsets", "block_shape")
    base, sizes, strides, offsets, block = (argument(args, named, place, name) for place, name in enumerate(names))
    return BlockPointer(base, tuple(sizes), tuple(strides), tuple(offsets), shape_argument(block))


def _make_descriptor(program: Program, node: ast.Call, args: list[Value], named: Named) -> Value:
    names = ("base", "shape", "strides", "block_shape")
    base, sizes, strides, block = (argument(args, named, place, name) for place, name in enumerate(names))
    shape = shape_argument(block)
    return BlockPointer(base, tuple(sizes), tuple(strides), (0,) * len(shape), shape, True)


def _advance(program: Program, node: ast.Call, args: list[Value], named: Named) -> Value:
    block, offsets = args[0], args[1] if len(args) > 1 else named["offsets"]
    moved = (binary(program.tally, ast.Add, old, step) for old, step in zip(block.offsets, offsets, strict=True))
    return replace(block, offsets=tuple(moved))


RULES: dict[str, Callable[[Program, ast.Call, list[Value], Named], Value]] = {
    "load": _load, "store": _store, "load_tensor_descriptor": _load, "store_tensor_descriptor": _store,
    "make_block_ptr": _make_block_ptr, "make_tensor_descriptor": _make_descriptor,
    "_experimental_make_tensor_descriptor": _make_descriptor, "advance": _advance,
    **dict.fromkeys(("atomic_add", "atomic_max", "atomic_min", "atomic_and", "atomic_or", "atomic_xor", "atomic_xchg",
                     "atomic_cas"), _atomic),
}  # fmt: skip
