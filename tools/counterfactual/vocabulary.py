"""Words for generated functions: domains with their records' fields, and synonyms for local names.

Nothing comes in but a seed; out come names, so that the same statement reads differently from function to function.
"""

from __future__ import annotations

import random
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Domain:
    """A subject: its record in singular and plural, one text field, two number fields, a flag, and typical values."""

    item: str
    items: str
    text: str
    number: str
    other: str
    flag: str
    values: tuple[str, ...]


DOMAINS: dict[str, Domain] = {
    domain.item: domain
    for domain in (
        Domain("order", "orders", "customer", "price", "quantity", "paid", ("ada", "bo", "carla", "dmitri", "eve")),
        Domain("user", "users", "city", "age", "visits", "active", ("oslo", "lima", "cairo", "turin", "quito")),
        Domain("event", "events", "kind", "duration", "start", "done", ("login", "click", "view", "error", "logout")),
        Domain("student", "students", "course", "score", "year", "passed", ("math", "art", "physics", "history")),
        Domain("product", "products", "category", "cost", "stock", "listed", ("tools", "toys", "books", "garden")),
        Domain("reading", "readings", "sensor", "level", "tick", "valid", ("north", "south", "roof", "cellar")),
        Domain("ticket", "tickets", "assignee", "priority", "hours", "closed", ("kim", "lee", "sam", "noor", "ivo")),
        Domain("message", "messages", "sender", "length", "replies", "unread", ("alice", "bob", "carol", "dan")),
        Domain("file", "files", "owner", "size", "blocks", "hidden", ("root", "www", "build", "guest")),
        Domain("job", "jobs", "queue", "cost", "retries", "failed", ("fast", "slow", "nightly", "mail")),
        Domain("trade", "trades", "symbol", "amount", "volume", "settled", ("ABC", "XYZ", "QRS", "LMN")),
        Domain("track", "tracks", "artist", "seconds", "plays", "liked", ("bach", "holst", "nina", "miles")),
        Domain("invoice", "invoices", "client", "total", "days", "overdue", ("acme", "initech", "umbra", "globex")),
        Domain("node", "nodes", "label", "weight", "rank", "visible", ("root", "leaf", "branch", "stem")),
        Domain("shipment", "shipments", "port", "tonnage", "crates", "cleared", ("rotterdam", "busan", "santos")),
        Domain("match", "matches", "team", "goals", "minute", "home", ("reds", "blues", "greens", "whites")),
    )
}

# What a template writes -> what a function may read. A template's own names are neutral, the first of each row.
SYNONYMS: dict[str, tuple[str, ...]] = {
    "result": ("result", "output", "collected", "out", "found", "res", "answer"),
    "total": ("total", "subtotal", "accumulated", "sum_", "running", "acc"),
    "counts": ("counts", "tally", "frequencies", "occurrences", "counter"),
    "groups": ("groups", "buckets", "grouped", "partitions", "by_key"),
    "seen": ("seen", "visited", "known", "used", "already"),
    "key": ("key", "name", "tag", "field"),
    "value": ("value", "val", "current", "x", "entry"),
    "left": ("left", "first", "a", "lhs"),
    "right": ("right", "second", "b", "rhs"),
    "parts": ("parts", "pieces", "chunks", "fragments", "segments"),
    "line": ("line", "row", "raw"),
    "word": ("word", "token", "term", "w"),
    "char": ("char", "ch", "letter", "c"),
    "index": ("index", "i", "position", "idx"),
    "other": ("other", "j", "offset", "k"),
    "best": ("best", "winner", "top", "maximum"),
    "stack": ("stack", "pending", "todo", "frontier"),
    "table": ("table", "grid_", "dp", "memo_table"),
    "lookup": ("lookup", "mapping", "cache_", "by_id", "registry"),
    "errors": ("errors", "problems", "issues", "failures"),
    "previous": ("previous", "prev", "last", "before"),
    "limit": ("limit", "threshold", "bound", "cutoff"),
    "width": ("width", "columns", "w_", "span"),
    "count": ("count", "hits", "n_found", "matched"),
    "number": ("number", "num", "n_", "candidate"),
    "start": ("start", "begin", "lo"),
    "end": ("end", "stop", "hi"),
    "lines": ("lines", "rows_", "report", "body"),
    "state": ("state", "mode", "phase"),
    "score": ("score", "grade_", "points_", "metric"),
}

VERBS = ("build", "collect", "compute", "find", "get", "make", "prepare", "resolve", "summarize", "check", "process")


def seeded(*parts: object) -> random.Random:
    """A generator of random choices that depends on ``parts`` alone, on every machine."""
    return random.Random(":".join(map(str, parts)))  # noqa: S311 - choices, not secrets
