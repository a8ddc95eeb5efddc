"""Finds repeated blocks in a sequence of operators and writes each once, with holes where its copies differ.

Input: items in order, values named by numbers. Output: fewer items, some of them calls of blocks, and the blocks. The
search is greedy: the block that saves most tokens comes first, until no block saves any.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from .node_codec import NodeSlot

_LONGEST, _EFFORT = 96, 150_000  # items in a block; of all places where one can begin, in one search
_MOST_INPUTS, _MOST_OUTPUTS, _MOST_CROSSING = 6, 2, 2
_ENDS_IN_JOIN = 2  # tokens per copy in favour of blocks that end where branches meet, as people draw them
_FEW_CUTS = 12  # at most so many items per cut, for cuts that a single value crosses to suffice
# Readers, and items from first to last: such a value (a mask, a far skip) does not tie a block to its neighbours.
_WIDELY_READ, _LONG_SPAN = 5, 32
_LEAST_GAIN = 3  # tokens
_NESTED = 25  # tokens that a block of blocks must save beyond that: it is harder to read
_WORD = re.compile(r"\d|[^\W\d]+|[^\w\s]")


@dataclass(frozen=True, slots=True)
class BlockOperand:
    """One operand of an item: a value, or the slot that holds a constant; neither: left out."""

    value: int | None = None
    slot: int | None = None


@dataclass(frozen=True, slots=True)
class Item:
    """An operator or the call of a block. ``chain``: for a repeated call, the operand that each round passes on."""

    head: str
    slots: tuple[NodeSlot, ...]
    operands: tuple[BlockOperand, ...]
    results: tuple[int, ...]
    chain: int | None = None

    @property
    def values(self) -> list[int]:
        """The values that it reads, as often as it reads them."""
        return [operand.value for operand in self.operands if operand.value is not None]


@dataclass(frozen=True, slots=True)
class RepeatedBlock:
    """A named sequence of items; ``inputs`` and ``outputs`` are values."""

    name: str
    inputs: tuple[int, ...]
    items: tuple[Item, ...]
    outputs: tuple[int, ...]


@dataclass(slots=True)
class _Candidate:
    copies: list[tuple[int, int]]
    outputs: list[tuple[int, int]] = field(default_factory=list)
    gain: float = 0.0


def fold(items: Sequence[Item], outputs: Sequence[int], names: Iterator[str]) -> tuple[list[Item], list[RepeatedBlock]]:
    """Items with repeats replaced by calls, and the blocks in the order in which they use each other.

    ``outputs``: values that are read after the last item. ``names``: for the blocks.
    """
    kept, blocks = list(items), []
    while len(kept) > 2:
        best = _best(kept, outputs)
        if best is None:
            break
        kept, block = _extract(kept, best, next(names))
        blocks.append(block)
        kept = _rounds(kept, outputs)
    return kept, blocks


def cost(item: Item) -> int:
    """The approximate number of its tokens."""
    extra = 2 * max(0, len(item.values) - 1) + (3 if not item.values else 0)
    return 1 + extra + sum(_tokens(slot.short, slot.glue) for slot in item.slots if slot.short)


def _tokens(text: str, glue: str = "") -> int:
    return len(_WORD.findall(text)) + bool(glue)


def _readers(items: Sequence[Item], outputs: Sequence[int]) -> dict[int, list[int]]:
    readers: dict[int, list[int]] = defaultdict(list)
    for index, item in enumerate(items):
        for value in set(item.values):
            readers[value].append(index)
    for value in outputs:
        readers[value].append(len(items))
    return readers


def _cuts(items: Sequence[Item], readers: dict[int, list[int]]) -> list[bool]:
    """The positions where few values are still to be read: a block can begin or end there. Length: items + 1."""
    change = [0] * (len(items) + 2)
    for index, item in enumerate(items):
        for value in item.results:
            read = readers.get(value, [])
            if read and len(read) < _WIDELY_READ and read[-1] - index <= _LONG_SPAN:
                change[index + 1] += 1
                change[read[-1] + 1] -= 1
    open_values, crossing = 0, []
    for index in range(len(items) + 1):
        open_values += change[index]
        crossing.append(open_values)
    narrow = [count <= 1 for count in crossing]
    return narrow if sum(narrow) * _FEW_CUTS > len(items) else [count <= _MOST_CROSSING for count in crossing]


def _best(items: Sequence[Item], outputs: Sequence[int]) -> _Candidate | None:
    readers = _readers(items, outputs)
    costs = [cost(item) for item in items]
    total = [0]
    for value in costs:
        total.append(total[-1] + value)
    groups = sorted(
        (group for group in _groups(items, _cuts(items, readers)) if len(group) > 1),
        key=lambda group: -(len(group) - 1) * (total[group[0][1]] - total[group[0][0]]),
    )
    best: _Candidate | None = None
    for group in groups:
        if (len(group) - 1) * (total[group[0][1]] - total[group[0][0]]) <= (best.gain if best else _LEAST_GAIN):
            break
        candidate = _weighed(items, group, readers, total, best.gain if best else _LEAST_GAIN)
        if candidate is not None:
            best = candidate
    return best


def _groups(items: Sequence[Item], cuts: Sequence[bool]) -> list[list[tuple[int, int]]]:
    """Runs of items that differ only in the words of their slots, as lists of (start, end)."""
    signs = [hash((item.head, item.chain, len(item.results), tuple(slot.key for slot in item.slots))) for item in items]
    often = Counter(signs)
    producer = {value: (index, at) for index, item in enumerate(items) for at, value in enumerate(item.results)}
    longest = max(8, min(_LONGEST, _EFFORT // max(1, sum(cuts))))
    groups: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for start in range(len(items)):
        if not cuts[start]:
            continue
        inputs: dict[int, int] = {}
        key = 0
        for end in range(start, min(len(items), start + longest)):
            if often[signs[end]] < 2:
                break
            edges: list[object] = []
            for operand in items[end].operands:
                index, at = producer.get(operand.value, (-1, 0)) if operand.value is not None else (-1, 0)
                if operand.value is None:
                    edges.append(operand.slot)
                elif index >= start:
                    edges.append((index - start, at))
                else:
                    edges.append(("in", inputs.setdefault(operand.value, len(inputs))))
            if len(inputs) > _MOST_INPUTS:
                break
            key = hash((key, signs[end], tuple(edges)))
            if end > start and cuts[end + 1]:
                groups[key].append((start, end + 1))
    return list(groups.values())


def _weighed(
    items: Sequence[Item],
    group: Sequence[tuple[int, int]],
    readers: dict[int, list[int]],
    total: Sequence[int],
    least: float,
) -> _Candidate | None:
    """The group without overlaps and its gain; None if the gain is at most ``least``."""
    copies: list[tuple[int, int]] = []
    for start, end in group:
        if not copies or start >= copies[-1][1]:
            copies.append((start, end))
    if len(copies) < 2 or total[copies[-1][1]] - total[copies[0][0]] <= least:
        return None
    if sum(total[end] - total[start] for start, end in copies[1:]) <= least:
        return None
    outputs: set[tuple[int, int]] = set()
    for start, end in copies:
        for at in range(start, end):
            for number, value in enumerate(items[at].results):
                if readers.get(value, [-1])[-1] >= end:
                    outputs.add((at - start, number))
    if not outputs or len(outputs) > _MOST_OUTPUTS:
        return None
    arguments = [tuple(text for text in row) for row in _arguments(items, copies)[1]]
    first = copies[0]
    nested = any(item.slots and item.slots[-1].key == "rounds" for item in items[first[0] : first[1]])
    inputs = len(_inputs(items[first[0] : first[1]]))
    gain = float(-(total[first[1]] - total[first[0]]) - 4 - len(outputs))
    for number, (start, end) in enumerate(copies):
        gain += total[end] - total[start]
        if number and copies[number - 1][1] == start and arguments[number] == arguments[number - 1]:
            continue
        words = sum(_tokens(text) + 1 for text in arguments[number])
        gain -= 1 + words + bool(words) + 2 * (inputs - 1) + 3 * (len(outputs) - 1)
    gain += _ENDS_IN_JOIN * len(copies) * (len(items[first[1] - 1].values) > 1) - _NESTED * nested
    return _Candidate(copies, sorted(outputs), gain) if gain > least else None


def _inputs(items: Sequence[Item]) -> tuple[int, ...]:
    """Values that a run of items reads but does not write, by first use."""
    results = {value for item in items for value in item.results}
    return tuple(dict.fromkeys(value for item in items for value in item.values if value not in results))


def _arguments(
    items: Sequence[Item], copies: Sequence[tuple[int, int]]
) -> tuple[dict[tuple[int, int], int], list[list[str]]]:
    """Hole number by (item, slot) of the slots that differ between copies, and each copy's words for the holes."""
    holes: dict[tuple[int, int], int] = {}
    columns: dict[tuple[str, ...], int] = {}
    start, end = copies[0]
    for at in range(end - start):
        for number in range(len(items[start + at].slots)):
            slots = [items[begin + at].slots[number] for begin, _ in copies]
            if len({slot.short for slot in slots}) > 1:
                column = tuple(slot.full for slot in slots)
                holes[at, number] = columns.setdefault(column, len(columns))
    return holes, [[column[copy] for column in columns] for copy in range(len(copies))]


