"""Rules for tables and columns of pandas and polars: what subscripts choose, and functions that are applied to rows.

A table is an object whose size is its number of rows. How many columns it has is rarely in the text: costs are measured
with four.
"""

from __future__ import annotations

from ..domain import object_sizes
from ..domain.quantities import ONE, ZERO, Quantity, constant
from ..domain.records import replace
from ..domain.values import UNKNOWN, Call, Value
from .rules import Rule, argument, bare, receiver, rows
from .unit_costs import each, seconds

FRAME, SERIES, ROW = "pandas.DataFrame", "pandas.Series", "pandas.Series"
_GROUPED, _GROUPED_SERIES = "pandas.GroupBy", "pandas.SeriesGroupBy"
COLUMNS = constant(1.0, 40.0, 4.0)
_SOME = constant(0.0, 1.0, 0.5)
_OF_GROUP = constant(1.0, 1000.0, 5.0)  # rows
_SCALARS = frozenset({"str", "int", "float", "none"})
_REDUCING = frozenset({"sum", "mean", "max", "min", "count", "std", "var", "median", "any", "all", "prod"})


def made(type_: str, from_: str) -> Rule:
    """A table or a column of what is passed: dicts of columns, lists of rows or values, arrays."""

    def rule(call: Call) -> Value:
        data = argument(call, 0, "data")
        call.spend(seconds(from_))
        size, columns = ZERO, COLUMNS if type_ == FRAME else ONE
        if data is UNKNOWN or data.kind == "none":
            return rows(type_, size)
        if data.kind == "dict":
            column = data.entry or UNKNOWN
            is_column = column.kind in ("list", "array", "object", "tuple", "unknown") or column.name == SERIES
            size = call.length(column) if is_column else ONE
            columns = call.length(data) if type_ == FRAME else ONE
            call.spend(seconds(f"{from_}.columns", columns if type_ == FRAME else ZERO))
            is_boxed = column.kind not in ("array", "object")
            call.spend(seconds(f"{from_}.values", size if is_boxed else ZERO))
        elif data.kind == "array":
            return rows(type_, data.shape[0] if data.shape else call.length(data))
        elif data.kind == "object":
            return rows(type_, call.length(data))
        else:
            size = call.consume(data)
            item = data.item or UNKNOWN
            is_row = item.kind in ("dict", "tuple", "list", "unknown") and type_ == FRAME
            given = argument(call, 2, "columns")
            columns = (call.length(given) if given.size is not None else item.size or columns) if is_row else columns
            is_boxed = True
            call.spend(seconds(f"{from_}.rows" if is_row else f"{from_}.values", size))
        held = (size * columns).times(object_sizes.REFERENCE)
        if is_boxed:
            # References to all values or a copy of all columns, and a column that is tried as four types.
            call.allocate(held + size.times(4 * object_sizes.REFERENCE))
        return replace(rows(type_, size), bytes=held)

    return rule


def _values(value: Value) -> list[Value]:
    """The parts of a list, a tuple or a slice that the text shows."""
    return [part for part in value.payload if isinstance(part, Value)] if isinstance(value.payload, tuple) else []


def _is_mask(index: Value) -> bool:
    return index.kind in ("object", "array")


def _chosen(call: Call, whole: Quantity, index: Value) -> Quantity:
    """The rows that a mask, a list or a slice chooses."""
    if index.kind in ("list", "tuple") and index.size is not None:
        return index.size
    if index.kind == "slice" and all(part.kind == "none" for part in _values(index)):
        return whole
    return whole * _SOME


def subscript(call: Call) -> Value:
    """``frame[key]``, ``series[key]``, and those of groups."""
    owner, index = receiver(call), argument(call, 0)
    whole = call.length(owner)
    if owner.name in (_GROUPED, _GROUPED_SERIES):
        call.spend(seconds("pandas.groupby.column"))
        return Value("object", name=_GROUPED if index.kind in ("list", "tuple") else _GROUPED_SERIES, size=whole)
    if owner.name == SERIES:
        if _is_mask(index) or index.kind in ("slice", "list"):
            call.spend(seconds("pandas.filter.series" if index.kind != "slice" else "pandas.slice", whole))
            return rows(SERIES, _chosen(call, whole, index))
        call.spend(seconds("pandas.item"))
        return UNKNOWN
    if _is_mask(index) and index.name != "pandas.Index":
        call.spend(seconds("pandas.filter", whole))
        return rows(FRAME, whole * _SOME)
    if index.kind == "slice":
        call.spend(seconds("pandas.slice"))
        return rows(FRAME, _chosen(call, whole, index))
    if index.kind in ("list", "object"):
        call.spend(seconds("pandas.columns", whole))
        return rows(FRAME, whole)
    call.spend(seconds("pandas.column"))
    return bare(rows(SERIES, whole))


