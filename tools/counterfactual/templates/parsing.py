"""Templates that parse: configuration, tables, expressions, dates, paths, streams."""

PARSING: dict[str, str] = {
    "key-values": """
result = {}
for line in $lines.«splitlines()¦split("\\n")»:
    if not line or line.startswith("#"):
        continue
    «key, _, value = line.partition("=")¦if "=" not in line:
        continue
    key, value = line.split("=", 1)»
    result[key.strip()] = value.strip()
=> result | any
""",
    "read-csv": """
rows = []
for line in $csv.splitlines():
    cells = line.split(",")
    if len(cells) != 3:
        continue
    rows.append({"id": int(cells[0]), "$text": cells[1].strip(), "$number": int(cells[2])})
«total = sum(row["$number"] for row in rows)
=> total | int
¦=> rows | any
»
""",
    "scan-tokens": """
tokens = []
index = 0
while index < len($expression):
    char = $expression[index]
    if char.isspace():
        index += 1
    elif char.isdigit():
        start = index
        while index < len($expression) and $expression[index].isdigit():
            index += 1
        tokens.append(("number", $expression[start:index]))
    else:
        tokens.append(("operator", char))
        index += 1
=> tokens | any
""",
    "evaluate": """
def apply(operator, left, right):
    if operator == "+":
        return left + right
    return left * right
---
total = 0
for part in $expression.split(" + "):
    product = 1
    for factor in part.split(" * "):
        product = apply("*", product, int(factor))
    total = apply("+", total, product)
=> total | int
""",
    "regex-extract": """
pattern = re.compile(r"«(\\w+)=(\\d+)¦([a-z]+)(\\d+)¦\\b([a-z]\\w*)\\s+(\\w+)»")
result = []
for line in $lines.splitlines():
    for match in pattern.finditer(line«.replace(" ", "")¦»):
        result.append(match.group(«1¦0¦2»))
=> result | words
""",
    "balanced": """
closing = {")": "(", "]": "[", "}": "{"}
stack = []
balanced = True
for char in "«([x]{y})¦[a(b)c]{d}¦((1 + [2]))» " * #5:300#:
    if char in closing.values():
        stack.append(char)
    elif char in closing:
        if not stack or stack.pop() != closing[char]:
            balanced = False
            break
=> balanced and not stack | any
""",
    "stream-levels": """
levels = collections.Counter()
for line in io.StringIO($lines):
    word = line.split(" ", 1)[0]
    if @test(word):
        levels[word] += 1
=> dict(levels) | mapping
""",
    "ini-sections": """
sections, current = {}, {}
for index, line in enumerate($lines.splitlines()):
    if index % #3:9# == 0:
        current = sections.setdefault(f"section{index}", {})
    key, _, value = line.partition("=")
    current[key.strip()] = value.strip()
=> sections | any
""",
    "month-buckets": """
def parse_date(text):
    year, month, day = text.split("-")
    return «int(year), int(month), int(day)¦datetime.date(int(year), int(month), int(day))»
---
groups = {}
for day in $dates:
    parsed = parse_date(day)
    key = «parsed[1] if isinstance(parsed, tuple) else parsed.month¦str(parsed)[:9]»
    groups[key] = groups.get(key, 0) + 1
=> groups | any
""",
    "date-gaps": """
ordered = sorted(datetime.date.fromisoformat(day) for day in $dates)
gaps = []
for left, right in zip(ordered, ordered[1:]):
    gaps.append((right - left).days)
=> «gaps | ints¦max(gaps, default=0) | int»
""",
    "clean-paths": """
result = []
for path in $paths:
    stack = []
    for part in path.split("/"):
        if part == "..":
            if stack:
                stack.pop()
        elif part and part != ".":
            stack.append(part)
    result.append("/" + "/".join(stack))
=> result | words
""",
    "suffixes": """
counts = {}
for path in $paths:
    name = path.rsplit("/", 1)[-1]
    stem, _, suffix = name.rpartition(".")
    if stem:
        counts[suffix] = counts.get(suffix, 0) + 1
=> counts | mapping
""",
    "substring-search": """
needle = "«the¦and ¦7 1¦bo »"
result = []
for start in range(len($text) - len(needle) + 1):
    if $text[start:start + len(needle)] == needle:
        result.append(start)
=> «result | ints¦len(result) | int»
""",
}
