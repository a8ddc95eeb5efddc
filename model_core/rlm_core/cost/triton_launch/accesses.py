"""Loads, stores and atomics: bytes under the mask, reuse within the program, 32-byte sectors, strides, extents."""

from __future__ import annotations

import ast
import math

import numpy as np

from ..concrete.values import Value
from .arithmetic import binary, compare, most_of
from .tally import Tally
from .values import WIDTH, Array, BlockPointer, Data, NotUnderstood, Pointer, Shape, broadcast, shape_of

_SECTOR = 32  # bytes that memory moves at least
_MOST_EXAMINED = 65_536  # elements of an access whose sectors are counted


def access(tally: Tally, site: int, kind: str, pointer: Value, mask: Value, data: Shape = ()) -> Shape:
    """Count an access; returns its shape.

    Args:
        tally: counts it.
        site: identifies the place in the text.
        kind: ``loaded``, ``stored`` or ``atomics``.
        pointer: a pointer, or a block pointer, whose bounds are then part of the mask.
        mask: a truth value, a known mask or data.
        data: the shape of what is stored, which the pointer takes on.

    Raises:
        NotUnderstood: the value is not a pointer.
    """
    if not isinstance(pointer, Pointer):
        raise NotUnderstood("access through what is not a pointer")
    shape = broadcast(pointer.shape, shape_of(mask), data if kind != "loaded" else ())
    count = math.prod(shape)
    most = most_of(mask)
    at_most = count if most is True else count * _share(most)
    at_least = 0.0 if isinstance(mask, Data) else at_most
    width = WIDTH.get(pointer.dtype, 4.0)
    tally.widths[pointer.base] = width
    tally.step(count)
    tally.add("accesses", 1)
    if kind == "atomics":
        tally.add("atomics", at_least, at_most)
        tally.add("loaded", at_least * width, at_most * width)
        tally.add("stored", at_least * width, at_most * width)
        tally.stored_to.add(pointer.base)
    else:
        tally.add(kind, at_least * width, at_most * width)
    if kind != "loaded":
        tally.stored_to.add(pointer.base)
    if at_most == 0:
        return shape
    if isinstance(pointer.offset, Data) or pointer.unknown:
        tally.add("unlocated", at_least * width, at_most * width)
    if isinstance(pointer.offset, Data):
        tally.add("gathered", at_least * width, at_most * width)
        tally.strides.setdefault(site, "gather")
        tally.efficiency.setdefault(site, max(_SECTOR / width, 1.0) if count > 1 else 1.0)
    else:
        _examine(tally, site, pointer, most, shape, width, is_certain=tally.certain and at_least == at_most)
    reused = kind == "loaded" and not _is_new(tally, pointer, mask)
    if kind == "loaded" and not reused:
        tally.add("loaded_once", at_least * width, at_most * width)
    factor = tally.efficiency[site]
    tally.add("sectors", at_least * width * factor, at_most * width * factor)
    return shape


def _share(mask: Value) -> float:
    array = np.asarray(mask)
    return float(np.count_nonzero(array)) / max(array.size, 1)


def _is_new(tally: Tally, pointer: Pointer, mask: Value) -> bool:
    """Return whether the program has not loaded these addresses before, in one access."""
    if isinstance(pointer.offset, Data):
        return True
    known = most_of(mask)
    parts = (np.asarray(part).tobytes() for part in (pointer.offset, known))
    key = (pointer.base, pointer.unknown, isinstance(mask, Data), *map(hash, parts))
    if key in tally.seen:
        return False
    tally.seen.add(key)
    return True


def _examine(
    tally: Tally, site: int, pointer: Pointer, mask: Value, shape: Shape, width: float, *, is_certain: bool
) -> None:
    offset = np.asarray(pointer.offset)
    if not pointer.unknown:
        # Of a block, the extent is that of its corners unless its offsets are computed in another way.
        low, high = float(offset.min()), float(offset.max())
        if mask is not True and offset.size > 1:
            inside = np.broadcast_to(offset, shape)[np.broadcast_to(np.asarray(mask), shape)]
            low, high = float(inside.min()), float(inside.max())
        old = tally.extents.get(pointer.base, (low, high))
        tally.extents[pointer.base] = (min(low, old[0]), max(high, old[1]))
        if is_certain and (low < 0 or (high + 1) * width > tally.sizes.get(pointer.base, math.inf)):
            tally.overrun.add(pointer.base)
    if site in tally.efficiency:
        return
    tally.strides[site] = _stride(offset)
    touched = np.broadcast_to(offset, shape)
    if mask is not True:
        touched = touched[np.broadcast_to(np.asarray(mask), shape)]
    touched = touched.reshape(-1)[:_MOST_EXAMINED]
    addresses = np.unique(touched)
    sectors = len(np.unique((addresses * width) // _SECTOR))
    # An access of a few bytes moves a sector, but the next one finds it in the cache.
    is_small = len(addresses) * width < _SECTOR
    tally.efficiency[site] = 1.0 if is_small else sectors * _SECTOR / (touched.size * width)


def _stride(offset: Array) -> str:
    """How neighbours are in memory: ``scalar``, ``contiguous``, ``strided`` or ``irregular``."""
    if offset.size < 2:
        return "scalar"
    kinds = set()
    for axis in range(offset.ndim):
        if offset.shape[axis] > 1:
            steps = np.unique(np.diff(offset, axis=axis))
            kinds.add("irregular" if len(steps) > 1 else "contiguous" if abs(int(steps[0])) <= 1 else "strided")
    return next(kind for kind in ("contiguous", "irregular", "strided") if kind in kinds)


def block_pointers(tally: Tally, block: BlockPointer, checked: tuple[int, ...]) -> tuple[Pointer, Value]:
    """The pointers of a block pointer and the mask of its bounds in the ``checked`` dimensions."""
    rank = len(block.block)
    pointer: Value = block.pointer
    mask: Value = True
    for axis in range(rank):
        shape = [1] * rank
        shape[axis] = block.block[axis]
        inside = np.arange(block.block[axis], dtype=np.int64).reshape(shape)
        place = binary(tally, ast.Add, block.offsets[axis], inside)
        pointer = binary(tally, ast.Add, pointer, binary(tally, ast.Mult, place, block.strides[axis]))
        if axis in checked or block.checked:
            below = compare(tally, ast.Lt, place, block.sizes[axis])
            mask = below if mask is True else binary(tally, ast.BitAnd, mask, below)
    if not isinstance(pointer, Pointer):
        raise NotUnderstood("a block of what is not a pointer")
    return pointer, mask
