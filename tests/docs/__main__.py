"""``python -m tests.docs [PAGE...]``: runs the commands of the documentation and updates the output that it shows."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from .blocks import blocks, commands, pages
from .outputs import renewed
from .play import play


def renew(page: Path) -> bool:
    """Run the commands of a page and write their output into it; returns whether the page has changed."""
    before = page.read_text(encoding="utf-8")
    lines = before.splitlines()
    moved = 0
    with tempfile.TemporaryDirectory(prefix="rlm-lsp-docs-") as folder:
        for played in play(list(blocks(page)), Path(folder)):
            block, command = played.block, played.command
            if command.output is None or "sample" in block.classes:
                continue
            start = block.line + command.first + moved
            now = renewed(command.output, played.printed, excerpt="excerpt" in block.classes)
            new = [f"{block.indent}{line}".rstrip() for line in now]
            lines[start : start + len(command.output)] = new
            moved += len(new) - len(command.output)
    after = "\n".join(lines) + "\n"
    page.write_text(after, encoding="utf-8")
    return after != before


def main() -> None:
    """Update the named pages, or all pages that show commands."""
    named = [Path(name).resolve() for name in sys.argv[1:]]
    for page in named or pages():
        if any(block.is_run and commands(block) for block in blocks(page)):
            print(f"{page.name}: {'updated' if renew(page) else 'unchanged'}")


if __name__ == "__main__":
    main()
