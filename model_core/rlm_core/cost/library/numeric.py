"""Rules for ``math``, ``random``, ``statistics``, ``decimal``, ``fractions`` and ``secrets``."""

from __future__ import annotations

import cmath
import math
from collections.abc import Callable, Sequence
from typing import Any

from ..domain import object_sizes
from ..domain.quantities import ONE, ZERO, Quantity, constant, exponential
from ..domain.values import NONE, UNKNOWN, Call, Value, number_of
from .rules import (
    BOOL,
    FLOAT,
    INT,
    Attribute,
    Rule,
    argument,
    bare,
    constants,
    container,
    exact_number,
    fixed,
    folded,
    integer,
    literal,
    real,
    scanning,
    text,
)
from .unit_costs import each, primitive, seconds

_FLOATS = (
    "sin", "cos", "tan", "asin", "acos", "atan", "atan2", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "exp",
    "exp2",
    "expm1", "log1p", "erf", "erfc", "gamma", "lgamma", "degrees", "radians", "copysign", "fmod", "remainder", "cbrt",
    "fabs", "nextafter", "ulp", "ldexp", "hypot",
)  # fmt: skip
_TESTS = ("isnan", "isinf", "isfinite", "isclose")


def _computed(cost: str, function: Callable[..., Any], number: Callable[[Quantity], Quantity] | None = None,
              result: Callable[[Quantity | None], Value] = real) -> Rule:  # fmt: skip
    """A function of a number: folded where that is known, else by how its value grows."""

    def rule(call: Call) -> Value:
        call.spend(primitive(cost))
        known = folded(call, function)
        if known is not None:
            return known
        value = number_of(argument(call, 0))
        return result(number(value) if number is not None and value is not None else None)

    return rule


def _log(factor: float, function: Callable[..., Any]) -> Rule:
    return _computed("math.log", function, lambda value: value.log().times(factor))


def _log_of_base(call: Call) -> Value:
    call.spend(primitive("math.log"))
    known = folded(call, math.log)
    if known is not None:
        return known
    value, base = number_of(argument(call, 0)), exact_number(argument(call, 1))
    factor = 1 / math.log2(base) if base is not None and base > 1 else math.log(2)
    return real(value.log().times(factor) if value is not None else None)


def _power(call: Call) -> Value:
    call.spend(primitive("power.float"))
    known = folded(call, math.pow)
    if known is not None:
        return known
    value, exponent = number_of(argument(call, 0)), number_of(argument(call, 1))
    if value is None or exponent is None:
        return real()
    base, fixed_exponent = value.constant, exponent.exact
    if fixed_exponent is None:
        return real(exponential(base[1], exponent) if base is not None and base[1] > 1 else None)
    return real(value.power(fixed_exponent) if 0 <= fixed_exponent <= 8 else None)


def _gcd(call: Call) -> Value:
    call.spend(constant(max(len(call.args) - 1, 1)).times(primitive("math.gcd")))
    limits = [value.number.constant for value in call.args if value.number is not None]
    most = min((abs(limit[2]) for limit in limits if limit is not None), default=math.inf)
    number = constant(1.0, most, most**0.3) if 1 <= most < math.inf else None
    held = ZERO if most <= object_sizes.MOST_SHARED else INT.bytes
    return folded(call, math.gcd) or Value("int", number=number, bytes=held)


def _factorial_digits(count: float) -> float:
    return math.lgamma(count + 1) / math.log(2) / 30 if count > 0 else 0.0


def _factorial(call: Call) -> Value:
    number = number_of(argument(call, 0))
    exact = number.exact if number is not None else None
    if exact is not None and exact <= 200:
        call.spend(seconds("math.factorial", constant(exact)))
        return folded(call, math.factorial) or INT
    if number is None:
        call.spend(seconds("math.factorial", constant(10.0)))
        return INT
    limits = number.constant
    if limits is None:
        call.spend(seconds("math.factorial", number))
        return Value("int", size=number * number.log().times(1 / 30), bytes=number * number.log().times(4 / 30))
    low, likely, high = (_factorial_digits(min(max(limit, 0.0), 1e15)) for limit in limits)
    digits = constant(low, high, likely)
    call.spend(seconds("math.factorial", number))
    return Value("int", size=digits, bytes=digits.times(4.0) + constant(24))


def _choosing(function: Callable[..., Any]) -> Rule:
    """``comb`` and ``perm``: one multiplication per chosen item."""

    def rule(call: Call) -> Value:
        whole, part = number_of(argument(call, 0)), number_of(argument(call, 1))
        chosen = part if part is not None else whole if whole is not None else constant(10.0)
        call.spend(seconds("math.comb", chosen))
        limits = constants(call.args)
        if limits is not None and all(isinstance(limit, int) and 0 <= limit <= 1000 for limit in limits):
            return folded(call, function) or INT
        return INT

    return rule


