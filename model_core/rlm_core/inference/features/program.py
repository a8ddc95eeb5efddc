"""Programs and a query -> numbers for boosted trees: what the text does and writes down, and what the ridge says.

The facts of a text are read when they are first asked for: the structure that the growth head reads too
(:mod:`..growth_features`), sizes that are written down (arrays, constants), containers, and how input is read.
``features`` joins them with the judge's date and runtime and with the n-gram ridge's prediction. Counts are
``log(1 + count)``, sizes log10.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from functools import cached_property

import numpy as np
import numpy.typing as npt

from rlm_core.inference.growth_features import FEATURES, growth_features
from rlm_core.queries.query_vector import decimal_year
from rlm_core.source.languages import LANGUAGES

ALONE = True
Array = npt.NDArray[np.float32]
_BLANKS = re.compile(r"[^\S\n]+")
_INTEGER = re.compile(r"(?<![\w.])(?:0[xX][0-9a-fA-F]+|\d[\d_']*)(?![\w.])")
_POWER = re.compile(r"(?<![\w.])10\s*\*\*\s*(\d{1,2})(?!\w)")
_SCIENTIFIC = re.compile(r"(?<![\w.])(\d{1,3}(?:\.\d+)?)[eE](\d{1,2})(?!\w)")
_SHIFT = re.compile(r"(?<![\w.])1\w{0,3}\s*<<\s*(\d{1,2})(?!\w)")
_MODULI = frozenset({1_000_000_007, 998_244_353, 1_000_000_009, 1_234_567_891, 1_000_000_006})
_DIMENSIONS = re.compile(r"(?:\[[^\[\]\n]{1,40}\]\s*){1,4}")
_BRACKET = re.compile(r"\[([^\[\]\n]{1,40})\]")
_DEFINED = re.compile(
    r"(?:#\s*define\s+(\w+)\s+\(?|(?:const|constexpr|final|static|let|val|int|ll|long)\s+(?:\w+\s+){0,3}(\w+)\s*(?::[^=\n]{0,60})?=\s*)"
    r"((?:\d[\d_']*)(?:\s*[+*]\s*\d[\d_']*)*|\d+e\d+(?:\s*\+\s*\d+)?)\b"
)
_NAMED = re.compile(r"^([A-Za-z_]\w*)\s*=\s*(\d[\d_]*(?:\s*(?:\*\*|[+*])\s*\d+)*)\s*$", re.MULTILINE)
_REPEATED = re.compile(r"\]\s*\*\s*+\(?+\s*+(\w+(?:\s*[+*]\s*\w+)*)")
_SIGNS = {
    name: re.compile(pattern)
    for name, pattern in {
        # Input and output.
        "scanf": r"\bscanf|\bgetchar|\bfread|\bgets\b",
        "cin": r"\bcin\b",
        "unsynced": r"sync_with_stdio|\bcin\.tie|\btie\s*\(",
        "endl": r"\bendl\b",
        "input": r"(?<![.\w])input\s*\(",
        "readline": r"\breadline\b|\breadLine\b|\bread_line\b|\breadln\b",
        "read_all": r"\.read\s*\(\s*\)|readlines|readFileSync|read_to_string|\.lines\(|STDIN\.read|\$<",
        "map_int": r"map\s*\(\s*int|\.map\s*\(\s*Number|&:to_i|parse\(\)|parseInt",
        "scanner": r"\bScanner\b",
        "buffered": r"BufferedReader|BufReader|BufferedWriter|StreamTokenizer|DataInputStream|BufWriter|\.lock\(\)",
        "tokenizer": r"StringTokenizer",
        "builder": r"StringBuilder|StringBuffer|\.join\(|\bprintln!\(\"\{\}\", *\w+\.join",
        "prints": r"\bprint(?:f|ln)?!?\s*\(|\bcout\b|console\.log|\bputs\b|\becho\b",
        "prints_list": r"print\s*\(\s*\*",
        "tests": r"while\s*+\(?+\s*+[tTqQ]\s*--|for\s+_+\s+in\s+range|for\s+\w+\s+in\s+range\(\s*(?:int\(|[tTqQ]\b)"
        r"|\b(?:tc|TC|test_?[cC]ase|[tT]estcase)",
        "pairs": r"for\s*+(?:\w+\s*)?\(?[^)\n]{0,120}\b[mM]\b",
        # Containers and algorithms.
        "map": r"\b(?:unordered_)?map<|\bHashMap\b|\bTreeMap\b|\bdict\(|\bdefaultdict|\bCounter\b|new Map|\bHash\.new"
        r"|BTreeMap",
        "ordered": r"(?<!unordered_)\bmap<|(?<!unordered_)\b(?:multi)?set<|\bTree(?:Map|Set)\b|SortedList|BTree|bisect",
        "set": r"\bset\(|\b(?:unordered_|multi)?set<|\bHashSet\b|new Set",
        "heap": r"priority_queue|PriorityQueue|heapq|heappush|BinaryHeap",
        "queue": r"\bqueue<|\bdeque\b|\bQueue\b|ArrayDeque|VecDeque|LinkedList|\.shift\(\)|\.pop\(0\)",
        "vectors": r"\bvector<|ArrayList|\bVec<|\bVec::",
        "vectors2": r"vector<\s*vector|List<List|List<Integer>\[\]|Vec<Vec|\[\[\]\s*for|\[\s*\[",
        "long": r"\blong long\b|\bll\b|\blong\b|\bi64\b|\bu64\b|BigInteger|BigInt",
        "double": r"\bdouble\b|\bfloat\b|\bf64\b|Decimal",
        "string": r"\bstring\b|\bString\b|\bstr\(",
        "sort": r"\b(?>\w*?[sS]ort)\w*+\s*+\(|\.sort\b",
        "mod": r"%\s*(?:MOD|mod|Mod|M\b|p\b|1000000007|998244353|1_?000_?000_?007|\(?10\s*\*\*\s*9)",
        "recursion_limit": r"setrecursionlimit",
        "threads": r"threading|Thread\b",
        "numpy": r"\bnumpy\b|\bnp\.",
        "numba": r"\bnumba\b|@n?jit",
        "scipy": r"\bscipy\b|\bnetworkx\b",
        "itertools": r"\bpermutations\b|\bcombinations\b|\bproduct\b|next_permutation",
        "bits": r"<<|>>|\bbitset\b",
        "visited": r"\bvis\w*\b|\bcheck(?:ed)?\b|\bseen\b",
        "graph": r"\b(?:graph|adj|edges?|tree|children|parent)\b",
        "grid": r"\bd[xy]\b|\bd[rc]\b|\bgrid\b|\bboard\b",
        "dp": r"\bdp\b|\bDP\b|\bmemo\b|\bcache\b|lru_cache",
        "segment": r"\bseg\w*|\bfenwick\b|\blazy\b|\bBIT\b",
        "union": r"\bfind\b|\bunion\b|\bmerge\b|UnionFind|\bdsu\b",
        "dfs": r"\bdfs\b|\bDFS\b|\bbacktrack\w*",
        "bfs": r"\bbfs\b|\bBFS\b",
        "dijkstra": r"\bdijkstra\b|\bdist\w*\b",
        "sieve": r"\bsieve\b|\b(?:is_?)?[pP]rimes?\b",
        "fft": r"\bfft\b|\bntt\b|convolution|\bFFT\b",
        "gcd": r"\bgcd\b|\blcm\b",
        "matrix": r"\bmatrix\b|\bmat\b|\bmatmul\b",
        "copies": r"copy\(|\.clone\(\)|\[:\]|deepcopy|substr",
        "concatenates": r"\+=\s*['\"]|\+=\s*str\(|\+=\s*\w+\[",
        "in_list": r"\bnot in\b|\bin\s+\w+\s*:|\.contains\(|\.includes\(|\.index\(|indexOf|\.count\(",
        "exits": r"\bexit\(|System\.exit|process\.exit",
        "macro": r"#\s*define|\btemplate\b|\btypedef\b",
        "pragma": r"#\s*pragma",
    }.items()
}
NUMBERS = (
    "largest", "second", "third", "count_4", "count_5", "count_6", "infinite", "modulus",
    "array_largest", "array_sum", "array_dimensions", "repeated_largest", "decimal_limit",
)  # fmt: skip
_SHAPE = ("characters", "line_longest", "lines_of_code")
FACTS = (*(f"growth_{name}" for name in FEATURES), *NUMBERS, *_SIGNS, *_SHAPE)
RUNTIMES = ("cpython", "pypy")
NAMES = (*FACTS, "date", *RUNTIMES, "ridge")
_LEAST_INFINITE = 100_000_000.0
_MOST_CHARACTERS = 30_000
_MOST = 1e30  # a larger number is not a size


class Program:
    """A canonical text; its ``facts (len(FACTS),)`` are read once. Two threads may read them at the same time."""

    def __init__(self, text: str, language: str) -> None:
        self._text, self._language = text[:_MOST_CHARACTERS], language

    @cached_property
    def facts(self) -> Array:
        """All 0 without a grammar for the language."""
        return _facts(self._text, self._language)


def describe(text: str, language: str) -> Program:
    """A canonical text, for :func:`features`."""
    return Program(text, language)


def _facts(text: str, language: str) -> Array:
    entry = LANGUAGES.get(language)
    if entry is None or entry.grammar is None:
        return np.zeros(len(FACTS), np.float32)
    dense = growth_features(text, language).dense
    # Runs of blanks would make expressions with several optional blanks slow.
    code = _BLANKS.sub(" ", text)
    signs = [math.log1p(len(pattern.findall(code))) for pattern in _SIGNS.values()]
    lines = code.split("\n")
    shape = [math.log1p(len(code)), math.log1p(max(map(len, lines))), math.log1p(len(lines))]
    return np.array([*dense, *_numbers(code), *signs, *shape], dtype=np.float32)


def features(program: Program, workload: Mapping[str, str], device: str | None, ridge: float) -> Array:
    """The features of a described text under a query.

    Args:
        program: from :func:`describe`.
        workload: the judge's date and runtime.
        device: the judge; each has its own trees.
        ridge: the n-gram ridge's prediction, log10 of SI units.
    """
    runtime = workload.get("runtime")
    asked = [decimal_year(workload) or math.nan, *(float(runtime == name) for name in RUNTIMES), ridge]
    return np.concatenate([program.facts, np.array(asked, np.float32)])


def _numbers(code: str) -> list[float]:
    values = [_integer(found) for found in _INTEGER.findall(code)]
    values += [10.0 ** int(power) for power in _POWER.findall(code)]
    values += [float(base) * 10.0 ** int(power) for base, power in _SCIENTIFIC.findall(code)]
    values += [2.0 ** int(bits) for bits in _SHIFT.findall(code)]
    named = _constants(code)
    finite = sorted((value for value in values if value < _LEAST_INFINITE), reverse=True)
    top = [*finite[:3], 0.0, 0.0, 0.0][:3]
    arrays = _arrays(code, named)
    repeated = [_product(entry, named) for entry in _REPEATED.findall(code)]
    return [
        *(math.log10(1 + value) for value in top),
        *(math.log1p(sum(10.0**power <= value for value in finite)) for power in (4, 5, 6)),
        float(any(value >= _LEAST_INFINITE and int(value) not in _MODULI for value in values if value < 1e18)),
        float(any(value in _MODULI for value in values if value < 1e18) or "10**9+7" in code.replace(" ", "")),
        math.log10(1 + max(arrays, default=0.0)),
        math.log10(1 + sum(arrays)),
        float(max((entry.count("[") for entry in _DIMENSIONS.findall(code)), default=0)),
        math.log10(1 + max(repeated, default=0.0)),
        float(max((len(str(int(value))) for value in values if value < 1e18), default=0)),
    ]


def _integer(text: str) -> float:
    plain = text.replace("_", "").replace("'", "")
    try:
        return float(min(int(plain, 16 if plain[:2] in ("0x", "0X") else 10), int(_MOST)))
    except ValueError:
        return 0.0


def _constants(code: str) -> dict[str, float]:
    """Names that the text sets to a number once, with the number."""
    named: dict[str, float] = {}
    for first, second, value in _DEFINED.findall(code):
        named[first or second] = _product(value, {})
    for name, value in _NAMED.findall(code):
        named[name] = _product(value, {})
    return named


def _arrays(code: str, named: dict[str, float]) -> list[float]:
    """Return the numbers of elements of arrays with written sizes: the products of adjacent brackets."""
    found = []
    for entry in _DIMENSIONS.findall(code):
        product = 1.0
        for size in _BRACKET.findall(entry):
            product *= max(_product(size, named), 0.0)
        if 8 <= product < 1e10:
            found.append(product)
    return found


def _product(text: str, named: dict[str, float]) -> float:
    """The value of a small expression of numbers and known names; 0 where a name is unknown."""
    total = 0.0
    for term in text.replace("'", "").split("+"):
        value = 1.0
        for factor in re.split(r"\*(?!\*)", term.replace("**", "^")):
            factor = factor.strip(" ()")
            base, _, power = factor.partition("^")
            if re.fullmatch(r"\d[\d_]*", base):
                number = _integer(base)
            elif match := re.fullmatch(r"(\d+)[eE](\d{1,2})", base):
                number = float(match[1]) * 10.0 ** int(match[2])
            else:
                number = named.get(base, 0.0)
            value = min(value * (_power(number, power) if power.strip().isdecimal() else number), _MOST)
        total += value
    return min(total, _MOST)


def _power(number: float, exponent: str) -> float:
    """A power of a number that is at least 0, at most ``_MOST``."""
    power = 1.0
    for _ in range(min(int(exponent[:4]), 100)):
        power = min(power * number, _MOST)
    return power
