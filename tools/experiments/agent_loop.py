"""How often an agent that asks `rlm-lsp mcp` picks the rewrite that is measured faster.

    python -m tools.experiments.agent_loop --out agents.json

For each task of ``agent_tasks`` the slow function and its two rewrites run here, interleaved; their medians decide
which rewrite is faster. The scripted agent sees the texts alone: it asks the tool ``compare`` over stdio, through the
SDK's client, once for the first rewrite against the second, and once for each rewrite against the slow function, where
it picks the lower ratio. A ratio of exactly 1, or two equal ones, pick none. The table's last line says how often the
answers about a rewrite and the slow function are right about which of the two is faster.
"""

from __future__ import annotations

import argparse
import asyncio
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
    """One task: medians in seconds, the ratios of ``compare``, and what was picked ("" for none)."""

    name: str
    seconds: dict[str, float]
    direct: float
    against_slow: tuple[float, float]
    faster: str
    picked_direct: str
    picked_against_slow: str


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


async def latency_ratio(client: Client, before: str, after: str) -> float:
    """Return the answer of ``compare`` about the latency of the one function that both texts define."""
    answer = await client.call_tool("compare", {"before": before, "after": after})
    assert answer.structured_content is not None, answer
    [row] = [row for row in answer.structured_content["rows"] if row["metric"] == "latency"]
    return float(row["ratio"])


def lower(first: float, second: float) -> str:
    """Which of two numbers is lower; empty where neither is."""
    return "" if first == second else "first" if first < second else "second"


async def play(task: Task, client: Client, seconds: dict[str, float]) -> Outcome:
    """Ask about one task."""
    direct = await latency_ratio(client, task.first, task.second)
    against = (
        await latency_ratio(client, task.slow, task.first),
        await latency_ratio(client, task.slow, task.second),
    )
    return Outcome(
        task.name,
        seconds,
        direct,
        against,
        lower(seconds["first"], seconds["second"]),
        lower(1.0, direct),
        lower(*against),
    )


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
    lines = [
        "| task | slow | first | second | faster | second over first | picked | picked by two questions |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for outcome in outcomes:
        times = " | ".join(f"{outcome.seconds[form] * 1e6:,.0f} µs" for form in FORMS)
        measured = outcome.seconds["second"] / outcome.seconds["first"]
        ratios = f"{measured:.2g}× measured, {outcome.direct:.2g}× predicted"
        lines.append(
            f"| `{outcome.name}` | {times} | {outcome.faster} | {ratios}"
            f" | {outcome.picked_direct or 'none'} | {outcome.picked_against_slow or 'none'} |"
        )
    direct = sum(outcome.picked_direct == outcome.faster for outcome in outcomes)
    two = sum(outcome.picked_against_slow == outcome.faster for outcome in outcomes)
    lines += ["", f"Picked the faster one: {direct} of {len(outcomes)} asked directly, {two} by two questions."]
    pairs = [
        (outcome, form, ratio)
        for outcome in outcomes
        for form, ratio in zip(FORMS[1:], outcome.against_slow, strict=True)
    ]
    right = sum((outcome.seconds[form] < outcome.seconds["slow"]) == (ratio < 1) for outcome, form, ratio in pairs)
    lines.append(f"Rewrites whose ratio to the slow function is on the right side of 1: {right} of {len(pairs)}.")
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
