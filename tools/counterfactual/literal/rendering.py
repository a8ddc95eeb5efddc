"""Specification of a program -> the source text of its module.

Every choice depends on the seed of the specification and on what is chosen, so two specifications that differ in one
field give programs that differ in that alone: an edit is a change of a field.
"""

from __future__ import annotations

import ast
import builtins
import functools
import keyword
import math
import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from ..vocabulary import DOMAINS, VERBS, Domain, seeded
from . import sizes
from .template import Template, Variant
from .words import COMMENTS, CONSTANTS, DECOYS, DOCSTRINGS, EARLY, EXPRESSIONS, FACTORS, GLUE, NAMES, OWNERS, PARAMETERS

_T = TypeVar("_T")

PLACEMENTS = ("inline", "local", "module", "class", "default", "argument", "factors")
_CHOICE = re.compile(r"«([^«»]*)»")
_NUMBER = re.compile(r"#(\d+):(\d+)#")
_EXPRESSION = re.compile(r"@([ec])\(([^()@]+)\)")
_WORD = re.compile(r"@(w|text|number|flag|items|item)(?![a-z]|\.\w)")
_NAME = re.compile(r"\$([A-Za-z]\w*)")
_SIZE = re.compile(r"(?<![\w.])N(?!\w)")
_MODULES = (
    "array", "ast", "base64", "bisect", "collections", "copy", "csv", "dataclasses", "datetime", "decimal", "difflib",
    "fractions", "functools", "hashlib", "heapq", "html", "io", "itertools", "json", "math", "operator", "pickle",
    "random", "re", "statistics", "struct", "textwrap", "uuid", "zlib",
)  # fmt: skip
# Modules whose functions are imported by name in some programs; the names of the others are too general.
_BY_NAME = ("collections", "functools", "heapq", "itertools", "math")
_RESERVED = {*dir(builtins), *keyword.kwlist, *_MODULES, "np", "self", "N"}


@dataclass(frozen=True, slots=True)
class Specification:
    """The identity of a program: a template's variant at a size, and its style.

    ``wrap`` repeats the statements (0: once); ``depth`` counts the helpers between the function and its work;
    ``names``, ``comments`` and ``layout`` choose among neutral styles.
    """

    template: Template
    variant: int
    size: int
    seed: str
    placement: str = "inline"
    form: str = "decimal"
    depth: int = 0
    method: bool = False
    wrap: int = 0
    early: bool = False
    glue: tuple[int, ...] = ()
    parameter: int = -1
    decoys: tuple[int, ...] = ()
    names: int = 0
    comments: int = 0
    docstring: bool = False
    hints: bool = False
    layout: int = 0
    by_name: bool = False
    swapped: bool = False

    @property
    def code(self) -> Variant:
        """The variant of the template."""
        return self.template.variants[self.variant]

    def seconds(self, size: int) -> float:
        """Roughly predicted seconds of a call at another size."""
        return 5e-8 if self.early else self.code.seconds(size) * max(self.wrap, 1)

    def memory(self, size: int) -> float:
        """Roughly predicted peak bytes of a call at another size."""
        return 0.0 if self.early else self.code.memory(size)


@dataclass(frozen=True, slots=True)
class Module:
    """A module of generated code, the function in it that is measured, its class if it has one, its arguments."""

    text: str
    name: str
    owner: str
    arguments: str


def render(specification: Specification) -> Module:
    """The module of a specification; the same specification gives the same text."""
    return _Rendering(specification).module()


