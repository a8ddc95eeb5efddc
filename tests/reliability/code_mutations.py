"""Python functions with hostile changes: literals at their extremes, swapped operators, nested loops, endless calls.

The functions come from the standard library and from the packages that are installed with it. The same generator
state, interpreter and packages give the same text. Nothing is run.
"""

from __future__ import annotations

import ast
import copy
import random
import re
import sysconfig
import warnings
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

_MOST_SOURCE = 400_000  # bytes of a file that functions are taken from
_FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef
_LITERALS = (
    *("0", "1", "-1", "2", "3", "255", "-(2**63)", "2**63", "2**64", "10**18", "10**400", "2**1023", "2**1024"),
    *("2**2048", "-(2**2048)", "0x" + "f" * 512, "9" * 4300, "0x1" + "0" * 4200, "-0x" + "f" * 4200),
    *("0.0", "-0.0", "0.1", "1e-9", "5e-324", "1e16", "1e290", "1e300", "1.79e308", "-1.79e308", "1e999", "-1e999"),
    *("float('nan')", "float('inf')", "-float('inf')", "1j", "True", "None", "...", "''", "b''", "'a'", "b'a'", "()"),
    *('"' + "x" * 20_000 + '"', "'(' * 200", "'(a+)+$'", "'%1000000000d'", "'{:1000000000}'", "[]", "{}", "set()"),
    *("'é\\ud800\\x00'", "b'\\xff' * 2**64", "(1,) * 10**9", "[[0] * 10**9] * 10**9", "'9' * 5000"),
)
# `A` and `B` stand for expressions of the function, `N` and `M` for literals, `F` for the function's own name.
_EXPRESSIONS = (
    *("range(N)", "range(N, M)", "range(A, N, M)", "reversed(range(N))", "enumerate(range(N), M)", "list(range(N))"),
    *("[A] * N", "(A,) * N", "'x' * N", "b'' * N", "bytes(N)", "bytearray(N)", "set(range(N))", "dict.fromkeys(A, N)"),
    *("A + N", "A - N", "A * N", "A / N", "A // N", "A % N", "A ** N", "N ** A", "A << N", "A >> N", "N >> A"),
    *("A & N", "A | N", "A ^ N", "~A", "-A", "not A", "N @ A", "A[N]", "A[N:M]", "A[N:M:B]", "A[::N]", "A[B]"),
    *("A == N", "A < N", "A in range(N)", "A in N", "N < A < M", "A is N", "A != N <= B", "A if B else N", "A or N"),
    *("abs(N)", "round(A, N)", "int(N)", "int('9' * 5000)", "int(A, N)", "float(N)", "float(A)", "str(N)", "repr(N)"),
    *("complex(N, M)", "bool(N)", "chr(N)", "hex(N)", "bin(N)", "divmod(A, N)", "divmod(N, M)", "pow(A, N, M)"),
    *("pow(N, M)", "sum(range(N))", "sum([A] * N)", "max(range(N))", "min(A, N)", "sorted(range(N), key=A)", "hash(N)"),
    *("len(range(N))", "len(A)", "any(A == k for k in range(N))", "all(k < N for k in A)", "zip(*[A] * N)"),
    *("map(A, range(N))", "filter(None, B)", "next(iter(range(N)), M)", "slice(N, M, A)", "format(N, '1000000000')"),
    *("f'{A:{N}}'", "f'{N!r:>1000000000}'", "'%1000000000d' % A", "'{:1000000000}'.format(N)", "'a'.ljust(N)"),
    *(
        "'a'.center(N, A)",
        "A.zfill(N)",
        "'\\t'.expandtabs(N)",
        "A.join(B)",
        "'a'.replace('', 'b' * N)",
        "A.split(B, N)",
    ),
    *("'a,b'.split(',', N)", "A.encode()", "b'ab'.hex(A, N)", "(N).bit_length()", "(N).to_bytes(M, 'big')"),
    *("int.from_bytes(A, 'big')", "A.append(N)", "A.pop(N)", "A.insert(N, M)", "A.extend(range(N))", "A.index(N)"),
    *("A.count(N)", "A.sort()", "A.update(B)", "A.setdefault(N, [])", "A.get(N, M)", "A.items()", "A.copy()"),
    *("itertools.count()", "itertools.count(N, M)", "itertools.cycle(A)", "itertools.repeat(A)", "zip(A, range(N))"),
    *("itertools.repeat(A, N)", "itertools.accumulate(range(N))", "itertools.accumulate(A, initial=N)"),
    *("itertools.product(A, repeat=N)", "itertools.product(range(N), range(M))", "itertools.chain(A, range(N))"),
    *("itertools.permutations(range(N), M)", "itertools.combinations(range(N), M)", "itertools.batched(A, N)"),
    *("itertools.combinations_with_replacement(A, N)", "itertools.islice(A, N, M)", "itertools.islice(A, N)"),
    *(
        "itertools.takewhile(A, itertools.count())",
        "itertools.groupby(A)",
        "itertools.tee(A, N)",
        "itertools.pairwise(A)",
    ),
    *("itertools.chain.from_iterable([A] * N)", "itertools.zip_longest(A, range(N))", "itertools.starmap(pow, A)"),
    *("math.factorial(N)", "math.comb(N, M)", "math.perm(N, M)", "math.log(N)", "math.log(A, N)", "math.log2(N)"),
    *(
        "math.isqrt(N)",
        "math.gcd(A, N)",
        "math.lcm(N, M)",
        "math.pow(A, N)",
        "math.exp(N)",
        "math.sqrt(N)",
        "math.ceil(N)",
    ),
    *(
        "math.floor(A)",
        "math.prod([N] * M)",
        "math.fsum(A)",
        "math.hypot(N, M)",
        "math.inf",
        "math.nan",
        "math.dist(A, B)",
    ),
    *("numpy.zeros(N)", "numpy.ones((N, M))", "numpy.arange(N)", "numpy.arange(A, N, M)", "numpy.linspace(0, N, M)"),
    *(
        "numpy.full((A, N), M)",
        "numpy.eye(N)",
        "numpy.float32(N)",
        "numpy.int64(N)",
        "numpy.array(A)",
        "numpy.repeat(A, N)",
    ),
    *("numpy.tile(A, N)", "numpy.dot(A, B)", "numpy.linalg.inv(A)", "numpy.reshape(A, (N, M))", "numpy.fft.fft(A, N)"),
    *(
        "numpy.zeros((N,) * M)",
        "numpy.random.rand(N, M)",
        "numpy.zeros(A)[N:M]",
        "numpy.sum(A, axis=N)",
        "numpy.outer(A, B)",
    ),
    *("re.sub('(a+)+$', A, B)", "re.compile('(' * 200)", "re.findall('a{1,1000000000}', A)", "re.match(N, A)"),
    *("re.search('(?:(?:(?:a*)*)*)*b', A)", "re.split('x*' * 3000, A)", "re.match('[' + 'a-z' * 5000 + ']*', A)"),
    *("heapq.nsmallest(N, A)", "heapq.heappush(A, N)", "heapq.merge(A, range(N))", "bisect.bisect(range(N), A)"),
    *("bisect.insort(A, N)", "collections.deque(A, maxlen=N)", "collections.Counter(range(N))", "struct.pack('>I', N)"),
    *(
        "struct.unpack(f'{N}I', A)",
        "collections.namedtuple('P', A)",
        "functools.reduce(A, range(N))",
        "array.array('d', A)",
    ),
    *("statistics.mean(range(N))", "fractions.Fraction(N, M)", "decimal.Decimal(N) ** M", "random.sample(range(N), M)"),
    *(
        "random.randint(A, N)",
        "random.choices(A, k=N)",
        "secrets.token_bytes(N)",
        "os.urandom(N)",
        "string.printable * N",
    ),
    *(
        "hashlib.pbkdf2_hmac('sha256', A, B, N)",
        "hashlib.sha256(A).digest()",
        "zlib.compress(A, N)",
        "base64.b64encode(A)",
    ),
    *(
        "json.dumps(A, indent=N)",
        "copy.deepcopy(A)",
        "time.sleep(N)",
        "asyncio.sleep(N)",
        "signal.alarm(N)",
        "open(A).read(N)",
    ),
    *("subprocess.run(['sleep', 'N'], timeout=M)", "threading.Timer(N, A).start()", "queue.Queue(N).get(timeout=M)"),
    *("concurrent.futures.ThreadPoolExecutor(N).map(A, B)", "multiprocessing.Pool(N).map(A, range(M))"),
    *("urllib.request.urlopen(A, timeout=N)", "socket.create_connection(A, N)", "select.select(A, B, [], N)"),
    *("F(A - 1)", "F(A - N)", "F(A / 2)", "F(A // N)", "F(A - 1e-09)", "F(A * 0.999999)", "F(A + 1)", "F(A[1:])"),
    *("F(A - 1) + F(A - 2)", "F(F(A))", "[F(k) for k in range(N)]", "F(*A)", "self.F(A - 1)", "F(A, N)", "F(A[N:])"),
    *(
        "[A for _ in range(N)]",
        "{k: A for k in range(N)}",
        "[[B for _ in range(N)] for _ in range(M)]",
        "(A for k in B)",
    ),
    *("[k for j in range(N) for k in range(j, M) if A]", "sum(k ** N for k in range(M))", "lambda x: A", "(x := A)"),
    *("{1}.isdisjoint(itertools.count(2))", "'a'.join(map(str, range(N)))", "A.B", "A.__class__(N)", "type(A)(B)"),
)
_STATEMENTS = (
    *("while A: S", "while A < N: S", "while A != N:\n S\n A = A * M", "while True: S", "for k in range(N): S"),
    *(
        "for k in A: S",
        "for i in itertools.count():\n if i % N == M: S",
        "for i in itertools.count(N, M):\n if i > A: break\n S",
    ),
    *(
        "for i in range(N):\n for j in range(i, M): S",
        "for i in range(N):\n if i % M == A: S",
        "for k in range(N, M, -1): S",
    ),
    *("try:\n S\nexcept Exception:\n time.sleep(N)", "with A as x: S", "if A: S", "if A == N: S\nelse: S", "S\nS\nS"),
    *("n = N\nwhile n > M:\n S\n n -= B", "n = N\nwhile n != M:\n S\n n //= B", "n = N\nwhile n < M:\n S\n n *= B"),
    "low, high = N, M\nwhile low < high:\n middle = (low + high) // 2\n if A: low = middle + 1\n else: high = middle",
    *(
        "a, b = N, M\nwhile b:\n a, b = b, a % b\n S",
        "n = N\nfor _ in range(M):\n n = n * n\n S",
        "t = ''\nfor c in A:\n t += c * N",
    ),
    *(
        "match A:\n case N: S\n case [x, *rest]: S\n case _: S",
        "if A < N: return M",
        "return A",
        "yield A",
        "yield from F(A)",
    ),
    *(
        "del A",
        "raise A",
        "assert A, B",
        "global x\nx = A",
        "x = [A] * N\nfor k in x:\n x.append(k)",
        "A = N",
        "A += N",
        "A **= N",
    ),
    *(
        "def inner(n=N):\n return inner(n - M)\ninner(A)",
        "def inner(a, b=M):\n S\ninner(N)",
        "async def inner():\n await A",
    ),
    *(
        "stack = [A]\nwhile stack:\n x = stack.pop()\n for y in x:\n  if y < N: stack.append(y)",
        "A[B] = N",
        "A = A + A",
    ),
    *(
        "i = 0\nwhile True:\n if i % N == M: S\n i += 1",
        "i = N\nwhile i * i <= M:\n S\n i += 1",
        "class Inner(A):\n x = N\n S",
    ),
)
_BINARY = (
    *(ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow, ast.LShift, ast.RShift, ast.BitAnd),
    *(ast.BitOr, ast.BitXor, ast.MatMult),
)
_COMPARE = (ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq, ast.Is, ast.IsNot, ast.In, ast.NotIn)
_UNARY = (ast.Not, ast.USub, ast.Invert, ast.UAdd)
_IMPORTS = """\
import array, asyncio, base64, bisect, collections, concurrent.futures, copy, decimal, fractions, functools, hashlib
import heapq, itertools, json, math, multiprocessing, numpy, os, queue, random, re, secrets, select, signal, socket
import statistics, string, struct, subprocess, threading, time, urllib.request, zlib
"""
_PLACEHOLDER = re.compile(r"\b[ABNMFS]\b")
_LITERAL_MARK = "_literal_{}_"
_MARKED = re.compile(r"_literal_(\d+)_")


