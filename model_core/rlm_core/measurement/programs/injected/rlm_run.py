"""Runs one command under limits and says what it took, as a JSON object on stdout; alone, inside the sandbox.

Started as ``python -I -S rlm_run.py ORDER`` with the command's input on stdin. Time is from the moment at which the
command is let go to its end. Memory is the largest resident set of any process of the command, as the kernel keeps it.
A process starts with the peak of the one that it was forked from, and an interpreter's is many MiB. So a shell of one
MiB forks the command and ends; this process, as the subreaper, inherits it.
"""

from __future__ import annotations

import ctypes
import fcntl
import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

_SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER
_PARENT_DEATH = 1  # PR_SET_PDEATHSIG
_DROP_BOUND, _DROPPED = 24, (23, 8)  # PR_CAPBSET_DROP: CAP_SYS_NICE, CAP_SETPCAP
_NEWUSER, _NEWNET = 0x10000000, 0x40000000
# A shell gives a command in the background no stdin unless it is named: fd 8. It waits for a line on fd 9.
_SHELL = '{ read -r go <&9; exec 8<&- 9<&-; exec "$@"; } <&8 7>&- & echo $! >&7'
_PID, _INPUT, _GATE = 7, 8, 9
_POLL_SECONDS, _MOST_OF_TIME = 0.02, 0.02
_TAIL, _END_SECONDS = 600, 5.0
_PAGE = resource.getpagesize()


def cut_network() -> bool:
    """Leave this process and what it starts without a network; whether that could be done."""
    library = ctypes.CDLL(None, use_errno=True)
    uid, gid = os.getuid(), os.getgid()
    if library.unshare(_NEWNET) == 0:
        return True
    if library.unshare(_NEWUSER | _NEWNET) != 0:
        return False
    with suppress(OSError):
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{uid} {uid} 1")
        Path("/proc/self/gid_map").write_text(f"{gid} {gid} 1")
    return True


def descendants(root: int) -> list[int]:
    """The processes below one, as far as /proc shows them."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError, ValueError):
                # The name in parentheses may hold anything; the parent is the second field after it.
                fields = (entry / "stat").read_bytes().rpartition(b")")[2].split()
                children.setdefault(int(fields[1]), []).append(int(entry.name))
    found, left = [], [root]
    while left:
        below = children.get(left.pop(), [])
        found += below
        left += below
    return found


def resident(pids: list[int]) -> int:
    """The bytes of memory that processes hold: each its own, and what they share once."""
    own = shared = 0
    for pid in pids:
        with suppress(OSError, ValueError):
            pages = [int(word) for word in Path(f"/proc/{pid}/statm").read_bytes().split()]
            own += pages[1] - pages[2]
            shared = max(shared, pages[2])
    return (own + shared) * _PAGE


def run(order: dict[str, Any]) -> dict[str, Any]:
    """Run the command of an order; returns how it ended."""
    network_is_cut = cut_network() if order["cut_network"] else False
    limits = order["limits"]
    ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD, signal.SIGTERM})
    # Without whoever reads the result, the command is ended like one that takes too long.
    ctypes.CDLL(None).prctl(_PARENT_DEATH, signal.SIGTERM, 0, 0, 0)
    with suppress(OSError):
        # Root has no limit of processes, so what watches must come to run while they multiply.
        os.sched_setscheduler(0, os.SCHED_RR | os.SCHED_RESET_ON_FORK, os.sched_param(1))
    errors = Path("rlm-stderr")
    with Path("rlm-stdout").open("wb") as out, errors.open("wb") as err:
        let_go, pid, group = _start(order["command"], out.fileno(), err.fileno(), _limiter(limits, order["tasks"]))
        began = time.monotonic()
        let_go()
        status, peak, why = _follow(pid, began, limits)
        seconds = time.monotonic() - began
    _end_all(-1 if order["alone"] and _is_alone() else -group)
    for _, _, usage in _reaped():
        peak = max(peak, usage.ru_maxrss * 1024)
    stderr = errors.read_bytes()[-_TAIL:].decode("utf-8", "replace")
    return {
        "status": status,
        "stopped": why,
        "seconds": seconds,
        "peak_bytes": peak,
        "stderr": stderr,
        "network_is_cut": network_is_cut,
    }


def _limiter(limits: dict[str, Any], tasks: int) -> Callable[[], None]:
    library = ctypes.CDLL(None)

    def limit() -> None:
        for capability in _DROPPED:
            library.prctl(_DROP_BOUND, capability, 0, 0, 0)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        wanted = {
            resource.RLIMIT_CORE: 0,
            resource.RLIMIT_FSIZE: limits["files"],
            # What watching stops too late; counted a process, and runtimes reserve more than they use.
            resource.RLIMIT_DATA: 4 * limits["memory"] + (1 << 30),
            resource.RLIMIT_NPROC: tasks + 32 * limits["processes"],
        }
        for which, value in wanted.items():
            hard = resource.getrlimit(which)[1]
            value = value if hard == resource.RLIM_INFINITY else min(value, hard)
            resource.setrlimit(which, (value, value))

    return limit


def _start(command: list[str], out: int, err: int, limit: Callable[[], None]) -> tuple[Callable[[], None], int, int]:
    """Start a process that waits; return the function that lets the command run, the process and its process group."""
    gate, opens, reads_pid, writes_pid = (_out_of_the_way(end) for end in (*os.pipe(), *os.pipe()))
    for source, number in ((0, _INPUT), (gate, _GATE), (writes_pid, _PID)):
        os.dup2(source, number)
    shell = subprocess.Popen(
        ["/bin/sh", "-c", _SHELL, "sh", *command],
        stdin=subprocess.DEVNULL,
        stdout=out,
        stderr=err,
        pass_fds=(_PID, _INPUT, _GATE),
        start_new_session=True,
        preexec_fn=limit,  # safe: this process has one thread
    )
    for number in (_PID, _INPUT, _GATE, gate, writes_pid):
        os.close(number)
    shell.wait()
    text = os.read(reads_pid, 32)
    os.close(reads_pid)
    if not text.strip().isdigit():
        raise OSError("the shell could not start the command")

    def let_go() -> None:
        with suppress(OSError):
            os.write(opens, b"\n")
        os.close(opens)

    return let_go, int(text), shell.pid


def _out_of_the_way(number: int) -> int:
    """The same file under a number that the shell's do not take."""
    moved = fcntl.fcntl(number, fcntl.F_DUPFD_CLOEXEC, 2 * _GATE)
    os.close(number)
    return moved


