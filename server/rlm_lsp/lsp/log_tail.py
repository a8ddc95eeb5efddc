"""The newest lines of the server's log, kept for whoever asks for them."""

from __future__ import annotations

import logging
import time
from collections import deque

MOST_LINES = 500


class LogTail(logging.Handler):
    """Keeps what is logged, and what is added by hand, each with its time."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._lines: deque[str] = deque(maxlen=MOST_LINES)
        self.setFormatter(logging.Formatter("%(message)s"))

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a record of Python's logging, with its traceback."""
        self.add(record.levelname.lower(), self.format(record))

    def add(self, level: str, text: str) -> None:
        """Keep a line."""
        self._lines.append(f"{time.strftime('%H:%M:%S')} {level}: {text}")

    def text(self) -> str:
        """All lines that are kept, the oldest first."""
        return "\n".join(self._lines)
