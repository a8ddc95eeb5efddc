"""Features of the growth head, from a canonical text: hashed words, hashed signs of its structure, and some counts.

Structure comes from the outline: paths of nested loops, what bounds them, calls by loop depth, the shape of recursion.
Names of local functions are left out, so that only how they are used counts.
"""

from __future__ import annotations

import math
import re
import zlib
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from rlm_core.cost.structure.growth import loop_order, orders
from rlm_core.cost.structure.outline import outline
from rlm_core.cost.structure.parts import CallSite, Loop, Outline, Routine
from rlm_core.cost.structure.roots import Roots, sketch
from rlm_core.source.parsed import ParsedSource

Array = npt.NDArray[np.float32]
Buckets = npt.NDArray[np.int64]
BITS = 15
_MAX_WORDS = 3000
_MAX_SIGNS = 1500
_WORD = re.compile(rb"\w+|[^\w\s]")
_MOST_DOUBLINGS = 1023.0  # of a count that a float holds
_GOLDEN, _MIX = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9)
_KINDS = ("literal", "count", "each", "halving", "search", "sqrt", "worklist", "amortised", "while", "endless")

# Groups of called names; a name may be in several.
_CALLS = {
    "sort": re.compile(r".*[sS]ort\w*|Slice|Ints|Strings|OrderBy\w*"),
    "heap": re.compile(r"heap\w*|push|pop|poll|offer|top|nlargest|nsmallest|emplace|Push|Pop|[eE]nqueue|[dD]equeue"),
    "search": re.compile(r"bisect\w*|lower_bound|upper_bound|Search\w*|[bB]inary_?[sS]earch\w*|"
                         r"(?:floor|ceiling|higher|lower)Key"),
    "table": re.compile(r"add|remove|insert|erase|find|get|put|contains\w*|has|count|Add|Remove"),
    "fill": re.compile(r"memset|fill|vector|Array|make|list|repeat|vec"),
    "extreme": re.compile(r"max|min|abs|Max|Min|Abs"),
    "linear": re.compile(r"sum|Counter|set|list|count|index|join|reverse\w*|substr\w*|slice|indexOf|accumulate|"
                         r"\w+_element"),
    "number": re.compile(r"gcd|pow|log\w*|i?sqrt|bit_length|popcount|bitCount|to_string|str|toString|ord"),
    "products": re.compile(r"permutations|combinations|product|next_permutation"),
}  # fmt: skip
_TEXT_SIGNS = {
    name: re.compile(pattern)
    for name, pattern in {
        "shift": rb"1(?:[lL]{0,2}|usize)? ?<< ?\(?\w",
        "table1": rb"\b(?:dp|f|g|memo)\[",
        "table2": rb"\b(?:dp|f|g|memo)\[[^\]\n]{0,40}\]\s*\[",
        "table3": rb"\b(?:dp|f|g|memo)\[[^\]\n]{0,40}\]\s*\[[^\]\n]{0,40}\]\s*\[",
        "matrix": rb"\[0\]\.(?:size|length|len)|len\(\w+\[0\]\)|size\(\w+\[0\]\)",
        "two": rb"\[[^\]\n]{0,40}\]\s*\[",
        "modulus": rb"1e9 ?\+ ?7|10 ?\*\* ?9|1000000007|MOD|mod\b",
        "slices": rb"\[[\w +-]{0,20}:[\w +-]{0,20}\]",
        "halves": rb"//= ?2|>>= ?1|/= ?2|/= ?10|// ?10|>> ?1",
        "matrix_type": rb"vector<vector|List\[List|\[\]\[\]|Vec<Vec",
    }.items()
}
_WORD_SIGNS = tuple(
    name.encode()
    for name in [
        "26",
        "left",
        "right",
        "next",
        "mid",
        "stack",
        "stk",
        "st",
        "q",
        "queue",
        "Trie",
        "trie",
        "UnionFind",
        "parent",
        "vis",
        "visited",
        "s",
        "nums",
        "words",
        "word",
        "n",
        "m",
        "k",
        "root",
        "in",
        "grid",
        "matrix",
        "edges",
        "graph",
    ]
)
_PARAMETER_KINDS = ("matrix", "list", "text", "number", "node", "")
FEATURES = (
    *("degree", "logs", "exponential", "most_degree", "most_logs", "depth", "loops", "deep", "routines", "parameters"),
    *(f"{kind}_loops" for kind in _KINDS),
    *(f"{kind}_inner" for kind in _KINDS),
    *(f"{group}_calls" for group in _CALLS),
    *(f"{group}_inner" for group in _CALLS),
    *("self_calls", "self_depth", "self_halves", "self_tree", "self_steps", "memoised", "tabled", "memo_parameters"),
    *("input_loops", "literal_bounds", "item_loops"),
    *(f"{kind or 'untyped'}_parameters" for kind in _PARAMETER_KINDS),
    *("undoes", "same_bounds", "other_bounds", "dependent_bounds", "words", "lines"),
    *(f"text_{name}" for name in _TEXT_SIGNS),
    *(f"word_{name.decode()}" for name in _WORD_SIGNS),
)


