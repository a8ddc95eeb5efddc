"""Templates over records: grouping, joining, validating, formatting, paging."""

RECORDS: dict[str, str] = {
    "tally": """
counts = {}
for $item in $records:
    key = $item["«$text¦$flag»"]
    «counts[key] = counts.get(key, 0) + 1¦if key in counts:
        counts[key] += 1
    else:
        counts[key] = 1»
=> counts | mapping
""",
    "group-rows": """
groups = «{}¦collections.defaultdict(list)»
for $item in $records:
    groups.setdefault($item["$text"], []).append($item«¦["$number"]»)
«for key in groups:
    groups[key] = groups[key][:#3:20#]
¦»=> groups | any
""",
    "sum-by": """
totals = {}
for $item in $records:
    «if @cond($item["$number"]):
        continue
    ¦»key = $item["$text"]
    totals[key] = totals.get(key, 0) + $item["$number"]« * $item["$other"]¦»
=> totals | mapping
""",
    "index-join": """
lookup = {$item["id"]: $item for $item in $records:300}
result = []
for value in $ints:300:
    match = lookup.get(value)
    if match is not None:
        result.append(«match["$number"]¦(value, match["$text"])¦match»)
=> result | any
""",
    "top-records": """
ranked = sorted($records, key=lambda row: «row["$number"]¦(row["$text"], row["$number"])¦-row["$number"]»)
result = [«row["id"]¦row["$text"]¦(row["id"], row["$number"])» for row in ranked[:#3:30#]]
=> result | any
""",
    "average-by": """
totals, counts = {}, {}
for $item in $records:
    key = $item["$text"]
    totals[key] = totals.get(key, 0) + $item["$number"]
    counts[key] = counts.get(key, 0) + 1
averages = {
    key: «round(totals[key] / counts[key], 2)¦totals[key] / counts[key]¦totals[key] // counts[key]» for key in totals
}
=> averages | mapping
""",
    "dedupe-rows": """
seen = set()
result = []
for $item in $records:
    key = «($item["$text"], $item["$other"])¦$item["$number"]¦$item["id"]»
    if key in seen:
        continue
    seen.add(key)
    result.append(«$item¦key¦dict($item)»)
=> result | any
""",
    "filter-chain": """
kept = [$item for $item in $records if $item["$flag"]]
«kept = [$item for $item in kept if @cond($item["$number"])]
¦»total = sum($item["$number"] for $item in kept)
«average = total / len(kept) if kept else 0
¦»=> total | int
""",
    "format-table": """
lines = []
for index, $item in enumerate($records):
    lines.append(f"{index«:>4¦»} {$item['$text']«:<12¦»} {$item['$number']«:>8¦»}")
=> "\\n".join(lines) | text
""",
    "validate-rows": """
errors = []
for index, $item in enumerate($records):
    if not $item["$text"]:
        errors.append(f"row {index}: $text is missing")
    «elif not isinstance($item["$number"], int):
        errors.append(f"row {index}: $number is not a number")
    ¦»elif @cond($item["$number"]):
        errors.append(f"row {index}: $number is out of range")
=> errors | words
""",
    "pivot": """
table = {}
for $item in $records:
    row = table.setdefault($item["$text"], {})
    row[$item["$other"]] = row.get($item["$other"], 0) + $item["$number"]
columns = sorted({key for row in table.values() for key in row})
result = {key: [row.get(column, 0) for column in columns] for key, row in table.items()}
=> result | any
""",
    "merge-rows": """
merged = {}
for $item in $records:
    current = merged.get($item["$text"], {})
    merged[$item["$text"]] = «{**current, **$item}¦current | $item»
=> «merged¦list(merged.values())¦sorted(merged)» | any
""",
    "balance": """
balance = #10:500#
history = []
for $item in $records:
    change = $item["$number"]
    if $item["$flag"]:
        balance += change
    else:
        balance -= change
    «if balance < 0:
        balance = 0
    ¦»history.append(balance)
=> history | ints
""",
    "csv-out": """
def quote(value):
    text = str(value)
    if "," in text or '"' in text:
        return '"' + text.replace('"', '""') + '"'
    return text
---
lines = [«"id,$text,$number"¦",".join(["id", "$text", "$number"])»]
for $item in $records:
    lines.append(",".join([quote($item["id"]), quote($item["$text"]), quote($item["$number"])]))
=> "\\n".join(lines) | text
""",
    "percentile": """
ordered = sorted($item["$number"] for $item in $records)
index = int(len(ordered) * «0.5¦0.9¦0.25¦0.75»)
best = ordered[min(index, len(ordered) - 1)] if ordered else None
=> best | any
""",
    "conflicts": """
result = []
for left in $records:60:
    for right in $records:60:
        if left["id"] < right["id"] and left["$text"] == right["$text"]« and left["$number"] > right["$number"]¦»:
            result.append((left["id"], right["id"]))
=> result | any
""",
    "bucketize": """
def bucket_of(number):
    for index, bound in enumerate((5, 10, 25, 50, 75)):
        if number <= bound:
            return index
    return 5
---
groups = {}
for $item in $records:
    groups.setdefault(bucket_of($item["$number"]), []).append($item["id"])
=> «groups¦{key: len(groups[key]) for key in sorted(groups)}» | any
""",
    "one-pass-stats": """
low = high = None
total = count = 0
for $item in $records:
    number = @num($item["$number"])
    if low is None or number < low:
        low = number
    if high is None or number > high:
        high = number
    total += number
    count += 1
=> {"low": low, "high": high, "mean": total / count if count else 0} | any
""",
    "paginate": """
size = #5:40#
pages = []
for start in range(0, len($records), size):
    page = $records[start:start + size]
    pages.append({"page": len(pages) + 1, "items": «page¦[row["id"] for row in page]»})
=> pages | any
""",
    "apply-rules": """
def matches(row, rule):
    name, operator, bound = rule
    if operator == "<":
        return row[name] < bound
    if operator == ">":
        return row[name] > bound
    return row[name] == bound
---
rules = [("$number", ">", 20), ("$other", "<", 4)«, ("$flag", "=", True)¦»]
result = []
for $item in $records:
    if all(matches($item, rule) for rule in rules):
        result.append($item["id"])
=> result | ints
""",
    "discounts": """
def discount(amount, repeat):
    rate = 0.0
    if amount > 50:
        rate += 0.1
    if repeat:
        rate += 0.05
    return round(amount * (1 - rate), 2)
---
seen = set()
total = 0
for $item in $records:
    total += discount($item["$number"], $item["$text"] in seen)
    seen.add($item["$text"])
=> total | int
""",
    "diff-rows": """
before = {row["id"]: row for row in $records:200}
changed = []
for index, value in enumerate($ints:200):
    row = before.get(index)
    if row is not None and row["$number"] != value:
        changed.append({"id": index, "old": row["$number"], "new": value})
=> changed | any
""",
    "build-objects": """
result = []
for $item in $records:
    entry = types.SimpleNamespace(**$item)
    entry.label = f"{entry.$text}-{entry.id}"
    if entry.$flag:
        result.append(entry«.label¦.$number»)
=> result | any
""",
    "to-json": """
payload = json.dumps($records«, indent=2¦, sort_keys=True¦»)
«restored = json.loads(payload)
total = sum(row["$number"] for row in restored)
=> total | int
¦=> payload | text
»
""",
    "normalize-fields": """
result = []
for $item in $records:
    clean = {}
    for key, value in $item.items():
        if isinstance(value, str):
            value = @str(value)
        clean[key.upper()] = value
    result.append(clean)
=> result | any
""",
    "schedule": """
finish = {}
for $item in sorted($records, key=lambda row: (row["$other"], row["id"])):
    worker = $item["id"] % #2:6#
    start = finish.get(worker, 0)
    finish[worker] = start + $item["$number"]
=> «finish¦max(finish.values(), default=0)» | any
""",
}
