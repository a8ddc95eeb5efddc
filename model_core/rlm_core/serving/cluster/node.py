"""What runs on the nodes of a cluster."""

from __future__ import annotations

import contextlib
import inspect
import os
import pickle
from collections.abc import Callable, Iterator
from typing import Any

from rlm_core.errors import RlmError


def shipped() -> Callable[[str, bytes], Iterator[tuple[str, Any]]]:
    """What a node runs first. It is sent as code, so that a node without this version of rlm-lsp can say so."""

    def run(version: str, order: bytes) -> Iterator[tuple[str, Any]]:
        import platform

        try:
            import rlm_core

            found = f"rlm-lsp {rlm_core.__version__}"
            matches = rlm_core.__version__ == version
        except ImportError:
            found, matches = "no rlm-lsp", False
        if not matches:
            yield "refused", f"node {platform.node()} has {found}, here it is {version}; install that on all nodes"
            return
        from .node import work

        yield from work(order)

    return run


def work(order: bytes) -> Iterator[tuple[str, Any]]:
    """On a node: do what was sent, from the driver's working directory where the node has it."""
    try:
        task, argument, folder = pickle.loads(order)  # noqa: S301 (from the driver that Ray has let in)
        with contextlib.suppress(OSError):
            os.chdir(folder)
        made = task(argument)
        for value in made if inspect.isgenerator(made) else (made,):
            yield "value", value
    except RlmError as error:
        yield "failed", str(error)
    except Exception as error:
        yield "failed", f"{type(error).__name__}: {error}"
