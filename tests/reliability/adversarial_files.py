"""Adversarial files of up to 2 MB, opened over stdio while another document is edited and asked about.

``python -m tests.reliability.adversarial_files --files 200 --seed 1`` makes that many from the families below in turn.
For each file the client asks for hints, lenses, a hover and diagnostics, edits it and asks again. The slowest answer,
the slowest answer about the other document meanwhile, and the server's peak memory are reported by family.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import tempfile
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from itertools import count
from pathlib import Path
from typing import Any

from rlm_core.source.languages import LANGUAGES

from .client import EVERYWHERE, Client, session

MOST_BYTES = 2_000_000  # the server reads files of up to 2 MiB
_SERVER_FILES = 5  # of one server
_PAUSE = 0.05
_LIMIT = 30.0  # seconds; one that takes longer counts as not answered
_NO_TEXT = {"triton", "pytorch", "ttir", "onnx"}
CODE = tuple(sorted(set(LANGUAGES) - _NO_TEXT))
_FUNCTIONS = {
    "python": "def f{0}(n):\n    return f{1}(n) + [i for i in range(n)]\n",
    "c": "int f{0}(int n) {{ int s = 0; for (int i = 0; i < n; i++) s += f{1}(i); return s; }}\n",
    "cpp": "int f{0}(int n) {{ int s = 0; for (int i = 0; i < n; i++) s += f{1}(i); return s; }}\n",
    "csharp": "class A{0} {{ int F{0}(int n) {{ int s = 0; for (int i = 0; i < n; i++) s += F{1}(i); return s; }} }}\n",
    "java": "class A{0} {{ int f{0}(int n) {{ int s = 0; for (int i = 0; i < n; i++) s += f{1}(i); return s; }} }}\n",
    "go": "func f{0}(n int) int {{ s := 0; for i := 0; i < n; i++ {{ s += f{1}(i) }}; return s }}\n",
    "javascript": "function f{0}(n) {{ let s = 0; for (let i = 0; i < n; i++) s += f{1}(i); return s; }}\n",
    "typescript": "function f{0}(n: number) {{ let s = 0; for (let i = 0; i < n; i++) s += f{1}(i); return s; }}\n",
    "kotlin": "fun f{0}(n: Int): Int {{ var s = 0; for (i in 0 until n) s += f{1}(i); return s }}\n",
    "php": "<?php function f{0}($n) {{ $s = 0; for ($i = 0; $i < $n; $i++) $s += f{1}($i); return $s; }} ?>\n",
    "ruby": "def f{0}(n)\n  (0...n).map {{ |i| f{1}(i) }}.sum\nend\n",
    "rust": "fn f{0}(n: u64) -> u64 {{ (0..n).map(|i| f{1}(i)).sum() }}\n",
    "scala": "object A{0} {{ def f{0}(n: Int): Int = (0 until n).map(i => f{1}(i)).sum }}\n",
    "swift": "func f{0}(_ n: Int) -> Int {{ var s = 0; for i in 0..<n {{ s += f{1}(i) }}; return s }}\n",
}
_TOKENS = (
    "(",
    "[",
    "{",
    "<",
    ">",
    "/*",
    "*/",
    "//",
    "#",
    '"',
    "'",
    "`",
    "$",
    "${",
    "\\",
    "\\\n",
    "*",
    "&",
    "@",
    "::",
    ".",
    ",",
    ";",
    ":",
    "if ",
    "else ",
    "for ",
    "case ",
    "a.",
    "a(",
    "a[",
    "a<",
    "f'{",
    '"""',
    "?",
    "? a : ",
    "=",
    "-",
    "!",
    "lambda: ",
    "x\n ",
    "{}",
    "()=>",
    "\r",
    "\0",
    "\x0c",
    "\u2028",
    "\ufeff",
    "\ud800",
    "😀",
    "é",
    "`${",
    "<?php ",
    "@a\n",
    "class A:\n",
    "def f():\n",
    "else if ",
    "0",
    "9_",
)


@dataclass(frozen=True)
class File:
    """A text as the client opens it; ``on_disk`` are the bytes of a file that the server reads itself."""

    family: str
    language: str
    suffix: str
    text: str = ""
    on_disk: bytes = b""
    cells: tuple[str, ...] = ()


@dataclass
class Result:
    """Seconds until the slowest answer about the file, and about the other document meanwhile; peak bytes."""

    family: str
    language: str
    size: int
    slowest: float
    asked: str
    other: float
    peak: int
    tracebacks: int


