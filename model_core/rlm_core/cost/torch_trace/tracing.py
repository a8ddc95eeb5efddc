"""Source text -> a trace: the class or function to trace, its inputs, and the operations of its forward pass."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping

from ..concrete.frame import call_function, execute
from ..concrete.values import UNKNOWN, LibraryName, Named, SourceFunction, Value
from ..domain.records import replace
from ..domain.syntax import parse_whole
from .calls import class_attribute, instantiate, weights_of
from .context import FAILURES, TraceContext, attempted, call, new_context
from .recorder import Operation, Trace
from .values import Instance, SourceClass, Tensor, as_shape, tensors_in

MAX_TEXT = 400_000
RESERVED = frozenset({"dtype", "mode", "backend", "autotuned"})
_SHAPE = re.compile(r"\d+(x\d+)*\Z")
_ARGUMENT = re.compile(r"arg(\d+)\Z")
_INTEGERS = re.compile(r"target|label|index|indices|idx|token|_ids\b|ids\Z")
_SCALARS = re.compile(
    r"^(n|k|p|q|s|M|N|dim|ord|eps|beta|alpha|steps?|start|end|base|size|fill_value|mode|dropout)$"
    r"|_(size|dim|shape|features|channels|p|groups|heads)$|^(num|kernel|stride|pad|normalized|output)_?|^(n|len|max)_|_len$|^dims?\d*$"
)
_SIZES = re.compile(r"size$|shape$|dims?$|padding|stride|kernel")


def trace(text: str, overrides: Mapping[str, str] | None = None) -> Trace:
    """Trace one forward pass of the module, or one call of the function, in a Python source text.

    Args:
        text: source text; imports may be missing.
        overrides: a workload. ``arg0`` and so on give shapes (``"4096x4096"``) or scalars of the inputs in order,
            ``dtype`` the element type of the inputs, other names replace constants and parameters of the same name.

    Returns:
        The trace; an empty one when the text has nothing to trace. Never raises.
    """
    given = {} if overrides is None else overrides
    tree = parse_whole(text, MAX_TEXT)
    if not isinstance(tree, ast.Module):
        return Trace()
    try:
        return _trace(tree, given)
    except FAILURES:
        return Trace()


def parsed(value: str) -> Value:
    """A workload's value: a shape, a number, a truth value or the string itself."""
    if _SHAPE.match(value) and "x" in value:
        return tuple(int(size) for size in value.split("x"))
    for kind in (int, float):
        try:
            return kind(value)
        except ValueError:
            continue
    return {"true": True, "false": False, "none": None}.get(value.lower(), value)


def _trace(tree: ast.Module, given: Mapping[str, str]) -> Trace:
    is_constant = {name: name not in RESERVED and not _ARGUMENT.match(name) for name in given}
    context = new_context({name: parsed(value) for name, value in given.items() if is_constant[name]})
    for statement in tree.body:
        if not _is_test(statement):
            attempted(execute, context, [statement])
    entry = _entry(context, tree, given)
    if entry is None:
        return Trace()
    if isinstance(entry, SourceFunction):
        return _forward(context, entry, arguments_of(entry, given, skip=0), {}, 0)
    initial, named = _split_named(_call_top(context, "get_init_inputs"))
    constructor = class_attribute(entry, "__init__")
    if isinstance(constructor, SourceFunction):
        known = [item.arg for item in constructor.node.args.args]
        named |= {name: value for name, value in context.overrides.items() if name in known[1 + len(initial) :]}
    module = instantiate(context, entry, initial, named)
    inputs, keywords = _split_named(_call_top(context, "get_inputs"))
    inputs = _reshaped(inputs, given)
    if not inputs and not keywords:
        forward = class_attribute(entry, "forward")
        inputs = arguments_of(forward, given, skip=1) if isinstance(forward, SourceFunction) else []
    return _forward(context, module, inputs, keywords, sum(weight.elements for weight in weights_of(module)))


def _forward(
    context: TraceContext, target: Instance | SourceFunction, inputs: list[Value], named: Named, parameters: int
) -> Trace:
    recorder = context.recorder
    recorder.unknown = recorder.views = 0
    start = len(recorder.operations)
    complete, output = True, UNKNOWN
    try:
        # A function that fails ends the trace; a module that fails gives a tensor like its input.
        if isinstance(target, SourceFunction):
            output = call_function(context, target, inputs, named)
        else:
            output = call(context, target, inputs, named)
    except FAILURES:
        complete = False
    given = tensors_in([*inputs, *named.values()])
    return Trace(
        tuple(_rebased(operation, start) for operation in recorder.operations[start:]), recorder.unknown,
        recorder.views, parameters, sum(x.elements for x in given), tuple(x.shape for x in given),
        tuple(x.shape for x in tensors_in(output)), complete,
    )  # fmt: skip


def _rebased(operation: Operation, start: int) -> Operation:
    """An operation numbered from the start of the pass; results of earlier ones are in memory."""
    return replace(operation, inputs=tuple((max(source - start, -1), size) for source, size in operation.inputs))


def _is_test(statement: ast.stmt) -> bool:
    """Return whether a top-level statement defines or runs a test."""
    if isinstance(statement, ast.FunctionDef):
        return statement.name.startswith("test")
    value = getattr(statement, "value", None)
    return isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id.startswith("test")


