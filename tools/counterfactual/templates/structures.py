"""Templates over structures: queues, mappings, intervals, caches, state machines."""

STRUCTURES: dict[str, str] = {
    "stack-machine": """
stack = []
for value in $ints:
    operation = value % 4
    if operation == 0 or len(stack) < 2:
        stack.append(value)
    elif operation == 1:
        stack.append(stack.pop() + stack.pop())
    elif operation == 2:
        stack.append(stack.pop() - stack.pop())
    else:
        stack.pop()
=> «stack | ints¦len(stack) | int»
""",
    "linked-list": """
head = None
for value in $ints:
    head = (value, head)
total, length = 0, 0
while head is not None:
    value, head = head
    total += value
    length += 1
=> total | int
""",
    "recent-cache": """
capacity = #3:40#
cache = collections.OrderedDict()
hits = 0
for value in $ints:
    if value in cache:
        hits += 1
        cache.move_to_end(value)
    else:
        cache[value] = True
        if len(cache) > capacity:
            cache.popitem(last=False)
=> hits | int
""",
    "event-queue": """
queue = [(value, index) for index, value in enumerate($ints)]
heapq.heapify(queue)
clock, handled = 0, []
while queue«¦ and len(handled) < #20:200#»:
    moment, index = heapq.heappop(queue)
    clock = max(clock, moment) + 1
    handled.append(index)
=> «handled | ints¦clock | int»
""",
    "inverted-index": """
postings = {}
for index, word in enumerate($words):
    for char in set(word):
        postings.setdefault(char, set()).add(index)
=> «{key: len(postings[key]) for key in sorted(postings)}¦{key: sorted(ids) for key, ids in postings.items()}» | any
""",
    "similarity": """
left, right = set($words), {word[:4] for word in $words}
common = left & right
union = left | right
=> len(common) / len(union) if union else 0.0 | any
""",
    "merge-settings": """
def merge(base, extra):
    result = dict(base)
    for key, value in extra.items():
        if isinstance(value, dict) and isinstance(result.get(key), dict):
            result[key] = merge(result[key], value)
        else:
            result[key] = value
    return result
---
result = {}
for index in range(#2:20#):
    result = merge(result, {"level": {f"k{index}": index}, **$mapping})
=> result | any
""",
    "chunked": """
size = #3:20#
chunks = []
iterator = iter($ints)
while True:
    chunk = list(itertools.islice(iterator, size))
    if not chunk:
        break
    chunks.append(«chunk¦sum(chunk)¦tuple(chunk)»)
=> chunks | any
""",
    "state-machine": """
transitions = {("idle", 0): "busy", ("busy", 1): "done", ("done", 0): "idle", ("busy", 0): "idle"}
state = "idle"
counts = {}
for value in $ints:
    state = transitions.get((state, value % 2), state)
    counts[state] = counts.get(state, 0) + 1
=> counts | mapping
""",
    "merge-intervals": """
merged = []
for start, end in sorted($intervals):
    if merged and start <= merged[-1][1]:
        merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
    else:
        merged.append((start, end))
=> «merged¦sum(end - start for start, end in merged)» | any
""",
    "overlaps": """
count = 0
for index, (start, end) in enumerate($intervals:60):
    for other_start, other_end in $intervals:60[index + 1:]:
        if start < other_end and other_start < end:
            count += 1
=> count | int
""",
    "room-usage": """
changes = []
for start, end in $intervals:
    changes.append((start, 1))
    changes.append((end, -1))
changes.sort()
current = best = 0
for _, change in changes:
    current += change
    best = max(best, current)
=> best | int
""",
    "invert-mapping": """
result = {}
for key, value in $mapping.items():
    result.setdefault(value«¦ % 10», []).append(key)
«for key in result:
    result[key].sort()
¦»=> result | any
""",
    "diff-mappings": """
target = {key: @num(value) for key, value in $mapping.items()}
added = {key for key in target if key not in $mapping}
changed = {key: (value, target[key]) for key, value in $mapping.items() if target[key] != value}
=> (sorted(added), changed) | any
""",
    "group-pairs": """
groups = collections.defaultdict(list)
for key, value in $pairs:
    groups[key].append(value)
=> {key: «sum(found)¦max(found)¦sorted(found)» for key, found in groups.items()} | any
""",
    "queue-of-three": """
queue = collections.deque($ints)
result = []
while len(queue) > 2:
    left, right = queue.popleft(), queue.popleft()
    if left > right:
        queue.append(left - right)
    result.append(left + right)
=> result | ints
""",
    "search-first": """
found = None
for key, value in $pairs:
    if value > #8:40#« and key.startswith("«a¦b¦s»")¦»:
        found = (key, value)
        break
=> found | any
""",
    "zip-columns": """
keys = [key for key, _ in $pairs]
values = [value for _, value in $pairs]
result = {}
for key, value in zip(keys, values«¦[1:]»):
    result[key] = max(result.get(key, 0), value)
=> result | mapping
""",
    "subsets": """
subsets = [[]]
for value in $ints:9:
    subsets += [subset + [value] for subset in subsets]
=> «len(subsets) | int¦[sum(subset) for subset in subsets] | ints»
""",
    "permute": """
def permute(values):
    if len(values) < 2:
        return [values]
    result = []
    for index, value in enumerate(values):
        for rest in permute(values[:index] + values[index + 1:]):
            result.append([value] + rest)
    return result
---
=> len(permute(list(range(#3:6#)))) | int
""",
    "simulate-bank": """
accounts = {index: 100 for index in range(#5:30#)}
failed = 0
for index, value in enumerate($ints):
    source, target = index % len(accounts), value % len(accounts)
    if accounts[source] < value:
        failed += 1
        continue
    accounts[source] -= value
    accounts[target] += value
=> «failed | int¦accounts | any»
""",
}
