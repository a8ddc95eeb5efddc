"""Edits that each make a text that was not there before: what the server keeps of texts that are gone.

    python -m tests.reliability.new_texts [--edits 30000] [--warm 10000] [--seed 1] [--cycles]

Two generated modules are open. With ``--cycles`` they are those of a package whose functions all call each other, so
that an edit changes what the model reads of many units. Each edit gives a function a new body, and its hints are
awaited, so every text is analysed and predicted. A line follows every 1,000 edits; the last one has the growth after
the warm-up.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import sys
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

from tests.bench.workspace import generate

from .client import Client, session

_FUNCTIONS = 600  # of a package with cycles: twelve modules
_MODULE_FUNCTIONS = 50  # of a module without
_BODY = "    total = 0"
_FUNCTION = """def f{0}(items):
    total = 0
    for item in items:
        total += item * {0}
    return sorted(range(total))


"""
_EVERY = 1000


def modules(folder: Path, *, cycles: bool) -> list[str]:
    """Write two modules; their names."""
    if cycles:
        return generate(folder, _FUNCTIONS)[:2]
    folder.mkdir()
    names = ["first", "second"]
    for name in ("__init__", *names):
        text = "".join(map(_FUNCTION.format, range(_MODULE_FUNCTIONS))) if name in names else ""
        (folder / f"{name}.py").write_text(text, encoding="utf-8")
    return names


async def resident_after_edits(
    folder: Path, edits: int, seed: int, every: int = _EVERY, *, cycles: bool = False
) -> AsyncIterator[int]:
    """The bytes of memory that a server holds after each ``every`` edits."""
    names = modules(folder / "pkg", cycles=cycles)
    chosen = random.Random(seed)
    async with session(folder=folder) as client:
        texts = {}
        for name in names:
            path = folder / "pkg" / f"{name.replace('.', '/')}.py"
            lines = path.read_text(encoding="utf-8").split("\n")
            texts[path.as_uri()] = [number for number, line in enumerate(lines) if line.startswith(_BODY)]
            client.open(path.as_uri(), "\n".join(lines))
            await client.hints(path.as_uri())
        for number in range(1, edits + 1):
            uri = chosen.choice(list(texts))
            await _edit(client, uri, number, chosen.choice(texts[uri]))
            if number % every == 0:
                yield client.resident()


async def _edit(client: Client, uri: str, number: int, line: int) -> None:
    """Write the number of the edit into a line, and wait for the hints around it."""
    place = {"start": {"line": line, "character": len(_BODY)}, "end": {"line": line, "character": 1000}}
    document = {"uri": uri, "version": number + 1}
    change = {"range": place, "text": f" + len(items) + {number}"}
    client.notify("textDocument/didChange", {"textDocument": document, "contentChanges": [change]})
    await client.hints(uri, max(0, line - 30), line + 30)


async def _run(edits: int, warm: int, seed: int, *, cycles: bool) -> None:
    held: dict[int, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        async for size in resident_after_edits(Path(folder), edits, seed, cycles=cycles):
            held[_EVERY * (len(held) + 1)] = round(size / 2**20, 1)
            print(json.dumps({"edits": _EVERY * len(held), "mib": held[_EVERY * len(held)]}), flush=True)
    print(json.dumps({"growth_mib": round(held[edits] - held[warm], 1), "from": warm, "to": edits}))


def main() -> int:
    """Edit and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--edits", type=int, default=30_000)
    parser.add_argument("--warm", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cycles", action="store_true")
    arguments = parser.parse_args()
    asyncio.run(_run(arguments.edits, arguments.warm, arguments.seed, cycles=arguments.cycles))
    return 0


if __name__ == "__main__":
    sys.exit(main())