@dataclass(frozen=True, slots=True)
class GrowthFeatures:
    """Ascending hashed ``buckets``, words before signs (from ``2**BITS`` on), with their ``counts`` as ``1 + log``.

    ``dense`` are the logarithms of :data:`FEATURES`.
    """

    buckets: Buckets
    counts: Array
    dense: Array


def growth_features(text: str, language: str) -> GrowthFeatures:
    """The features of a canonical text.

    Raises:
        SourceError: the language is unknown or is read without a grammar.
    """
    structure = outline(ParsedSource(text.encode("utf-8", "replace"), language))
    words = _WORD.findall(structure.source)
    signs, dense = _describe(structure, words)
    hashed = np.array([zlib.crc32(word) for word in words[:_MAX_WORDS]], dtype=np.uint64) + np.uint64(1)
    grams = [hashed * _GOLDEN]
    if len(hashed) > 1:
        grams.append((grams[0][:-1] * np.uint64(1_000_003) + hashed[1:]) * _GOLDEN)
    word_buckets = _scattered(np.concatenate(grams))
    sign_hashes = np.array(
        [zlib.crc32(sign.encode("utf-8", "replace")) for sign in signs[:_MAX_SIGNS]], dtype=np.uint64
    )
    sign_buckets = _scattered((sign_hashes + np.uint64(1)) * _GOLDEN) + (1 << BITS)
    buckets, counts = np.unique(np.concatenate([word_buckets, sign_buckets]), return_counts=True)
    return GrowthFeatures(buckets, (1 + np.log(counts)).astype(np.float32), dense)


def _scattered(hashed: npt.NDArray[np.uint64]) -> Buckets:
    return (((hashed ^ (hashed >> np.uint64(29))) * _MIX) >> np.uint64(64 - BITS)).astype(np.int64)


@lru_cache(maxsize=4096)
def _groups(name: str) -> tuple[str, ...]:
    return tuple(group for group, pattern in _CALLS.items() if pattern.fullmatch(name))


_INDEX = re.compile(r"\w*\[[^\]]*\]")


def _chain(loop: Loop | None) -> list[str]:
    kinds: list[str] = []
    while loop is not None and len(kinds) < 9:
        kinds.append(loop.kind)
        loop = loop.parent
    return kinds[::-1]


def _describe(structure: Outline, words: Sequence[bytes]) -> tuple[list[str], Array]:
    """The signs of the structure and the dense features."""
    signs: list[str] = []
    values: dict[str, float] = dict.fromkeys(FEATURES, 0.0)
    _describe_loops(structure, signs, values)
    local = {routine.name for routine in structure.routines if routine.name}
    self_calls: dict[int, list[CallSite]] = defaultdict(list)
    for call in structure.calls():
        depth = call.loop.depth if call.loop is not None else 0
        name = call.name if call.name not in local else "a local function"
        signs += (f"call {name} {depth}", f"call {name} in {call.loop.kind if call.loop is not None else ''}")
        for group in _groups(call.name) if len(call.name) < 40 else ():
            values[f"{group}_calls"] += 1
            values[f"{group}_inner"] += depth > 0
        routine: Routine | None = call.function if call.name in local else None
        while routine is not None:
            if routine.name == call.name:
                self_calls[id(routine)].append(call)
                break
            routine = routine.parent
    for routine in structure.routines:
        if id(routine) in self_calls:
            _describe_recursion(routine, self_calls[id(routine)], structure.source, signs, values)
    growth = orders(structure)
    top = max(growth)
    values["exponential"], values["degree"], values["logs"] = float(top.base > 1), top.degree, top.logs
    values["most_degree"] = max(order.degree for order in growth)
    values["most_logs"] = max(order.logs for order in growth)
    signs += (f"order {top.base > 1} {top.degree} {top.logs}", f"order {top.degree} {bool(values['sort_calls'])}",
              f"order {top.degree} {bool(self_calls)} {bool(values['memoised'])}")  # fmt: skip
    values["routines"] = len(structure.routines)
    values["parameters"] = max(routine.parameters for routine in structure.routines)
    values["words"], values["lines"] = len(words), structure.source.count(b"\n")
    present = Counter(words)
    for word in _WORD_SIGNS:
        values[f"word_{word.decode()}"] = present[word]
    for name, pattern in _TEXT_SIGNS.items():
        values[f"text_{name}"] = len(pattern.findall(structure.source, 0, 20_000))
    signs.append(f"routines {min(len(structure.routines), 8)}")
    return signs, np.log1p(np.array([values[name] for name in FEATURES], dtype=np.float32))


