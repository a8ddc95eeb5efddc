"""Words and small pieces of code for programs of literal work: names, expressions, glue statements, comments."""

from __future__ import annotations

from ..vocabulary import SYNONYMS

# What a template writes -> what a program may read; the names of the parent package's templates apply as well.
NAMES: dict[str, tuple[str, ...]] = SYNONYMS | {
    "i": ("i", "index", "step", "row", "t", "idx", "position"),
    "j": ("j", "column", "inner", "m", "offset"),
    "k": ("k", "turn", "attempt", "lag", "depth"),
    "x": ("x", "value", "item", "entry", "element", "current"),
    "y": ("y", "other", "second"),
    "size": ("size", "limit", "length", "n_items", "amount", "rounds", "total_count", "n"),
    "n": ("n", "count", "number", "limit", "remaining"),
    "values": ("values", "numbers", "items", "data", "samples", "entries", "xs"),
    "rows": ("rows", "matrix", "board", "lines", "table_rows"),
    "text": ("text", "content", "source", "body", "message"),
    "data": ("data", "payload", "blob", "content"),
    "records": ("records", "rows", "entries", "documents"),
    "record": ("record", "row_", "entry_", "doc"),
    "span": ("span", "candidates", "universe", "indices"),
    "hits": ("hits", "matches", "found_count", "positives"),
    "steps": ("steps", "iterations", "ticks", "rounds_done"),
    "position": ("position", "cursor", "offset", "pos"),
    "queue": ("queue", "pending", "tasks", "backlog"),
    "heap": ("heap", "queue", "priorities"),
    "base": ("base", "original", "template", "prototype"),
    "grid": ("grid", "field_", "image", "plane"),
    "a": ("a", "left_", "first", "m1", "lhs"),
    "b": ("b", "right_", "second", "m2", "rhs"),
    "rng": ("rng", "generator", "source", "dice"),
    "fib": ("fib", "fibonacci", "nth", "rabbits", "sequence"),
    "climb": ("climb", "stairs", "ways", "hops"),
    "move": ("move", "hanoi", "solve", "transfer"),
    "walk": ("walk", "visit", "explore", "count_leaves"),
    "grow": ("grow", "build_tree", "make_node", "plant"),
    "descend": ("descend", "countdown", "recurse", "unwind"),
    "split": ("split", "divide", "partition", "halves"),
    "halve": ("halve", "shrink", "bisect_down", "log_steps"),
    "transform": ("transform", "convert", "adjust", "normalize", "score_of"),
    "scale": ("scale", "stretch", "weight_of"),
    "shift": ("shift", "move_by", "bump"),
    "weigh": ("weigh", "cost_of", "rate", "evaluate"),
    "compare": ("compare", "rank", "match_up", "score_pairs"),
    "sort": ("sort", "order", "arrange_values", "sort_values"),
    "slow": ("slow", "expensive", "price_of", "lookup_rate"),
    "produce": ("produce", "stream_rows", "numbers_up_to", "emit"),
    "double": ("double", "scaled", "twice", "boost"),
    "is_prime": ("is_prime", "prime", "check_prime"),
    "buffer": ("buffer", "out", "sink", "scratch"),
    "pattern": ("pattern", "regex", "matcher"),
    "known": ("known", "allowed", "valid", "members"),
    "state": ("state", "seed", "status", "phase"),
    "guess": ("guess", "estimate", "approximation"),
    "window": ("window", "recent", "tail"),
    "label": ("label", "title", "caption", "heading"),
    "config": ("config", "settings", "options", "params"),
    "round": ("round_number", "repeat", "epoch", "trial", "cycle_index"),
    "answer": ("answer", "outcome", "final", "to_return", "result"),
    "inside": ("inside", "accepted", "within"),
}

EXPRESSIONS = {
    "e": (
        "X", "X * 2", "X + 1", "X * X", "X % 7", "X & 255", "X ^ 5", "X // 3", "(X * 3 + 1) % 97", "X - 10", "-X",
        "X * 31 % 1009", "3 * X + 2", "X >> 1", "X | 1", "abs(X - 50)", "X * X % 101", "X % 2 * 10", "X + X // 2",
        "X / 3",
    ),
    "c": (
        "X % 2 == 0", "X % 3", "X & 1", "X % 7 == 3", "X > 10", "X * X % 5 == 1", "X % 10 < 4", "not X % 4",
        "X % 3 == 0 or X % 5 == 0", "X != 4", "X & 3 == 2",
    ),
}  # fmt: skip