class _Rendering:
    def __init__(self, specification: Specification) -> None:
        self._spec = specification
        self._domain: Domain = DOMAINS[self._draw(sorted(DOMAINS), "domain")]
        constants = list(CONSTANTS)
        seeded(specification.seed, "constants").shuffle(constants)
        self._constant = constants[0]
        self._written = sizes.literal(specification.size, specification.form)

    def _draw(self, options: Sequence[_T], *key: object) -> _T:
        return seeded(self._spec.seed, *key).choice(options)

    def module(self) -> Module:
        spec = self._spec
        name, owner = self._unit_name(), ""
        constants, size = self._size()
        definitions = [spec.code.definitions] if spec.code.definitions else []
        helpers, unit = self._functions(name, size)
        if spec.method:
            owner = f"{self._domain.item.title()}{self._draw(OWNERS, 'owner')}"
            limit = [f"    {self._constant.lower()} = {self._written}\n"] if spec.placement == "class" else []
            unit = "\n".join((f"class {owner}:", *limit, textwrap.indent(unit, "    ")))
        decoys = [DECOYS[at] for at in spec.decoys]
        parts = [*decoys[:1], *helpers, *definitions, unit] if spec.swapped else [
            *definitions, *decoys[:1], *reversed(helpers), unit
        ]  # fmt: skip
        body = "\n\n\n".join((*(["\n".join(constants)] if constants else []), *parts, *decoys[1:]))
        text = self._named(self._expanded(body), name)
        arguments = PARAMETERS[list(PARAMETERS)[spec.parameter]][2] if spec.parameter >= 0 else ""
        text = self._with_imports(text)
        if spec.layout & 2:
            text = re.sub(r"^( +)", lambda match: match[1][: len(match[1]) // 2], text, flags=re.MULTILINE)
        return Module(text.strip("\n") + "\n", name, owner, f"[{self._expanded(arguments)}]")

    # The size: where it is written

    def _size(self) -> tuple[list[str], str]:
        """Lines of module constants, and the text that replaces ``N`` in the work ("" is the written size)."""
        spec = self._spec
        if spec.placement == "module":
            return [f"{self._constant} = {self._written}"], self._constant
        if spec.placement == "class":
            return [], f"self.{self._constant.lower()}"
        if spec.placement == "factors":
            factor = next(
                (f for f in (1000, 365, 200, 100, 60, 24, 50, 20, 12, 10, 7, 4, 3, 2) if spec.size % f == 0), 0
            )
            if factor and spec.size > factor:
                left, right = self._draw(FACTORS, "factors")
                return [f"{left} = {spec.size // factor}", f"{right} = {factor}"], f"{left} * {right}"
            return [f"{self._constant} = {self._written}"], self._constant
        return [], "" if spec.placement == "inline" else "$size"

    def _sized(self, text: str, size: str) -> str:
        return _SIZE.sub(
            lambda match: sizes.embedded(size or self._written, text[: match.start()], text[match.end() :]), text
        )

    # Functions

    def _functions(self, name: str, size: str) -> tuple[list[str], str]:
        """The helpers, outermost first, and the function that is measured."""
        spec = self._spec
        # Choices come first: they must not depend on how the size is written.
        statements = [self._sized(self._chosen(line), size) for line in spec.code.statements]
        result = self._sized(self._chosen(spec.code.result), size)
        work = self._work(statements, result)
        passed = spec.placement == "argument" and spec.depth > 0
        default = spec.placement in ("default", "argument") and not passed
        if spec.placement == "local":
            work.insert(0, f"$size = {self._written}")
        glue = [GLUE[at] for at in spec.glue]
        names = [
            f"{'_' if self._draw((True, False), 'private', at) else ''}{self._helper(at)}" for at in range(spec.depth)
        ]
        functions = []
        for at in range(spec.depth + 1):
            inner = at == spec.depth
            body = work if inner else [f"return {names[at]}({self._passed(at) if passed else ''})"]
            # The glue is spread over the functions, the first part before the work and the last after it.
            mine = [piece for index, piece in enumerate(glue) if index % (spec.depth + 1) == at]
            body = [line for piece in mine for line in piece.split("\n")] + body
            if spec.early and at == 0:
                body = [*self._draw(EARLY, "early").split("\n"), *body]
            parameters = ["self"] if spec.method and at == 0 else []
            if at == 0 and spec.parameter >= 0:
                key = list(PARAMETERS)[spec.parameter]
                hint, prologue, _ = PARAMETERS[key]
                parameters.append(f"{key}: {hint}" if spec.hints else key)
                body = prologue.split("\n") + body
            if passed and at > 0:
                parameters.append("$size: int" if spec.hints else "$size")
            elif default and inner:
                parameters.append(f"$size: int = {self._written}" if spec.hints else f"$size={self._written}")
            functions.append(self._function(name if at == 0 else names[at - 1], parameters, body, outer=at == 0))
        return functions[1:], functions[0]

    def _passed(self, level: int) -> str:
        return self._written if level == 0 else "$size"

    def _work(self, statements: list[str], result: str) -> list[str]:
        spec = self._spec
        if spec.wrap:
            if not statements:
                statements, result = [f"$result = {result}"], "$result"
            loop = self._draw((f"for _ in range({spec.wrap}):", f"for $round in range({spec.wrap}):"), "wrap")
            statements = [loop, *(f"    {line}" for line in statements)]
        if spec.hints:
            statements = [re.sub(r"^(\$\w+) = (0|\[\]|\{\}|0\.0|\"\")$", self._hinted, line) for line in statements]
        if spec.layout & 1:
            result = f"({result})"
        if self._draw((True, False, False), "result") and spec.variant == 0 and not result.startswith("$result"):
            return [*statements, f"$answer = {result}", "return $answer"]
        return [*statements, f"return {result}"]

    @staticmethod
    def _hinted(match: re.Match[str]) -> str:
        kind = {"0": "int", "[]": "list", "{}": "dict", "0.0": "float"}.get(match[2], "str")
        return f"{match[1]}: {kind} = {match[2]}"

    def _function(self, name: str, parameters: list[str], body: list[str], *, outer: bool) -> str:
        spec = self._spec
        lines = []
        if outer and spec.docstring:
            lines.append(f'"""{self._draw(DOCSTRINGS, "docstring")}"""')
        for at, line in enumerate(body):
            top = not line.startswith((" ", ")", "else", "elif", "except", "finally"))
            chance = seeded(spec.seed, "comment", spec.comments, name, at)
            if spec.comments and top and chance.random() < 0.35:
                lines.append(f"# {chance.choice(COMMENTS)}")
            if spec.layout & 4 and top and at and not body[at - 1].startswith("@"):
                lines.append("")
            lines.append(line)
        hint = " -> object" if spec.hints and outer else ""
        return f"def {name}({', '.join(parameters)}){hint}:\n" + textwrap.indent("\n".join(lines), "    ")

    def _unit_name(self) -> str:
        words = self._spec.template.name.replace("-", "_").removeprefix("np_")
        verb, domain = self._draw(VERBS, "verb"), self._domain
        return self._draw(
            (
                f"{verb}_{domain.items}", f"{verb}_{domain.item}_{domain.number}", f"run_{words}", f"{verb}_{words}",
                f"{domain.item}_{verb}", f"{verb}_{domain.text}s", "main", "work", "run", "solve", f"test_{words}",
            ),
            "unit",
        )  # fmt: skip

    def _helper(self, level: int) -> str:
        verbs = list(VERBS)
        seeded(self._spec.seed, "helpers").shuffle(verbs)
        noun = self._draw((self._domain.number, self._domain.text, "batch", "all", "once"), "helper", level)
        return f"{verbs[level]}_{noun}_{('part', 'step', 'stage', 'core')[level]}"

    # Marks

    def _chosen(self, text: str) -> str:
        while (match := _CHOICE.search(text)) is not None:
            chosen = self._draw(match[1].split("¦"), "choice", match[1])
            text = text[: match.start()] + chosen + text[match.end() :]
        return text

    def _expanded(self, text: str) -> str:
        text = self._chosen(text)
        text = _EXPRESSION.sub(
            lambda match: re.sub(r"\bX\b", match[2], self._draw(EXPRESSIONS[match[1]], match[0])), text
        )
        seen: dict[str, int] = {}

        def number(match: re.Match[str]) -> str:
            at = seen[match[0]] = seen.get(match[0], -1) + 1
            return str(_between(int(match[1]), int(match[2]), self._spec.seed, match[0], at))

        return _WORD.sub(self._word, _NUMBER.sub(number, text))

    def _word(self, match: re.Match[str]) -> str:
        domain = self._domain
        return self._draw(domain.values, "value") if match[1] == "w" else str(getattr(domain, match[1]))

    def _named(self, text: str, unit: str) -> str:
        taken = {*_RESERVED, unit, *re.findall(r"(?<!\$)\b[A-Za-z_]\w*", text)}
        chosen: dict[str, str] = {}

        def name(match: re.Match[str]) -> str:
            word = match[1]
            if word not in chosen:
                options = list(NAMES.get(word, (word,)))
                seeded(self._spec.seed, "name", self._spec.names, word).shuffle(options)
                chosen[word] = next((option for option in options if option not in taken), f"{word}_{len(chosen)}")
                taken.add(chosen[word])
            return chosen[word]

        return _NAME.sub(name, text)

    def _with_imports(self, text: str) -> str:
        used = [module for module in _MODULES if re.search(rf"(?<![\w.]){module}\.\w", text)]
        lines = []
        for module in used:
            attributes = sorted(set(re.findall(rf"(?<![\w.]){module}\.(\w+)", text)))
            clash = any(re.search(rf"(?<![\w.]){name}\b", text) or name in _RESERVED for name in attributes)
            if self._spec.by_name and module in _BY_NAME and not clash:
                text = re.sub(rf"(?<![\w.]){module}\.(\w+)", r"\1", text)
                lines.append(f"from {module} import {', '.join(attributes)}")
            else:
                lines.append(f"import {module}")
        if re.search(r"(?<![\w.])np\.", text):
            lines.append("\nimport numpy as np" if lines else "import numpy as np")
        return "\n".join(lines) + "\n\n\n" + text if lines else text


def _between(low: int, high: int, *key: object) -> int:
    rng = seeded(*key)
    if low < 1 or high < 20:
        return rng.randint(low, high)
    return round(math.exp(rng.uniform(math.log(low), math.log(high))))


@functools.cache
def parses(text: str) -> bool:
    """Return whether ``text`` is Python."""
    try:
        ast.parse(text)
    except SyntaxError:
        return False
    return True