def _extract(items: Sequence[Item], chosen: _Candidate, name: str) -> tuple[list[Item], RepeatedBlock]:
    holes, arguments = _arguments(items, chosen.copies)
    start, end = chosen.copies[0]
    body = []
    for at, item in enumerate(items[start:end]):
        slots = list(item.slots)
        for number, slot in enumerate(slots):
            if (at, number) in holes:
                text = f"${holes[at, number] + 1}"
                slots[number] = replace(slot, short=text, full=text)
        body.append(replace(item, slots=tuple(slots)))
    block = RepeatedBlock(
        name, _inputs(body), tuple(body), tuple(body[at].results[number] for at, number in chosen.outputs)
    )
    kept: list[Item] = []
    done = 0
    for (begin, stop), words in zip(chosen.copies, arguments, strict=True):
        kept += items[done:begin]
        slots_of_call = tuple(NodeSlot(f"argument{at}", word, word, "") for at, word in enumerate(words))
        operands = tuple(BlockOperand(value) for value in _inputs(items[begin:stop]))
        results = tuple(items[begin + at].results[number] for at, number in chosen.outputs)
        kept.append(Item(name, (*slots_of_call, NodeSlot("rounds", "", "x1")), operands, results))
        done = stop
    return [*kept, *items[done:]], block


