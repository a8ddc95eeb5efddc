"""Templates over sequences of numbers: windows, sums, searches, sorts, statistics."""

SEQUENCES: dict[str, str] = {
    "moving-average": """
size = #3:30#
averages = []
for index in range(len($ints) - size + 1):
    averages.append(sum($ints[index:index + size]) / size)
=> averages | ints
""",
    "prefix-sums": """
prefix = [0]
for value in $ints:
    prefix.append(prefix[-1] + «value¦@num(value)»)
result = []
for start in range(0, len($ints), #2:9#):
    end = min(start + #3:20#, len($ints))
    result.append(prefix[end] - prefix[start])
=> result | ints
""",
    "two-sum": """
target = #20:180#
seen = set()
pairs = []
for value in $ints:
    if target - value in seen:
        pairs.append((target - value, value))
    seen.add(value)
=> «pairs¦len(pairs)» | any
""",
    "max-subarray": """
best = current = 0
for value in $ints:
    current = max(0, current + value - #5:50#)
    best = max(best, current)
=> best | int
""",
    "bisect-ranks": """
ordered = sorted($ints)
ranks = []
for value in $ints:
    ranks.append(bisect.bisect_«left¦right»(ordered, value))
=> ranks | ints
""",
    "binary-search": """
def search(ordered, wanted):
    start, end = 0, len(ordered)
    while start < end:
        middle = (start + end) // 2
        if ordered[middle] < wanted:
            start = middle + 1
        else:
            end = middle
    return start
---
ordered = sorted($ints)
count = 0
for wanted in range(0, #10:200#):
    if search(ordered, wanted) < len(ordered) and ordered[search(ordered, wanted)] == wanted:
        count += 1
=> count | int
""",
    "histogram": """
size = #5:25#
counts = [0] * 20
for value in $ints:
    counts[min(value // size, 19)] += 1
lines = []
for index, count in enumerate(counts):
    lines.append(f"{index * size:>4}: " + "#" * count)
=> "\\n".join(lines) | text
""",
    "merge-sorted": """
left, right = sorted($ints), sorted(value + «3¦11» for value in $ints)
result = []
index = other = 0
while index < len(left) and other < len(right):
    if left[index] <= right[other]:
        result.append(left[index])
        index += 1
    else:
        result.append(right[other])
        other += 1
result.extend(left[index:])
result.extend(right[other:])
=> result | ints
""",
    "rising-run": """
lengths = []
for index, value in enumerate($ints:80):
    best = 1
    for other in range(index):
        if $ints:80[other] < value:
            best = max(best, lengths[other] + 1)
    lengths.append(best)
=> max(lengths, default=0) | int
""",
    "bubble-sort": """
values = list($ints:60)
for end in range(len(values) - 1, 0, -1):
    «swapped = False
    ¦»for index in range(end):
        if values[index] > values[index + 1]:
            values[index], values[index + 1] = values[index + 1], values[index]
=> values | ints
""",
    "insertion-sort": """
values = []
for value in $ints:120:
    index = len(values)
    while index > 0 and values[index - 1] > value:
        index -= 1
    values.insert(index, value)
=> values | ints
""",
    "variance": """
mean = sum($floats) / max(len($floats), 1)
total = 0.0
for value in $floats:
    total += (value - mean) ** 2
variance = total / max(len($floats) - 1, 1)
=> «variance¦round(variance ** 0.5, 3)» | any
""",
    "heap-top": """
heap = []
for value in $ints:
    heapq.heappush(heap, @num(value))
    if len(heap) > #5:40#:
        heapq.heappop(heap)
=> sorted(heap«, reverse=True¦») | ints
""",
    "window-maximum": """
size = #3:25#
window = collections.deque()
result = []
for index, value in enumerate($ints):
    while window and $ints[window[-1]] <= value:
        window.pop()
    window.append(index)
    if window[0] <= index - size:
        window.popleft()
    if index >= size - 1:
        result.append($ints[window[0]])
=> result | ints
""",
    "nearest-points": """
def distance(left, right):
    return «((left[0] - right[0]) ** 2 + (left[1] - right[1]) ** 2) ** 0.5¦abs(
        left[0] - right[0]
    ) + abs(left[1] - right[1])»
---
best = None
for index, left in enumerate($points:60):
    for right in $points:60[index + 1:]:
        gap = distance(left, right)
        if best is None or gap < best:
            best = gap
=> best | any
""",
    "interpolate": """
result = []
for left, right in zip($floats, $floats[1:]):
    for step in range(«4¦8¦10»):
        result.append(round(left + (right - left) * step / 10, «2¦3»))
=> result | ints
""",
    "outliers": """
mean = sum($ints) / max(len($ints), 1)
spread = (sum((value - mean) ** 2 for value in $ints) / max(len($ints), 1)) ** 0.5
result = [value for value in $ints if abs(value - mean) > «2¦1.5¦1» * spread]
=> result | ints
""",
}