def _follow(pid: int, began: float, limits: dict[str, Any]) -> tuple[int, int, str]:
    """Wait for a process: its wait status, the peak of all that ended meanwhile, and which limit stopped it."""
    peak, pause = 0, _POLL_SECONDS
    while True:
        for ended, status, usage in _reaped():
            peak = max(peak, usage.ru_maxrss * 1024)
            if ended == pid:
                return status, peak, ""
        left = began + limits["seconds"] - time.monotonic()
        if left <= 0:
            return 0, peak, "time"
        came = signal.sigtimedwait({signal.SIGCHLD, signal.SIGTERM}, min(pause, left))
        if came is not None and came.si_signo == signal.SIGTERM:
            return 0, peak, "time"
        if came is not None:
            continue
        looked = time.monotonic()
        alive = descendants(os.getpid())
        if len(alive) > limits["processes"]:
            return 0, peak, "processes"
        if resident(alive) > limits["memory"]:
            return 0, peak, "memory"
        # On a machine with many processes looking takes longer, and must not disturb what is timed.
        pause = max(_POLL_SECONDS, (time.monotonic() - looked) / _MOST_OF_TIME)


def _reaped() -> Iterator[tuple[int, int, resource.struct_rusage]]:
    """The children that have ended."""
    while True:
        try:
            pid, status, usage = os.wait4(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        yield pid, status, usage


def _end_all(target: int) -> None:
    """End what the command has started and not ended; ``target`` is the process group that most of it is in.

    -1 stands for all processes of a separate sandbox. One signal to many leaves no moment to start another.
    """
    with suppress(OSError):
        os.kill(target, signal.SIGKILL)
    deadline = time.monotonic() + _END_SECONDS
    while alive := [pid for pid in descendants(os.getpid()) if not _has_ended(pid)]:
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for pid in alive:
                with suppress(OSError):
                    os.kill(pid, number)
        if time.monotonic() > deadline:
            return
        signal.sigtimedwait({signal.SIGCHLD}, _POLL_SECONDS)


def _is_alone() -> bool:
    """Return whether all visible processes belong to the sandbox: the first one is bubblewrap."""
    with suppress(OSError):
        return Path("/proc/1/comm").read_text(encoding="utf-8").strip() == "bwrap"
    return False


def _has_ended(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] in (b"Z", b"X")
    except OSError:
        return True


if __name__ == "__main__":
    print(json.dumps(run(json.loads(sys.argv[1]))))
