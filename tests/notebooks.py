"""Jupyter notebooks for tests."""

from __future__ import annotations

import json
from typing import Any


def notebook_text(*cells: str, **metadata: Any) -> str:
    """A notebook with a heading, these code cells from cell 2 on, and an output that looks like code."""
    output = {"output_type": "stream", "name": "stdout", "text": ["def printed(n):\n", "    return n\n"]}
    code = [
        {
            "cell_type": "code",
            "execution_count": 1,
            "metadata": {},
            "outputs": [output],
            "source": cell.splitlines(True),
        }
        for cell in cells
    ]
    heading = {"cell_type": "markdown", "metadata": {}, "source": "# Notes\n\ndef noted(n): ..."}
    return json.dumps({"cells": [heading, *code], "metadata": metadata, "nbformat": 4, "nbformat_minor": 5})