def _repeated(rng: random.Random, language: str) -> str:
    tokens = rng.choices(_TOKENS, k=rng.choice((1, 1, 2, 3)))
    size = rng.choice((40_000, 200_000, MOST_BYTES))
    text = "".join(tokens)
    return "x = 1\n" + text * (size // len(text.encode("utf-8", "replace")))


def _unclosed(rng: random.Random, language: str) -> str:
    return rng.choice("([{") * rng.choice((19_000, 40_000, MOST_BYTES))


def _nested(rng: random.Random, language: str) -> str:
    depth = rng.choice((300, 5_000, 19_000))
    opening, closing = rng.choice((("(", ")"), ("[", "]"), ("{", "}"), ("f(", ")"), ("if (a) {", "}")))
    return _FUNCTIONS[language].format(1, 2) + opening * depth + "1" + closing * depth


def _long_expression(rng: random.Random, language: str) -> str:
    part = rng.choice((" + 1", " + a", ".a", "[0]", "(1)", " && a", " ? 1 : 1", ", 1"))
    head, _, tail = _FUNCTIONS[language].format(1, 2).rpartition("s += " if "s += " in _FUNCTIONS[language] else "i")
    return f"{head}s = a{part * (rng.choice((100_000, MOST_BYTES)) // len(part))}\n{tail}"


def _long_line(rng: random.Random, language: str) -> str:
    return _FUNCTIONS[language].format(1, 2) + "x = [" + ", ".join(map(str, range(250_000))) + "]"


def _many_functions(rng: random.Random, language: str) -> str:
    template = _FUNCTIONS[language]
    names = iter(count())
    size, texts = 0, []
    while size < MOST_BYTES - 200:
        number = next(names)
        texts.append(template.format(number, (number * 7 + 1) % 40_000))
        size += len(texts[-1])
    return "".join(texts)


def _short_functions(rng: random.Random, language: str) -> str:
    if language == "python":
        return "".join(f"def f{number}(n): return n * {number}\n" for number in range(40_000))
    return _many_functions(rng, language)


def _call_cycles(rng: random.Random, language: str) -> str:
    number = rng.choice((50, 500, 4_000))
    return "".join(_FUNCTIONS[language].format(one, rng.randrange(number)) for one in range(number))


def _nested_functions(rng: random.Random, language: str) -> str:
    if language == "python":
        depth = rng.choice((90, 500, 1_900))
        return "".join(f"{' ' * level}def f{level}(n):\n" for level in range(depth)) + " " * depth + "return n\n"
    function = _FUNCTIONS[language].format(1, 2).rstrip()
    inner = function
    for _ in range(rng.choice((90, 500, 1_900))):
        place = inner.find("{") + 1 or inner.find("\n") + 1
        inner = f"{function[:place]}\n{inner}\n{function[place:]}"
        if len(inner) > MOST_BYTES:
            break
    return inner


def _huge_literals(rng: random.Random, language: str) -> str:
    literal = rng.choice(('"' + "a" * 1_500_000 + '"', "9" * 500_000, "0x" + "f" * 60_000, "1e" + "9" * 100_000))
    return f"X = {literal};\n" + _FUNCTIONS[language].format(1, 2).replace("0", literal[:100_000])


def _strange_bytes(rng: random.Random, language: str) -> str:
    kind = rng.randrange(4)
    if kind == 0:
        return rng.randbytes(MOST_BYTES // 2).decode("latin-1")
    text = _FUNCTIONS[language].format(1, 2) * 5_000
    if kind == 1:
        return text.replace("\n", "\r")
    if kind == 2:
        return "\ufeff" + text.replace(" ", "\u2028")
    letters = list(text)
    for _ in range(5_000):
        letters[rng.randrange(len(letters))] = rng.choice(_TOKENS)
    return "".join(letters)


_OF_EACH_LANGUAGE: dict[str, Callable[[random.Random, str], str]] = {
    "repeated tokens": _repeated,
    "unclosed brackets": _unclosed,
    "nested brackets": _nested,
    "long expression": _long_expression,
    "long line": _long_line,
    "many functions": _many_functions,
    "cycles of calls": _call_cycles,
    "nested functions": _nested_functions,
    "huge literals": _huge_literals,
    "strange bytes": _strange_bytes,
}


def _python_bases(rng: random.Random) -> str:
    number = rng.choice((12, 100, 300))
    names = [f"C{one}" for one in range(number)]
    text = ""
    for one, name in enumerate(names):
        others = rng.sample([other for other in names if other != name], min(30, number - 1))
        text += f"class {name}({', '.join(others)}):\n    def m{one}(self, n):\n        return self.nope(n)\n"
    return text


def _python_chain(rng: random.Random) -> str:
    return rng.choice(
        (
            "def f(n):\n    if n == 0:\n        return 0\n"
            + "".join(f"    elif n == {one}:\n        return {one}\n" for one in range(30_000)),
            "def f(n):\n"
            + "".join(f"{' ' * (one + 1)}for i{one} in range(n):\n" for one in range(800))
            + " " * 801
            + "n += 1\n",
            "def f(n):\n    return " + "lambda: " * 20_000 + "n\n",
            "def f(n):\n    return " + "[" * 900 + "n" + " for i in range(n)]" * 900 + "\n",
            "def f(n):\n" + "    n = n + 1\n" * 120_000,
            "def f(n):\n    " + "n.a" + ".a" * 500_000 + "\n",
            "def f(n):\n" + "    while n:\n        n = g(n)\n" * 40_000,
            "def f(n):\n    x = {" + ", ".join(f"'{one}': {one}" for one in range(100_000)) + "}\n    return x\n",
            "x = (1 +\n" * 19_000 + "def f(n):\n    return n\n",
            "".join(f"def f{one}(n):\n    return f{one + 1}(n) + f{one + 1}(n)\n" for one in range(20_000)),
        )
    )


def _python_shapes(rng: random.Random) -> str:
    digits = rng.choice((5_000, 40_000))
    lines = "".join(f"        x = torch.relu(self.l(x)) * {one}\n" for one in range(rng.choice((100, 20_000))))
    return (
        f"import torch\nX = 0x{'f' * digits}\nY = 0x{'e' * (digits // 2)}\n"
        "class M(torch.nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        for i in range(X % Y):\n            for j in range(X % Y):\n"
        "                self.l = torch.nn.Linear(X, Y % X)\n"
        f"    def forward(self, x):\n{lines}        return x\n"
    )


def _python_kernels(rng: random.Random) -> str:
    head = "import triton\nimport triton.language as tl\n"
    body = "    a = tl.load(x + tl.arange(0, 64))\n" * rng.choice((10, 20_000))
    one = "@triton.jit\ndef k{0}(x, n, B: tl.constexpr):\n{1}    tl.store(x, a)\n"
    return head + "".join(
        one.format(number, body) for number in range(max(1, min(2_000, MOST_BYTES // len(body) // 2)))
    )


def _ttir(rng: random.Random) -> str:
    head = "tt.func public @k(%arg0: i32) {\n"
    return rng.choice(
        (
            head + " " * 1_900_000 + "x\n}\n",
            head + " loc" * 400_000 + "\n}\n",
            head + "  %0 = arith.constant 1 : i32 loc(#loc1)\n" * 40_000 + "}\n",
            "".join(f"tt.func public @k{one}(%arg0: i32) {{\n tt.return\n}}\n" for one in range(20_000)),
            head + "scf.for %i = %a to %b {\n" * 20_000 + "}\n" * 20_000,
            head + "loc(" * 300_000,
            "tt.func public @k(" + "%a: tensor<1024x1024xf32>, " * 60_000 + ") {\n}\n",
        )
    )


def _toml(rng: random.Random) -> str:
    return rng.choice(
        (
            ".".join(["a"] * 500_000) + " = 1\n",
            "threads = " + "9" * 5_000 + "\n",
            "x = " + "[" * 100_000,
            "".join(f"[a{one}]\nb = 1\n" for one in range(60_000)),
            "exclude = [" + ", ".join('"' + "**/*a" * 40 + '"' for _ in range(2_000)) + "]\n",
            "[budgets]\n" + "".join(f'"**/*{one}*" = "latency < 1 ms"\n' for one in range(20_000)),
            "# " + "a" * MOST_BYTES,
            '"""' * 100_000,
            "a = {" * 50_000,
        )
    )


def _onnx(rng: random.Random) -> bytes:
    def field(number: int, data: bytes) -> bytes:
        size, head = len(data), bytes([number << 3 | 2])
        while size > 127:
            head, size = head + bytes([size & 127 | 128]), size >> 7
        return head + bytes([size]) + data

    def node(one: int, other: int) -> bytes:
        return field(1, field(1, b"t%d" % other) + field(2, b"t%d" % one) + field(4, b"Relu"))

    graph = rng.choice(
        (
            lambda: b"".join(node(one, one + 1) for one in range(60_000)),
            lambda: b"".join(node(one, (one + 1) % 20_000) for one in range(20_000)),
            lambda: field(5, b"\x08\x7f" * 900_000 + b"\x10\x01" + field(8, b"w")),
            lambda: rng.randbytes(MOST_BYTES // 2),
            lambda: _wrapped(field, 3_000),
        )
    )()
    return b"\x08\x09" + field(7, graph) + field(8, b"\x10\x11")


def _wrapped(field: Callable[[int, bytes], bytes], depth: int) -> bytes:
    """A graph in an attribute of a node of a graph, and so on."""
    graph = b""
    for _ in range(depth):
        graph = field(1, field(4, b"If") + field(5, field(1, b"then_branch") + field(6, graph)))
    return graph


def _cells(rng: random.Random) -> tuple[str, ...]:
    return rng.choice(
        (
            tuple(f"def f{one}(n):\n    return f{one + 1}(n)\n" for one in range(2_000)),
            ("(" * 100_000, "def f(n):\n    return n\n"),
            ("%%bash\n" + "!" * 500_000, "%time " * 50_000, "def f(n): return n\n"),
            tuple("def f(n):\n    return [n] * n\n" * 500 for _ in range(60)),
        )
    )


def files(number: int, seed: int) -> list[File]:
    """Files of all families and languages in turn."""
    made: list[File] = []
    rng = random.Random(seed)

    def text(family: str, language: str, suffix: str, value: str) -> File:
        data = value.encode("utf-8", "surrogatepass")[:MOST_BYTES]
        return File(family, language, suffix, data.decode("utf-8", "ignore"))

    while len(made) < number:
        for family, make in _OF_EACH_LANGUAGE.items():
            made += [text(family, language, LANGUAGES[language].suffixes[0], make(rng, language)) for language in CODE]
        for _ in range(4):
            made.append(text("bases", "python", ".py", _python_bases(rng)))
            made.append(text("shapes", "python", ".py", _python_shapes(rng)))
            made.append(text("kernels", "python", ".py", _python_kernels(rng)))
            made.append(File("notebook", "python", ".ipynb", cells=_cells(rng)))
        made.append(text("many functions", "python", ".py", _short_functions(rng, "python")))
        for _ in range(11):
            made.append(text("chains", "python", ".py", _python_chain(rng)))
            made.append(text("Triton IR", "ttir", ".ttir", _ttir(rng)))
            made.append(text("TOML", "toml", ".toml", _toml(rng)))
            made.append(File("ONNX", "onnx", ".onnx", on_disk=_onnx(rng)))
    # Of fewer, some of every kind.
    kept = sorted(random.Random(seed).sample(range(len(made)), number)) if number < 200 else range(number)
    return [made[one] for one in kept]


async def run(chosen: list[File], on_result: Callable[[Result], None] = lambda result: None) -> list[Result]:
    """Open the files, a few per server; one that does not answer in time is replaced."""
    results: list[Result] = []
    waiting = deque(chosen)
    while waiting:
        with tempfile.TemporaryDirectory(prefix="rlm-lsp-reliability-") as folder, suppress(ConnectionError):
            # A client with refreshes, as editors are: answers do not wait for the model.
            async with session(folder=Path(folder), refresh=True) as client:
                for _ in range(min(_SERVER_FILES, len(waiting))):
                    result = await _one(client, waiting.popleft(), Path(folder))
                    results.append(result)
                    on_result(result)
                    if result.slowest >= _LIMIT:
                        client.process.kill()
                        break
    return results


async def _one(client: Client, file: File, folder: Path) -> Result:
    name = "rlm-lsp.toml" if file.language == "toml" else f"a{len(client.answers)}{file.suffix}"
    uri = (folder / name).as_uri()
    other = asyncio.create_task(_edit_other(client, (folder / "other.py").as_uri()))
    before = client.log().count("Traceback")
    answers = await _ask_all(client, file, uri, folder / name)
    other.cancel()
    waited = await asyncio.gather(other, return_exceptions=True)
    assert isinstance(waited[0], asyncio.CancelledError), waited
    asked = max(answers, key=lambda entry: entry[1])
    size = len(file.text) + len(file.on_disk) + sum(map(len, file.cells))
    slowest_other = max(client.other_waits, default=0.0)
    client.other_waits.clear()
    tracebacks = client.log().count("Traceback") - before
    return Result(file.family, file.language, size, asked[1], asked[0], slowest_other, client.peak(), tracebacks)


async def _ask_all(client: Client, file: File, uri: str, path: Path) -> list[tuple[str, float]]:
    """Open a file, ask for everything, edit it and ask again: what was asked, and the seconds to the answer."""
    if file.on_disk:
        path.write_bytes(file.on_disk)
        return [await _timed(client, "rlm-lsp/network", {"uri": uri})]
    if file.cells:
        return await _ask_notebook(client, file, uri)
    if file.language == "toml":
        path.write_bytes(file.text.encode("utf-8", "replace"))
    client.open(uri, file.text, file.language)
    first = await _everything(client, uri)
    change = {"range": {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 0}}, "text": " \n"}
    client.notify("textDocument/didChange", {"textDocument": {"uri": uri, "version": 2}, "contentChanges": [change]})
    second = await _everything(client, uri)
    client.close(uri)
    if file.language == "toml":
        path.unlink()
        changes = {"changes": [{"uri": uri, "type": 3}]}
        client.notify("workspace/didChangeWatchedFiles", changes)
    return first + second


async def _ask_notebook(client: Client, file: File, uri: str) -> list[tuple[str, float]]:
    cells = [f"{uri}#c{number}" for number in range(len(file.cells))]
    kinds = [{"kind": 2, "document": cell} for cell in cells]
    document = {"uri": uri, "notebookType": "jupyter-notebook", "version": 1, "cells": kinds}
    texts = [
        {"uri": cell, "languageId": "python", "version": 1, "text": text}
        for cell, text in zip(cells, file.cells, strict=True)
    ]
    client.notify("notebookDocument/didOpen", {"notebookDocument": document, "cellTextDocuments": texts})
    answers = await _everything(client, cells[-1])
    gone = {"notebookDocument": {"uri": uri}, "cellTextDocuments": [{"uri": cell} for cell in cells]}
    client.notify("notebookDocument/didClose", gone)
    return answers


async def _everything(client: Client, uri: str) -> list[tuple[str, float]]:
    document = {"textDocument": {"uri": uri}}
    place = {"line": 0, "character": 5}
    return list(
        await asyncio.gather(
            _timed(client, "textDocument/inlayHint", {**document, "range": EVERYWHERE}),
            _timed(client, "textDocument/codeLens", document),
            _timed(client, "textDocument/hover", {**document, "position": place}),
            _timed(client, "textDocument/diagnostic", document),
        )
    )


async def _timed(client: Client, method: str, params: dict[str, Any]) -> tuple[str, float]:
    start = time.perf_counter()
    with suppress(TimeoutError):
        await asyncio.wait_for(client.ask(method, params), _LIMIT)
    return method, time.perf_counter() - start


async def _edit_other(client: Client, uri: str) -> None:
    """Edit another document and ask for its hints, again and again."""
    client.open(uri, "def g(n):\n    return n\n")
    try:
        for version in count(2):
            change = {"text": f"def g(n):\n    return [n * {version}] * n\n"}
            client.notify(
                "textDocument/didChange", {"textDocument": {"uri": uri, "version": version}, "contentChanges": [change]}
            )
            start = time.perf_counter()
            asked = client.ask("textDocument/inlayHint", {"textDocument": {"uri": uri}, "range": EVERYWHERE})
            try:
                await asyncio.shield(asked)
            finally:
                client.other_waits.append(time.perf_counter() - start)
            await asyncio.sleep(_PAUSE)
    finally:
        client.close(uri)


def main() -> None:
    """Print a line of JSON per file, and a table by family."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--files", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--family", help="only files of this family")
    arguments = parser.parse_args()
    chosen = [file for file in files(arguments.files, arguments.seed) if arguments.family in (None, file.family)]
    results = asyncio.run(run(chosen, lambda result: print(json.dumps(asdict(result)), flush=True)))
    print("| family | files | slowest answer | other document | peak |\n|---|---|---|---|---|")
    for family in dict.fromkeys(result.family for result in results):
        of = [result for result in results if result.family == family]
        slowest, other = max(result.slowest for result in of), max(result.other for result in of)
        peak = max(result.peak for result in of) / 1e6
        print(f"| {family} | {len(of)} | {slowest:.2f} s | {other:.2f} s | {peak:.0f} MB |")


if __name__ == "__main__":
    main()