def _product(call: Call) -> Value:
    count = call.consume(argument(call, 0))
    call.spend(seconds("builtins.sum", count))
    item = argument(call, 0).item
    if item is not None and item.kind == "int" and count.constant is not None and count.constant[1] > 30:
        # The product of many ints is a large number.
        digits = count.times(math.log2(max((item.number or ONE).evaluate(lambda n: 2.0)[1], 2.0)) / 30)
        call.spend(seconds("bigint.small", digits * count.times(0.5)))
        return Value("int", size=digits, bytes=digits.times(4.0))
    return folded(call, math.prod) or UNKNOWN


def _integer_root(call: Call) -> Value:
    call.spend(primitive("math.isqrt"))
    value = number_of(argument(call, 0))
    return folded(call, math.isqrt) or integer(value.power(0.5) if value is not None else None)


def _fsum(call: Call) -> Value:
    count = call.consume(argument(call, 0))
    call.spend(seconds("math.fsum", count))
    return FLOAT


def _dist(call: Call) -> Value:
    call.spend(seconds("math.dist", call.length(argument(call, 0))))
    return FLOAT


def _sumprod(call: Call) -> Value:
    count = call.consume(argument(call, 0))
    call.spend(seconds("builtins.sum", count).times(2.0))
    return UNKNOWN


# random.


def _between(cost: str) -> Rule:
    """``randint(a, b)`` and ``randrange``: any number between."""

    def rule(call: Call) -> Value:
        call.spend(primitive(cost))
        bounds = [number_of(value) for value in call.args[:2]]
        if len(bounds) == 1:
            bounds.insert(0, constant(0.0))
        if len(bounds) == 2 and bounds[0] is not None and bounds[1] is not None:
            low, high = bounds[0].constant, bounds[1].constant
            if low is not None and high is not None:
                return integer(constant(low[0], max(high[2], low[0])))
            return integer((bounds[0] + bounds[1]).times(0.5))
        return INT

    return rule


def _uniform(call: Call) -> Value:
    call.spend(primitive("random.uniform"))
    low, high = exact_number(argument(call, 0)), exact_number(argument(call, 1))
    return real(constant(low, max(high, low)) if low is not None and high is not None else None)


def _choice(call: Call) -> Value:
    call.spend(primitive("random.choice"))
    value = argument(call, 0)
    return bare(value.item)


def _drawn(cost: str, at: int, name: str) -> Rule:
    """``choices`` and ``sample``: a list of ``k`` items."""

    def rule(call: Call) -> Value:
        value, wanted = argument(call, 0), argument(call, at, name)
        size = number_of(wanted) if wanted is not UNKNOWN else ONE
        size = size if size is not None else call.length(wanted)
        call.spend(seconds(cost, size))
        if value.kind in ("set", "iterator"):
            call.spend(seconds("builtins.list", call.length(value)))
        return container("list", size, value.item, fresh=value.kind == "range")

    return rule


def _shuffle(call: Call) -> Value:
    call.spend(seconds("random.shuffle", call.length(argument(call, 0))))
    return NONE


def _random_bits(call: Call) -> Value:
    bits = number_of(argument(call, 0)) or constant(32.0)
    call.spend(seconds("random.randbytes", bits.times(1 / 8)))
    limits = bits.constant
    if limits is not None and limits[1] > 64:
        return Value("int", size=bits.times(1 / 30), bytes=bits.times(4 / 30))
    return INT


def _random_bytes(cost: str, scale: float = 1.0, kind: str = "bytes") -> Rule:
    def rule(call: Call) -> Value:
        size = number_of(argument(call, 0)) or constant(32.0)
        call.spend(seconds(cost, size))
        return text(size.times(scale), kind)

    return rule


_DISTRIBUTIONS = [
    "gauss",
    "normalvariate",
    "betavariate",
    "gammavariate",
    "lognormvariate",
    "triangular",
]
_RANDOM: dict[str, Rule] = {
    "random": fixed("random.random", real(constant(0.0, 1.0))),
    "randint": _between("random.randint"),
    "randrange": _between("random.randint"),
    "uniform": _uniform,
    "choice": _choice,
    "choices": _drawn("random.choices", 99, "k"),
    "sample": _drawn("random.sample", 1, "k"),
    "shuffle": _shuffle,
    "seed": fixed("random.seed", NONE),
    "getrandbits": _random_bits,
    "randbytes": _random_bytes("random.randbytes"),
    **{name: fixed("random.gauss", FLOAT) for name in _DISTRIBUTIONS},
    **{name: fixed("random.expovariate", FLOAT) for name in ("expovariate", "paretovariate", "weibullvariate")},
}


# decimal and fractions.


def _decimal(kind: str, cost: str) -> Rule:
    return fixed(cost, Value("object", name=kind, bytes=constant(104.0)))


def _to_bytes(call: Call) -> Value:
    size = number_of(argument(call, 0, "length")) or ONE
    call.spend(constant(primitive("call.builtin")) + size.times(each("bigint.shift")))
    return text(size, "bytes")


