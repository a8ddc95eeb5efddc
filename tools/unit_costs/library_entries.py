"""Entries of the standard library."""

from __future__ import annotations

from .entries import Entry, step

_RANDOM = "import random\nrandom.seed(1)\n"
_INTS = _RANDOM + "a = [random.randrange(10 * n + 10) for _ in range(n)]"
_PROSE = (
    _RANDOM + "words = ['alpha', 'beta', 'gamma', 'delta', 'omega42', 'x7', 'the', 'and', 'sum']\n"
    "t = ''\nwhile len(t) < n:\n    t += random.choice(words) + ' '\nt = t[:n]\n"
)
_BYTES = _PROSE + "import zlib, bz2, lzma, base64, hashlib\nb = t.encode()\n"
_RECORDS = "import json, pickle, copy\na = [i * 37 % 1000 for i in range(n)]\n"
_TREES = "from xml.etree.ElementTree import Element, SubElement, fromstring\n"
_MIDDLE = (100, 10_000, 1_000_000)
_ADD = "def add(x, y):\n    return x\n"


def _math(name: str, arguments: str, setup: str = "x = 2.5") -> Entry:
    return step(name, f"{name}({arguments})", f"import {name.split('.')[0]}\n{setup}")


def _hashes() -> tuple[Entry, ...]:
    names = ("md5", "sha1", "sha224", "sha256", "sha384", "sha512", "sha3_256", "sha3_512", "blake2b", "blake2s")
    setup = "import hashlib\na = bytes(n)"
    return tuple(Entry(f"hashlib.{name}", f"hashlib.{name}(a)", setup, sizes=_MIDDLE) for name in names)


