"""A text with kernels and a workload -> the function of the text that launches them, followed at that workload.

Labels and comments give the arguments by position, or sizes by name. Tensors have no shape then: some are tried, those
that fit the names first, until the launches and what they do are known.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from ..concrete.values import UNKNOWN, Named, SourceFunction, Value
from ..domain.records import replace
from ..torch_trace.tracing import RESERVED, arguments_of, parsed
from ..torch_trace.values import Instance, SourceClass, Tensor, dtype_name
from .host import HostProgram, HostTrace, Launch, launch_facts, read_program
from .launch import LaunchFacts
from .parameters import COMPANIONS, tensor_parameters

_ARGUMENT = re.compile(r"arg\d+\Z")
_BACKWARD = re.compile(r"bwd|backward|grad", re.IGNORECASE)
_VECTOR = re.compile(r"weight|bias|gamma|beta|(?:^|_)[wb](?:_|\Z)|scale|mean|rstd|^[Ww]$|index|indices|target|label")
_SQUARE = re.compile(r"([a-z])\1(?:_|\Z)|flat")
_SCALAR = re.compile(r"^(?:len|num|n|max)_|^[nNM]\d?\Z|^(?:inc|alpha|beta|eps|steps?)\Z|(?:_size|_len|_dim|steps?)\Z")
_LOOP_SCALAR = re.compile(r"^[ijkmnstxy]\d?\Z")  # in loops that were translated from C
_TEST_PART = re.compile(r"(?:\A|\.)_*(?:test|bench|main\Z|demo|verify)|torch|naive|reference|_ref\Z")
_BLOCK = re.compile(r"size|block|tile|^B[A-Z]\Z", re.I)
_UNEVEN = re.compile(
    r"cu_seq|seqlens|chunk_indices|split_indices"
)  # of sequences of different lengths: typical are equal
_INDEX = re.compile(r"ind|idx|tar|lab|.*(?:indices|index|ids)\Z")
_AXIS = re.compile(r"(?:dim|axis)\Z")
_SHAPE = re.compile(r"(?:size|(?:.*_)?shape)\Z")
_FLAG = re.compile(
    r"(?:is|has|use|with|in_place|inplace|enable|do|return|log|causal|training|transpose|zero|need)(?:_|\Z)", re.I
)
# Names of sizes in labels and comments: rows, or the two whose product they are, and the width of a row.
_ROWS = ("bt", "m", "rows", "ni", "nx")
_BATCH, _SEQUENCE = ("b", "bsz", "batch", "batch_size", "z"), ("t", "seq_len", "seq", "s", "l", "n_ctx")
_FEWER_ROWS = ("b", "t", "h")
_WIDTHS = ("intermediate_size", "v", "vocab_size", "h", "n", "hidden_size", "d", "cols", "nj", "ny")
_MOST_FUNCTIONS, _MOST_TRIALS, _MOST_LAUNCHES = 4, 16, 12
_SAME = 1.05  # times as much is the same
_OTHER_GUESS = 2  # for numbers that are guessed as 1: it must not matter


@dataclass(frozen=True, slots=True)
class WorkloadFacts:
    """What a call does on the device: facts of each launch, the best of its configurations, and other operations.

    ``launches`` counts all launches; those beyond the first ones are like the last of them. ``read`` and ``written``
    are bytes of the ``operations`` of PyTorch, ``flops`` their arithmetic. ``assumed``: no launch of the text is known,
    and the facts are those of one that covers once what its kernel stores. ``agrees``: workload, tensors and numbers of
    the launches do not contradict each other, and no guess matters.
    """

    facts: tuple[LaunchFacts, ...]
    launches: int
    operations: int
    read: float
    written: float
    flops: float
    complete: bool
    assumed: bool = False
    agrees: bool = True

    @property
    def known(self) -> bool:
        """Return whether all launches are known with their bytes and operations."""
        return self.complete and bool(self.facts) and all(fact.known for fact in self.facts)

    @property
    def stated(self) -> bool:
        """Return whether they are known, and those of the workload."""
        return self.known and self.agrees


def workload_facts(
    text: str, workload: Mapping[str, str], sizes: Mapping[str, Mapping[str, int]] | None = None
) -> WorkloadFacts | None:
    """What the kernels of a text do at a workload; None where no function launches one at known sizes.

    Those that agree with the workload come first.

    Args:
        text: kernels and functions.
        workload: sizes by name or arguments by position.
        sizes: what the workload says of the arguments of each kernel.
    """
    program = read_program(text)
    if program is None:
        return None
    best: WorkloadFacts | None = None
    chosen = HostTrace()
    for number, (function, arguments, named) in enumerate(workload_calls(program, workload)):
        trace = program.run(function, arguments, named)
        facts = _facts(trace, quick=True)
        if facts is None:
            continue
        if facts.known:
            other = next(islice(workload_calls(program, workload, guess=_OTHER_GUESS), number, None), None)
            agrees = other is not None and not any(_contradicts(launch, sizes or {}) for launch in trace.launches)
            if agrees and other is not None and _sizes(named, arguments) != _sizes(other[2], other[1]):
                agrees = _same_work(facts, _facts(program.run(*other), quick=True))
            whole = _whole(trace, facts) if agrees else None
            if whole is not None and whole.stated:
                return whole
            facts = whole or replace(facts, agrees=False)
        if best is None or _quality(facts) > _quality(best):
            best, chosen = facts, trace
    # Launches that are not known in their first programs are not known as a whole.
    return replace(_whole(chosen, best), agrees=best.agrees) if best is not None and best.known else best


def _whole(trace: HostTrace, first: WorkloadFacts) -> WorkloadFacts:
    """The facts of all programs of launches, and whether these stay within their tensors."""
    facts = _facts(trace, quick=False) or first
    return replace(facts, agrees=not any(fact.overrun for fact in facts.facts))


def _sizes(named: Named, arguments: Sequence[Value]) -> list[Value]:
    values = (*arguments, *named.values())
    return [value.shape if isinstance(value, Tensor) else value for value in values if isinstance(value, (int, Tensor))]


def _same_work(facts: WorkloadFacts, other: WorkloadFacts | None) -> bool:
    """Return whether launches move the same bytes."""
    if other is None or len(facts.facts) != len(other.facts):
        return False
    pairs = zip(facts.facts, other.facts, strict=True)
    return all(one.counts[name] == two.counts[name] for one, two in pairs for name in ("loaded", "stored"))


def workload_calls(
    program: HostProgram, workload: Mapping[str, str], guess: int = 1
) -> Iterator[tuple[SourceFunction, list[Value], Named]]:
    """The functions that may launch what a workload is about, with arguments, likely ones first.

    ``guess`` is the number for arguments of which neither workload nor text says anything, and a factor for rows.
    """
    functions = launchers(program, workload)[:_MOST_FUNCTIONS]
    for arguments, named, function in islice(_calls(program, functions, workload, guess), _MOST_TRIALS):
        yield function, arguments, named


# Rows and columns, batch and sequence and width, batch and sequence and heads and width of a head, and a vector.
TYPICAL_SHAPES = ((4096, 4096), (4, 2048, 8, 128), (4, 2048, 4096), (4, 2048, 8), (4_194_304,), (4096,))


def typical_calls(program: HostProgram) -> Iterator[tuple[SourceFunction, list[Value], Named]]:
    """The functions that launch kernels, with tensors of typical sizes: no label or comment names them.

    The backward pass of an autograd function follows the forward pass, which saves tensors for it.
    """
    tensors = tensor_parameters(program)
    names = {id(function): name for name, function in program.functions.items()}
    for function in launchers(program, {}):
        for shape in TYPICAL_SHAPES:
            for vector in (shape[-1:], shape) if len(shape) == 2 else (shape[-1:],):
                shapes = (shape, vector, shape)
                named = _named(function, tensors[id(function)], {}, {}, shapes, "fp16")
                owner, _, method = names[id(function)].rpartition(".")
                forward = program.functions.get(f"{owner}.forward")
                if method == "backward" and forward is not None:
                    context = Instance(SourceClass("FunctionContext", ()))
                    first = _named(forward, tensors[id(forward)], {}, {}, shapes, "fp16")
                    program.run(forward, [context], {name: value for name, value in first.items() if name != "ctx"})
                    yield function, [context], {name: value for name, value in named.items() if name != "ctx"}
                else:
                    for axes in _axes(function, shape):
                        yield function, [], {**named, **axes}


def _axes(function: SourceFunction, shape: tuple[int, ...]) -> Iterator[Named]:
    """The axis along which a function works, where it takes one: its default, and the last one."""
    yield {}
    for name in filter(_AXIS.match, function.defaults):
        yield {name: len(shape) - 1}
        yield {name: [len(shape) - 1]}


def launchers(program: HostProgram, workload: Mapping[str, str]) -> list[SourceFunction]:
    """The functions that launch kernels, directly or through others; those that no other one calls first."""
    words = {name: _words(function) for name, function in program.functions.items() if not _TEST_PART.search(name)}
    reach = {name for name, used in words.items() if used & program.kernels.keys()}
    # A method is called by the name of its class.
    short = {name: name.partition(".")[0] for name in words}
    while (
        grown := {name for name, used in words.items() if used & {short[other] for other in reach} - {short[name]}}
        - reach
    ):
        reach |= grown
    called = {other for name in reach for other in reach if short[other] != short[name] and short[other] in words[name]}
    is_backward = workload.get("mode") == "backward"

    def order(name: str) -> tuple[bool, bool, bool]:
        parameters = [item.arg for item in program.functions[name].node.args.args]
        is_method = bool(parameters) and parameters[0] in COMPANIONS
        return (_BACKWARD.search(name) is not None) != is_backward, is_method, name in called

    return [program.functions[name] for name in sorted((name for name in words if name in reach), key=order)]


def _words(function: SourceFunction) -> set[str]:
    return {node.id for node in ast.walk(function.node) if isinstance(node, ast.Name)}


def _quality(facts: WorkloadFacts) -> tuple[bool, bool, int]:
    known = sum(fact.known for fact in facts.facts)
    return known == len(facts.facts), facts.complete, known


def _calls(
    program: HostProgram, functions: Sequence[SourceFunction], workload: Mapping[str, str], guess: int
) -> Iterator[tuple[list[Value], Named, SourceFunction]]:
    """Arguments to follow the functions with, likely ones first."""
    if any(map(_ARGUMENT.match, workload)):
        for function in functions:
            skip = int(bool(function.node.args.args) and function.node.args.args[0].arg in COMPANIONS)
            try:
                given = [UNKNOWN] * skip + arguments_of(function, workload, skip=skip)
            except ValueError:  # larger than any tensor
                return
            yield given, {}, function
            yield given, _like_first(function, given, guess), function
        return
    sizes = {name.lower(): value for name, text in workload.items() if isinstance(value := parsed(text), int)}
    dtype = next((name for name in workload.get("dtype", "fp32").split("+") if name.startswith(("fp", "bf"))), "fp32")
    tensors = tensor_parameters(program)
    for shapes in _shapes(sizes, guess):
        for function in functions:
            if _leaves_out(sizes, shapes[0], function):
                continue
            named = _named(function, tensors[id(function)], sizes, workload, shapes, dtype, guess)
            for axes in _axes(function, shapes[0]):
                yield [], {**named, **axes}, function


def _leaves_out(sizes: Mapping[str, int], shape: tuple[int, ...], function: SourceFunction) -> bool:
    """Return whether some sizes are neither dimensions of a guessed shape nor arguments: then it is another shape."""
    spec = function.node.args
    known = {item.arg.lower() for item in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs)}
    known |= {"hidden_size"} if "intermediate_size" in sizes else set()
    if math.prod(_rows(sizes)) in shape:
        known |= {*_BATCH, *_SEQUENCE}
    return any(value > 1 and name not in known and value not in shape for name, value in sizes.items())


def _like_first(function: SourceFunction, given: list[Value], guess: int) -> Named:
    """Tensors like the first one for the parameters that have neither a value nor a default; fills ``given``."""
    first = next((value for value in given if isinstance(value, Tensor)), None)
    spec = function.node.args
    known = [*spec.posonlyargs, *spec.args]
    for place, item in enumerate(known[: len(given)]):
        if given[place] is UNKNOWN and item.arg not in COMPANIONS and item.arg not in function.defaults and first:
            given[place] = guess if _SCALAR.search(item.arg) else replace(first)
    rest = [item.arg for item in (*known[len(given) :], *spec.kwonlyargs) if item.arg not in function.defaults]
    return {name: guess if _SCALAR.search(name) else replace(first) for name in rest} if first is not None else {}


def _shapes(sizes: Mapping[str, int], guess: int) -> Iterator[tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]]:
    """Shapes of tensors, of what looks like vectors, and of what looks like square matrices."""
    numbers = [value for value in sizes.values() if value > 1]
    rows = _rows(sizes)
    if {"b", "t"} <= sizes.keys() and "bt" not in sizes:
        sizes = {"bt": sizes["b"] * sizes["t"], **sizes}
    first = next((sizes[name] for name in _ROWS if name in sizes), 0) or (math.prod(rows) if min(rows) > 1 else 0)
    first = first or next((sizes[name] for name in _FEWER_ROWS if name in sizes), 0)
    widths = [sizes[name] for name in _WIDTHS if name in sizes]
    # Several widths are those of several tensors; the hidden size is next to the width of the layers in between.
    width = widths[0] if len(widths) == 1 or "intermediate_size" in sizes else 0
    if len(numbers) == 1:
        [size] = numbers
        square = (size, size) if size <= 8192 else (size,)
        yield (size,), (size,), square
        # Nothing specifies the number of rows, or their width.
        yield (square[0] * guess, *square[1:]), (size,), square
        yield (size, 1024 * guess), (size,), square
    if {"b", "h", "t", "d"} <= sizes.keys() or {"z", "h", "n_ctx", "d_head"} <= sizes.keys():
        names = ("b", "h", "t", "d") if "b" in sizes else ("z", "h", "n_ctx", "d_head")
        shape = tuple(sizes[name] for name in names)
        yield shape, shape[-1:], shape
    if first and width:
        yield (first, width), (width,), (first, width)
        yield (width, first), (first,), (width, first)
    # By their order where the names say nothing, if all of them can be sizes of one tensor.
    if 2 <= len(numbers) <= 4 and not widths:
        last = tuple(numbers[-1:])
        yield tuple(numbers), last, tuple(numbers)


def _rows(sizes: Mapping[str, int]) -> list[int]:
    """The size of a batch and of a sequence, 1 where there is none."""
    return [next((sizes[name] for name in names if name in sizes), 1) for names in (_BATCH, _SEQUENCE)]


def _named(
    function: SourceFunction,
    tensors: frozenset[str],
    sizes: Mapping[str, int],
    workload: Mapping[str, str],
    shapes: tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]],
    dtype: str,
    guess: int = 1,
) -> Named:
    """Arguments by name: sizes and settings of the workload, defaults, and tensors."""
    plain, vector, square = shapes
    spec = function.node.args
    named: Named = {}
    is_loop = "timed" in workload
    for item in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs):
        name = item.arg
        note = "" if item.annotation is None else ast.unparse(item.annotation)
        if name.lower() in sizes and name not in tensors:
            named[name] = sizes[name.lower()]
        elif name in workload and name not in RESERVED:
            named[name] = parsed(workload[name])
        elif (name in COMPANIONS and name not in tensors) or (
            name in function.defaults and not (note.startswith("float") and "None" in note)
        ):
            continue
        elif "float" in note and "None" in note:
            named[name] = 1.0
        elif "None" in note or "Optional" in note or _UNEVEN.search(name):
            named[name] = None
        elif name in tensors or "Tensor" in note or not tensors:
            is_vector = len(plain) > 1 and _VECTOR.search(name)
            kind = "int64" if _INDEX.match(name) else dtype
            named[name] = Tensor(vector if is_vector else square if _SQUARE.match(name) else plain, kind)
        elif "dtype" in name:
            named[name] = dtype_name(dtype)
        elif _AXIS.match(name):
            named[name] = len(plain) - 1
        elif _SHAPE.match(name):
            named[name] = list(vector if name == "normalized_shape" else plain)
        elif _FLAG.match(name) or note == "bool":
            named[name] = False
        else:
            is_large = name.startswith(("len", "n_")) or (is_loop and _LOOP_SCALAR.match(name) is None)
            is_real = note == "float" or name in ("alpha", "beta", "eps", "scale", "sm_scale")
            is_block = _BLOCK.search(name) is not None
            other = 1 if guess == 1 else guess + len(named)  # two ends of a range are not the same
            named[name] = 64 * guess if is_block else max(plain) if is_large else 1.0 if is_real else other
    return named


def _facts(trace: HostTrace, *, quick: bool) -> WorkloadFacts | None:
    launches = trace.launches
    if not launches:
        return None
    found = (best_of(launch_facts(launch, quick=quick)) for launch in launches[:_MOST_LAUNCHES])
    chosen = [facts for facts in found if facts is not None]
    if not chosen:
        return None
    # Memory that is only reserved is not written.
    operations = [operation for operation in trace.operations if not operation.name.startswith("empty")]
    count = round(sum(launch.times for launch in launches))
    return WorkloadFacts(
        tuple(chosen), count, sum(operation.kernels for operation in operations),
        sum(operation.read for operation in operations), sum(operation.written for operation in operations),
        sum(operation.flops + 2 * operation.macs for operation in operations),
        trace.complete and len(chosen) == min(len(launches), _MOST_LAUNCHES),
    )  # fmt: skip


def _contradicts(launch: Launch, sizes: Mapping[str, Mapping[str, int]]) -> bool:
    """Return whether a launch passes a number that is not that of the workload."""
    own = sizes.get(launch.kernel.name, {})
    given = [(variant.arguments.get(name), size) for variant in launch.variants for name, size in own.items()]
    return any(isinstance(value, int) and value != size for value, size in given)


def best_of(variants: Sequence[LaunchFacts]) -> LaunchFacts | None:
    """The configuration that moves the fewest sectors, known ones first: what tuning would find is not known.

    Where configurations store different amounts, a size that is not known decides what is stored.
    """
    best = min(variants, key=lambda facts: (not facts.known, facts.counts["sectors"].likely), default=None)
    if best is None:
        return None
    stored = [facts.counts["stored"].likely for facts in variants]
    unknown = best.unknown + (max(stored) > _SAME * min(stored))
    return replace(best, unknown=unknown, others=tuple(facts for facts in variants if facts is not best))
