"""How often an agent that asks `rlm-lsp mcp` learns which version of a function is faster.

    python -m tools.experiments.agent_loop --out agents.json
    python -m tools.experiments.agent_loop --sources CLONES --out public.json

The first form asks about the tasks of ``agent_tasks``, the second about those of ``public_tasks``, whose repositories
are cloned as ``owner+name`` below a folder. All versions of a task run here, interleaved; the medians of their
processor time decide which is faster. The scripted agent sees the texts and the sizes of the arguments. Over stdio,
through the SDK's client, it asks the tool ``compare`` about each pair of versions and ``rank`` about all. A difference
below 1.2 times counts as none.
"""

from __future__ import annotations

import argparse
import ast
import asyncio
import copy
import json
import math
import os
import random
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from pathlib import Path
from statistics import median
from typing import Any

from mcp import Client, StdioServerParameters

from .agent_tasks import TASKS
from .public_tasks import PUBLIC_TASKS

ROUNDS = 15
LEAST_SECONDS = 0.005  # of one timing
MOST_SECONDS = 0.5  # of all timings of one version
REAL = 1.2
_SEED = 18


@dataclass(frozen=True, slots=True)
class Versions:
    """The texts of a function, the slow one first, and the arguments of one call."""

    name: str
    texts: tuple[str, ...]
    arguments: tuple[Any, ...]

    def functions(self) -> list[Callable[..., Any]]:
        """The function of each text."""
        defined = []
        for number, text in enumerate(self.texts):
            module: dict[str, Any] = {"__name__": f"{self.name}_{number}"}
            exec(compile(text, f"{self.name}_{number}.py", "exec"), module)
            defined.append(module[self.name])
        return defined

    def sizes(self) -> dict[str, float]:
        """The sizes of the arguments, as an agent knows them: numbers, and lengths of what is outside and inside.

        A parameter may have another name in each version.
        """
        sizes: dict[str, float] = {}
        for text in self.texts:
            for name, value in zip(_parameters(text, self.name), self.arguments, strict=False):
                sizes |= {f"{name}{inside}": size for inside, size in _sizes(value)}
        return sizes


@dataclass(frozen=True, slots=True)
class Answer:
    """What ``compare`` says of a pair: the version with the lower cost, or none. ``ratio`` is the measured one."""

    pair: tuple[int, int]
    faster: int | None
    ratio: float


@dataclass(frozen=True, slots=True)
class Outcome:
    """One task: medians in seconds, the answers about its pairs, and the versions that ``rank`` says to measure."""

    name: str
    seconds: tuple[float, ...]
    answers: tuple[Answer, ...]
    to_measure: tuple[int, ...]


def own_tasks() -> list[Versions]:
    """The tasks of this repository."""
    source = random.Random
    return [Versions(task.name, (task.slow, task.first, task.second), task.arguments(source(_SEED))) for task in TASKS]


def public_tasks(sources: Path) -> list[Versions]:
    """The tasks whose texts are in clones below a folder."""
    return [Versions(task.name, task.texts(sources), task.arguments(random.Random(_SEED))) for task in PUBLIC_TASKS]


def _parameters(text: str, name: str) -> list[str]:
    node = next(node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef) and node.name == name)
    return [parameter.arg for parameter in (*node.args.posonlyargs, *node.args.args)]


def _sizes(value: Any) -> Iterable[tuple[str, float]]:
    if isinstance(value, int):
        return [("", value)] if value > 0 else []
    if not hasattr(value, "__len__"):
        return []
    inside = next(iter(value), None) if isinstance(value, (list, tuple)) else None
    inner = [("[]", sum(map(len, value)) / len(value))] if isinstance(inside, (list, tuple, str)) else []
    return [("", len(value)), *inner]


def measure(task: Versions, rounds: int = ROUNDS) -> tuple[float, ...]:
    """The median processor time of one call of each version in seconds; in each round all are timed, in random order.

    The first call of each is not timed. A version that changes its arguments gets a copy for each call, made before.
    """
    source = random.Random(_SEED)
    calls = task.functions()
    changes = any(changes_arguments(call, task.arguments) for call in calls)
    once = [timed(call, task.arguments, 1, copies=changes) for call in calls]
    repeats = [max(1, math.ceil(LEAST_SECONDS / max(seconds, 1e-6))) for seconds in once]
    if changes:
        repeats = [1 if seconds > LEAST_SECONDS / 10 else 10 for seconds in once]
    rounds = min(rounds, max(5, math.ceil(MOST_SECONDS / max(*once, LEAST_SECONDS))))
    times: list[list[float]] = [[] for _ in calls]
    for _ in range(rounds):
        for number in source.sample(range(len(calls)), len(calls)):
            times[number].append(timed(calls[number], task.arguments, repeats[number], copies=changes))
    return tuple(median(values) for values in times)


def changes_arguments(call: Callable[..., Any], arguments: tuple[Any, ...]) -> bool:
    """Call a function once, and return whether a list of its arguments is another one afterwards."""
    given = tuple(map(copy.copy, arguments))
    call(*given)
    pairs = zip(given, arguments, strict=True)
    return any(isinstance(value, list) and value != before for value, before in pairs)


