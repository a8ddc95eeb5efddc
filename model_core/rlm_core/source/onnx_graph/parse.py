"""Compact text -> the graph that it was rendered from (see :mod:`.render` for the format)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from rlm_core.errors import DataError

from .graph import ARROW, ASSUMED, SHARED, Edge, Graph, Node, Operand, Shape, Value
from .node_codec import RESERVED, constant_of, shape_of, split_operator, unpack
from .shapes import infer

_MAX_STEPS, _MAX_DEPTH = 50_000, 60  # nodes and calls of blocks
_LINE = re.compile(rf"(?:(?P<names>[a-z_]+(?:,[a-z_]+)*)=)?(?P<start>[a-z]*|0)(?P<chain>{ARROW}.*)$")
_STEP = re.compile(
    rf"{ARROW}(?P<head>[A-Za-z][\w.]*(?:/[\dx]+)?)(?:<(?P<bodies>[A-Z,]+)>)?(?:\((?P<arguments>[^{ARROW}()]*(?:\(\)[^{ARROW}()]*)*)\))?"
    rf"(?P<rest>[^{ARROW}]*)"
)
_WORD = re.compile(
    r"\s*(?P<constant>\{[^}]*\}|\[[^\]]*\])|\s*:(?P<shape>[^\s{\[]+)|"
    r"\s*(?P<word>[A-Za-z_]\w*=(?:\[[^\]]*\]|[^\s{\[:]+)|[^\s{\[:]+)"
)
_HOLE = re.compile(r"\$(\d+)")
_NAME = re.compile(r"[a-z]+$")


@dataclass(slots=True)
class _BlockDefinition:
    name: str
    inputs: list[str]
    values: list[Value] | None  # of the body of If, Loop or Scan
    lines: list[str] = field(default_factory=list)


@dataclass(slots=True)
class _BlockScope:
    """Names, the value that a chain continues from, and the outputs of the block."""

    names: dict[str, Operand]
    before: Operand
    outputs: list[Operand] | None = None


def parse(text: str) -> Graph:
    """The graph of a text, in the order of the text.

    Raises:
        DataError: the text is not one that ``render`` writes; the line is named.
    """
    lines = text.split("\n")
    if not lines[0].startswith("in"):
        raise DataError("line 1: the text of a graph starts with `in` and its inputs; render the graph again")
    head, _, dtype = lines[0].partition(" | ")
    definitions: dict[str, _BlockDefinition] = {}
    main: list[str] = []
    current: _BlockDefinition | None = None
    shared = 0
    assumed: list[str] = []
    sizes: list[tuple[str, int]] = []
    for number, line in enumerate(lines[1:], 2):
        try:
            if line.startswith("\t") and current is not None:
                current.lines.append(line[1:])
            elif re.match(r"[A-Z]+( |$)", line):
                current = _definition(line)
                definitions[current.name] = current
            elif line.startswith(SHARED):
                shared = int(line.removeprefix(SHARED))
            elif line.startswith(ASSUMED):
                assumed, sizes = _assumed(line)
            elif line:
                current = None
                main.append(line)
        except ValueError as error:
            raise DataError(f"line {number}: {error}; render the graph again") from None
    try:
        names, values = _inputs(head[2:].strip())
        graph = _Parser(definitions, dtype or "float32").graph(main, names, values)
        numbers = tuple(names.index(name) for name in assumed)
        return replace(graph, assumed=numbers, sizes=tuple(sizes) if assumed else (), shared=shared)
    except (ValueError, KeyError, IndexError, TypeError, RecursionError) as error:
        raise DataError(f"not the text of a graph ({error}); render the graph again") from None


def _inputs(text: str) -> tuple[list[str], list[Value]]:
    names, values = [], []
    for part in text.split(", ") if text else []:
        words = part.split(" ")
        names.append(words[0])
        values.append(Value(shape_of(words[1]), words[2] if len(words) > 2 else "float32"))
    return names, values


def open_sizes(text: str) -> dict[str, int]:
    """The sizes that a network leaves open, with the values that its text has for them: ``{"image": 224}``."""
    last = text.rpartition("\n")[2]
    return dict(_assumed(last)[1]) if last.startswith(ASSUMED) else {}


def _assumed(line: str) -> tuple[list[str], list[tuple[str, int]]]:
    """The names of inputs with assumed shapes, and the sizes by name."""
    words = line.removeprefix(ASSUMED).split()
    pairs = [word.partition("=") for word in words if "=" in word]
    return [word for word in words if "=" not in word], [(name, int(value)) for name, _, value in pairs]


def _definition(line: str) -> _BlockDefinition:
    name, _, rest = line.partition(" ")
    words = rest.split(" ") if rest else []
    if all(_NAME.match(word) for word in words):
        return _BlockDefinition(name, words, None)
    names, values = _inputs(rest)
    return _BlockDefinition(name, names, values)


class _Parser:
    """Builds one graph; bodies of If, Loop and Scan get separate parsers."""

    def __init__(self, definitions: dict[str, _BlockDefinition], dtype: str) -> None:
        self._definitions = definitions
        self._dtype = dtype
        self._nodes: list[Node] = []
        self._values: list[Value] = []
        self._steps = 0

    def graph(self, lines: Sequence[str], names: Sequence[str], values: Sequence[Value]) -> Graph:
        self._nodes, self._values = [], list(values)
        inputs: list[Operand] = [Edge(-1, number) for number in range(len(values))]
        outputs = self._run(lines, names, inputs, 0)
        return Graph(tuple(values), tuple(self._nodes), tuple(outputs))

    def _run(self, lines: Sequence[str], names: Sequence[str], inputs: Sequence[Operand], depth: int) -> list[Operand]:
        """Parse the lines of a block or of the graph; its outputs."""
        if depth > _MAX_DEPTH:
            raise ValueError("blocks call each other endlessly")
        scope = _BlockScope(dict(zip(names, inputs, strict=True)), inputs[0] if inputs else None)
        for line in lines:
            if line.startswith(">"):
                words = line[1:].split(" ") if len(line) > 1 else []
                scope.outputs = [self._fixed(word, scope) for word in words]
                continue
            match = _LINE.match(line)
            if not match:
                raise ValueError(f"cannot read {line[:60]!r}")
            results = self._chain(match, scope, depth)
            for index, name in enumerate((match["names"] or "").split(",")):
                if name not in ("", "_"):
                    scope.names[name] = results[index]
        return [scope.before] if scope.outputs is None else scope.outputs

    def _fixed(self, word: str, scope: _BlockScope) -> Operand:
        if word == "-":
            return None
        return constant_of(word, self._dtype) if word[:1] in "{[" else scope.names[word]

    def _chain(self, line: re.Match[str], scope: _BlockScope, depth: int) -> list[Operand]:
        start, results = line["start"], [scope.before]
        chained = start != "0"
        if start not in ("", "0"):
            scope.before = scope.names[start]
        steps = list(_steps(line["chain"]))
        named = len(line["names"].split(",")) if line["names"] else 1
        for number, step in enumerate(steps):
            tail = _Tail(step["rest"], scope, self._dtype)
            if step["head"] in self._definitions:
                results = self._call(step, tail, chained, scope, depth)
            else:
                count = named if number == len(steps) - 1 else 1
                results = self._node(step, tail, chained, scope, count)
            scope.before, chained = results[0], True
        return results

    def _call(self, step: re.Match[str], tail: _Tail, chained: bool, scope: _BlockScope, depth: int) -> list[Operand]:
        called = self._definitions[step["head"]]
        arguments = _arguments(step["arguments"])
        lines = [_HOLE.sub(lambda hole: arguments[int(hole[1]) - 1], line) for line in called.lines]
        rounds = next((int(word[1:]) for word in tail.words if re.fullmatch(r"x\d+", word)), 1)
        results: list[Operand] = [scope.before]
        for _ in range(rounds):
            self._count()
            operands = tail.operands_with(results[0]) if chained else tail.operands_with(None, insert=False)
            results = self._run(lines, called.inputs, operands, depth + 1)
        return results

    def _node(self, step: re.Match[str], tail: _Tail, chained: bool, scope: _BlockScope, count: int) -> list[Operand]:
        self._count()
        operator, kernel, stride = split_operator(step["head"])
        operands = tail.operands_with(scope.before, insert=chained)
        first = self._shape(operands[0]) if operands else None
        implied, attributes = unpack(operator, kernel, stride, tail.words, first, self._dtype, alone=len(operands) == 1)
        operands += implied
        shapes = [self._shape(operand) for operand in operands]
        if tail.shapes is None:
            node_shapes = infer(operator, operands, shapes, attributes, count)
        else:
            node_shapes = tuple(shape_of(text) for text in tail.shapes.split(";"))
        bodies = tuple(self._body(name) for name in step["bodies"].split(",")) if step["bodies"] else ()
        number = len(self._nodes)
        self._nodes.append(Node(operator, tuple(operands), tuple(sorted(attributes.items())), node_shapes, bodies))
        return [Edge(number, output) for output in range(len(node_shapes))]

    def _count(self) -> None:
        self._steps += 1
        if self._steps > _MAX_STEPS:
            raise ValueError(f"more than {_MAX_STEPS} operators and calls of blocks")

    def _body(self, name: str) -> Graph:
        called = self._definitions[name]
        return _Parser(self._definitions, self._dtype).graph(called.lines, called.inputs, called.values or [])

    def _shape(self, operand: Operand) -> Shape:
        if isinstance(operand, Edge):
            if operand.node < 0:
                return self._values[operand.output].shape
            return self._nodes[operand.node].shapes[operand.output]
        return None if operand is None else operand.shape


class _Tail:
    """The text after an operator: words, operands in order, a shape."""

    def __init__(self, text: str, scope: _BlockScope, dtype: str) -> None:
        self.words: list[str] = []
        self.shapes: str | None = None
        self._operands: list[Operand] = []
        self._place: int | None = None
        self._after = 0
        at, text = 0, text.rstrip()
        while at < len(text):
            match = _WORD.match(text, at)
            if not match:
                raise ValueError(f"cannot read {text[at : at + 40]!r}")
            at = match.end()
            if match["constant"]:
                self._operands.append(constant_of(match["constant"], dtype))
            elif match["shape"]:
                self.shapes = match["shape"]
            else:
                self._word(match["word"], scope)

    def _word(self, word: str, scope: _BlockScope) -> None:
        if word == "_":
            self._place = len(self._operands)
        elif word == "-":
            self._operands.append(None)
        elif _NAME.match(word) and word not in RESERVED:
            self._operands.append(scope.names[word])
            self._after = len(self._operands)
        else:
            self.words.append(word)

    def operands_with(self, chained: Operand, *, insert: bool = True) -> list[Operand]:
        """The operands with the chained value at its position."""
        operands = list(self._operands)
        if insert:
            operands.insert(self._after if self._place is None else self._place, chained)
        return operands


def _steps(chain: str) -> Iterator[re.Match[str]]:
    at = 0
    while at < len(chain):
        step = _STEP.match(chain, at)
        if not step:
            raise ValueError(f"cannot read {chain[at : at + 60]!r}")
        yield step
        at = step.end()


def _arguments(text: str | None) -> list[str]:
    """Split at commas outside brackets and braces."""
    arguments, depth = [""], 0
    for letter in text or "":
        depth += (letter in "[{") - (letter in "]}")
        if letter == "," and not depth:
            arguments.append("")
        else:
            arguments[-1] += letter
    return arguments
