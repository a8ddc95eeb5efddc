"""Random edits of documents and notebooks over stdio: the answers must be those for a fresh document with the text.

``python -m tests.reliability.random_edits --edits 1000000 --seed 1``. An edit is one content change, and one message
has up to eight of them. The client applies each edit to its own copy of the text, in its own way. Every few hundred
edits the server is asked for hints, lenses, hovers and all predictions, once for the edited document and once for
another one that is opened with the client's text; in between, hovers have it analyse the versions on the way.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import re
import time
from bisect import bisect_right
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass, field
from typing import Any

from .client import EVERYWHERE, Client, Json, session

ENCODINGS = ("utf-8", "utf-16", "utf-32")
_SESSION_EDITS = 25_000  # of one server
_COMPARED_EDITS = 400  # between two comparisons of a document
_MOST_CHARACTERS = 3_000
_LINE_END = re.compile("\r\n|\r|\n")
_STRANGE = (
    "\r",
    "\n",
    "\r\n",
    "\x0c",
    "\u2028",
    "\u2029",
    "\x85",
    "\x0b",
    "\x1c",
    "\0",
    "\ufeff",
    "é",
    "日",
    "😀",
    "𝕏",
    "e\u0301",
)
_PIECES = (" ", "    ", "x", "n", "(", ")", ":", "#", '"', "'", "{", "}", ";", "+ 1", "pass", "return n", "if n:", "\\")
_TEXTS = {
    "python": (
        "def f{0}(n, s='{1}'):\n    t = [i * {0} for i in range(n)]  # {1}\n    return sorted(t)\n",
        "class C{0}:\n    def m(self, xs):\n        '''{1}'''\n        return sum(x * {0} for x in xs)\n",
        "async def g{0}(a, b): return f{2}(a) + f{2}(b)\n",
        "X{0} = '{1}'\n",
        "@cache\ndef h{0}(n):\n    def inner(k):\n        return k + n\n    return [inner(k) for k in range({0})]\n",
    ),
    "java": (
        "class A{0} {{\n  // {1}\n  int f{0}(int n) {{ int s = 0; for (int i = 0; i < n; i++) s++; return s; }}\n}}\n",
        "class B{0} {{ public static void main(String[] a) {{ System.out.println({0}); }} }}\n",
    ),
    "cpp": (
        "int f{0}(int n) {{\n  int s = 0; /* {1} */\n  for (int i = 0; i < n; ++i) s += i * {0};\n  return s;\n}}\n",
        "#include <vector>\nint main() {{ std::vector<int> v({0}); return v.size(); }}\n",
    ),
    "javascript": (
        "function f{0}(n) {{\n  let s = 0; // {1}\n  for (let i = 0; i < n; i++) s += i * {0};\n  return s;\n}}\n",
        "const g{0} = (n) => Array.from({{length: n}}, (_, i) => i * {0}); // {1}\n",
    ),
    "go": ("func f{0}(n int) int {{\n\ts := 0 // {1}\n\tfor i := 0; i < n; i++ {{ s += i * {0} }}\n\treturn s\n}}\n",),
    "rust": ("fn f{0}(n: u64) -> u64 {{\n    (0..n).map(|i| i * {0}).sum() // {1}\n}}\n",),
}
# Python is analysed from edit to edit, the others as a whole.
_LANGUAGES = ("python", "python", "python", "python", *list(_TEXTS)[1:])


@dataclass
class Report:
    """What was run, and every difference with what is needed to repeat it."""

    edits: int = 0
    messages: int = 0
    comparisons: int = 0
    rows: int = 0
    seconds: float = 0.0
    peak: int = 0
    tracebacks: int = 0
    differences: list[Json] = field(default_factory=list)

    def add(self, other: Report) -> None:
        """Add what another session has run."""
        for name, value in vars(other).items():
            setattr(self, name, max(self.peak, value) if name == "peak" else getattr(self, name) + value)


class Text:
    """The client's copy of one text."""

    def __init__(self, rng: random.Random, language: str, encoding: str) -> None:
        self._rng, self.language, self._encoding = rng, language, encoding
        # Halves of one pair could meet, and a text on the wire cannot tell them from the pair.
        self._strange = (*_STRANGE, rng.choice(("\ud83d", "\ude00")))
        self.value = self.whole()

    def whole(self) -> str:
        """A text as it may be before any edit."""
        end = self._rng.choice(("\n", "\n", "\r\n", "\r"))
        return "".join(self._block() for _ in range(self._rng.randint(1, 5))).replace("\n", end)

    def change(self) -> Json:
        """One random content change; it is applied to the text."""
        rng, text = self._rng, self.value
        kind = rng.random()
        if kind < 0.02 or not text:
            self.value = self.whole()
            return {"text": self.value}
        if len(text) > _MOST_CHARACTERS:
            start = rng.randrange(len(text) // 2)
            return self._replace(start, start + len(text) // 2, "")
        at = rng.randrange(len(text) + 1)
        if kind < 0.40:
            return self._replace(at, at, self._piece())
        if kind < 0.60:
            return self._replace(at, at + rng.randint(0, 8), self._piece())
        if kind < 0.66:
            return self._replace(at, at + rng.randint(1, 60), "")
        if kind < 0.87:
            starts = self._line_starts()
            first = rng.choice(starts)
            return self._replace(first, first, self._block())
        if kind < 0.95:
            # A whole line, as with the command that deletes one.
            starts = [*self._line_starts(), len(text)]
            line = rng.randrange(len(starts) - 1)
            return self._replace(starts[line], starts[line + 1], rng.choice(("", self._block())))
        return self._beyond()

    def position(self, offset: int) -> Json:
        """The client's position of a character."""
        starts = self._line_starts()
        line = bisect_right(starts, offset) - 1
        return {"line": line, "character": self._units(self.value[starts[line] : offset])}

    def _beyond(self) -> Json:
        """A change whose range ends after the end of a line, or after the last line."""
        rng, text = self._rng, self.value
        starts = self._line_starts()
        line = rng.randrange(len(starts))
        found = _LINE_END.search(text, starts[line])
        end_of_line = found.start() if found is not None else len(text)
        start = rng.randint(starts[line], end_of_line)
        new = self._piece()
        first = self.position(start)
        if rng.random() < 0.5:
            units = self._units(text[starts[line] : end_of_line])
            far = {"line": line, "character": rng.choice((units + 1, units + 7, 2**31 - 1))}
            end = end_of_line
        else:
            far, end = {"line": len(starts) + rng.choice((0, 5, 100_000)), "character": rng.randrange(9)}, len(text)
            if rng.random() < 0.3:
                first, start = far, end
        if rng.random() < 0.3 and far["line"] == line:
            first, start = far, end
        self.value = text[:start] + new + text[end:]
        return {"range": {"start": first, "end": far}, "text": new}

    def _replace(self, start: int, end: int, new: str) -> Json:
        start, end = self._expressible(start), self._expressible(min(end, len(self.value)))
        place = {"start": self.position(start), "end": self.position(end)}
        self.value = self.value[:start] + new + self.value[end:]
        return {"range": place, "text": new}

    def _expressible(self, offset: int) -> int:
        """The offset, or that of the line end in whose middle it is."""
        return offset - 1 if self.value[max(0, offset - 1) : offset + 1] == "\r\n" else offset

    def _units(self, text: str) -> int:
        if self._encoding == "utf-32":
            return len(text)
        if self._encoding == "utf-16":
            return len(text.encode("utf-16-le", "surrogatepass")) // 2
        return len(text.encode("utf-8", "surrogatepass"))

    def _line_starts(self) -> list[int]:
        return [0, *(match.end() for match in _LINE_END.finditer(self.value))]

    def _piece(self) -> str:
        chosen = self._rng.choices((self._strange, _PIECES), (2, 3))[0]
        return "".join(self._rng.choices(chosen, k=self._rng.choice((1, 1, 1, 2, 5))))

    def _block(self) -> str:
        rng = self._rng
        strange = "".join(rng.choices([piece for piece in self._strange if piece not in "\r\n\0"], k=rng.randrange(3)))
        return rng.choice(_TEXTS[self.language]).format(rng.randrange(100), strange, rng.randrange(100))


class _Document:
    """A document that is edited; ``name`` is that of its file."""

    def __init__(self, client: Client, rng: random.Random, encoding: str, name: str) -> None:
        self._client, self._rng = client, rng
        self.text = Text(rng, rng.choice(_LANGUAGES), encoding)
        self.uri, self._fresh = f"file:///edited/{name}", f"file:///fresh/{name}"
        self._version = 1
        client.open(self.uri, self.text.value, self.text.language)

    def edit(self, count: int) -> None:
        self._version += 1
        changes = [self.text.change() for _ in range(count)]
        document = {"uri": self.uri, "version": self._version}
        self._client.notify("textDocument/didChange", {"textDocument": document, "contentChanges": changes})

    def texts(self) -> dict[str, str]:
        return {self.uri: self.text.value}

    async def compare(self) -> tuple[list[Any], list[Any]]:
        places = [self.text.position(self._rng.randrange(len(self.text.value) + 1)) for _ in range(2)]
        edited = await answers(self._client, self.uri, places)
        self._client.open(self._fresh, self.text.value, self.text.language)
        fresh = await answers(self._client, self._fresh, places)
        self._client.close(self._fresh)
        return edited, fresh

    def close(self) -> None:
        self._client.close(self.uri)


class _Notebook:
    """A notebook whose cells are edited, inserted, removed and moved."""

    def __init__(self, client: Client, rng: random.Random, encoding: str, name: str) -> None:
        self._client, self._rng, self._encoding, self._name = client, rng, encoding, name
        self.uri = f"file:///edited/{name}.ipynb"
        self._version = self._made = 1
        self._cells: dict[str, Text] = {}
        self._order: list[str] = []
        for _ in range(3):
            self._order.append(self._new_cell())
        self._open(self.uri, self._order)

    def edit(self, count: int) -> None:
        rng = self._rng
        self._version += 1
        document = {"uri": self.uri, "version": self._version}
        kind = rng.random()
        change: Json
        if kind < 0.85 and self._order:
            uri = rng.choice(self._order)
            changes = [self._cells[uri].change() for _ in range(count)]
            change = {"textContent": [{"document": {"uri": uri, "version": self._version}, "changes": changes}]}
        elif (kind < 0.92 and len(self._order) < 6) or not self._order:
            at, uri = rng.randrange(len(self._order) + 1), self._new_cell()
            self._order.insert(at, uri)
            change = self._structure(at, 0, [uri], opened=[uri])
        elif kind < 0.96:
            at = rng.randrange(len(self._order))
            uri = self._order.pop(at)
            del self._cells[uri]
            change = self._structure(at, 1, [], closed=[uri])
        else:
            # A cell moves past the next one: both are in the changed part, and none is opened or closed.
            at = rng.randrange(len(self._order))
            self._order[at : at + 2] = reversed(self._order[at : at + 2])
            moved = self._order[at : at + 2]
            change = self._structure(at, len(moved), moved)
        self._client.notify("notebookDocument/didChange", {"notebookDocument": document, "change": {"cells": change}})

    def texts(self) -> dict[str, str]:
        return {uri: self._cells[uri].value for uri in self._order}

    async def compare(self) -> tuple[list[Any], list[Any]]:
        start = {"line": 0, "character": 0}
        edited = [await answers(self._client, uri, [start]) for uri in self._order]
        fresh_uri = f"file:///fresh/{self._name}.ipynb"
        cells = [uri.replace("/edited/", "/fresh/") for uri in self._order]
        self._open(fresh_uri, cells)
        fresh = [await answers(self._client, uri, [start]) for uri in cells]
        self._close(fresh_uri, cells)
        return edited, fresh

    def close(self) -> None:
        self._close(self.uri, self._order)

    def _new_cell(self) -> str:
        self._made += 1
        uri = f"vscode-notebook-cell:/edited/{self._name}.ipynb#c{self._made}"
        self._cells[uri] = Text(self._rng, "python", self._encoding)
        return uri

    def _structure(
        self,
        start: int,
        removed: int,
        cells: list[str],
        opened: list[str] | None = None,
        closed: list[str] | None = None,
    ) -> Json:
        array = {"start": start, "deleteCount": removed, "cells": [{"kind": 2, "document": uri} for uri in cells]}
        items = [self._item(uri, uri) for uri in opened or ()]
        return {"structure": {"array": array, "didOpen": items, "didClose": [{"uri": uri} for uri in closed or ()]}}

    def _item(self, uri: str, of: str) -> Json:
        return {"uri": uri, "languageId": "python", "version": 1, "text": self._cells[of].value}

    def _open(self, notebook: str, cells: list[str]) -> None:
        document = {"uri": notebook, "notebookType": "jupyter-notebook", "version": 1}
        document["cells"] = [{"kind": 2, "document": uri} for uri in cells]
        items = [self._item(uri, own) for uri, own in zip(cells, self._order, strict=True)]
        self._client.notify("notebookDocument/didOpen", {"notebookDocument": document, "cellTextDocuments": items})

    def _close(self, notebook: str, cells: list[str]) -> None:
        texts = [{"uri": uri} for uri in cells]
        self._client.notify(
            "notebookDocument/didClose", {"notebookDocument": {"uri": notebook}, "cellTextDocuments": texts}
        )


async def answers(client: Client, uri: str, places: list[Json]) -> list[Any]:
    """What a server says about a document, without its name."""
    document = {"textDocument": {"uri": uri}}
    asked = [
        client.ask("workspace/executeCommand", {"command": "rlm-lsp.predictFile", "arguments": [uri]}),
        client.ask("textDocument/codeLens", document),
        client.ask("textDocument/inlayHint", {**document, "range": EVERYWHERE}),
        *(client.ask("textDocument/hover", {**document, "position": place}) for place in places),
    ]
    said = await asyncio.wait_for(asyncio.gather(*asked), 60)
    # The names of the two documents differ by this one word.
    return [
        json.loads(json.dumps(answer.get("result", answer.get("error"))).replace("/fresh/", "/edited/"))
        for answer in said
    ]


async def run(edits: int, seed: int, on_session: Callable[[int, Report], None] = lambda seed, report: None) -> Report:
    """Run edits in sessions of one server each, in turn with each position encoding."""
    total = Report()
    number = 0
    while total.edits < edits:
        report = await run_session(min(_SESSION_EDITS, edits - total.edits), seed + number)
        on_session(seed + number, report)
        total.add(report)
        number += 1
    return total


async def run_session(edits: int, seed: int) -> Report:
    """Run edits in one server; the seed decides everything."""
    rng, report, start = random.Random(seed), Report(), time.perf_counter()
    encoding = ENCODINGS[seed % len(ENCODINGS)]
    async with session(encoding) as client:
        document: _Document | _Notebook | None = None
        while report.edits < edits:
            if document is None or rng.random() < 0.2:
                if document is not None:
                    document.close()
                kind = _Notebook if rng.random() < 0.25 else _Document
                document = kind(client, rng, encoding, f"a{report.comparisons}")
            await _some_edits(client, rng, document, min(_COMPARED_EDITS, edits - report.edits), report)
            edited, fresh = await document.compare()
            report.comparisons += 1
            report.rows += _count(edited)
            if edited != fresh:
                texts = document.texts()
                report.differences.append(
                    {"seed": seed, "edits": report.edits, "texts": texts, "edited": edited, "fresh": fresh}
                )
        report.peak = client.peak()
        report.tracebacks = client.log().count("Traceback")
    report.seconds = time.perf_counter() - start
    return report


async def _some_edits(
    client: Client, rng: random.Random, document: _Document | _Notebook, count: int, report: Report
) -> None:
    waiting: list[Awaitable[Json]] = []
    end = report.edits + count
    while report.edits < end:
        size = min(rng.choice((1, 1, 2, 4, 8)), end - report.edits)
        document.edit(size)
        report.edits += size
        report.messages += 1
        if rng.random() < 0.2 and (uris := list(document.texts())):
            # It may end with an error, since the next edit makes it pointless.
            place = {"textDocument": {"uri": rng.choice(uris)}, "position": {"line": 0, "character": 0}}
            waiting.append(client.ask("textDocument/hover", place))
            if rng.random() < 0.5:
                await asyncio.wait_for(waiting[-1], 60)
        await client.drain()
    await asyncio.wait_for(asyncio.gather(*waiting), 60)


def _count(value: Any) -> int:
    if isinstance(value, dict):
        return 1
    return sum(map(_count, value)) if isinstance(value, list) else 0


def main() -> None:
    """Print a line of JSON per session, and one of all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--edits", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()

    def show(seed: int, report: Report) -> None:
        print(json.dumps({"seed": seed, **asdict(report)}), flush=True)

    total = asyncio.run(run(arguments.edits, arguments.seed, show))
    print(json.dumps({"all": True, **asdict(total), "differences": len(total.differences)}))
    raise SystemExit(1 if total.differences else 0)


if __name__ == "__main__":
    main()