def timed(call: Callable[..., Any], arguments: tuple[Any, ...], repeats: int, *, copies: bool) -> float:
    """Seconds of processor time per call."""
    given = [tuple(map(copy.copy, arguments)) if copies else arguments for _ in range(repeats)]
    start = time.process_time()
    for each in given:
        call(*each)
    return (time.process_time() - start) / repeats


def is_same(left: Any, right: Any) -> bool:
    """Return whether two results are equal; sums of floats may be made in another order."""
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(is_same, left, right))
    return math.isclose(left, right) if isinstance(left, float) else bool(left == right)


async def ask(client: Client, tool: str, **arguments: Any) -> Mapping[str, Any]:
    """The structured answer of a tool.

    Raises:
        RuntimeError: the tool refuses.
    """
    answer = await client.call_tool(tool, arguments)
    fields: Mapping[str, Any] | None = answer.structured_content
    if fields is None:
        raise RuntimeError(str(answer))
    return fields


async def play(task: Versions, client: Client, seconds: tuple[float, ...]) -> Outcome:
    """Ask about one task."""
    sizes, answers = task.sizes(), []
    for pair in combinations(range(len(task.texts)), 2):
        before, after = (task.texts[place] for place in pair)
        compared = await ask(client, "compare", before=before, after=after, sizes=sizes, unit=task.name)
        [row] = [row for row in compared["rows"] if row["metric"] == "latency"] or [{"direction": None}]
        faster = {"lower": pair[1], "higher": pair[0]}.get(row["direction"])
        answers.append(Answer(pair, faster, seconds[pair[1]] / seconds[pair[0]]))
    ranking = await ask(client, "rank", candidates=list(task.texts), sizes=sizes, unit=task.name)
    ranked = ranking["candidates"]
    to_measure = tuple(entry["place"] for entry in ranked[: ranking["measure"]])
    return Outcome(task.name, seconds, tuple(answers), to_measure)


async def run(tasks: Sequence[Versions]) -> list[Outcome]:
    """Measure all tasks, then ask about them."""
    measured = [measure(task) for task in tasks]
    server = StdioServerParameters(
        command=sys.executable, args=["-m", "rlm_lsp", "mcp", "--no-measured"], env=dict(os.environ)
    )
    async with Client(server) as client:
        return [await play(task, client, seconds) for task, seconds in zip(tasks, measured, strict=True)]


def counts(answers: Sequence[Answer]) -> str:
    """The number of answers, and how many of them are right, opposite, or about a difference that is none."""
    said = [answer for answer in answers if answer.faster is not None]
    real = [answer for answer in said if not 1 / REAL < answer.ratio < REAL]
    right, by_sign = (sum(answer.faster == faster_of(answer) for answer in some) for some in (real, said))
    return (
        f"{len(said)} of {len(answers)} answered, {right} right, {len(real) - right} opposite,"
        f" {len(said) - len(real)} within {REAL:g} times; {by_sign} right however small the difference"
    )


def faster_of(answer: Answer) -> int:
    """The version that is measured faster."""
    return answer.pair[0] if answer.ratio > 1 else answer.pair[1]


def table(outcomes: Sequence[Outcome]) -> str:
    """A row per task, and the counts."""
    lines = ["| task | versions | fastest | answered | right |", "|---|---|---|---|---|"]
    for outcome in outcomes:
        times = " / ".join(f"{seconds * 1e6:,.3g}" for seconds in outcome.seconds)
        said = [answer for answer in outcome.answers if answer.faster is not None]
        right = sum(answer.faster == faster_of(answer) for answer in said)
        fastest = outcome.seconds.index(min(outcome.seconds)) + 1
        lines.append(f"| `{outcome.name}` | {times} µs | {fastest} | {len(said)} of {len(outcome.answers)} | {right} |")
    answers = [answer for outcome in outcomes for answer in outcome.answers]
    best = [
        answer
        for outcome in outcomes
        for answer in outcome.answers
        if answer.pair == (0, min(range(1, len(outcome.seconds)), key=outcome.seconds.__getitem__))
    ]
    inside = sum(outcome.seconds.index(min(outcome.seconds)) in outcome.to_measure for outcome in outcomes)
    share = sum(len(outcome.to_measure) / len(outcome.seconds) for outcome in outcomes) / len(outcomes)
    return "\n".join(
        [
            *lines,
            "",
            f"The slow version and its fastest rewrite: {counts(best)}.",
            f"The slow version and a rewrite: {counts([answer for answer in answers if not answer.pair[0]])}.",
            f"Two rewrites: {counts([answer for answer in answers if answer.pair[0]])}.",
            f"`rank`: the fastest is among those to measure in {inside} of {len(outcomes)}, {share:.0%} of all.",
        ]
    )


def main() -> None:
    """Print the table, and write the outcomes as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sources", type=Path, help="folder with clones of the repositories of the public tasks")
    parser.add_argument("--out", type=Path, help="file for the outcomes as JSON")
    arguments = parser.parse_args()
    tasks = own_tasks() if arguments.sources is None else public_tasks(arguments.sources)
    outcomes = asyncio.run(run(tasks))
    print(table(outcomes))
    if arguments.out is not None:
        arguments.out.write_text(json.dumps([asdict(outcome) for outcome in outcomes], indent=1) + "\n")


if __name__ == "__main__":
    main()
