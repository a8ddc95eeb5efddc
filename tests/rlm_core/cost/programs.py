"""Strategies of hypothesis for programs: nested loops over literals, branches and exits around ``time.sleep(1)``."""

from __future__ import annotations

from hypothesis import strategies as st

_INDENT = "    "
_SLEEP = "time.sleep(1)"


class Writer:
    """Draws a program; names are new in each loop, so a counter starts where the text says."""

    def __init__(self, draw: st.DrawFn) -> None:
        self._draw = draw
        self._names = 0

    def one_of(self, *options: str) -> str:
        """One of some texts."""
        return self._draw(st.sampled_from(options))

    def number(self, least: int, most: int) -> int:
        """A whole number."""
        return self._draw(st.integers(least, most))

    def name(self) -> str:
        """A new name."""
        self._names += 1
        return f"n{self._names}"

    def block(self, depth: int, names: tuple[str, ...], *, in_for: bool = False) -> list[str]:
        """One to three statements."""
        lines = [line for _ in range(self.number(1, 2)) for line in self.statement(depth, names, in_for=in_for)]
        return [*lines, _SLEEP] if self.number(0, 2) else lines

    def indented(self, depth: int, names: tuple[str, ...], *, in_for: bool = False) -> list[str]:
        """A block below a header."""
        return [_INDENT + line for line in self.block(depth + 1, names, in_for=in_for)]

    def condition(self, names: tuple[str, ...]) -> str:
        """A comparison of the variables of the loops around it."""
        if not names:
            return self.one_of("1 < 2", "2 < 1")
        name = self.one_of(*names)
        match self.number(0, 3):
            case 0:
                return f"{name} % {self.number(2, 7)} {self.one_of('==', '!=')} {self.number(0, 3)}"
            case 1:
                return f"not {name} > {self.number(0, 20)}"
            case _:
                return f"{name} {self.one_of('<', '<=', '>', '>=', '==', '!=')} {self.number(-2, 30)}"

    def statement(self, depth: int, names: tuple[str, ...], *, in_for: bool) -> list[str]:
        """A loop, a branch, an exit, or something to count."""
        kind = self.number(0, 9 if depth < 3 else 1)
        if kind == 0:
            return [_SLEEP]
        if kind == 1:
            leaves = self.one_of("break", "continue", "return") if in_for else _SLEEP
            return [f"if {self.condition(names)}:", _INDENT + leaves]
        if kind <= 4:
            return self.for_loop(depth, names)
        if kind <= 7:
            return self.while_loop(depth, names)
        lines = [f"if {self.condition(names)}:", *self.indented(depth, names, in_for=in_for)]
        return [*lines, "else:", *self.indented(depth, names, in_for=in_for)] if kind == 9 else lines

    def for_loop(self, depth: int, names: tuple[str, ...]) -> list[str]:
        """A loop over numbers or text."""
        name, most = self.name(), self.number(0, 60)
        step = self.one_of("1", "2", "3", "7", "-1")
        header = self.one_of(
            f"range({most})", f"range({self.number(-3, 10)}, {most}, {step})", f"range({most}, 0, -1)", "[1, 2, 3]",
            "'abcdefghijklmnopqrst'",
        )  # fmt: skip
        inside = names if header.startswith("'") else (*names, name)
        lines = [f"for {name} in {header}:", *self.indented(depth, inside, in_for=True)]
        return lines if self.number(0, 9) else [*lines, "else:", _INDENT + _SLEEP]

    def while_loop(self, depth: int, names: tuple[str, ...]) -> list[str]:
        """A loop that counts up, down, or by factors."""
        name, step, bound = self.name(), self.number(1, 5), self.number(-2, 40)
        start, condition, update = self.one_of(
            f"{self.number(-3, 8)}|{name} {self.one_of('<', '<=')} {bound}|{name} += {step}",
            f"{bound}|{name} {self.one_of('>', '>=')} {self.number(-1, 9)}|{name} -= {step}",
            f"{self.number(1, 3)}|{name} < {bound * 5}|{name} *= {step + 1}",
            f"{bound * 7}|{name} > {self.number(0, 2)}|{name} //= {step + 1}",
            f"{self.number(0, 3)}|{bound} >= {name} * {name}|{name} += {step}",
        ).split("|")
        body = self.indented(depth, (*names, name))
        if self.number(0, 4):
            return [f"{name} = {start}", f"while {condition}:", *body, _INDENT + update]
        exits = [_INDENT + line for line in (update, f"if not {condition}:", _INDENT + "break")]
        return [f"{name} = {start}", "while True:", *exits, *body]


@st.composite
def programs(draw: st.DrawFn) -> str:
    """A function ``f()`` without arguments whose text fixes how often it sleeps."""
    return "\n".join(["def f():", *(_INDENT + line for line in Writer(draw).block(0, ()))]) + "\n"
