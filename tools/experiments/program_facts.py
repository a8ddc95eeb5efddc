"""What the text of a whole program says about its cost, as numbers for boosted trees.

In: the text of a program and its language. Out: a vector with one entry for each of :data:`NAMES`. The structure is
that of the growth head (:mod:`rlm_core.inference.growth_features`); what a judge's program has besides are the sizes
that it writes down (arrays, constants), the containers that it uses, and how it reads and writes.
"""

from __future__ import annotations

import math
import re

import numpy as np
import numpy.typing as npt
from rlm_core.inference.growth_features import FEATURES, growth_features
from rlm_core.source.canonical import canonical

Array = npt.NDArray[np.float32]
_INTEGER = re.compile(r"(?<![\w.])(?:0[xX][0-9a-fA-F]+|\d[\d_']*)(?![\w.])")
_POWER = re.compile(r"(?<![\w.])10\s*\*\*\s*(\d{1,2})(?!\w)")
_SCIENTIFIC = re.compile(r"(?<![\w.])(\d{1,3}(?:\.\d+)?)[eE](\d{1,2})(?!\w)")
_SHIFT = re.compile(r"(?<![\w.])1\w{0,3}\s*<<\s*(\d{1,2})(?!\w)")
_MODULI = frozenset({1_000_000_007, 998_244_353, 1_000_000_009, 1_234_567_891, 1_000_000_006})
_DIMENSIONS = re.compile(r"(?:\[[^\[\]\n]{1,40}\]\s*){1,4}")
_BRACKET = re.compile(r"\[([^\[\]\n]{1,40})\]")
_DEFINED = re.compile(
    r"(?:#\s*define\s+(\w+)\s+\(?|(?:const|constexpr|final|static|let|val|int|ll|long)\s+(?:\w+\s+){0,3}(\w+)\s*(?::[^=\n]*)?=\s*)"
    r"((?:\d[\d_']*)(?:\s*[+*]\s*\d[\d_']*)*|\d+e\d+(?:\s*\+\s*\d+)?)\b"
)
_NAMED = re.compile(r"^([A-Za-z_]\w*)\s*=\s*(\d[\d_]*(?:\s*(?:\*\*|[+*])\s*\d+)*)\s*$", re.MULTILINE)
_REPEATED = re.compile(r"\]\s*\*\s*\(?\s*(\w+(?:\s*[+*]\s*\w+)*)")
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
        "tests": r"while\s*\(?\s*[tTqQ]\s*--|for\s+_+\s+in\s+range|for\s+\w+\s+in\s+range\(\s*(?:int\(|[tTqQ]\b)"
        r"|\b(?:tc|TC|test_?[cC]ase|[tT]estcase)",
        "pairs": r"for\s*\w*\s*\(?[^)\n]*\b[mM]\b",
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
        "sort": r"[sS]ort\w*\s*\(|\.sort\b",
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
NAMES = (*(f"growth_{name}" for name in FEATURES), *NUMBERS, *_SIGNS, *_SHAPE)
_LEAST_INFINITE = 100_000_000.0
_MOST_CHARACTERS = 30_000


def program_facts(text: str, language: str) -> Array:
    """The facts of a program, ``(len(NAMES),)``: counts as ``log(1 + count)``, numbers as log10.

    Raises:
        SourceError: the language is unknown or has no grammar.
    """
    code = canonical(text, language)[:_MOST_CHARACTERS]
    dense = growth_features(code, language).dense
    signs = [math.log1p(len(pattern.findall(code))) for pattern in _SIGNS.values()]
    lines = code.split("\n")
    shape = [math.log1p(len(code)), math.log1p(max(map(len, lines))), math.log1p(len(lines))]
    return np.array([*dense, *_numbers(code), *signs, *shape], dtype=np.float32)


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
        return float(min(int(plain, 16 if plain[:2] in ("0x", "0X") else 10), 10**30))
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
    """How many elements arrays with written sizes have: the products of adjacent brackets."""
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
            value *= min(number ** int(power), 1e30) if power.strip().isdigit() else number
        total += value
    return min(total, 1e30)