ENTRIES = (
    *_hashes(),
    _math("math.sqrt", "x"),
    _math("math.sin", "x"),
    _math("math.isnan", "x"),
    _math("math.floor", "x"),
    _math("math.log", "x"),
    _math("math.gcd", "x, y", "x, y = 123456, 7890"),
    _math("math.isqrt", "x", "x = 123456789"),
    _math("cmath.sqrt", "x"),
    Entry("math.factorial", "math.factorial(n)", "import math", "n^2", (10, 100, 1000, 10_000)),
    Entry("math.comb", "math.comb(n * 2, n)", "import math", "n^1.585", (5, 50, 500)),
    Entry("math.fsum", "math.fsum(a)", "import math\na = [i * .1 for i in range(n)]"),
    Entry("math.dist", "math.dist(a, a)", "import math\na = [i * .1 for i in range(n)]", sizes=(2, 10, 1000)),
    _math("random.random", ""),
    _math("random.randint", "1, 100"),
    _math("random.uniform", "1, 100"),
    _math("random.gauss", "0, 1"),
    _math("random.expovariate", "2.0"),
    _math("random.choice", "x", "x = list(range(100))"),
    step("random.seed", "random.seed(42)", "import random", unroll=1),
    step("random.Random", "random.Random(42)", "import random", unroll=1),
    Entry("random.choices", "random.choices(a, k=n)", _INTS, sizes=(1, 100, 10_000)),
    Entry("random.sample", "random.sample(a, n // 2 + 1)", _INTS, sizes=(2, 100, 10_000, 300_000)),
    Entry("random.shuffle", "random.shuffle(a)", _INTS),
    Entry("random.randbytes", "random.randbytes(n)", "import random"),
    Entry("secrets.token_bytes", "secrets.token_bytes(n)", "import secrets", sizes=(16, 1000, 100_000)),
    step("secrets.randbelow", "secrets.randbelow(100)", "import secrets", unroll=1),
    step("decimal.Decimal", "Decimal(x)", "from decimal import Decimal\nx = '3.14'"),
    step(
        "decimal.quantize", "x.quantize(y)", "from decimal import Decimal\nx, y = Decimal('3.14159'), Decimal('0.01')"
    ),
    step(
        "fractions.add", "x + y", "from fractions import Fraction\nx, y = Fraction(355, 113), Fraction(1, 12)", unroll=1
    ),
    step("decimal.add", "x + y", "from decimal import Decimal\nx, y = Decimal('3.14159'), Decimal('0.01')"),
    step("fractions.Fraction", "Fraction(3, 7)", "from fractions import Fraction", unroll=1),
    Entry("statistics.mean", "statistics.mean(a)", _INTS + "\nimport statistics", sizes=(10, 1000, 10_000)),
    Entry("statistics.fmean", "statistics.fmean(a)", _INTS + "\nimport statistics", sizes=(10, 1000, 10_000)),
    Entry("statistics.stdev", "statistics.stdev(a)", _INTS + "\nimport statistics", sizes=(10, 1000, 10_000)),
    Entry("collections.Counter", "Counter(a)", "from collections import Counter\n" + _INTS),
    Entry("collections.Counter.text", "Counter(t)", "from collections import Counter\n" + _PROSE),
    Entry(
        "collections.Counter.most_common",
        "c.most_common()",
        "from collections import Counter\n" + _INTS + "\nc = Counter(a)",
        "n log n",
    ),
    Entry("collections.deque", "deque(a)", "from collections import deque\n" + _INTS),
    step("collections.defaultdict", "defaultdict(int)", "from collections import defaultdict"),
    step("collections.OrderedDict", "OrderedDict()", "from collections import OrderedDict"),
    step("collections.namedtuple", "namedtuple('A', 'x y')", "from collections import namedtuple", unroll=1),
    Entry(
        "heapq.heappush",
        "heappush(a, 5)\nheappop(a)",
        "from heapq import heappush, heappop, heapify\n" + _INTS + "\nheapify(a)",
        "log n",
        (10, 1000, 100_000),
    ),
    Entry(
        "heapq.heappop",
        "heappop(a)\nheappush(a, 10**9)",
        "from heapq import heappush, heappop, heapify\n" + _INTS + "\nheapify(a)",
        "log n",
        (10, 1000, 100_000),
    ),
    Entry("heapq.heapify", "b = a[:]\nheapify(b)", "from heapq import heapify\n" + _INTS, baseline="b = a[:]"),
    Entry("heapq.nlargest", "nlargest(10, a)", "from heapq import nlargest\n" + _INTS, sizes=(100, 10_000, 100_000)),
    Entry("heapq.merge", "for x in merge(a, a):\n    pass", "from heapq import merge\na = list(range(n // 2))"),
    Entry("bisect.bisect", "bisect(a, 77)", "from bisect import bisect\na = list(range(n))", "log n"),
    Entry("array.array", "array('i', a)", "from array import array\na = list(range(n))"),
    Entry(
        "itertools.chain",
        "for x in chain(a):\n    pass",
        "from itertools import chain\na = list(range(n))",
        baseline="for x in a:\n    pass",
    ),
    Entry(
        "itertools.product",
        "for x in product(a, a):\n    pass",
        "from itertools import product\na = list(range(round(n ** .5)))",
        baseline="for x in range(n):\n    pass",
        sizes=(100, 10_000, 1_000_000),
    ),
    Entry(
        "itertools.permutations",
        "for x in permutations(a, 4):\n    pass",
        "from itertools import permutations\na = list(range({24: 4, 5040: 10, 43680: 16}[n]))",
        baseline="for x in range(n):\n    pass",
        sizes=(24, 5040, 43_680),
    ),
    Entry(
        "itertools.combinations",
        "for x in combinations(a, 4):\n    pass",
        "from itertools import combinations\na = list(range({35: 7, 4845: 20, 91390: 40}[n]))",
        baseline="for x in range(n):\n    pass",
        sizes=(35, 4845, 91_390),
    ),
    Entry(
        "itertools.accumulate",
        "for x in accumulate(a):\n    pass",
        "from itertools import accumulate\na = list(range(n))",
        baseline="for x in a:\n    pass",
    ),
    Entry(
        "itertools.groupby",
        "for k, g in groupby(a):\n    pass",
        "from itertools import groupby\na = [i // 4 for i in range(n)]",
    ),
    Entry(
        "functools.reduce",
        "reduce(f, a)",
        "from functools import reduce\nf = max\na = list(range(n))",
        baseline="for x in a:\n    max(x, x)",
    ),
    step("functools.partial", "partial(f, 1)", "from functools import partial\n" + _ADD + "f = add"),
    step("functools.lru_cache", "lru_cache(f)", "from functools import lru_cache\n" + _ADD + "f = add", unroll=1),
    step("functools.wraps", "wraps(f)(g)", "from functools import wraps\nf = lambda x: x\ng = lambda x: x", unroll=1),
    step("functools.cached", "f(3)", "from functools import cache\n@cache\ndef f(x):\n    return x"),
    step("operator.itemgetter", "itemgetter(1)", "from operator import itemgetter"),
    step("operator.getter", "g(a)", "from operator import itemgetter\ng = itemgetter(1)\na = [1, 2]"),
    step("contextlib.suppress", "suppress(ValueError)", "from contextlib import suppress"),
    step("re.cached", "re.compile('a+b')", "import re", unroll=1),
    Entry(
        "re.match", "p.match(t)", "import re\np = re.compile(r'[a-z ]*')\nt = 'abc def ' * (n // 8)", sizes=(8, 80, 800)
    ),
    Entry("re.search", "p.search(t)", "import re\np = re.compile(r'[0-9]+-[0-9]+')\n" + _PROSE),
    Entry("re.search.text", "p.search(t)", "import re\np = re.compile('zzz')\n" + _PROSE),
    Entry("re.findall", "p.findall(t)", "import re\np = re.compile(r'\\w+')\n" + _PROSE),
    Entry(
        "re.finditer",
        "for m in p.finditer(t):\n    pass",
        "import re\np = re.compile('x')\nt = 'x' * n",
        baseline="p.findall(t)",
    ),
    Entry("re.sub", "p.sub('-', t)", "import re\np = re.compile(r'\\s+')\n" + _PROSE),
    step("re.group", "m.group(1)", "import re\nm = re.match('(a)b', 'ab')"),
    step(
        "re.backtrack", "p.match(t)", "import re\np = re.compile('(a+)+$')\nt = 'a' * 16 + 'b'", unroll=1, per=2.0**17
    ),
    Entry("re.escape", "re.escape(t)", "import re\n" + _PROSE),
    step(
        "re.match.part",
        "p.match(t)",
        "import re\nq = re.compile(r'4')\np = re.compile(r'(\\d+)-(\\w+) \\[(.*?)\\] (\\S+): (\\d+) (\\d+)')\n"
        "t = '42-info [today] start: 17 4711'",
        baseline="q.match(t)",
        per=19,
    ),
    step("re.compile", "re.purge()\nre.compile(r'(\\w+)@(\\w+)\\.com')", "import re", unroll=1),
    Entry("textwrap.wrap", "textwrap.wrap(t)", "import textwrap\n" + _PROSE, sizes=(100, 10_000)),
    Entry("textwrap.dedent", "textwrap.dedent(t)", "import textwrap\nt = '    some line of text\\n' * (n // 22)"),
    Entry("textwrap.indent", "textwrap.indent(t, ' ')", "import textwrap\nt = '    some line of text\\n' * (n // 22)"),
    Entry("html.escape", "html.escape(t)", "import html\n" + _PROSE),
    Entry("unicodedata.normalize", "unicodedata.normalize('NFKD', t)", "import unicodedata\nt = 'é' * n"),
    Entry(
        "difflib.ratio",
        "SequenceMatcher(None, a, b).ratio()",
        "import math\nfrom difflib import SequenceMatcher\n"
        + _RANDOM
        + "k = math.isqrt(n)\n"
        + "c = 'abcdefgh' * k\na = ''.join(random.sample(c, k))\nb = ''.join(random.sample(c, k))",
        sizes=(100, 10_000),
    ),
    step(
        "string.Template",
        "t.substitute(name='x')",
        "from string import Template\nt = Template('hello $name')",
        unroll=1,
    ),
    Entry("json.dumps", "json.dumps(a)", _RECORDS),
    Entry("json.dumps.text", "json.dumps(a)", "import json\na = 'some text ' * (n // 10)"),
    Entry("json.dumps.indent", "json.dumps(a, indent=2)", _RECORDS, sizes=(10, 1000, 10_000)),
    Entry(
        "json.loads",
        "json.loads(t)",
        "import json\nt = json.dumps([{'id': i, 'name': f'name{i}', 'ok': True} for i in range(n // 40 + 1)])",
        sizes=(40, 4000, 400_000),
    ),
    Entry("pickle.dumps", "pickle.dumps(a)", _RECORDS),
    Entry("pickle.loads", "pickle.loads(t)", _RECORDS + "t = pickle.dumps([i * 37 % 1000 for i in range(n // 3)])"),
    step("copy.copy", "copy.copy(a)", "import copy\na = (1, 2)"),
    Entry("copy.deepcopy", "copy.deepcopy(a)", _RECORDS, sizes=(10, 1000, 100_000)),
    Entry(
        "copy.deepcopy.nested",
        "copy.deepcopy(a)",
        "import copy\na = [[i, i + 1] for i in range(n // 3)]",
        sizes=(12, 999, 99_999),
    ),
    step("hashlib.digest", "h.hexdigest()", "import hashlib\nh = hashlib.sha256(b'abc')"),
    Entry(
        "hashlib.pbkdf2_hmac",
        "hashlib.pbkdf2_hmac('sha256', b'password', b'salt', n)",
        "import hashlib",
        sizes=(100, 10_000),
    ),
    Entry(
        "hashlib.scrypt",
        "hashlib.scrypt(b'password', salt=b'salt', n=n // 8, r=8, p=1)",
        "import hashlib",
        sizes=(8 * 64, 8 * 1024, 8 * 8192),
    ),
    step("hmac.new", "hmac.new(b'key', b'message', 'sha256')", "import hmac", unroll=1),
    Entry("zlib.crc32", "zlib.crc32(b)", _BYTES),
    Entry("zlib.compress.repeated", "zlib.compress(b)", "import zlib\nb = b'hello world ' * (n // 12)", sizes=_MIDDLE),
    Entry("zlib.compress", "zlib.compress(b)", _BYTES, sizes=_MIDDLE),
    Entry("zlib.compress.fast", "zlib.compress(b, 1)", _BYTES, sizes=_MIDDLE),
    Entry("zlib.decompress", "zlib.decompress(c)", _BYTES + "c = zlib.compress(random.randbytes(n))", sizes=_MIDDLE),
    Entry("bz2.compress", "bz2.compress(b)", _BYTES, sizes=(100, 10_000, 300_000)),
    Entry(
        "bz2.decompress",
        "bz2.decompress(c)",
        _BYTES + "c = bz2.compress(random.randbytes(n))",
        sizes=(100, 10_000, 300_000),
    ),
    Entry("lzma.compress", "lzma.compress(b)", _BYTES, sizes=(100, 10_000, 300_000)),
    Entry(
        "lzma.decompress",
        "lzma.decompress(c)",
        _BYTES + "c = lzma.compress(random.randbytes(n))",
        sizes=(100, 10_000, 300_000),
    ),
    Entry("base64.b64encode", "base64.b64encode(b)", _BYTES),
    Entry("base64.b64decode", "base64.b64decode(c)", _BYTES + "c = base64.b64encode(b)[:n // 4 * 4]"),
    Entry("base64.b32encode", "base64.b32encode(b)", _BYTES, sizes=(10, 1000, 10_000)),
    Entry("urllib.parse.quote", "quote(t)", "from urllib.parse import quote\n" + _PROSE),
    step("urllib.parse.parse_qs", "parse_qs('a=1&b=2')", "from urllib.parse import parse_qs", unroll=1),
    step("urllib.parse.urlparse", "urlparse('https://example.org/a?b=c')", "from urllib.parse import urlparse"),
    Entry("struct.pack", "struct.pack(f, *a)", "import struct\nf = f'{n}i'\na = [1] * n", sizes=(1, 10, 100)),
    Entry(
        "csv.reader", "list(csv.reader(lines))", "import csv\nlines = ['alpha,beta,12,34,56.7,text'] * (n // 27 + 1)"
    ),
    Entry(
        "csv.writerow",
        "w.writerow(a)",
        "import csv, io\nw = csv.writer(io.StringIO())\na = ['text'] * n",
        sizes=(2, 10, 100),
    ),
    # Files are in the page cache.
    step("builtins.open", "open('/dev/null').close()", unroll=1),
    step("builtins.print", "print('text', file=f)", "f = open('/dev/null', 'w')"),
    step("file.flush", "f.flush()", "f = open('/dev/null', 'w')"),
    Entry("file.write", "f.write(a)", "f = open('/dev/null', 'w')\na = 'x' * n"),
    Entry(
        "file.read",
        "f.seek(0)\nf.read()",
        "import tempfile\nf = tempfile.TemporaryFile('w+')\nf.write('x' * n)\nf.flush()",
        baseline="f.seek(0)",
        sizes=_MIDDLE,
    ),
    Entry(
        "file.read.bytes",
        "f.seek(0)\nf.read()",
        "import tempfile\nf = tempfile.TemporaryFile()\nf.write(b'x' * n)\nf.flush()",
        baseline="f.seek(0)",
        sizes=_MIDDLE,
    ),
    Entry(
        "file.readline",
        "f.seek(0)\nfor line in f:\n    pass",
        "import tempfile\nf = tempfile.TemporaryFile('w+')\nf.write(('x' * 39 + '\\n') * n)\nf.flush()",
        baseline="f.seek(0)",
    ),
    Entry("io.StringIO", "io.StringIO(a)", "import io\na = 'x' * n"),
    step("os.stat", "os.stat('/')", "import os"),
    Entry(
        "os.listdir",
        "os.listdir(d)",
        "import os, tempfile\nd = tempfile.mkdtemp()\nfor i in range(n):\n    open(f'{d}/file{i}', 'w').close()",
        sizes=(3, 100, 1000),
    ),
    step("os.scandir", "for x in os.scandir('/dev'):\n    pass", "import os", unroll=1, per=20),
    step("os.walk", "for x in os.walk(d):\n    pass", "import os, tempfile\nd = tempfile.mkdtemp()", unroll=1),
    step("os.path.join", "os.path.join('a', 'b')", "import os"),
    step("os.path.basename", "os.path.basename('a/b/c.txt')", "import os"),
    step("os.path.abspath", "os.path.abspath('a/b/c.txt')", "import os"),
    step("os.path.realpath", "os.path.realpath('/usr/lib')", "import os", unroll=1),
    step("pathlib.Path", "Path('a') / 'b'", "from pathlib import Path", unroll=1),
    step(
        "shutil.copy",
        "shutil.copy(f.name, f.name + 'x')",
        "import shutil, tempfile\nf = tempfile.NamedTemporaryFile()",
        unroll=1,
    ),
    step("time.time", "time.time()", "import time"),
    step("time.process_time", "time.process_time()", "import time"),
    step("time.localtime", "time.localtime()", "import time"),
    step("datetime.datetime", "datetime(2024, 5, 6)", "from datetime import datetime"),
    step("datetime.now", "datetime.now()", "from datetime import datetime"),
    step("datetime.strftime", "d.strftime('%Y-%m-%d')", "from datetime import datetime\nd = datetime(2024, 5, 6)"),
    step("datetime.strptime", "datetime.strptime('2024-05-06', '%Y-%m-%d')", "from datetime import datetime", unroll=1),
    step("calendar.monthrange", "calendar.monthrange(2024, 5)", "import calendar", unroll=1),
    step("uuid.uuid4", "uuid.uuid4()", "import uuid", unroll=1),
    step("uuid.UUID", "uuid.UUID('12345678123456781234567812345678')", "import uuid", unroll=1),
    step("logging.getLogger", "logging.getLogger('a.b')", "import logging"),
    step("logging.debug", "log.debug('text %s', 1)", "import logging\nlog = logging.getLogger('a.b')"),
    step(
        "logging.info",
        "log.warning('text %s', 1)",
        "import logging, io\nlog = logging.getLogger('a.c')\nlog.propagate = False\n"
        "log.addHandler(logging.StreamHandler(io.StringIO()))",
        unroll=1,
    ),
    step("warnings.warn", "warnings.warn('text')", "import warnings\nwarnings.simplefilter('ignore')", unroll=1),
    step(
        "dataclasses.asdict",
        "asdict(a)",
        "from dataclasses import dataclass, asdict\n@dataclass\nclass A:\n    x: int = 1\n    y: str = 'a'\na = A()",
        unroll=1,
    ),
    step(
        "dataclasses.replace",
        "replace(a, x=2)",
        "from dataclasses import dataclass, replace\n@dataclass\nclass A:\n    x: int = 1\n    y: str = 'a'\na = A()",
        unroll=1,
    ),
    step("gc.collect", "gc.collect()", "import gc", unroll=1),
    step("inspect.signature", "inspect.signature(f)", "import inspect\ndef f(a, b=1): pass", unroll=1),
    step("argparse.ArgumentParser", "argparse.ArgumentParser()", "import argparse", unroll=1),
    step(
        "argparse.add_argument",
        "p = argparse.ArgumentParser()\np.add_argument('--x', type=int)",
        "import argparse",
        baseline="p = argparse.ArgumentParser()",
        unroll=1,
    ),
    step(
        "threading.Thread",
        "Thread(target=f, args=(1,))",
        "from threading import Thread\ndef f(x):\n    pass",
        unroll=1,
    ),
    step(
        "threading.Thread.start",
        "t = Thread(target=f, args=(1,))\nt.start()\nt.join()",
        "from threading import Thread\ndef f(x):\n    pass",
        baseline="Thread(target=f, args=(1,))",
        unroll=1,
    ),
    step("xml.Element", "SubElement(r, 'item', id='1')", _TREES + "r = Element('root')", unroll=1),
    Entry("xml.fromstring", "fromstring(t)", _TREES + "t = '<a>' + '<item id=\"1\">text</item>' * (n // 24) + '</a>'"),
    step("configparser.ConfigParser", "ConfigParser()", "from configparser import ConfigParser", unroll=1),
    Entry(
        "configparser.read_string",
        "ConfigParser().read_string(t)",
        "from configparser import ConfigParser\n"
        "t = ''.join(f'[part{i}]\\nkey = value{i}\\nother = {i}\\n' for i in range(n // 35 + 1))",
        sizes=(100, 1000, 10_000),
        baseline="ConfigParser()",
    ),
    step("sqlite3.connect", "sqlite3.connect(':memory:').close()", "import sqlite3", unroll=1),
    step("sqlite3.execute", "d.execute('select 1')", "import sqlite3\nd = sqlite3.connect(':memory:')", unroll=1),
    Entry(
        "sqlite3.executemany",
        "d.executemany('insert into t values (?, ?)', a)",
        "import sqlite3\nd = sqlite3.connect(':memory:')\nd.execute('create table t (x integer, y text)')\n"
        "a = [(i, 'name') for i in range(n)]",
        sizes=(10, 1000, 10_000),
    ),
    Entry(
        "difflib.unified_diff",
        "list(unified_diff(a, b))",
        "from difflib import unified_diff\n"
        "a = [f'line {i}' for i in range(n)]\nb = [x for i, x in enumerate(a) if i % 9]",
        law="n^2",
        sizes=(100, 300, 1000),
    ),
    step(
        "csv.writerow.float",
        "w.writerow(a)",
        "import csv, io\nw = csv.writer(io.StringIO())\na, b = [i * 1.37 for i in range(10)], ['1.37'] * 10",
        baseline="w.writerow(b)",
        per=10,
    ),
)
