"""Work-done progress: what takes long is told to clients that can show it.

The work never waits for the client: a progress that the client has not agreed to when the work is done is never begun.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from lsprotocol import types

if TYPE_CHECKING:
    from rlm_lsp.lsp.server import Server

# A document of fewer units is predicted before a progress could be read.
LEAST_UNITS = 100


class Progress:
    """One progress; does nothing for clients that cannot show it. A ``counted`` one reports how much is done."""

    def __init__(self, ls: Server, title: str, *, counted: bool = True, cancellable: bool = False) -> None:
        self._ls, self._title, self._counted, self._cancellable = ls, title, counted, cancellable
        self._token = str(uuid.uuid4())
        self._begun = self._ended = False
        window = ls.client_capabilities.window
        if window is not None and window.work_done_progress:
            ls.spawn(f"progress {self._token}", self._begin())

    @property
    def cancelled(self) -> bool:
        """Whether the user has had enough of it; may be asked from any thread."""
        future = self._ls.work_done_progress.tokens.get(self._token)
        return future is not None and future.cancelled()

    def report(self, done: int, total: int) -> None:
        """So much of the work is done."""
        if self._begun and not self._ended:
            value = types.WorkDoneProgressReport(
                message=f"{done:,} of {total:,}", percentage=100 * done // max(total, 1), cancellable=self._cancellable
            )
            self._ls.work_done_progress.report(self._token, value)

    def end(self) -> None:
        """The work is done, or given up."""
        if self._begun and not self._ended:
            self._ls.work_done_progress.end(self._token, types.WorkDoneProgressEnd())
        self._ended = True
        self._ls.work_done_progress.tokens.pop(self._token, None)

    async def _begin(self) -> None:
        shown = self._ls.work_done_progress
        try:
            await shown.create_async(self._token)
        except Exception as error:
            self._ls.log(f"the client shows no progress: {error}", types.MessageType.Debug)
            return
        if self._ended:
            shown.tokens.pop(self._token, None)
            return
        self._begun = True
        percentage = 0 if self._counted else None
        begin = types.WorkDoneProgressBegin(self._title, cancellable=self._cancellable, percentage=percentage)
        shown.begin(self._token, begin)


@contextmanager
def progress(ls: Server, title: str, *, counted: bool = True, cancellable: bool = False) -> Iterator[Progress]:
    """A progress that ends with its block."""
    shown = Progress(ls, title, counted=counted, cancellable=cancellable)
    try:
        yield shown
    finally:
        shown.end()


class DocumentProgress:
    """The progress of predicting large documents, one each."""

    def __init__(self, ls: Server) -> None:
        self._ls = ls
        self._shown: dict[str, Progress] = {}

    def tell(self, uri: str, done: int, total: int) -> None:
        """So many units of a document are predicted; all of them, or 0 of 0, is the end."""
        shown = self._shown.get(uri)
        if shown is None:
            if total < LEAST_UNITS or done >= total:
                return
            shown = self._shown[uri] = Progress(self._ls, f"rlm-lsp: {uri.rpartition('/')[2]}")
        if done < total:
            shown.report(done, total)
        else:
            self._shown.pop(uri).end()
