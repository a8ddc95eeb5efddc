"""How often an agent that asks `rlm-lsp mcp` picks the rewrite that is measured faster.

    python -m tools.experiments.agent_loop --out agents.json

For each task of ``agent_tasks`` the slow function and its two rewrites run here, interleaved; their medians decide
which rewrite is faster. The scripted agent sees the texts and the sizes of the arguments: it asks the tool ``compare``
over stdio, through the SDK's client, for the first rewrite against the second, and for each rewrite against the slow
function. Where the tool cannot tell, the agent picks none.
"""

from __future__ import annotations

import argparse
import asyncio
import inspect
import json
import math
import os
import random
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

from mcp import Client, StdioServerParameters

from .agent_tasks import TASKS, Task

ROUNDS = 41
LEAST_SECONDS = 0.005  # of one timing
FORMS = ("slow", "first", "second")


@dataclass(frozen=True, slots=True)
class Outcome:
    """One task: medians in seconds, which rewrite is faster, and what the answers pick ("" for none).

    ``rewrites`` are the directions of the rewrites' costs compared with the slow function.
    """

    name: str
    seconds: dict[str, float]
    faster: str
    picked: str
    rewrites: tuple[str, str]


def functions(task: Task) -> dict[str, Callable[..., Any]]:
    """The three functions of a task."""
    defined = {}
    for form in FORMS:
        module: dict[str, Any] = {}
        exec(compile(getattr(task, form), f"{task.name}_{form}.py", "exec"), module)
        defined[form] = module[task.name]
    return defined


def measure(task: Task, rounds: int = ROUNDS) -> dict[str, float]:
    """The median time of one call of each function in seconds; in each round all are timed, in a random order.

    Raises:
        ValueError: the functions do not return the same.
    """
    source = random.Random(18)
    arguments = task.arguments(source)
    calls = functions(task)
    results = {form: call(*arguments) for form, call in calls.items()}
    for form in FORMS[1:]:
        if not is_same(results[form], results["slow"]):
            raise ValueError(f"{task.name}: {form} does not return what slow returns")
    repeats = {form: max(1, math.ceil(LEAST_SECONDS / timed(calls[form], arguments, 1))) for form in FORMS}
    times: dict[str, list[float]] = {form: [] for form in FORMS}
    for _ in range(rounds):
        for form in source.sample(FORMS, len(FORMS)):
            times[form].append(timed(calls[form], arguments, repeats[form]))
    return {form: median(values) for form, values in times.items()}


def timed(call: Callable[..., Any], arguments: tuple[Any, ...], repeats: int) -> float:
    """Seconds per call."""
    start = time.perf_counter()
    for _ in range(repeats):
        call(*arguments)
    return (time.perf_counter() - start) / repeats


def is_same(left: Any, right: Any) -> bool:
    """Return whether two results are equal; sums of floats may be made in another order."""
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(is_same, left, right))
    return math.isclose(left, right) if isinstance(left, float) else bool(left == right)


def sizes_of(task: Task) -> dict[str, float]:
    """The sizes of a task's arguments, as an agent knows them: numbers, and lengths of what is outside and inside."""
    arguments = task.arguments(random.Random(18))
    names = list(inspect.signature(functions(task)["slow"]).parameters)
    sizes: dict[str, float] = {}
    for name, value in zip(names, arguments, strict=True):
        if isinstance(value, int):
            sizes[name] = value
            continue
        sizes[name] = len(value)
        inside = next(iter(value), None) if isinstance(value, (list, tuple)) else None
        if isinstance(inside, (list, tuple, str)):
            sizes[f"{name}[]"] = sum(map(len, value)) / len(value)
    return sizes


async def cost_direction(client: Client, before: str, after: str, sizes: dict[str, float]) -> str:
    """Return the answer of ``compare`` about a latency: ``higher``, ``lower``, or nothing where it cannot tell."""
    answer = await client.call_tool("compare", {"before": before, "after": after, "sizes": sizes})
    assert answer.structured_content is not None, answer
    [row] = [row for row in answer.structured_content["rows"] if row["metric"] == "latency"]
    return row["direction"] or ""


def lower(first: float, second: float) -> str:
    """Which of two numbers is lower; empty where neither is."""
    return "" if first == second else "first" if first < second else "second"


async def play(task: Task, client: Client, seconds: dict[str, float]) -> Outcome:
    """Ask about one task."""
    sizes = sizes_of(task)
    direct = await cost_direction(client, task.first, task.second, sizes)
    one = await cost_direction(client, task.slow, task.first, sizes)
    other = await cost_direction(client, task.slow, task.second, sizes)
    picked = {"higher": "first", "lower": "second"}.get(direct, "")
    return Outcome(task.name, seconds, lower(seconds["first"], seconds["second"]), picked, (one, other))


async def run() -> list[Outcome]:
    """Measure all tasks, then ask about them."""
    measured = [measure(task) for task in TASKS]
    server = StdioServerParameters(
        command=sys.executable, args=["-m", "rlm_lsp", "mcp", "--no-measured"], env=dict(os.environ)
    )
    async with Client(server) as client:
        return [await play(task, client, seconds) for task, seconds in zip(TASKS, measured, strict=True)]


def table(outcomes: list[Outcome]) -> str:
    """A row per task, and the counts."""
    lines = ["| task | slow | first | second | faster | picked |", "|---|---|---|---|---|---|"]
    for outcome in outcomes:
        times = " | ".join(f"{outcome.seconds[form] * 1e6:,.0f} µs" for form in FORMS)
        lines.append(f"| `{outcome.name}` | {times} | {outcome.faster} | {outcome.picked or 'cannot tell'} |")
    picked = [outcome for outcome in outcomes if outcome.picked]
    right = sum(outcome.picked == outcome.faster for outcome in picked)
    lines += ["", f"Picked one of two rewrites: {len(picked)} of {len(outcomes)} times, {right} right."]
    pairs = [
        (said == "lower", outcome.seconds[form] < outcome.seconds["slow"])
        for outcome in outcomes
        for form, said in zip(FORMS[1:], outcome.rewrites, strict=True)
        if said
    ]
    right = sum(said is true for said, true in pairs)
    lines.append(f"Answered whether a rewrite is faster: {len(pairs)} of {2 * len(outcomes)} times, {right} right.")
    return "\n".join(lines)


def main() -> None:
    """Print the table, and write the outcomes as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="file for the outcomes as JSON")
    arguments = parser.parse_args()
    outcomes = asyncio.run(run())
    print(table(outcomes))
    if arguments.out is not None:
        arguments.out.write_text(json.dumps([asdict(outcome) for outcome in outcomes], indent=1) + "\n")


if __name__ == "__main__":
    main()