@lru_cache(maxsize=1)
def source_files() -> tuple[Path, ...]:
    """The files of the standard library and of the installed packages, without tests, in a fixed order."""
    folders = dict.fromkeys(Path(sysconfig.get_path(name)) for name in ("stdlib", "purelib"))
    found = {
        file.relative_to(folder).as_posix(): file
        for folder in folders
        for file in folder.rglob("*.py")
        if not {"test", "tests", "site-packages", "lib2to3"} & set(file.relative_to(folder).parts)
    }
    return tuple(found[name] for name in sorted(found))


@lru_cache(maxsize=4)
def _functions(file: Path) -> tuple[_FUNCTIONS, ...]:
    """The functions of a file that have some statements, those in classes and functions included."""
    try:
        data = file.read_bytes()
        if len(data) > _MOST_SOURCE:
            return ()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(data)
    except (OSError, SyntaxError, ValueError, RecursionError):
        return ()
    return tuple(node for node in ast.walk(tree) if isinstance(node, _FUNCTIONS) and len(node.body) > 1)


def mutated(rng: random.Random, files: random.Random) -> str:
    """The text of a file with one to three functions, one of them changed; ``files`` chooses the file."""
    functions: tuple[_FUNCTIONS, ...] = ()
    while not functions:
        functions = _functions(files.choice(source_files()))
    return Mutator(rng, functions).text()