def _describe_loops(structure: Outline, signs: list[str], values: dict[str, float]) -> None:
    paths: set[str] = set()
    roots = Roots(structure)
    kinds = list(roots.parameters.values())
    signs.append(f"parameters {sketch(kinds)}")
    sources: set[str] = set()
    for loop in structure.loops():
        chain, depth = _chain(loop), loop.depth
        paths.add(" ".join(chain))
        bound = _INDEX.sub("x[i]", loop.bound[:60])[:24]
        signs += (f"path {' '.join(chain)}", f"loop {depth} {loop.kind}", f"bound {bound}", f"bound {depth} {bound}")
        if len(chain) > 1:
            signs.append(f"nested {' '.join(chain[-2:])}")
        if loop.count is not None:
            signs.append(f"count {depth} {int(min(math.log2(loop.count + 1), _MOST_DOUBLINGS))}")
        source = roots.path(loop)
        sources.add(source)
        root = roots.of(loop.bound)
        place = int(root.removesuffix("[]")) if root[0].isdigit() else None
        signs += (f"source {source}", f"source {depth} {loop.kind} {root[-1:] if place is None else kinds[place]}")
        values["input_loops"] += place is not None
        values["literal_bounds"] += root == "c"
        values["item_loops"] += root.endswith("[]")
        values["loops"] += 1
        values["depth"] = max(values["depth"], depth)
        values["deep"] += loop_order(loop).degree >= 2
        values[f"{loop.kind}_loops"] += 1
        values[f"{loop.kind}_inner"] += depth > 1
        if loop.parent is not None:
            outer = loop.parent
            names = re.findall(r"[A-Za-z_]\w*", loop.bound[:80])
            relation = "dependent" if any(name in outer.variables for name in names) else "other"
            relation = "same" if outer.bound == loop.bound else relation
            values[f"{relation}_bounds"] += 1
            signs += (f"relation {relation} {depth}", f"relation {relation} {outer.kind} {loop.kind}")
    outermost = sorted(paths, key=lambda path: (-path.count(" "), path))[:2]
    signs.append(f"paths {'|'.join(outermost)}")
    signs.append(f"sources {'|'.join(sorted(sources, key=lambda path: (-path.count(' '), path))[:2])}")
    for kind in _PARAMETER_KINDS:
        values[f"{kind or 'untyped'}_parameters"] = kinds.count(kind)


_HALF = re.compile(r"/|>>|mid")
_TREE = re.compile(r"left|right|next|child|first|second")
_STEP = re.compile(r"[-+]\s*1")
_TABLED = re.compile(rb"memo|dp|cache|lookup|\bf\[")
_UNDONE = re.compile(rb"\.pop\(|pop_back|remove\(|visited|Remove|\bvis\b")


def _describe_recursion(
    routine: Routine, calls: Sequence[CallSite], source: bytes, signs: list[str], values: dict[str, float]
) -> None:
    body = source[routine.start : min(routine.end, routine.start + 8_000)]
    halves, tree, steps = (any(p.search(call.arguments) for call in calls) for p in (_HALF, _TREE, _STEP))
    depth = max(call.loop.depth if call.loop is not None else 0 for call in calls)
    tabled, undoes, count = bool(_TABLED.search(body)), bool(_UNDONE.search(body)), min(len(calls), 4)
    for name, value in (
        ("self_calls", len(calls)), ("self_depth", depth), ("memoised", routine.memoised),
        ("memo_parameters", routine.parameters if routine.memoised else 0),
    ):  # fmt: skip
        values[name] = max(values[name], float(value))
    for name, sign in (
        ("self_halves", halves), ("self_tree", tree), ("self_steps", steps), ("tabled", tabled), ("undoes", undoes),
    ):  # fmt: skip
        values[name] += sign
    memo = routine.memoised or tabled
    inside = depth > 0
    signs += (
        f"recursion {count} {inside} {routine.memoised}",
        f"recursion {inside} {halves} {tree} {memo} {undoes}",
        f"recursion {routine.parameters} {memo} {inside}",
        f"recursion {count} {inside} {halves} {tree} {memo}",
        f"memoised {routine.parameters} {depth} {routine.memoised}",
    )


def unit_weights(features: GrowthFeatures, idf: Array) -> Array:
    """TF-IDF weights of the buckets; words and signs each have unit length."""
    weights = features.counts * idf[features.buckets]
    is_sign = features.buckets >= 1 << BITS
    for part in (is_sign, ~is_sign):
        weights[part] /= max(float(np.linalg.norm(weights[part])), 1e-9)
    return weights.astype(np.float32)