def _call_top(context: TraceContext, name: str) -> Value:
    """The result of a function of the top level; UNKNOWN where there is none."""
    function = context.top.names.get(name)
    if not isinstance(function, SourceFunction):
        return UNKNOWN
    spec = function.node.args
    parameters = [item.arg for item in (*spec.args, *spec.kwonlyargs)]
    named = {key: value for key, value in context.overrides.items() if key in parameters}
    return attempted(call_function, context, function, [], named)


def _split_named(value: Value) -> tuple[list[Value], Named]:
    """Inputs given as a list, or as ``[args, kwargs]``, or as a dict."""
    if isinstance(value, dict):
        return [], {str(key): item for key, item in value.items()}
    if not isinstance(value, (list, tuple)):
        return ([value] if isinstance(value, Tensor) else []), {}
    if len(value) == 2 and isinstance(value[0], (list, tuple)) and isinstance(value[1], dict):
        return list(value[0]), {str(key): item for key, item in value[1].items()}
    return list(value), {}


def _entry(context: TraceContext, tree: ast.Module, given: Mapping[str, str]) -> SourceClass | SourceFunction | None:
    """The module or function to trace: ``Model``, else the last module class, else the first function that fits."""
    names = context.top.names
    functions = [item for item in tree.body if isinstance(item, ast.FunctionDef)]
    tested = {
        node.func.id
        for item in functions if item.name.startswith("test")
        for node in ast.walk(item) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }  # fmt: skip
    classes = [names.get(item.name) for item in tree.body if isinstance(item, ast.ClassDef)]
    modules = [item for item in classes if isinstance(item, SourceClass) and _is_module(item)]
    for item in modules:
        if item.name == "Model":
            return item
    plain = [item for item in functions if not item.name.startswith(("test", "get_", "_"))]
    wanted = sum(1 for name in given if _ARGUMENT.match(name))
    fitting = [item for item in plain if len(item.args.args) + len(item.args.posonlyargs) >= wanted or item.args.vararg]
    modules = [item for item in modules if item.name not in tested or not fitting]
    if modules:
        return modules[-1]
    chosen = sorted(fitting, key=lambda item: item.name not in tested) or plain
    function = names.get(chosen[0].name) if chosen and (wanted or given) else None
    return function if isinstance(function, SourceFunction) else None


def _is_module(kind: SourceClass) -> bool:
    """Return whether a class derives from ``nn.Module`` or from a layer or container of the library."""
    bases = [base for base in kind.lineage() if isinstance(base, LibraryName)]
    return any(base.name == "Module" or base.path.startswith("torch.nn.") for base in bases)


def arguments_of(function: SourceFunction, given: Mapping[str, str], *, skip: int) -> list[Value]:
    """Return the inputs of a function from a workload, by position or by name; later ones keep their defaults.

    Args:
        function: the function.
        given: the workload.
        skip: how many parameters come first that the workload does not count.
    """
    spec = function.node.args
    known = [*spec.posonlyargs, *spec.args][skip:]
    values: list[Value] = []
    count = max((int(match[1]) + 1 for name in given if (match := _ARGUMENT.match(name))), default=0)
    for index in range(min(max(count, len(known)), 64)):
        item = known[index] if index < len(known) else None
        name = "" if item is None else item.arg
        text = given.get(f"arg{index}", given.get(name))
        default = function.defaults.get(name, UNKNOWN)
        values.append(default if text is None else _input(text, item, given.get("dtype", "fp32")))
    return values


def _input(text: str, item: ast.arg | None, dtype: str) -> Value:
    """An input from its text: a single number is a scalar or a vector, by the parameter's annotation or name."""
    name = "" if item is None else item.arg
    note = "" if item is None or item.annotation is None else ast.unparse(item.annotation)
    value = () if text == "" else parsed(text)
    if isinstance(value, int) and not isinstance(value, bool):
        if _SCALARS.search(name) if not note else "Tensor" not in note:
            return value
        value = (value,)
    if not isinstance(value, tuple) or (_SIZES.search(name) and "Tensor" not in note):
        return value
    dtypes = dtype.split("+")
    floating = next((kind for kind in dtypes if kind.startswith(("fp", "bf", "tf", "complex"))), None)
    integer = next((kind for kind in dtypes if kind.startswith(("int", "uint", "bool"))), None)
    whole = _INTEGERS.search(name) is not None or (floating is None and integer is not None)
    return Tensor(as_shape(value), (integer or "int64") if whole else (floating or "fp32"))


def _reshaped(inputs: list[Value], given: Mapping[str, str]) -> list[Value]:
    """The inputs of the module, with the shapes of the workload where it has any."""
    result = []
    for index, value in enumerate(inputs):
        text = given.get(f"arg{index}")
        sizes = None if text is None else parsed(text)
        if isinstance(value, Tensor) and isinstance(sizes, (tuple, int)):
            value = Tensor(as_shape(sizes if isinstance(sizes, tuple) else (sizes,)), value.dtype)
        elif sizes is not None and not isinstance(value, Tensor):
            value = sizes
        result.append(value)
    return result