class Mutator:
    """Changes one of some functions."""

    def __init__(self, rng: random.Random, functions: Sequence[_FUNCTIONS]) -> None:
        self._rng = rng
        self._functions = functions
        self._literals: list[str] = []
        self._function = copy.deepcopy(rng.choice(functions))

    def text(self) -> str:
        """The text of a file with the function."""
        rng = self._rng
        changes = [self._literal, self._literal, self._operator, self._call, self._call, self._statement, self._names]
        changes += [self._negate, self._remove, self._default, self._borrow]
        for _ in range(rng.choice((1, 1, 2, 3, 5, 9))):
            rng.choice(changes)()
        others = [rng.choice(self._functions) for _ in range(rng.choice((0, 0, 1, 2)))]
        others = [other for other in others if other.name != self._function.name]
        try:
            texts = [ast.unparse(ast.fix_missing_locations(function)) for function in (*others, self._function)]
        except ValueError:
            # Before Python 3.12 a literal with a backslash cannot be written inside an f-string.
            self._function = copy.deepcopy(rng.choice(self._functions))
            texts = [ast.unparse(self._function)]
        text = "\n\n\n".join(texts)
        if rng.random() < 0.3:
            text = self._as_program(text)
        return _IMPORTS + _MARKED.sub(lambda match: self._literals[int(match[1])], text) + "\n"

    def _as_program(self, text: str) -> str:
        """The functions as a program, which calls the changed one or has its statements."""
        arguments = ", ".join(self._mark() for _ in self._function.args.args)
        call = f"{self._function.name}({arguments})"
        if self._rng.random() < 0.5:
            return f"# rlm: program\n{text}\n\n\nprint({call})"
        with_input = ast.unparse([node for node in self._function.body if not isinstance(node, ast.Return)])  # type: ignore[arg-type]
        return f"# rlm: program\nn = int(input())\n{with_input}\n"

    def _mark(self) -> str:
        """A name that stands for a literal until the text is written: ``ast.unparse`` refuses large integers."""
        self._literals.append(self._rng.choice(_LITERALS))
        return _LITERAL_MARK.format(len(self._literals) - 1)

    def _nodes(self, *kinds: type) -> list[ast.AST]:
        return [node for statement in self._function.body for node in ast.walk(statement) if isinstance(node, kinds)]

    def _expressions(self) -> list[ast.expr]:
        nodes = self._nodes(ast.expr)
        return [node for node in nodes if isinstance(node, ast.expr) and not _is_target(node)] or [ast.Constant(0)]

    def _replace(self, new: ast.expr) -> None:
        """Put an expression in the place of another."""
        places: list[tuple[ast.AST, str, int | None]] = []
        for node in self._nodes(ast.AST):
            if isinstance(node, ast.JoinedStr | ast.FormattedValue | ast.pattern):
                continue
            for name, value in ast.iter_fields(node):
                if isinstance(value, ast.expr) and not _is_target(value):
                    places.append((node, name, None))
                elif isinstance(value, list):
                    places += [
                        (node, name, place)
                        for place, item in enumerate(value)
                        if isinstance(item, ast.expr) and not _is_target(item)
                    ]
        if not places:
            return
        node, name, place = self._rng.choice(places)
        if place is None:
            setattr(node, name, new)
        else:
            getattr(node, name)[place] = new

    def _block(self) -> list[ast.stmt]:
        blocks: list[list[ast.stmt]] = [self._function.body]
        for node in self._nodes(ast.stmt, ast.ExceptHandler, ast.match_case):
            for name in ("body", "orelse", "finalbody"):
                block = getattr(node, name, None)
                if isinstance(block, list) and block and isinstance(block[0], ast.stmt):
                    blocks.append(block)
        return self._rng.choice(blocks)

    def _filled(self, template: str, statements: Sequence[ast.stmt] = ()) -> list[ast.stmt]:
        """The statements of a template with what its placeholders stand for."""
        rng = self._rng

        def insert(match: re.Match[str]) -> str:
            if match[0] in "NM":
                return self._mark()
            return self._function.name if match[0] == "F" else f"_place_{match[0]}_"

        tree = ast.parse(_PLACEHOLDER.sub(insert, template))
        expressions = self._expressions()

        class Filler(ast.NodeTransformer):
            def visit_Name(self, node: ast.Name) -> ast.expr:
                if not node.id.startswith("_place_"):
                    return node
                names = [part for part in expressions if isinstance(part, ast.Name)]
                if not isinstance(node.ctx, ast.Load):
                    return ast.Name(rng.choice(names).id if names else "x", node.ctx)
                return copy.deepcopy(rng.choice(names if names and rng.random() < 0.5 else expressions))

            def visit_Expr(self, node: ast.Expr) -> ast.stmt | list[ast.stmt]:
                if isinstance(node.value, ast.Name) and node.value.id == "_place_S_":
                    return copy.deepcopy(list(statements)) or [ast.Pass()]
                self.generic_visit(node)
                return node

        filled: ast.Module = Filler().visit(tree)
        return filled.body

    def _literal(self) -> None:
        """Put a literal in the place of another, else of any expression."""
        constants = self._nodes(ast.Constant)
        new = ast.Name(self._mark(), ast.Load())
        if not constants or self._rng.random() < 0.3:
            self._replace(new)
            return
        old = self._rng.choice(constants)
        for node in self._nodes(ast.AST):
            if isinstance(node, ast.JoinedStr | ast.pattern):
                continue
            for name, value in ast.iter_fields(node):
                if value is old:
                    setattr(node, name, new)
                elif isinstance(value, list) and any(item is old for item in value):
                    setattr(node, name, [new if item is old else item for item in value])

    def _operator(self) -> None:
        nodes = self._nodes(ast.BinOp, ast.AugAssign, ast.Compare, ast.BoolOp, ast.UnaryOp)
        if not nodes:
            return
        node = self._rng.choice(nodes)
        if isinstance(node, ast.BinOp | ast.AugAssign):
            node.op = self._rng.choice(_BINARY)()
            if isinstance(node, ast.BinOp) and self._rng.random() < 0.3:
                node.left, node.right = node.right, node.left
        elif isinstance(node, ast.Compare):
            node.ops[self._rng.randrange(len(node.ops))] = self._rng.choice(_COMPARE)()
        elif isinstance(node, ast.BoolOp):
            node.op = ast.And() if isinstance(node.op, ast.Or) else ast.Or()
        elif isinstance(node, ast.UnaryOp):
            node.op = self._rng.choice(_UNARY)()

    def _call(self) -> None:
        statement = self._filled(self._rng.choice(_EXPRESSIONS))[0]
        assert isinstance(statement, ast.Expr)
        if self._rng.random() < 0.5:
            self._replace(statement.value)
        else:
            block = self._block()
            name = self._rng.choice(
                ["x", "n", *(node.id for node in self._nodes(ast.Name) if isinstance(node, ast.Name))]
            )
            block.insert(
                self._rng.randrange(len(block) + 1), ast.Assign([ast.Name(name, ast.Store())], statement.value)
            )

    def _statement(self) -> None:
        """Put a template around some statements."""
        block = self._block()
        begin = self._rng.randrange(len(block))
        end = self._rng.choice((begin + 1, begin + 1, len(block)))
        block[begin:end] = self._filled(self._rng.choice(_STATEMENTS), block[begin:end])

    def _names(self) -> None:
        names = [node for node in self._nodes(ast.Name) if isinstance(node, ast.Name)]
        if len(names) > 1:
            first, second = self._rng.sample(names, 2)
            first.id, second.id = second.id, first.id

    def _negate(self) -> None:
        tests = [
            node
            for node in self._nodes(ast.If, ast.While, ast.IfExp)
            if isinstance(node, ast.If | ast.While | ast.IfExp)
        ]
        if tests:
            node = self._rng.choice(tests)
            node.test = ast.UnaryOp(ast.Not(), node.test)

    def _remove(self) -> None:
        block = self._block()
        if len(block) > 1:
            del block[self._rng.randrange(len(block))]

    def _default(self) -> None:
        """Give all parameters defaults, or the last ones."""
        arguments = self._function.args
        count = self._rng.choice((1, len(arguments.args)))
        arguments.defaults = [ast.Name(self._mark(), ast.Load()) for _ in arguments.args[:count]]
        if len(arguments.defaults) < len(arguments.args):
            arguments.posonlyargs = []

    def _borrow(self) -> None:
        """Insert statements of another function."""
        other = copy.deepcopy(self._rng.choice(self._functions))
        block = self._block()
        place = self._rng.randrange(len(block) + 1)
        begin = self._rng.randrange(len(other.body))
        block[place:place] = other.body[begin : begin + 3]


def _is_target(node: ast.expr) -> bool:
    """Whether an expression is assigned to or deleted, or may be part of a text only."""
    return not isinstance(getattr(node, "ctx", ast.Load()), ast.Load) or isinstance(
        node, ast.JoinedStr | ast.FormattedValue | ast.Starred | ast.Slice
    )
