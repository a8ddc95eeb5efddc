"""Python files that are made to hang the analysis, to take all memory or to end it, next to good ones.

``python -m tests.reliability.hostile_sources`` puts each of them, with good functions in the same file and in another
file of its folder, through ``predict``, ``check``, the language server and MCP, in real processes one after the other,
and prints how many took over 2 CPU seconds (beyond those of the good files), over 400 MB, or cost rows of other units.
``--front-end predict --name doubled`` runs some of them. Nothing of the files is run.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import quantiles
from textwrap import indent
from typing import Any

from mcp import Client as McpClient
from mcp import StdioServerParameters

from .client import EVERYWHERE, Client, session

MOST_SECONDS = 2.0  # of processor time, beyond that of the good files
MOST_BYTES = 400e6  # beyond those of the good files
MOST_WAIT = 0.2  # seconds of the 95 % quantile of hovers in other documents
_KILLED_SECONDS = 40  # of processor time
_LIMIT = 60.0  # seconds until an answer counts as none
_HOVERS, _PAUSE = 20, 0.005
_UNIT_SECONDS = 0.015  # of processor time that one good function takes
GOOD = """\
# rlm: latency < 1 ns
def {0}(values, wanted):
    found = []
    for value in values:
        if value in wanted:
            found.append(value)
    return found
