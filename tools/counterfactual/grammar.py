"""Template -> source text of a function and its helpers, its arguments, and what it returns.

The choices of a template are drawn first. Generic statements of the kinds that it works on are then inserted before,
between and after its lines, and its variables become arguments or expressions whose size is in the text.
"""

from __future__ import annotations

import math
import re
from random import Random

from .snippets import AFTER, BEFORE, CONDITIONS, HELPERS, NUMBERS, PASSES, TESTS, TEXTS
from .values import Argument, literal, names_of
from .vocabulary import Domain

_CHOICE = re.compile(r"«([^«»]*)»")
_SIZE = re.compile(r"#(\d+):(\d+)#")
_EXPRESSION = re.compile(r"@(num|cond|str|test)\(([^()]+)\)")
_VARIABLE = re.compile(r"\$([a-z]+)(?::(\d+))?")
_SQUARE = frozenset({"matrix", "grid"})
_POOLS = {"num": NUMBERS, "cond": CONDITIONS, "str": TEXTS, "test": TESTS}
_INDENT = "    "


def between(rng: Random, low: int, high: int) -> int:
    """A size between the bounds, evenly on the logarithmic axis."""
    value = round(math.exp(rng.uniform(math.log(low), math.log(high))))
    return value if value < 20 or rng.random() < 0.3 else round(value, -1)


class Expansion:
    """Expands one template; ``helpers``, ``parameters``, ``lines`` and ``result`` are the expansion."""

    def __init__(self, template: str, domain: Domain, rng: Random) -> None:
        self._rng, self._domain = rng, domain
        self._literal_share = rng.choice((0.1, 0.5, 0.9))
        self._variables: dict[str, str] = {}
        self._free: dict[str, str] = {}
        self._taken = set(re.findall(r"\w+", template)) | {"extra"}
        self._prelude: list[str] = []
        self.helpers: list[str] = []
        self.parameters: list[tuple[str, Argument | str]] = []
        helpers, _, body = template.partition("---\n")
        if not body:
            helpers, body = "", template
        if helpers:
            self.helpers.append(self._expand(helpers).strip() + "\n")
        *lines, last = self._expand(body).strip().split("\n")
        while not last.startswith("=>"):
            last = lines.pop()
        self.result, _, kind = last.removeprefix("=> ").rpartition(" | ")
        self.lines = [*self._prelude, *self._before(), *lines, *self._ending(kind)]

    def _expand(self, text: str) -> str:
        while (match := _CHOICE.search(text)) is not None:
            chosen = self._rng.choice(match[1].split("¦"))
            text = text[: match.start()] + chosen + text[match.end() :]
        text = _SIZE.sub(lambda match: str(between(self._rng, int(match[1]), int(match[2]))), text)
        text = _EXPRESSION.sub(lambda match: self._expression(match[1], match[2]), text)
        text = _VARIABLE.sub(lambda match: self._word(match[1], match[2]), text)
        return "\n".join(line for line in text.split("\n") if line.strip())

    def _expression(self, pool: str, argument: str) -> str:
        if pool in HELPERS and self._rng.random() < 0.15 and len(self.helpers) < 3:
            name, text = self._helper(pool)
            self.helpers.append(text)
            return f"{name}({argument})"
        return _SIZE.sub(
            lambda match: str(between(self._rng, int(match[1]), int(match[2]))),
            self._rng.choice(_POOLS[pool]).replace("X", argument),
        )

    def _helper(self, pool: str) -> tuple[str, str]:
        verb, template = self._rng.choice(HELPERS[pool])
        name = f"{verb}_{self._domain.number if pool == 'num' else self._domain.text}"
        if any(f"def {name}(" in helper for helper in self.helpers):
            name += "_again"
        # Counted before its own text is expanded, so that helpers do not nest without end.
        self.helpers.append("")
        text = self._expand(template.replace("NAME", name)).strip() + "\n"
        self.helpers.remove("")
        return name, text

    def _word(self, kind: str, cap: str | None) -> str:
        if kind in ("item", "number", "other", "flag"):
            return str(getattr(self._domain, kind))
        if kind == "text":
            # In templates over records it is the name of the text field, elsewhere a variable.
            return self._domain.text if "records" in self._taken else self._take("text", cap)
        return self._take(kind, cap)

    def _take(self, kind: str, cap: str | None) -> str:
        if kind in self._variables:
            return self._variables[kind]
        rng = self._rng
        names = [name for name in names_of(kind, self._domain) if name not in self._taken] or [f"{kind}_in"]
        name = self._variables[kind] = rng.choice(names)
        self._taken.add(name)
        most = min(int(cap or 600), 40 if kind in _SQUARE else 600)
        if rng.random() < self._literal_share:
            size = between(rng, max(3, most // 20), most)
            self._prelude.append(f"{name} = {literal(kind, self._size_text(size), self._domain, rng)}")
        else:
            size = rng.randint(3, min(most, 25)) if rng.random() < 0.8 else between(rng, min(most, 25), most)
            self.parameters.append((name, Argument(kind, size, rng.randrange(10**6), self._domain.item)))
        self._free[name] = kind
        return name

    def _size_text(self, size: int) -> str:
        form = self._rng.random()
        if form < 0.6:
            return str(size)
        names = [name for name in ("size", "length", "limit", "count", "total_rows") if name not in self._taken]
        if not names:
            return str(size)
        name = self._rng.choice(names)
        self._taken.add(name)
        if form < 0.8:
            self._prelude.append(f"{name} = {size}")
        else:
            self.parameters.append((name, str(size)))
        return name

    def _generic(self, pool: dict[str, tuple[str, ...]], kind: str, name: str) -> list[str]:
        return self._expand(self._rng.choice(pool[kind]).replace("V", name)).split("\n")

    def _before(self) -> list[str]:
        lines = []
        for name, kind in list(self._free.items()):
            if kind in BEFORE and self._rng.random() < 0.3:
                lines += self._generic(BEFORE, kind, name)
            elif kind not in ("number", "text") and self._rng.random() < 0.12:
                lines += [f"if not {name}:", f"{_INDENT}return {self._rng.choice(('None', '[]', '0'))}"]
        return lines

    def _ending(self, kind: str) -> list[str]:
        rng, lines, result = self._rng, [], self.result
        if rng.random() < 0.35:
            passes = [(name, found) for name, found in self._free.items() if found in PASSES] or [("", "none")]
            name, found = rng.choice(passes)
            if rng.random() < 0.25:
                name, found = "", "none"
            lines += self._generic(PASSES, found, name)
            form = rng.choice(("({0}, extra)", '{{"result": {0}, "extra": extra}}', "[{0}, extra]"))
            return [*lines, f"return {form.format(result)}"]
        if kind in AFTER and rng.random() < 0.4:
            lines.append(f"final = {result}")
            return [*lines, *self._generic(AFTER, kind, "final")]
        return [*lines, f"return {result}"]
