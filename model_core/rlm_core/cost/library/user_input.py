"""Rules for what waits for a user: prompts, windows and standard input."""

from __future__ import annotations

from collections.abc import Mapping

from rlm_core.types import WaitKind

from ..domain.quantities import constant
from ..domain.values import NONE, Call, Value
from .rules import Attribute, Rule
from .waiting import (
    BYTES,
    CALL_SECONDS,
    TEXT,
    WaitingType,
    always,
    constructors,
    costs,
    instance,
    methods_of,
    waits,
)


def _read_line(call: Call) -> Value:
    call.spend(CALL_SECONDS)
    call.wait(WaitKind.USER)
    return TEXT


_USER = waits(WaitKind.USER, TEXT)
_STDIN_METHODS: Mapping[str, Rule] = {
    "read": _USER,
    "readline": _USER,
    "readlines": waits(WaitKind.USER, Value("list", item=TEXT)),
    "__iter__": waits(WaitKind.USER, Value("iterator", item=TEXT)),
    "__next__": _USER,
    "fileno": costs(1e-7, Value("int", 0, number=constant(0))),
    "isatty": costs(1e-6, Value("bool")),
}
_STDIN_BUFFER_METHODS: Mapping[str, Rule] = {
    "read": waits(WaitKind.USER, BYTES),
    "readline": waits(WaitKind.USER, BYTES),
    "readlines": waits(WaitKind.USER, Value("list", item=BYTES)),
    "__iter__": waits(WaitKind.USER, Value("iterator", item=BYTES)),
}

_TYPES: tuple[WaitingType, ...] = (
    ("tkinter.Tk", "tkinter.Toplevel Tkinter.Tk customtkinter.CTk", 2e-2, {"mainloop": waits(WaitKind.USER, NONE)}),
    (
        "cmd.Cmd",
        "",
        1e-6,
        {"cmdloop": waits(WaitKind.USER, NONE)},
    ),
    ("sys.stdin", "", 0.0, _STDIN_METHODS),
    ("sys.stdin.buffer", "", 0.0, _STDIN_BUFFER_METHODS),
)

FUNCTIONS: dict[str, Rule] = {
    **constructors(_TYPES),
    "builtins.input": _read_line,
    "getpass.getpass": _USER,
    "click.prompt": _USER,
    "click.confirm": waits(WaitKind.USER, Value("bool")),
    "click.getchar": _USER,
    "click.pause": waits(WaitKind.USER, NONE),
    "typer.prompt": _USER,
    "typer.confirm": waits(WaitKind.USER, Value("bool")),
    "msvcrt.getch": waits(WaitKind.USER, BYTES),
    "msvcrt.getwch": _USER,
    "tkinter.mainloop": waits(WaitKind.USER, NONE),
    "curses.wrapper": waits(WaitKind.USER),
    "code.interact": waits(WaitKind.USER, NONE),
}

METHODS: dict[tuple[str, str], Rule] = methods_of(_TYPES)

ATTRIBUTES: dict[tuple[str, str], Attribute] = {
    ("sys", "stdin"): always(instance("sys.stdin")),
    ("sys.stdin", "buffer"): always(instance("sys.stdin.buffer")),
}