def located(call: Call) -> Value:
    """``frame.loc[rows, columns]``, ``frame.iloc[...]`` and those of columns."""
    owner, index = receiver(call), argument(call, 0)
    whole = call.length(owner)
    of_column = owner.name.endswith("Series")
    parts = (_values(index) if index.kind == "tuple" else []) or [index]
    kind = parts[0].kind
    if kind in _SCALARS and (of_column or len(parts) > 1):
        call.spend(seconds("pandas.loc.item"))
        return UNKNOWN
    if kind in _SCALARS:
        call.spend(seconds("pandas.loc.row"))
        return rows(ROW, COLUMNS)
    column = len(parts) > 1 and parts[1].kind not in ("list", "slice", "object", "array")
    if kind == "slice" or kind == "unknown":
        call.spend(seconds("pandas.loc.slice"))
    else:
        call.spend(seconds("pandas.loc.filter" if column or of_column else "pandas.filter", whole))
    return rows(SERIES if of_column or column else FRAME, _chosen(call, whole, parts[0]))


def first(call: Call) -> Value:
    """``frame.head(n)`` and ``frame.tail(n)``."""
    number = argument(call, 0, "n")
    call.spend(seconds("pandas.frame.head"))
    given = number.constant if number.known else 5 if number is UNKNOWN else None
    count = constant(float(given)) if isinstance(given, int) and given > 0 else number.number
    return rows(FRAME, count if count is not None else call.length(receiver(call)) * _SOME)


def stored(call: Call) -> Value:
    """``frame[key] = values`` and ``frame.loc[rows, columns] = values``."""
    owner = receiver(call)
    is_column = owner.name == FRAME and not _is_mask(argument(call, 0))
    call.spend(seconds("pandas.store" if is_column else "pandas.loc.store", call.length(owner)))
    return Value("none")


def applied(call: Call) -> Value:
    """``frame.apply``, by columns or by rows, ``series.apply`` and ``series.map``, and ``groups.apply``."""
    owner, function, axis = receiver(call), argument(call, 0, "func", "arg"), argument(call, 1, "axis")
    whole = call.length(owner)
    if owner.name in (_GROUPED, _GROUPED_SERIES):
        groups = whole * constant(0.0, 1.0, 0.3)
        call.spend(seconds("pandas.groupby.apply", groups))
        group = FRAME if owner.name == _GROUPED else SERIES
        call.apply(function, groups, [Value("object", name=group, size=_OF_GROUP)])
        return rows(group, groups)
    if owner.name == SERIES:
        if function.kind in ("dict", "object"):
            call.spend(seconds("pandas.map", whole))
        else:
            call.spend(seconds("pandas.apply", whole))
            call.apply(function, whole, [UNKNOWN])
        return rows(SERIES, whole)
    if axis.known and axis.constant in (1, "columns"):
        call.spend(seconds("pandas.apply.rows", whole))
        call.apply(function, whole, [Value("object", name=ROW, size=COLUMNS)])
        return rows(SERIES, whole)
    call.spend(seconds("pandas.apply.columns"))
    call.apply(function, COLUMNS, [Value("object", name=SERIES, size=whole)])
    return rows(FRAME, whole)


def aggregated(call: Call) -> Value:
    """``agg`` and ``transform`` of tables, columns and groups: by names of functions, lists or dicts of them."""
    owner, function = receiver(call), argument(call, 0, "func")
    whole = call.length(owner)
    is_grouped = owner.name in (_GROUPED, _GROUPED_SERIES)
    named = [value for value in call.keywords.values() if value.kind in ("tuple", "object", "str")]
    names = call.length(function) if function.kind in ("list", "dict", "tuple") else constant(max(len(named), 1))
    if function.kind == "dict" and function.entry is not None and function.entry.kind == "list":
        names = names * call.length(function.entry)
    if function.kind in ("user-function", "function") and is_grouped:
        return applied(call)
    cost = "pandas.groupby.agg" if is_grouped else "pandas.agg"
    call.spend(seconds(cost))
    call.spend(seconds(f"{cost}.each", whole) * names)
    return rows(
        FRAME if function.kind != "str" or owner.name in (FRAME, _GROUPED) else SERIES, _left(whole, is_grouped)
    )


def _left(whole: Quantity, is_grouped: bool) -> Quantity:
    return whole * constant(0.0, 1.0, 0.3) if is_grouped else COLUMNS


def joined(call: Call) -> Value:
    """``pandas.concat`` of a list of tables or columns."""
    parts = argument(call, 0, "objs")
    pieces = _values(parts)
    count = call.consume(parts)
    item = parts.item or UNKNOWN
    axis = argument(call, 1, "axis")
    type_ = SERIES if item.name == SERIES else FRAME
    if axis.known and axis.constant in (1, "columns"):
        size, type_ = call.length(pieces[0] if pieces else item), FRAME
    else:
        size = ZERO
        for piece in pieces:
            size = size + call.length(piece)
        if not pieces:
            size = count * call.length(item)
    call.spend(count.times(each("pandas.concat.each")) + seconds("pandas.concat.rows", size))
    return rows(type_, size)


def converted(cost: str) -> Rule:
    """``pandas.to_datetime`` and others of a column, or of one value."""

    def rule(call: Call) -> Value:
        value = argument(call, 0)
        if value.kind in ("object", "list", "array", "tuple") and not value.name.startswith("datetime."):
            size = call.length(value)
            call.spend(seconds(cost, size))
            return rows(SERIES, size)
        if value.kind == "unknown" and value.name:
            call.spend(seconds(f"{cost}.one"))
            return UNKNOWN
        call.spend(seconds(f"{cost}.one"))
        return Value("object", name="datetime.datetime") if cost == "pandas.to_datetime" else UNKNOWN

    return rule