def _rounds(items: Sequence[Item], outputs: Sequence[int]) -> list[Item]:
    """Merge consecutive calls with the same words into one call with a count."""
    readers = _readers(items, outputs)
    kept: list[Item] = []
    for index, item in enumerate(items):
        before = kept[-1] if kept else None
        chain = _passed_on(before, item, readers, index) if before is not None else None
        if before is None or chain is None:
            kept.append(item)
            continue
        count = int(before.slots[-1].full[1:]) + 1
        slots = (*before.slots[:-1], NodeSlot("rounds", f"x{count}", f"x{count}"))
        kept[-1] = replace(before, slots=slots, results=item.results, chain=chain)
    return kept


def _passed_on(before: Item, item: Item, readers: dict[int, list[int]], index: int) -> int | None:
    """The operand by which ``item`` is the next round of ``before``; None when it is not."""
    if before.head != item.head or not item.slots or item.slots[-1].key != "rounds" or item.slots[-1].short:
        return None
    if len(item.results) != 1 or readers.get(before.results[0]) != [index]:
        return None
    if [slot.short for slot in before.slots[:-1]] != [slot.short for slot in item.slots[:-1]]:
        return None
    differing = [at for at, pair in enumerate(zip(before.operands, item.operands, strict=True)) if pair[0] != pair[1]]
    if len(differing) != 1 or item.operands[differing[0]].value != before.results[0]:
        return None
    return differing[0] if before.chain in (None, differing[0]) else None