# Statements that cost about a microsecond. They surround the work as ordinary code does; some only look expensive.
GLUE = (
    '$config = {"@text": "@w", "@number": #2:90#, "@flag": True}\n$label = $config["@text"].upper()',
    '$config = {"mode": "@w", "retries": #1:9#}\nif $config.get("mode") == "none":\n    $config["retries"] = 0',
    '$fields = "@text=@w;@number=#2:90#".split(";")\n$pairs = dict($field.split("=") for $field in $fields)',
    '$label = f"{#2:900#:>6} @items"',
    '$label = " / ".join(["@w", "@item", "@text"])',
    '$label = "@w".strip().lower().replace("a", "o")\nif not $label:\n    $label = "none"',
    "$span_total = range(10**9)\n$last_index = $span_total[-1]",
    "$ceiling = 10**#6:15#\n$within = #5:500# < $ceiling",
    "$ignored = (0 for _ in range(10**#6:11#))",
    "$bounds = (#1:9#, #10:90#)\n$low_bound, $high_bound = $bounds",
    "$checks = [#1:9#, #1:9#, #10:99#]\n$checks.sort()\n$spread = $checks[-1] - $checks[0]",
    "$messages = []\nfor $word in (\"@w\", \"start\", \"done\"):\n    $messages.append($word.capitalize())",
    '$status = "ok"\ntry:\n    $parsed = int("#2:900#")\nexcept ValueError:\n    $status, $parsed = "bad", 0',
    '$weights = {"@w": 0.#1:9#, "other": 0.5}\n$heaviest = max($weights, key=$weights.get)',
    '$flags = ["@flag", "verbose"]\n$verbose = "verbose" in $flags',
    "$ratio = round(#3:99# / #3:99#, 2)",
    '$header = ("@text", "@number")\n$line = ",".join($header) + "\\n"',
    '$codes = {$word: len($word) for $word in ("@w", "@item", "@items")}',
    '$version = tuple(int($part) for $part in "3.#1:12#.#0:9#".split("."))',
    '$today = "2024-0#1:9#-1#0:8#"\n$year, $month, $day = map(int, $today.split("-"))',
    '$banner = "=" * #8:60#',
    '$kind = "small" if len("@items") < #3:9# else "large"',
    '$steps_left = #2:6#\nwhile $steps_left > 0:\n    $steps_left -= 1',
    '$defaults = dict(@text="@w", @number=#1:99#)\n$defaults.update(@flag=False)',
)  # fmt: skip

# Parameters that only the glue uses, with an argument to call them with.
PARAMETERS = {
    "$name_in": ("str", '$label = $name_in.strip().title() or "unknown"', '"@w lovelace"'),
    "$items_in": ("list", "$first_item = $items_in[0] if $items_in else None", "[3, 1, 2]"),
    "$count_in": ("int", "if $count_in < 0:\n    return None", "4"),
    "$options_in": ("dict", '$verbose = bool($options_in.get("@flag"))', '{"@flag": False}'),
    "$line_in": ("str", '$key_in, _, $value_in = $line_in.partition("=")', '"@text=@w"'),
}

EARLY = (
    'if "@w":\n    return None',
    'if len("@items") > 2:\n    return 0',
    "if #10:90# > 5:\n    return []",
    '$mode = "@w"\nif $mode != "none":\n    return $mode',
    "$attempts = #1:5#\nif $attempts < 10:\n    return -1",
)

DECOYS = (
    'def $describe($thing):\n    return f"{type($thing).__name__}: {$thing!r}"',
    'def $parse_flag($raw):\n    return $raw.strip().lower() in ("1", "true", "yes")',
    "def $clamp($value, $low_end, $high_end):\n    return max($low_end, min($value, $high_end))",
    "def $unused_scan():\n    return [$spot for $spot in range(10**7)]",
    'def $slugify($phrase):\n    return "-".join($phrase.lower().split())',
)

DOCSTRINGS = (
    "Return the result for all @items.", "Compute the @number of every @item.", "Prepare @items for the report.",
    "Check the @text of the @items.", "Do the work of one @item.", "Collect @items by @text.",
)  # fmt: skip
COMMENTS = (
    "keep it simple", "one pass over the @items", "the @number decides", "see the report", "order matters here",
    "TODO: check the @text", "all @items", "start with nothing",
)  # fmt: skip
CONSTANTS = ("LIMIT", "SIZE", "COUNT", "N_ITEMS", "TOTAL", "ROUNDS", "MAX_SIZE", "SAMPLES", "STEPS", "NUM_ROWS")
OWNERS = ("Service", "Store", "Report", "Manager", "Runner", "Pipeline", "Model", "Job")
FACTORS = (("ROWS", "COLUMNS"), ("BATCHES", "BATCH_SIZE"), ("DAYS", "PER_DAY"), ("GROUPS", "GROUP_SIZE"))