_STATISTICS = {
    "mean": "statistics.mean", "fmean": "statistics.fmean",
    "median": "builtins.sorted",
    "median_low": "builtins.sorted", "median_high": "builtins.sorted",
    "mode": "collections.Counter", "multimode": "collections.Counter",
    "stdev": "statistics.stdev", "pstdev": "statistics.stdev", "variance": "statistics.stdev",
    "pvariance": "statistics.stdev", "quantiles": "builtins.sorted", "harmonic_mean": "statistics.mean",
    "geometric_mean": "statistics.fmean", "correlation": "statistics.stdev", "covariance": "statistics.stdev",
    "linear_regression": "statistics.stdev",
}  # fmt: skip


def _named(names: Sequence[str], cost: str, kind: Any, module: Any) -> dict[str, Rule]:
    return {
        f"{module.__name__}.{name}": _computed(cost, getattr(module, name), result=lambda number: kind)
        for name in names
        if hasattr(module, name)
    }


FUNCTIONS: dict[str, Rule] = {
    **_named(_FLOATS, "math.sin", FLOAT, math),
    **_named(_TESTS, "math.isnan", BOOL, math),
    **_named(("sqrt", "exp", "log", "sin", "cos", "phase", "polar", "rect"), "cmath.sqrt", Value("complex"), cmath),
    "math.sqrt": _computed("math.sqrt", math.sqrt, lambda value: value.power(0.5)),
    "math.isqrt": _integer_root,
    "math.floor": _computed("math.floor", math.floor, lambda value: value, integer),
    "math.ceil": _computed("math.floor", math.ceil, lambda value: value, integer),
    "math.trunc": _computed("math.floor", math.trunc, lambda value: value, integer),
    "math.log": _log_of_base,
    "math.log2": _log(1.0, math.log2),
    "math.log10": _log(math.log10(2), math.log10),
    "math.pow": _power,
    "math.gcd": _gcd,
    "math.lcm": fixed("math.gcd", INT, math.lcm),
    "math.factorial": _factorial,
    "math.comb": _choosing(math.comb),
    "math.perm": _choosing(math.perm),
    "math.prod": _product,
    "math.fsum": _fsum,
    "math.dist": _dist,
    "math.sumprod": _sumprod,
    "math.modf": fixed("math.sqrt", Value("tuple", size=constant(2.0), item=FLOAT)),
    "math.frexp": fixed("math.sqrt", Value("tuple", size=constant(2.0), item=FLOAT)),
    **{f"random.{name}": rule for name, rule in _RANDOM.items()},
    "random.Random": fixed("random.Random", Value("object", name="random.Random", bytes=constant(2600.0))),
    "random.SystemRandom": fixed("object.init", Value("object", name="random.Random")),
    "secrets.token_hex": _random_bytes("secrets.token_bytes", 2.0, "str"),
    "secrets.token_bytes": _random_bytes("secrets.token_bytes"),
    "secrets.token_urlsafe": _random_bytes("secrets.token_bytes", 4 / 3, "str"),
    "secrets.choice": fixed("secrets.randbelow"),
    "secrets.randbelow": fixed("secrets.randbelow", INT),
    "secrets.compare_digest": fixed("call.builtin", BOOL),
    "os.urandom": _random_bytes("secrets.token_bytes"),
    "decimal.Decimal": _decimal("decimal.Decimal", "decimal.Decimal"),
    "decimal.getcontext": fixed("call.builtin", Value("object", name="decimal.Context")),
    "decimal.localcontext": fixed("with", Value("object", name="decimal.Context")),
    "fractions.Fraction": _decimal("fractions.Fraction", "fractions.Fraction"),
    **{f"statistics.{name}": scanning(cost, FLOAT) for name, cost in _STATISTICS.items()},
}
METHODS: dict[tuple[str, str], Rule] = {
    **{("random.Random", name): rule for name, rule in _RANDOM.items()},
    **{("decimal.Decimal", name): fixed("decimal.quantize", Value("object", name="decimal.Decimal"))
       for name in ("quantize", "sqrt", "ln", "exp", "normalize", "to_integral_value")},
    ("int", "bit_length"): fixed("call.builtin", Value("int"), int.bit_length),
    ("int", "bit_count"): fixed("call.builtin", Value("int"), int.bit_count),
    ("int", "to_bytes"): _to_bytes,
    ("int", "from_bytes"): fixed("call.builtin", INT),
    ("float", "is_integer"): fixed("call.builtin", BOOL, float.is_integer),
    ("float", "hex"): fixed("builtins.str", Value("str", size=constant(20.0))),
    ("complex", "conjugate"): fixed("call.builtin", Value("complex")),
}  # fmt: skip


def _fixed_number(number: float) -> Attribute:
    return lambda value: literal(number)


_CONSTANTS: dict[str, float] = {"pi": math.pi, "e": math.e, "tau": math.tau, "inf": math.inf, "nan": math.nan}
ATTRIBUTES: dict[tuple[str, str], Attribute] = {
    ("math", name): _fixed_number(number) for name, number in _CONSTANTS.items()
}
