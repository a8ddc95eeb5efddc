"""The online judges whose figures the model may know: ids, names, and the least that their clocks resolve.

A judge is the device of a program's query. Which judges a model was trained on is in its card.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Judge:
    """An online judge.

    ``step`` is one step of its clock in seconds, 0 where the labels hold no figure that small: what is reported as one
    step or less is known to be no more than that.
    """

    id: str
    title: str
    step: float = 0.0

    def floor(self, metric: str) -> float:
        """The smallest value of a metric that the judge resolves, in SI units; 0 if there is none."""
        return self.step if metric == "latency" else 0.0


JUDGES: dict[str, Judge] = {
    judge.id: judge
    for judge in (
        Judge("leetcode", "LeetCode"),
        Judge("boj", "BOJ", 4e-3),
        Judge("atcoder", "AtCoder", 1e-3),
    )
}
# The judge of a program when nothing names another.
DEFAULT_JUDGE = "leetcode"