"""
_GOOD_NAMES = ("before", "after")  # the functions around the hostile text, in its file
_OTHER = "other"  # the function in the other file
_IMPORTS = """\
import array, asyncio, bisect, collections, concurrent.futures, functools, heapq, itertools, math, multiprocessing
import numpy, operator, os, re, statistics, string, struct, subprocess, sys, threading, time, zlib
from collections import Counter, deque, namedtuple
"""
_FIXED_ARGUMENTS = "data='a b c', n=5, items=(3, 1, 2)"
_FIXED = "data, n, items = 'a b c', 5, [3, 1, 2]\n"
_READ = "n = int(input())\ndata = input()\nitems = list(map(int, data.split()))\n"
_LONG_TEXT = 1_000

# Statements; each is tried in a function and as a program.
_STATEMENTS: dict[str, str] = {
    # Calls that never end, or end late, when they are evaluated.
    "isdisjoint of count": "{1}.isdisjoint(itertools.count(2))",
    "difference_update of count": "s = {1}\ns.difference_update(itertools.count())",
    "intersection_update of count": "s = {1}\ns.intersection_update(itertools.count())",
    "symmetric_difference of count": "{1}.symmetric_difference(itertools.count(2))",
    "subtract of count": "Counter('a').subtract(itertools.count())",
    "extend of count": "items = []\nitems.extend(itertools.count())",
    "deque of count": "deque(itertools.count(), maxlen=3)",
    "sum of count": "sum(itertools.count())",
    "zip of counts": "list(zip(itertools.count(), itertools.cycle('ab')))",
    "map of count": "list(map(str, itertools.count()))",
    "star of count": "print(*itertools.count())",
    "unpacked count": "first, *rest = itertools.count()",
    "joined count": "''.join(map(str, itertools.count()))",
    "product of counts": "for pair in itertools.product(itertools.count(), repeat=3): print(pair)",
    "float in a range": "0.5 in range(10**18)",
    "text in a range": "'a' in range(10**12)",
    "index in a range": "range(10**18).index('a')",
    "smallest of a range": "heapq.nsmallest(5, range(10**12))",
    "merged ranges": "list(heapq.merge(range(10**12), range(10**12)))",
    "division in a range": "for i in range(1000):\n    if i / 2 in range(1, 10**6): n += 1",
    "sum of a range of floats": "sum(i / 3 for i in range(10**15))",
    "mean of fractions": "import fractions\nstatistics.mean([fractions.Fraction(1, 3**k) for k in range(2000)])",
    "modular powers": "for _ in range(20000): pow(3, 2**511 - 1, 2**511 + 7)",
    "factorials": "for k in range(10**6): math.factorial(10**6)",
    "binomials": "for k in range(10**6): math.comb(10**6, 5 * 10**5)",
    "accumulated texts": "for s in itertools.accumulate(['a' * 900000] * 5000): pass",
    "rounded by many digits": "round(5, -10**9)",
    "endless while of an attribute": "while not n.done: pass",
    "mutual growth": "a, b = 1, 1\nwhile a < 10**300: a, b = b, a * b + 1",
    "squared in a loop": "x = 3\nfor _ in range(10**9): x = x * x",
    "tower of powers": "x = 9 ** 9 ** 9 ** 9",
    "large shifts": "x = 1 << 2**40\ny = 1 << n << 2**62",
    "large powers": "x = 7 ** 10**12 % 10**9",
    # Values that are small as text and large as objects.
    "doubled tuples": "t = u = ()\n" + "t, u = (t, t), (u, u)\n" * 60 + "t == u\nhash(t)\nsorted([t, u])\nstr(t)",
    "grouped doubled tuples": "t = u = (1,)\n" + "t = (t, t)\nu = (u, u)\n" * 60 + "list(itertools.groupby([t, u]))",
    "bisected doubled tuples": "t = (1,)\n" + "t = (t, t)\n" * 60 + "bisect.bisect([t], t)\nbisect.insort([t], t)",
    "popped doubled tuples": "t = (1,)\nu = (1,)\n" + "t, u = (t, t), (u, u)\n" * 60 + "heapq.heappop([0, t, u])",
    "doubled lists in a loop": "t = [1]\nfor _ in range(60): t = [t, t]\nt == t[:]\nrepr(t)",
    "doubled text": "s = 'ab'\n" + "s = s + s\n" * 60 + "s.count('a')",
    "doubled dicts": "d = {}\n" + "d = {1: d, 2: d}\n" * 60 + "d == d.copy()",
    "tuple in a formatted text": "t = ('x' * 9000,)\n" + "t = t + t\n" * 13 + "f'{t}'",
    "named tuple of a cycle": "collections.namedtuple('P', itertools.cycle(['a']))",
    "combinations": "list(itertools.combinations(range(20000), 10000))",
    "permutations": "list(itertools.permutations(range(20000)))",
    "cartesian power": "list(itertools.product(range(1000), repeat=1000))",
    "copies": "list(itertools.tee(items, 10**9))",
    "text times a number": "'x' * 10**12\n('x' * 10**12).upper()",
    "list times a number": "[0] * 10**12\n[[0] * 10**9] * 10**9",
    "empty bytes times a number": "b'' * 2**64\n'' * -2**64",
    "negative repetition": "k = [-2**63 * 100]\nk[0] * 'ab'\n'ab' * k[0]",
    "bytes of a number": "bytes(10**15)\nbytearray(10**15)",
    "operator.mul": "operator.mul('x', 10**12)\noperator.lshift(1, 10**12)\noperator.pow(3, 10**12)",
    "replaced by a text": "('a' * 9000).replace('a', 'b' * 9000).replace('b', 'c' * 9000)",
    "expanded tabs": "('\\t' * 9000).expandtabs(10**9)",
    "padded text": "'a'.ljust(10**12).center(10**12).zfill(10**12)",
    "format width": "f'{n:1000000000}'\n'{:1000000000}'.format(n)\nformat(n, '1000000000')\n'%1000000000d' % n",
    "nested format width": "'{:{}}'.format(1, 10**9)\n'{:{}}'.format(1, '1000000000')",
    "format precision": "format(1.5, '.999999999f')\n'%.999999999f' % 1.5",
    "format of a large number": "f'{2**4096}{3**9000:d}'",
    "packed bytes": "struct.pack('1000000000x')\nstruct.calcsize('9' * 400 + 'x')",
    "to_bytes": "(5).to_bytes(10**12, 'big')",
    "numpy zeros": "numpy.zeros(10**15)\nnumpy.zeros((10**9,) * 30)\nnumpy.eye(10**9) @ numpy.eye(10**9)",
    "numpy ranges": "numpy.arange(0, 1e308, 5e-324)\nnumpy.linspace(0, 1, 10**18)",
    "numpy shapes": "numpy.zeros(-1)\nnumpy.zeros(float('nan'))\nnumpy.ones((2**63, -(2**63)))",
    "environment text": "os.urandom(10**15)\nzlib.compress(b'\\0' * 10**12)",
    # Numbers that floats, texts or C cannot hold.
    "remainders of count": "for i in itertools.count():\n    if i % 7 == 3: pass",
    "remainders of a counter": "i = 0\nwhile True:\n    if i % 2 == 0: print(i)\n    i += 1",
    "comparisons with count": "for i in itertools.count(1, 0.1):\n    if i < 3: print(i)\n    elif i == 7: print(n)",
    "prime of 2,048 bits": f"p = {2**2048 - 1942289}\nif n > p: return_ = p\nwhile n < p: n *= 3",
    "comparison with large bits": f"if n == {2**1030}: n = 0\nwhile n != {2**1030}: n += 1",
    "number of 5,000 digits": "x = 0x1" + "0" * 4200 + "\nprint(x)\nprint(max(x, n), str(x), x % 7)",
    "bound of many digits": "while n < 0x" + "f" * 4200 + ": n = n * 2",
    "queue with a bound of many digits": (
        "queue = deque([n])\nseen = set()\nwhile queue:\n    x = queue.popleft()\n    if 0 <= x + 1 < 0x"
        + "f" * 4200
        + " and x not in seen:\n        queue.append(x + 1)\n        seen.add(x)"
    ),
    "call of a number of many digits": "(0x" + "f" * 4200 + ").bit_length()\nn.foo(0x" + "f" * 4200 + ").bar()",
    "range of many digits": "for i in range(0x" + "f" * 4200 + "): print(i)",
    "slice of many digits": "items[0x" + "f" * 4200 + ":]\nitems[::-0x" + "f" * 4200 + "]",
    "power of many digits": "n ** 0x" + "f" * 4200 + "\n2 ** -0x" + "f" * 4200,
    "float of many digits": "float(0x" + "f" * 4200 + ")\nmath.log(0x" + "f" * 4200 + ", 2)",
    "text as a number": "int('9' * 5000)\nint('1' * 4000)\nfloat('9' * 5000)",
    "largest float": "x = 1.79e308\nwhile x > 0: x -= 1e-09",
    "smallest float": "x = 1.0\nwhile x > 0: x -= 5e-324\nfor i in range(n): x /= 5e-324",
    "infinite literal": "x = 1e999\nwhile n < x: n += 1\nfor i in range(int(x)): pass",
    "nan": "x = float('nan')\nwhile x < n: n -= x\nrange(x)\ntime.sleep(x)\nnumpy.float32(x)",
    "nan as a condition": "while numpy.float32(float('nan')): n += 1",
    "infinite minus infinite": "x = math.inf - math.inf\nmath.floor(math.inf)\nmath.ceil(x)\nround(math.inf)",
    "infinite sleep": "time.sleep(math.inf)\ntime.sleep(2**1024)\ntime.sleep(1e308)",
    "negative sleep": "for _ in range(n): time.sleep(-1e308)",
    "step of 0": "for i in range(0, n, 0): print(i)\nitems[::0]",
    "step of a denormal": "for i in range(0, 10, 5e-324): print(i)",
    "range of floats": "for i in range(0.5, 1e308, 1e-308): print(i)",
    "product of limits": "x = 1\nfor i in range(10**308):\n    for j in range(10**308): x += i * j",
    "logarithms": "math.log(0)\nmath.log(-1)\nmath.log(2**1000, 1)\nmath.log2(0.0)\nmath.exp(10**6)",
    "complex": "x = 1j ** 10**9\nabs(x * 1e308j)",
    "modulus of 0": "n % 0\n5 // 0\ndivmod(n, 0.0)\npow(2, -1, 0)",
    "workers": "concurrent.futures.ThreadPoolExecutor(10**400).map(print, range(10**400))",
    "timeouts": "subprocess.run(['sleep', '1e999'], timeout=2**2000)\nthreading.Event().wait(10**400)",
    "halved without end": "x = 10**308\nwhile x != 1: x /= 2\nwhile x != 0.3: x //= 0.1",
    "doubled until equal": "x = 1\nwhile x != 2**1023: x *= 2\nwhile x < 10**400: x **= 2",
    # Large or deep syntax.
    "nested brackets": "x = " + "(" * 59 + "1" + ")" * 59 + "\ny = " + "[" * 59 + "]" * 59,
    "prefix operators": "x = " + "not " * 300 + "n\ny = " + "-" * 59 + "n\nz = " + "~-" * 29 + "n",
    "long sum": "x = " + " + ".join(["n"] * 20_000),
    "sum": "x = " + " + ".join(["n"] * 700) + "\ny = " + " + ".join(["'a'"] * 700),
    "sum of powers": "x = " + " + ".join(f"n ** {k}" for k in range(700)),
    "attributes": "x = n" + ".a" * 700 + "\nx" + ".a" * 700 + "(n" + ".b" * 700 + ")",
    "calls": "x = n" + ".f(1)" * 400 + "\ny = " + "str(" * 55 + "n" + ")" * 55,
    "subscripts": "x = items" + "[0]" * 700 + "\nitems" + "[0]" * 700 + " = n",
    "long sum of numbers": "x = " + " + ".join(map(str, range(10_000))),
    "long conjunction": "x = " + " and ".join(f"n > {k}" for k in range(8_000)),
    "long comparison": "x = " + " < ".join(["n"] * 20_000),
    "long conditional": "x = " + " ".join(f"{k} if n == {k} else" for k in range(900)) + " 0",
    "long list": "x = [" + ", ".join(map(str, range(15_000))) + "]",
    "long dict": "x = {" + ", ".join(f"{k}: [{k}]" for k in range(6_000)) + "}",
    "attribute chain": "x = n" + ".a" * 20_000,
    "call chain": "x = n" + ".f(1)" * 10_000,
    "subscript chain": "x = items" + "[0]" * 20_000,
    "long text": "x = '" + "a" * 90_000 + "'\nx.count('b')\nx + x\nx * 9\nx.replace('a', 'bb')",
    "adjacent texts": "x = " + " ".join(["'a'"] * 10_000),
    "nested f-strings": "x = f'''{n}{f\"\"\"{n}{f\"{n:{n}}\"}\"\"\"}'''\n" * 1_000,
    "fields of an f-string": "x = f'" + "{n}" * 8_000 + "'",
    "many statements": "n += 1\n" * 8_000,
    "many assignments": "".join(f"x{k} = n + {k}\n" for k in range(5_000)),
    "many targets": "x = " * 10_000 + "n",
    "deep ifs": "".join(f"{' ' * k}if n > {k}:\n" for k in range(90)) + " " * 90 + "n = 0",
    "deep loops": "".join(f"{' ' * k}for i{k} in range(n):\n" for k in range(19)) + " " * 19 + "n += 1",
    "deep whiles": "".join(f"{' ' * k}while n > {k}:\n" for k in range(19)) + " " * 19 + "n -= 1",
    "deep tries": "".join(f"{' ' * k}try:\n" for k in range(18)) + " " * 18 + "print(n)\n"
    + "".join(f"{' ' * k}except OSError:\n{' ' * k} time.sleep(1)\n" for k in reversed(range(18))),
    "long elif": "if n == -1: pass\n" + "".join(f"elif n == {k}: items.append({k})\n" for k in range(900)),
    "many ifs": "".join(f"if n % {k + 2}: items.append({k})\n" for k in range(1_000)),
    "many loops": "for k in range(n): items.append(k)\n" * 1_500,
    "comprehension tower": "x = " + "[" * 20 + "n" + "".join(f" for i{k} in items]" for k in range(20)),
    "many generators": "x = [n " + " ".join(f"for i{k} in items if i{k} > n" for k in range(19)) + "]",
    "generators of generators": "x = items\n" + "x = (y for y in x if y)\n" * 200 + "list(x)",
    "maps of maps": "x = items\n" + "x = map(str, x)\n" * 300 + "list(x)",
    "chains of chains": "x = items\n" + "x = itertools.chain(x, x)\n" * 100 + "list(x)",
    "lambdas of lambdas": "x = " + "lambda: " * 300 + "n\nx()()()",
    "lambda recursion": "f = lambda k: f(k - 1) + f(k - 2)\nf(10**9)\n(lambda g: g(g))(lambda g: g(g))",
    "match with many cases": (
        "match n:\n" + "".join(f"    case {k}: x = {k}\n" for k in range(600)) + "    case _: x = 0"
    ),
    "match of deep patterns": (
        "match n:\n    case " + "[" * 50 + "*_" + "]" * 50 + ": x = 1\n    case {'a': {'b': [1, *r]}}: x = 2"
    ),
    "walrus chain": "".join(f"(x{k} := n + {k})\n" for k in range(3_000)),
    "star arguments": "print(" + ", ".join(["*items"] * 3_000) + ")\nprint(" + ", ".join(["**n"] * 50) + ")",
    "many arguments": "print(" + ", ".join(map(str, range(10_000))) + ")",
    "many globals": "".join(f"os.path.a{k}.b{k}({k})\n" for k in range(3_000)),
    "long names": "x" * 40_000 + " = n\ny = " + "x" * 40_000,
    "names of other scripts": "變數 = n\nπ = 3\n" + "ﬁ = 變數 + π\n" * 300,
    "deletions": "while items: del items[0]\n" * 300 + "del items[n], n.a, items",
    "nested functions": "".join(f"{' ' * k}def f{k}(a=n):\n" for k in range(60)) + " " * 60 + "return n",
    "nested classes": "".join(f"{' ' * k}class C{k}:\n" for k in range(60)) + " " * 60 + "x = n",
    "decorators": "@functools.lru_cache(maxsize=10**400)\n" * 900 + "def inner(a): return inner(a - 1)\ninner(n)",
    "regular expressions": (
        "re.match('(a+)+$', data)\nre.match('((((a*)*)*)*)*b', data)\n" "re.sub('(?:a|a)*' * 40, '', data)"
    ),
    "long regular expressions": "re.search('" + "(a|b)*" * 9_000 + "', data)\nre.compile('" + "(" * 5_000 + "')",
    "counted regular expressions": "re.match('a{1,65535}{1,65535}', data)\nre.split('(x{0,4294967295})*', data)",
    "regular expression of sets": "re.findall('" + "[a-z]*[0-9]*" * 4_000 + "', data)",
    "exceptions": "try:\n    n()\n" + "".join(f"except E{k}: time.sleep({k}e300)\n" for k in range(900)),
    "with statements": "with " + ", ".join(f"open(n) as f{k}" for k in range(1_500)) + ": pass",
    "asserts": "assert n > 0, f'{n:999999999}'\n" * 2_000,
    "tables": "grid = [[0] * n for _ in range(n)]\n" + "grid[n - 1][n - 2] += grid[n - 2][n - 1]\n" * 3_000,
    "recursive containers": "items.append(items)\nx = {}\nx['x'] = x\nx = [x]\n" * 500,
    "sums of powers": "x = " + " + ".join(f"n ** {k}" for k in range(4_000)),
    "products of sizes": "".join(f"for a{k} in data.part{k}: n *= len(data.other{k}) ** {k}\n" for k in range(400)),
    "exponential sizes": "x = [[]]\nfor k in items: x = x + [y + [k] for y in x]\n" * 30,
    "binary searches": (
        "low, high = 0, 10**400\nwhile low < high:\n    m = (low + high) // 2\n"
        "    if m: low = m + 1\n    else: high = m"
    ),
    "tabs and form feeds": "if n:\n\tx = 1\n\f\n" * 3_000,
}  # fmt: skip
# Definitions, each tried next to good functions.
_DEFINITIONS: dict[str, str] = {
    "recursion with a large default": "def g(n=1.79e308): return g(n - 1e-09)",
    "recursion with a tiny default": "def g(n=5e-324): return g(n * 2) if n < 1e308 else g(n / 3)",
    "recursion with a default of many bits": (
        f"def g(n={2**2048}):\n    if n < {2**1500}: return 1\n" f"    return g(n // 2) + g(n - 1)"
    ),
    "recursion to a limit of many bits": f"def g(n):\n    if n > {2**2048}: return 0\n    return g(n + 1)",
    "recursion over a large range": "def g(n=10**18):\n    return [g(k) for k in range(n)]",
    "recursion in two arguments": (
        "def g(a=19_000, b=19_000):\n    if a < 1 or b < 1: return 1\n" "    return g(a - 1, b) + g(a, b - 1)"
    ),
    "recursion in fractions": (
        "def g(a=1e18):\n    if a < 1e-300: return 1\n" "    return g(a * 0.999999999) + g(a * 0.999999998)"
    ),
    "recursion by many steps": (
        "def g(n=19_999):\n    if n < 0: return 1\n    return " + " + ".join(f"g(n - {k})" for k in range(1, 800))
    ),
    "backtracking": (
        "def g(path, n=20_000):\n    if len(path) == n: return 1\n"
        "    for k in range(10**6):\n        path.append(k)\n        g(path)\n" "        path.pop()"
    ),
    "backtracking in order": (
        "def g(start, path):\n    if len(path) == 19_999: return\n"
        "    for k in range(start, 10**9):\n        path.append(k)\n"
        "        g(k + 1, path)\n        path.pop()"
    ),
    "ackermann": (
        "def g(m, n):\n    if m == 0: return n + 1\n"
        "    return g(m - 1, g(m, n - 1)) if n else g(m - 1, 1)\ng(9, 9)"
    ),
    "mutual recursion": (
        "".join(f"def f{k}(n): return f{(k * 7 + 1) % 100}(n - 1) + f{(k * 3 + 2) % 100}(n)\n" for k in range(100))
    ),
    "calls in a chain": (
        "".join(f"def f{k}(n): return f{k + 1}(n) + f{k + 1}(n + 1)\n" for k in range(100)) +
        "def f100(n): return n"
    ),
    "calls in loops in a chain": (
        "".join(f"def f{k}(n):\n    for i in range(n): f{k + 1}(n)\n" for k in range(300)) +
        "def f300(n): return n"
    ),
    "calls of everything": (
        "".join(f"def f{k}(n): return {' + '.join(f'f{j}(n)' for j in range(40))}\n" for k in range(40))
    ),
    "generators that recurse": (
        "def g(n):\n    yield n\n    yield from g(n - 1)\n"
        "    yield from g(n - 2)\ndef h(): return list(g(10**9))"
    ),
    "coroutines that recurse": (
        "async def g(n):\n" "    await asyncio.gather(*(g(n - 1) for _ in range(10**9)))\n" "    await g(n)"
    ),
    "300 parameters": (
        f"def g({', '.join(f'a{k}=10**{k}' for k in range(300))}): "
        f"return g({', '.join(f'a{k} - 1' for k in range(300))})"
    ),
    "annotations": (
        f"def g({', '.join(f'a{k}: list[{k}] = {k}' for k in range(250))}) -> {'list[' * 50}int{']' * 50}: return a0"
    ),
    "defaults of defaults": (
        "def g(a=(lambda b=(lambda c=[0] * 10**12: c)(): b)(), *b, c=2**2048, **d): return g(a, *b, c=c, **d)"
    ),
    "3,000 functions": "".join(f"def f{k}(n): return [i for i in range(n)]\n" for k in range(3_000)),
    "huge class body": (
        "class C:\n" + "".join(f"    x{k} = {k}\n    def f{k}(self): return self.f{k + 1}()\n" for k in range(1_200))
    ),
    "inheritance": (
        "".join(f"class C{k + 1}(C{k}):\n" f"    def f(self): return super().f() + self.f()\n" for k in range(400))
    ),
    "inheritance from itself": (
        "class C(C):\n    def f(self): return super().f()\nclass A(B): pass\n"
        "class B(A):\n    def f(self): return self.f()"
    ),
    "properties": (
        "class C:\n" + "".join(f"    @property\n"
        f"    def p{k}(self): return self.p{(k + 1) % 100} + self.p{(k + 2) % 100}\n" for k in range(100))
    ),
    "constructors": (
        "class C:\n" "    def __init__(self, n): self.left, self.right = C(n - 1), C(n - 1)\n"
        "    def __add__(self, o): return C(self + o)"
    ),
    "attributes of attributes": (
        "class C:\n    def f(self):\n" + "".join(f"        self.a{k} = self.a{k + 1}.f()\n" for k in range(800))
    ),
    "redefinitions": "def g(n): return n\n" + "_g = g\ndef g(n): return _g(n) + g(n - 1)\n" * 400,
    "module constants": (
        "A0 = 1\n" + "".join(f"A{k + 1} = A{k} + A{k}\n" for k in range(900)) + "def g(): return [0] * A900"
    ),
    "constants that refer to themselves": "A = B + 1\nB = A * 2\nC = [C, C]\ndef g(): return A + B + len(C)",
    "constant of many brackets": (
        "A = " + "(" * 190 + "1" + ")" * 190 + "\nB = " + "-" * 5_000 + "1\ndef g(): return A + B"
    ),
    "constant of many digits": "A = 0x" + "f" * 60_000 + "\nB = " + "9" * 60_000 + "\ndef g(n): return A % n + B",
    "imports in a circle": (
        "from .hostile import *\nfrom hostile import a, b, c\n"
        "import other as hostile\ndef g(): return hostile.other(a, b)"
    ),
    "stars of imports": "".join(f"from m{k} import *\n" for k in range(3_000)) + "def g(): return x1(x2(x3()))",
    "broken lines": "def g(n:\n    return (n\n" * 300 + "def h(n): return n",
    "broken brackets": "def g(n):\n    return " + "(" * 20_000 + "\ndef h(n): return n",
    "broken texts": "def g(n):\n    return '''" + "a" * 50_000 + "\ndef h(n): return n",
    "surrogates": "def g(n):\n    return zlib.compress('\\ud800' * 9) + '\\udfff'.encode()",
    "line ends": "def g(n):\r    return n\r\n\x0c\x1c\x85\u2028def h(n):\n\treturn n",
    "torch module": (
        "import torch\nclass M(torch.nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.a = torch.nn.Linear(2**2048, 10**400)\n"
        "        self.b = torch.nn.ModuleList([torch.nn.Linear(9, 9) for _ in range(10**9)])\n"
        "    def forward(self, x):\n        for layer in self.b: x = layer(x)\n"
        "        return self.a(x.repeat(10**18)) ** 10**9"
    ),
    "triton kernel": (
        "import triton\nimport triton.language as tl\n@triton.jit\n"
        "def k(x, n: tl.constexpr):\n    for i in range(0, 2**2048, 1):\n"
        "        tl.store(x + i, tl.load(x) ** 0x" + "f" * 4200 + ")"
    ),
    "conditions of an endless counter": (
        "def poll(source):\n    for i in itertools.count():\n" "        if i % 10 == 0: source.send(i)\n"
        "        elif i / 3 < i: source.stop()"
    ),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Source:
    """A hostile file: good functions before and after the hostile text."""

    name: str
    text: str


def sources() -> list[Source]:
    """All hostile files, in a fixed order; their names are unique."""
    listed = []
    for name, text in _STATEMENTS.items():
        body = indent(text, "    ", lambda line: True)
        listed.append(_file(f"{name}, function", f"def hostile({_FIXED_ARGUMENTS}):\n{body}\n"))
        # What a short text does may depend on its inputs; of a long one they say little.
        values = _FIXED if len(text) < _LONG_TEXT else _READ
        program = f"{values}{text}\nprint(n)\n"
        listed.append(Source(f"{name}, program", f"# rlm: program\n{_around(program)}"))
    return listed + [_file(name, f"{text}\n") for name, text in _DEFINITIONS.items()]


def _file(name: str, text: str) -> Source:
    return Source(name, _around(text))


def _around(text: str) -> str:
    before, after = (GOOD.format(name) for name in _GOOD_NAMES)
    return f"{_IMPORTS}\n\n{before}\n\n{text}\n\n{after}"


_LINE_END = re.compile(r"\r\n|\r|\n")


@dataclass(slots=True)
class Outcome:
    """What a front end did with some hostile files: processor seconds and bytes beyond those of the good files.

    ``lost`` are the good functions without their row, ``waits`` the seconds of hovers in another document meanwhile.
    """

    front_end: str
    name: str
    units: int
    seconds: float = 0.0
    memory: float = 0.0
    lost: list[str] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)

    @property
    def is_slow(self) -> bool:
        """Whether it took longer than files with as many good functions may."""
        return self.seconds > MOST_SECONDS + _UNIT_SECONDS * self.units

    @property
    def is_large(self) -> bool:
        """Whether it took more memory than it may."""
        return self.memory > MOST_BYTES


class Folder:
    """A folder with a good file and hostile ones."""

    def __init__(self, path: Path, listed: Sequence[Source]) -> None:
        self.path = path
        self.hostile = {f"hostile{number}.py": source for number, source in enumerate(listed)}
        (path / "other.py").write_text(GOOD.format(_OTHER), encoding="utf-8")
        for name, source in self.hostile.items():
            (path / name).write_bytes(source.text.encode("utf-8", "surrogatepass"))

    @property
    def label(self) -> str:
        """The names of the hostile files."""
        names = [source.name for source in self.hostile.values()]
        return names[0] if len(names) == 1 else f"{len(names)} files" if names else "none"

    @property
    def units(self) -> int:
        """About how many functions the hostile files have."""
        return sum(source.text.count("def ") + source.text.count("lambda") for source in self.hostile.values())

    def expected(self) -> set[tuple[str, str]]:
        """The files and names of the good functions."""
        return {("other.py", _OTHER)} | {(file, name) for file in self.hostile for name in _GOOD_NAMES}


def _limit() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (_KILLED_SECONDS, _KILLED_SECONDS))


def _process(command: str, folder: Folder, *options: str) -> tuple[Outcome, str]:
    """Run a command over a folder: what it took, and what it printed."""
    line = [sys.executable, "-m", "rlm_lsp", command, str(folder.path), "--no-measured", *options]
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(line, stdout=output, stderr=errors, cwd=folder.path, preexec_fn=_limit)
        _, _, usage = os.wait4(process.pid, 0)
        process.returncode = 0
        output.seek(0)
        text = output.read().decode("utf-8", "replace")
    seconds = usage.ru_utime + usage.ru_stime
    return Outcome(command, folder.label, folder.units, seconds, usage.ru_maxrss * 1024.0), text


def predict(folder: Folder) -> Outcome:
    """``rlm-lsp predict FOLDER``: each good function has its rows, with numbers."""
    outcome, text = _process("predict", folder, "--format", "jsonl")
    rows = _parsed_lines(text)
    found = {(Path(row["file"]).name, row["qualname"]) for row in rows if row["median"] is not None}
    outcome.lost = sorted(map(str, folder.expected() - found))
    return outcome


def check(folder: Folder) -> Outcome:
    """``rlm-lsp check FOLDER``: each good function, which is over its budget, has its finding."""
    outcome, text = _process("check", folder, "--format", "json")
    try:
        rows = json.loads(text)
    except ValueError:
        rows = []
    found = {(Path(row["file"]).name, row["qualname"]) for row in rows}
    outcome.lost = sorted(map(str, folder.expected() - found))
    return outcome


def _parsed_lines(text: str) -> list[dict[str, Any]]:
    rows = []
    for line in text.splitlines():
        try:
            rows.append(json.loads(line))
        except ValueError:
            break
    return rows


class Usage:
    """The processor time and the peak memory of a running process since some point (Linux)."""

    def __init__(self, pid: int) -> None:
        self._folder = Path(f"/proc/{pid}")
        (self._folder / "clear_refs").write_text("5", encoding="ascii")  # resets the peak
        self._seconds = self._time()

    def _time(self) -> float:
        fields = (self._folder / "stat").read_text(encoding="ascii").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def read(self) -> tuple[float, float]:
        """The seconds since then, and the most bytes."""
        status = (self._folder / "status").read_text(encoding="ascii").splitlines()
        peak = next(int(line.split()[1]) for line in status if line.startswith("VmHWM:"))
        return self._time() - self._seconds, peak * 1024.0


async def serve(client: Client, folder: Folder) -> Outcome:
    """Open the hostile files in the language server, and ask for hovers in a good one until all have their hints."""
    outcome = Outcome("server", folder.label, folder.units)
    other = (folder.path / "other.py").as_uri()
    client.open(other, GOOD.format(_OTHER))
    await client.hints(other)
    usage = Usage(client.process.pid)
    for file, source in folder.hostile.items():
        uri = (folder.path / file).as_uri()
        client.open(uri, source.text.encode("utf-8", "replace").decode("utf-8"))
        asked = client.ask("textDocument/inlayHint", {"textDocument": {"uri": uri}, "range": EVERYWHERE})
        until = asyncio.get_running_loop().time() + _LIMIT
        while True:
            outcome.waits.append(await _hover(client, other))
            if (asked.done() and len(outcome.waits) >= _HOVERS) or asyncio.get_running_loop().time() > until:
                break
            await asyncio.sleep(_PAUSE)
        hints = asked.result().get("result") if asked.done() else []
        lines = {hint["position"]["line"] for hint in hints or []}
        for name in _GOOD_NAMES:
            place = len(_LINE_END.findall(source.text[: source.text.index(f"def {name}(")]))
            if not {place, place - 1} & lines:
                outcome.lost.append(f"{file} {name}")
        client.close(uri)
    outcome.seconds, outcome.memory = usage.read()
    client.close(other)
    return outcome


async def _hover(client: Client, uri: str) -> float:
    """The seconds until a hover is answered."""
    start = asyncio.get_running_loop().time()
    place = {"textDocument": {"uri": uri}, "position": {"line": 1, "character": 5}}
    answer = await client.ask("textDocument/hover", place)
    assert answer.get("result"), answer
    return asyncio.get_running_loop().time() - start


async def ask_agent_server(client: McpClient, pid: int, folder: Folder) -> Outcome:
    """Let the MCP server predict each good function, next to the hostile text and in the other file."""
    outcome = Outcome("mcp", folder.label, folder.units)
    usage = Usage(pid)
    for file, name in sorted(folder.expected()):
        arguments = {"path": str(folder.path / file), "unit": name}
        result = await asyncio.wait_for(client.call_tool("predict", arguments), _LIMIT)
        if result.is_error or not any(f" {name}" in part.text for part in result.content if part.type == "text"):
            outcome.lost.append(f"{file} {name}")
    outcome.seconds, outcome.memory = usage.read()
    return outcome


@asynccontextmanager
async def agent_server(folder: Path) -> AsyncIterator[tuple[McpClient, int]]:
    """A connected MCP server for a folder, and the id of its process."""
    command = [sys.executable, "-m", "rlm_lsp", "mcp", "--no-measured"]
    server = StdioServerParameters(command=command[0], args=command[1:], cwd=folder, env=dict(os.environ))
    before = _children()
    async with McpClient(server) as client:
        [pid] = _children() - before
        yield client, pid


def _children() -> set[int]:
    """The ids of the processes that this one has started (Linux)."""
    tasks = Path("/proc/self/task").glob("*/children")
    return {int(pid) for task in tasks for pid in task.read_text(encoding="ascii").split()}


async def outcomes(front_end: str, groups: Sequence[Sequence[Source]]) -> AsyncIterator[Outcome]:
    """What a front end does with groups of hostile files, each in its own folder, beyond what the good files take.

    Commands are started for each group; a server is started once, and again where it has not survived.
    """
    waiting = [[], *groups]
    base: Outcome | None = None
    while waiting:
        with tempfile.TemporaryDirectory(prefix="rlm-lsp-hostile-") as name:
            path = Path(name)
            async for outcome in _batch(front_end, path, waiting):
                waiting.pop(0)
                if base is None:
                    base = outcome
                    continue
                # The hovers in the other document are the probe, and there are more of them the longer an answer takes.
                probes = len(outcome.waits) / len(base.waits) if base.waits else 1.0
                outcome.seconds -= base.seconds * max(probes, 1.0)
                outcome.memory -= base.memory
                yield outcome


async def _batch(front_end: str, path: Path, groups: Sequence[Sequence[Source]]) -> AsyncIterator[Outcome]:
    """What a front end does with groups, until its server has ended."""

    def folders() -> Iterator[Folder]:
        for number, group in enumerate(list(groups)):
            (path / str(number)).mkdir()
            yield Folder(path / str(number), group)

    if front_end in _COMMANDS:
        for folder in folders():
            yield _COMMANDS[front_end](folder)
    elif front_end == "server":
        async with session(folder=path) as client:
            for folder in folders():
                yield await serve(client, folder)
    else:
        async with agent_server(path) as (agent, pid):
            for folder in folders():
                yield await ask_agent_server(agent, pid, folder)


_COMMANDS: dict[str, Callable[[Folder], Outcome]] = {"predict": predict, "check": check}
FRONT_ENDS = (*_COMMANDS, "server", "mcp")


async def _report(front_ends: Sequence[str], listed: Sequence[Source], show: Callable[[str], None]) -> bool:
    """Print a line for each bad outcome, and a table; whether there was one."""
    rows = []
    for front_end in front_ends:
        done, waits = [], []
        async for outcome in outcomes(front_end, [[source] for source in listed]):
            done.append(outcome)
            waits += outcome.waits
            if outcome.is_slow or outcome.is_large or outcome.lost:
                lost = f"; lost {', '.join(outcome.lost)}" if outcome.lost else ""
                show(f"{front_end}: {outcome.name}: {outcome.seconds:.1f} CPU s, {outcome.memory / 1e6:.0f} MB{lost}")
        p95 = f"{quantiles(waits, n=20)[-1] * 1000:.0f} ms" if len(waits) > 1 else ""
        slow, large, lost_rows = (
            sum(map(bool, column))
            for column in zip(*((entry.is_slow, entry.is_large, entry.lost) for entry in done), strict=True)
        )
        rows.append((front_end, len(done), slow, large, lost_rows, p95))
    show(
        "| front end | files | over 2 CPU s | over 400 MB | lost rows | p95 of other hovers |\n"
        "|---|---|---|---|---|---|"
    )
    for row in rows:
        show(f"| {' | '.join(map(str, row))} |")
    return any(row[2] or row[3] or row[4] for row in rows)


def main() -> None:
    """Run the files one by one; the exit status is 1 if one failed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--front-end", action="append", choices=FRONT_ENDS, help="repeatable; default: all")
    parser.add_argument("--name", default="", help="only files whose name has this part")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--every", type=int, default=1)
    arguments = parser.parse_args()
    listed = [source for source in sources() if arguments.name in source.name][arguments.first :: arguments.every]
    raise SystemExit(
        asyncio.run(_report(arguments.front_end or FRONT_ENDS, listed, lambda line: print(line, flush=True)))
    )


if __name__ == "__main__":
    main()
