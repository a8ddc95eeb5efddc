"""Work-done progress: long work is reported to clients that can show it.

The work never waits for the client: if the client has not accepted a progress when the work is done, it never begins.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager

from lsprotocol import types

from rlm_lsp.lsp.session import Session

# A document with fewer units is predicted before anyone could read a progress.
MIN_UNITS = 100


class WorkProgress:
    """One progress; does nothing for clients that cannot show it. A ``counted`` one reports how much is done."""

    def __init__(self, session: Session, title: str, *, counted: bool = True, cancellable: bool = False) -> None:
        self._session, self._title, self._counted, self._cancellable = session, title, counted, cancellable
        self._client = session.client.work_done_progress
        self._token = str(uuid.uuid4())
        self._has_begun = self._has_ended = False
        if session.capability("window.work_done_progress"):
            session.spawn(f"progress {self._token}", self._begin())

    @property
    def cancelled(self) -> bool:
        """Return whether the user has cancelled it; any thread may read this."""
        future = self._client.tokens.get(self._token)
        return future is not None and future.cancelled()

    def report(self, done: int, total: int) -> None:
        """Report how much of the work is done."""
        if self._has_begun and not self._has_ended:
            value = types.WorkDoneProgressReport(
                message=f"{done:,} of {total:,}", percentage=100 * done // max(total, 1), cancellable=self._cancellable
            )
            self._client.report(self._token, value)

    def end(self) -> None:
        """The work is done, or cancelled."""
        if self._has_begun and not self._has_ended:
            self._client.end(self._token, types.WorkDoneProgressEnd())
        self._has_ended = True
        self._client.tokens.pop(self._token, None)

    async def _begin(self) -> None:
        try:
            await self._client.create_async(self._token)
        except Exception as error:
            self._session.log(f"the client does not show progress: {error}", types.MessageType.Debug)
            return
        if self._has_ended:
            self._client.tokens.pop(self._token, None)
            return
        self._has_begun = True
        percentage = 0 if self._counted else None
        begin = types.WorkDoneProgressBegin(self._title, cancellable=self._cancellable, percentage=percentage)
        self._client.begin(self._token, begin)


@contextmanager
def progress(
    session: Session, title: str, *, counted: bool = True, cancellable: bool = False
) -> Iterator[WorkProgress]:
    """A progress that ends with its block."""
    shown = WorkProgress(session, title, counted=counted, cancellable=cancellable)
    try:
        yield shown
    finally:
        shown.end()


def register(session: Session) -> None:
    """Show a progress for each large document that is predicted."""
    shown: dict[str, WorkProgress] = {}

    def report(uri: str, done: int, total: int) -> None:
        """So many units of a document are predicted; all of them, or 0 of 0, is the end."""
        if uri not in shown:
            if total < MIN_UNITS or done >= total:
                return
            shown[uri] = WorkProgress(session, f"rlm-lsp: {uri.rpartition('/')[2]}")
        if done < total:
            shown[uri].report(done, total)
        else:
            shown.pop(uri).end()

    session.on_progress(report)
