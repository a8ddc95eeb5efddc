"""Joins what is known of values, and widens it."""

from __future__ import annotations

from ..scope import Definition
from .folding import MISSING
from .quantities import Quantity, mixed
from .records import replace
from .values import NUMBERS, UNKNOWN, Entries, Value, literal, number_of

_NUMERIC = NUMBERS | {"unknown"}


def joined(branches: list[tuple[float, Value]]) -> Value:
    """Return what is known of a value that is one of several, each with its share."""
    first = branches[0][1]
    if all(value is first for _, value in branches):
        return first
    values = [value for _, value in branches]
    kinds = {value.kind for value in values}
    if "user-function" in kinds and not is_one_function([value for value in values if value.kind != "none"]):
        # Which one is called is not known.
        return replace(UNKNOWN, bytes=mixed((share, value.bytes) for share, value in branches))
    amounts = [_amount(value) for value in values]
    if _differ(values) and all(amount is not None for amount in amounts):
        total = sum(share for share, _ in branches) or 1.0
        shared = zip(branches, amounts, strict=True)
        numbers = [(share / total, amount) for (share, _), amount in shared if amount is not None]
        is_number = all(value.is_number for value in values)
        return Value("unknown", number=mixed(numbers), type="float" if is_number else "")
    if len(kinds) > 1:
        known = [(share, value) for share, value in branches if value.kind not in ("none", "unknown")]
        if len({value.kind for _, value in known}) != 1 or len(known) == len(values):
            return replace(UNKNOWN, bytes=mixed((share, value.bytes) for share, value in branches))
        others = [(share, value) for share, value in branches if value.kind == "unknown"]
        branches, first = known, replace(known[0][1], optional="none" in kinds or known[0][1].optional)
        if others:
            return _with_unknown(joined(known), others, sum(share for share, _ in known))
        values = [value for _, value in branches]
    total = sum(share for share, _ in branches) or 1.0
    shares = [share / total for share, _ in branches]
    constant = MISSING if first.optional else first.constant
    same = all(value.constant is not MISSING and _equal(value.constant, constant) for value in values)
    return replace(
        first,
        constant=constant if same else MISSING,
        number=_mixed_field(shares, [value.number for value in values]),
        size=_mixed_field(shares, [value.size for value in values]),
        bytes=mixed((share, value.bytes) for share, value in zip(shares, values, strict=True)),
        shape=first.shape if all(value.shape == first.shape for value in values) else None,
        optional=first.optional or any(value.optional for value in values),
    )


def _amount(value: Value) -> Quantity | None:
    """The number of what is computed with; an argument counts as one of its name, and a part of an object does not."""
    return number_of(value) if value.kind in _NUMERIC and "." not in value.name else value.number


def _differ(values: list[Value]) -> bool:
    """Return whether values are of several kinds, or some are numbers and others may be."""
    known = {(value.kind, value.number is None) for value in values}
    return len(known) > 1 and any(value.number is not None for value in values)


def _with_unknown(known: Value, others: list[tuple[float, Value]], share: float) -> Value:
    """Return what is known of a value that may also be an unknown one, probably of the same kind."""
    total = (share + sum(part for part, _ in others)) or 1.0
    amounts = [(part / total, number_of(value)) for part, value in others]
    number, size = (
        mixed([(share / total, own), *((part, amount) for part, amount in amounts if amount is not None)])
        if own is not None and all(amount is not None for _, amount in amounts)
        else None
        for own in (known.number, known.size)
    )
    return replace(known, constant=MISSING, payload=None, number=number, size=size, shape=None)


def is_one_function(values: list[Value]) -> bool:
    """Return whether values are all the same function of the program."""
    if any(value.kind != "user-function" for value in values):
        return False
    nodes = [value.payload[0] if isinstance(value.payload, tuple) else value.payload for value in values]
    return all(node is nodes[0] or (isinstance(node, Definition) and node == nodes[0]) for node in nodes)


def _equal(left: object, right: object) -> bool:
    return type(left) is type(right) and left == right


def _mixed_field(shares: list[float], quantities: list[Quantity | None]) -> Quantity | None:
    known = [quantity for quantity in quantities if quantity is not None]
    if len(known) < len(quantities):
        return None
    if all(quantity == known[0] for quantity in known):
        return known[0]
    return mixed(zip(shares, known, strict=True))


def any_of(item: Value) -> Value:
    """An item like the known one of a container that gets others."""
    return _any_of(item, {})


def _any_of(item: Value, done: dict[int, Value]) -> Value:
    """``done`` are the items so far, by identity: the parts of a tuple may be one object many times over."""
    result = done.get(id(item))
    if result is None:
        parts = item.payload
        kept = (
            tuple(_any_of(part, done) for part in parts if isinstance(part, Value))
            if isinstance(parts, tuple)
            else None
        )
        if not kept and isinstance(item.constant, tuple):
            kept = tuple(_any_of(literal(part), {}) for part in item.constant)
        result = done[id(item)] = replace(item, constant=MISSING, number=None, payload=kept or None)
    return result


def any_entries(entries: Entries) -> Entries:
    """The values of known keys as they may be once others have been assigned."""
    return Entries(tuple((key, UNKNOWN if value.kind == "none" else any_of(value)) for key, value in entries.pairs))
