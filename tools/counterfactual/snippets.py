"""Small statements and expressions that any family may hold: arithmetic, tests, passes over the data, endings.

``X`` is the expression that a snippet works on, ``V`` the variable, ``NAME`` the helper; the rest is template syntax.
"""

NUMBERS = (
    "X * #2:9#", "X + #1:50#", "X % #2:40#", "(X + #1:9#) // #2:7#", "abs(X - #5:60#)", "max(X, #2:30#)",
    "min(X, #20:80#)", "X * X", "X ** 2 % #50:500#", "(X * #3:37# + 11) % #30:300#", "round(X * 1.#1:9#, 2)",
    "X - #1:9#", "X ^ #1:31#", "int(X)", "divmod(X, #2:9#)[1]", "X if X > #5:40# else #1:5#",
)  # fmt: skip
CONDITIONS = (
    "X > #2:50#", "X % 2 == 0", "X % #2:7# != 0", "X < #30:90#", "#2:20# <= X < #40:95#", "X >= #2:40#", "X != #1:20#",
    "not X % #2:5#",
)  # fmt: skip
TEXTS = (
    "X.strip()", "X.lower()", "X.upper()", 'X.replace("a", "e")', "X[:#3:40#]", "X.title()", 'X.replace(" ", "_")',
    "X[::-1]", 'X.lstrip("#")', "X.strip().lower()", 'X.split("-")[0]', "X.casefold()",
)  # fmt: skip
TESTS = (
    "len(X) > #1:6#", 'X.startswith("a")', '"e" in X', "X.isalpha()", "X.islower()", 'not X.endswith("s")',
    "X[:1].isalpha()", "X.isalnum()",
)  # fmt: skip

HELPERS: dict[str, tuple[tuple[str, str], ...]] = {
    "num": (
        ("adjust", "def NAME(value):\n    if @cond(value):\n        return @num(value)\n    return value"),
        ("scale", "def NAME(value):\n    return (value * #2:30# + #1:20#) % #50:300#"),
        (
            "smooth",
            "def NAME(value):\n    result = value\n    for step in range(#3:20#):\n"
            "        result += «step¦value % (step + 1)»\n    return result",
        ),
        (
            "round_up",
            "def NAME(value):\n    rest = value % #2:9#\n    while rest:\n        value += 1\n        rest -= 1\n"
            "    return value",
        ),
        ("clamp", "def NAME(value):\n    return max(#1:9#, min(value, #40:90#))"),
    ),
    "str": (
        (
            "clean",
            'def NAME(text):\n    text = text.strip()\n    «text = text.replace("-", " ")\n    ¦»return @str(text)',
        ),
        ("shorten", 'def NAME(text):\n    if len(text) > #3:12#:\n        return text[:#2:9#] + "…"\n    return text'),
        (
            "mask",
            "def NAME(text):\n    parts = []\n    for char in text:\n"
            '        parts.append("*" if char.isdigit() else char)\n    return "".join(parts)',
        ),
    ),
}

BEFORE: dict[str, tuple[str, ...]] = {
    "ints": (
        "V = [@num(value) for value in V]",
        "V = [value for value in V if @cond(value)]",
        "V = «sorted(V)¦list(reversed(V))¦sorted(V, reverse=True)»",
        "V = V[:#20:400#]",
        "if any(value < 0 for value in V):\n    raise ValueError('negative $number')",
        "cleaned = []\nfor value in V:\n    if @cond(value):\n        cleaned.append(@num(value))\nV = cleaned",
    ),
    "words": (
        "V = [@str(word) for word in V]",
        "V = [word for word in V if @test(word)]",
        "V = «sorted(V)¦sorted(V, key=len)¦list(dict.fromkeys(V))»",
        "cleaned = []\nfor word in V:\n    if word:\n        cleaned.append(@str(word))\nV = cleaned",
    ),
    "records": (
        'V = [row for row in V if row["$flag"]]',
        'V = sorted(V, key=lambda row: row["$number"])',
        "V = [dict(row) for row in V]",
        'for row in V:\n    if "$number" not in row:\n        raise KeyError("$number")',
    ),
    "pairs": ("V = [(key.lower(), @num(value)) for key, value in V]", "V = sorted(V)"),
    "mapping": ("V = {key: value for key, value in V.items() if @cond(value)}", "V = dict(sorted(V.items()))"),
    "floats": ("V = [round(value, 1) for value in V]", "V = [value for value in V if value > #1:9#]"),
    "dates": ("V = sorted(V)", 'V = [day for day in V if day > "2015"]'),
    "paths": ("V = [path.lower() for path in V]", "V = sorted(set(V))"),
}

PASSES: dict[str, tuple[str, ...]] = {
    "ints": (
        "extra = 0\nfor value in V:\n    if @cond(value):\n        extra += @num(value)",
        'extra = ", ".join(f"{value:>#3:9#}" for value in V)',
        "extra = len(set(V))",
        "extra = [@num(value) for value in V if @cond(value)]",
        "extra = max(V, default=0) - min(V, default=0)",
    ),
    "words": (
        "extra = [len(word) for word in V]",
        'extra = max(V, key=len, default="")',
        "extra = {}\nfor word in V:\n    extra.setdefault(word[:1], []).append(word)",
        'extra = "«, ¦-¦»".join(@str(word) for word in V)',
    ),
    "text": (
        "extra = sum(1 for char in V if char.isalpha())",
        "extra = V.upper().split()",
        'extra = V.count("«a¦ ¦e»")',
    ),
    "records": (
        'extra = sum(1 for row in V if row["$flag"])',
        'extra = sorted({row["$text"] for row in V})',
        'extra = max((row["$number"] for row in V), default=0)',
    ),
    "mapping": ("extra = sum(V.values())", "extra = sorted(V, key=V.get)[:#2:9#]"),
    "matrix": ("extra = sum(sum(row) for row in V)", "extra = [max(row) for row in V]"),
    "none": (
        "extra = []\nfor step in range(#5:120#):\n    extra.append(@num(step))",
        "extra = 0\nfor step in range(#5:200#):\n    extra += step * step",
        'extra = "-" * #5:200#',
        "extra = {step: @num(step) for step in range(#5:80#)}",
        "extra = [[0] * #3:40# for _ in range(#3:40#)]",
    ),
}

AFTER: dict[str, tuple[str, ...]] = {
    "int": (
        "if V > #20:900#:\n    V = #20:900#\nreturn V",
        "return V * #2:9#",
        'return f"{V:.2f}"',
        'return {"$number": V}',
    ),
    "ints": (
        "return sum(V)",
        "return sorted(set(V))",
        "return V[:#3:20#]",
        "total = 0\nfor number in V:\n    total += @num(number)\nreturn total",
        "return [@num(number) for number in V]",
    ),
    "mapping": (
        "return sorted(V.items(), key=lambda pair: pair[1], reverse=True)[:#2:9#]",
        "return {key: V[key] for key in sorted(V)}",
        'return ", ".join(f"{key}: {V[key]}" for key in V)',
        "return max(V.values(), default=0)",
    ),
    "words": ('return "; ".join(V)', "return sorted(V)", "return len(V)", "return [@str(word) for word in V]"),
    "text": ("return @str(V)", "return len(V)", "return V.splitlines()"),
}
