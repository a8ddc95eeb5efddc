"""The child process: reads one order from stdin, runs it, and sends events on what was its stdout.

``python -m rlm_core.measurement.gpu.child``. What user code prints goes to stderr. When the parent is gone, its end of
stdin closes and this process ends at once, whatever it is doing.
"""

from __future__ import annotations

import importlib
import json
import os
import threading
from typing import IO

from .channel import Channel

RUNNERS = ("triton_runner", "torch_runner", "onnx_runner", "generate_runner")


def main() -> None:
    """Run the order that comes on stdin."""
    stream = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    orders = os.fdopen(os.dup(0), encoding="utf-8")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    order = json.loads(orders.readline())
    threading.Thread(target=_end_with_the_parent, args=(orders,), daemon=True).start()
    _limit_memory(order["memory"])
    channel = Channel(stream, set(order["done"]))
    if order["runner"] not in RUNNERS:
        raise SystemExit(f"no runner is called {order['runner']}")
    importlib.import_module(f"{__package__}.{order['runner']}").run(order["options"], channel)
    channel.end()
    stream.flush()
    # Threads and contexts of user code must not hold the process.
    os._exit(0)


def _end_with_the_parent(orders: IO[str]) -> None:
    while orders.read(1):
        pass
    os._exit(1)


def _limit_memory(size: int) -> None:
    if size <= 0:
        return
    try:
        import resource
    except ImportError:
        return
    resource.setrlimit(resource.RLIMIT_DATA, (size, size))


if __name__ == "__main__":
    main()
