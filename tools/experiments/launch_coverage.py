"""Of how many kernels of libraries the bytes and operations of a launch are known at typical sizes.

    python -m tools.experiments.launch_coverage --cache SOURCES [--half development] OWNER/NAME[:FOLDER] ...

A kernel is a jit function that loads or stores and that no other jit function calls. It is known when a function of its
file launches it at some of the typical shapes and nothing in bytes and operations is without a limit or a rule. Half of
the files, by a hash of their path, are for development and half for the exam.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from rlm_core import git
from rlm_core.cost.triton_launch.host import HostProgram, launch_facts, read_program
from rlm_core.cost.triton_launch.workload import best_of, typical_calls
from rlm_core.training.datasets.cache import find_repository, read_blobs

_SKIPPED = ("test", "bench", "example", "docs", "legacy", "_ascend", "_cambricon", "_mthreads", "_kunlunxin", "_hygon")
_MOST_SECONDS = 60.0  # for a file


def main() -> None:
    """Print the share of known kernels of each repository."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("repositories", nargs="+")
    parser.add_argument("--cache", type=Path, required=True)
    parser.add_argument("--half", choices=["development", "exam"], default="development")
    parser.add_argument("--list", action="store_true", help="print the kernels that are not known")
    arguments = parser.parse_args()
    total: Counter[str] = Counter()
    for name in arguments.repositories:
        counts: Counter[str] = Counter()
        started = time.process_time()
        for path, text in _files(name, arguments.cache, arguments.half):
            found = kernels_of(text)
            counts.update(found.values())
            for kernel, state in found.items() if arguments.list else ():
                if state != "known":
                    print(f"{state:12} {path} {kernel}", flush=True)
        total += counts
        print(f"{name}: {_share(counts)}; {time.process_time() - started:.0f} s of CPU", flush=True)
    print(f"all: {_share(total)}")


def _share(counts: Counter[str]) -> str:
    count = counts.total()
    parts = ", ".join(f"{state} {number}" for state, number in counts.most_common())
    return f"{count} kernels, known {counts['known'] / max(count, 1):.1%} ({parts})"


def _files(name: str, cache: Path, half: str) -> Iterator[tuple[str, str]]:
    repository, _, folder = name.partition(":")
    path = find_repository(cache, repository, download=False)
    assert path is not None, f"{repository} is not in the cache"
    _, listed = git.run(path, ["ls-tree", "-r", "-z", "--name-only", "HEAD"])
    names = [entry for entry in listed.decode().split("\0") if entry.endswith(".py") and entry.startswith(folder)]
    names = [entry for entry in names if not any(part in entry.lower() for part in _SKIPPED) and half_of(entry) == half]
    _, head = git.run(path, ["rev-parse", "HEAD"])
    for entry, content in read_blobs(path, (f"{head.decode().strip()}:{entry}" for entry in names)):
        if content is not None and b"triton" in content and b".jit" in content:
            yield entry.partition(":")[2], content.decode("utf-8", errors="replace")


def half_of(path: str) -> str:
    """The half that a file is in, by a hash of its path."""
    return "exam" if hashlib.sha256(f"coverage/{path}".encode()).digest()[0] % 2 else "development"


def kernels_of(text: str) -> dict[str, str]:
    """The kernels of a file: ``known``, ``unknown`` (launched), ``grid`` (of unknown grid) or ``no launch``."""
    program = read_program(text)
    if program is None:
        return {}
    states = dict.fromkeys(_wanted(program), "no launch")
    started = time.monotonic()
    rank = ("no launch", "grid", "unknown", "known")
    for function, arguments, named in typical_calls(program):
        if time.monotonic() - started > _MOST_SECONDS or all(state == "known" for state in states.values()):
            break
        for launch in program.run(function, arguments, named).launches[:12]:
            name = launch.kernel.name
            if name not in states or states[name] == "known":
                continue
            facts = best_of(launch_facts(launch, quick=True))
            state = "grid" if not launch.variants else "known" if facts is not None and facts.known else "unknown"
            states[name] = max(states[name], state, key=rank.index)
    return states


def _wanted(program: HostProgram) -> list[str]:
    words = {name: _names(kernel.function.node) for name, kernel in program.kernels.items()}
    called = {other for name, used in words.items() for other in used if other != name}
    accesses = {"load", "store", "atomic_add", "make_block_ptr", "make_tensor_descriptor"}
    return [
        name
        for name, kernel in program.kernels.items()
        if name not in called and _attributes(kernel.function.node) & accesses
    ]


def _names(node: ast.AST) -> set[str]:
    return {item.id for item in ast.walk(node) if isinstance(item, ast.Name)}


def _attributes(node: ast.AST) -> set[str]:
    return {item.attr for item in ast.walk(node) if isinstance(item, ast.Attribute)}


if __name__ == "__main__":
    main()
