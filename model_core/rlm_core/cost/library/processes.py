"""Rules for what starts other programs and waits for them."""

from __future__ import annotations

from collections.abc import Mapping

from rlm_core.types import WaitKind

from ..domain.quantities import Quantity, constant
from ..domain.values import NONE, UNKNOWN, Call, Value
from .rules import Attribute, Rule, argument
from .waiting import (
    BYTES,
    CALL_SECONDS,
    NUMBER,
    PROCESS_SECONDS,
    TEXT,
    WaitingType,
    always,
    constructors,
    costs,
    instance,
    methods_of,
    table,
    waits,
)

_PROCESS_BYTES = 6e4


def _program(value: Value) -> tuple[str, ...]:
    """The words of a command that the text fixes."""
    command = value.constant
    if isinstance(command, str):
        return tuple(command.split())
    if isinstance(command, tuple | list) and all(isinstance(word, str) for word in command):
        return tuple(command)
    return ()


def _process_seconds(call: Call) -> Quantity | None:
    """The seconds of a command that only sleeps; the run time of other programs is not in the text."""
    words = _program(argument(call, 0, "args", "cmd", "command"))
    if len(words) == 2 and words[0].rpartition("/")[2] == "sleep":
        try:
            return constant(min(max(float(words[1]), 0.0), 1e9))
        except ValueError:
            return None
    return None


def _process(result: Value) -> Rule:
    def rule(call: Call) -> Value:
        call.spend(PROCESS_SECONDS)
        call.allocate(_PROCESS_BYTES)
        call.wait(WaitKind.PROCESS, _process_seconds(call))
        return result

    return rule


def _wait_for_child(call: Call) -> Value:
    """``os.waitpid``: with ``WNOHANG`` it only asks."""
    call.spend(CALL_SECONDS)
    if not any(value.name.endswith("WNOHANG") for value in (*call.args, *call.keywords.values())):
        call.wait(WaitKind.PROCESS)
    return Value("tuple", size=constant(2))


def _popen(call: Call) -> Value:
    call.spend(PROCESS_SECONDS)
    return Value("object", name="subprocess.Popen", payload=_process_seconds(call))


def _popen_wait(result: Value) -> Rule:
    def rule(call: Call) -> Value:
        call.spend(CALL_SECONDS)
        known = call.receiver.payload if call.receiver is not None else None
        call.wait(WaitKind.PROCESS, known if isinstance(known, Quantity) else None)
        return result

    return rule


_POPEN_METHODS: Mapping[str, Rule] = {
    "wait": _popen_wait(NUMBER),
    "communicate": _popen_wait(Value("tuple", size=constant(2))),
    "poll": costs(2 * CALL_SECONDS),
    "kill": costs(5 * CALL_SECONDS, NONE),
    "terminate": costs(5 * CALL_SECONDS, NONE),
    "send_signal": costs(5 * CALL_SECONDS, NONE),
}
_PROCESS = _process(UNKNOWN)

_TYPES: tuple[WaitingType, ...] = (
    ("subprocess.CompletedProcess", "", 5e-7, {"check_returncode": costs(1e-7, NONE)}),
    ("asyncio.subprocess.Process", "", 0.0, table(WaitKind.PROCESS, "wait communicate")),
    ("pexpect.spawn", "pexpect.pxssh.pxssh", 5e-3, table(WaitKind.PROCESS, "expect expect_exact wait read readline")),
)

FUNCTIONS: dict[str, Rule] = {
    **constructors(_TYPES),
    "signal.pause": waits(WaitKind.PROCESS, NONE),
    "signal.sigwait": waits(WaitKind.PROCESS, NUMBER),
    "subprocess.run": _process(instance("subprocess.CompletedProcess")),
    "subprocess.call": _process(NUMBER),
    "subprocess.check_call": _process(NUMBER),
    "subprocess.check_output": _process(BYTES),
    "subprocess.getoutput": _process(TEXT),
    "subprocess.getstatusoutput": _PROCESS,
    "subprocess.Popen": _popen,
    "os.system": _process(NUMBER),
    "os.popen": _PROCESS,
    "os.spawnl": _PROCESS,
    "os.spawnv": _PROCESS,
    "pty.spawn": _process(NUMBER),
    "pexpect.run": _process(BYTES),
    **dict.fromkeys(("os.wait", "os.waitpid", "os.wait3", "os.wait4"), _wait_for_child),
    "asyncio.create_subprocess_exec": costs(PROCESS_SECONDS, instance("asyncio.subprocess.Process")),
    "asyncio.create_subprocess_shell": costs(PROCESS_SECONDS, instance("asyncio.subprocess.Process")),
}

METHODS: dict[tuple[str, str], Rule] = {
    **methods_of(_TYPES),
    **{("subprocess.Popen", method): rule for method, rule in _POPEN_METHODS.items()},
    # A name that means one thing whatever its receiver is.
    ("", "check_output"): _process(BYTES),
}

ATTRIBUTES: dict[tuple[str, str], Attribute] = {
    ("subprocess.CompletedProcess", "returncode"): always(NUMBER),
}
