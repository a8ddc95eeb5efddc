"""Templates over graphs, trees, nested values and grids."""

GRAPHS: dict[str, str] = {
    "breadth-first": """
queue = collections.deque([0])
distance = {0: 0}
while queue:
    node = queue.popleft()
    for neighbour in $graph.get(node, ()):
        if neighbour not in distance:
            distance[neighbour] = distance[node] + 1
            queue.append(neighbour)
=> distance | any
""",
    "components": """
seen = set()
components = []
for node in $graph:
    if node in seen:
        continue
    stack, members = [node], []
    while stack:
        current = stack.pop()
        if current in seen:
            continue
        seen.add(current)
        members.append(current)
        stack.extend($graph[current])
    components.append(members)
=> «components¦len(components)» | any
""",
    "topological": """
degree = {node: 0 for node in $graph}
for node in $graph:
    for target in $graph[node]:
        if target > node:
            degree[target] += 1
ready = [node for node in degree if degree[node] == 0]
result = []
while ready:
    node = ready.pop()
    result.append(node)
    for target in $graph[node]:
        if target > node:
            degree[target] -= 1
            if degree[target] == 0:
                ready.append(target)
=> result | ints
""",
    "shortest-path": """
distance = {0: 0}
heap = [(0, 0)]
while heap:
    cost, node = heapq.heappop(heap)
    if cost > distance.get(node, cost):
        continue
    for target, weight in $weighted[node].items():
        if cost + weight < distance.get(target, 10 ** 9):
            distance[target] = cost + weight
            heapq.heappush(heap, (cost + weight, target))
=> distance | any
""",
    "degree-count": """
counts = {}
for node, targets in $graph.items():
    counts[node] = counts.get(node, 0) + len(targets)
    for target in targets:
        counts[target] = counts.get(target, 0) + 1
best = max(counts, key=counts.get) if counts else None
=> «(best, counts)¦best» | any
""",
    "flatten": """
def flatten(value, result):
    if isinstance(value, dict):
        for entry in value.values():
            flatten(entry, result)
    elif isinstance(value, list):
        for entry in value:
            flatten(entry, result)
    else:
        result.append(value)
    return result
---
leaves = flatten($nested, [])
=> «leaves¦[value for value in leaves if isinstance(value, int)]» | any
""",
    "nested-depth": """
def depth(value):
    if isinstance(value, dict):
        return 1 + max((depth(entry) for entry in value.values()), default=0)
    if isinstance(value, list):
        return 1 + max([depth(entry) for entry in value], default=0)
    return 0
---
=> depth($nested) | int
""",
    "walk-paths": """
result = {}
stack = [("", $nested)]
while stack:
    prefix, value = stack.pop()
    if isinstance(value, dict):
        for key, entry in value.items():
            stack.append((f"{prefix}.{key}", entry))
    elif isinstance(value, list):
        for index, entry in enumerate(value):
            stack.append((f"{prefix}[{index}]", entry))
    else:
        result[prefix] = value
=> result | any
""",
    "binary-tree": """
def insert(node, value):
    if node is None:
        return [value, None, None]
    if value < node[0]:
        node[1] = insert(node[1], value)
    else:
        node[2] = insert(node[2], value)
    return node
---
root = None
for value in $ints:150:
    root = insert(root, value * 37 % 101)
result, stack = [], [root]
while stack:
    node = stack.pop()
    if node:
        result.append(node[0])
        stack.append(node[1])
        stack.append(node[2])
=> result | ints
""",
    "union-find": """
def find(parent, node):
    while parent[node] != node:
        parent[node] = parent[parent[node]]
        node = parent[node]
    return node
---
parent = {node: node for node in $graph}
for node in $graph:
    for target in $graph[node]:
        parent[find(parent, node)] = find(parent, target)
=> len({find(parent, node) for node in $graph}) | int
""",
    "flood-fill": """
seen = set()
stack = [(0, 0)]
while stack:
    row, column = stack.pop()
    if (row, column) in seen or not 0 <= row < len($grid:25):
        continue
    if not 0 <= column < len($grid:25[row]) or $grid:25[row][column] == "#" and (row or column):
        continue
    seen.add((row, column))
    stack.extend([(row + 1, column), (row - 1, column), (row, column + 1), (row, column - 1)])
=> len(seen) | int
""",
    "grid-neighbours": """
total = 0
for row in range(len($grid:25)):
    for column in range(len($grid:25[row])):
        if $grid:25[row][column] != "#":
            continue
        for move, side in ((0, 1), (1, 0), (0, -1), (-1, 0)):
            if 0 <= row + move < len($grid:25) and 0 <= column + side < len($grid:25[row + move]):
                total += $grid:25[row + move][column + side] == "#"
=> total | int
""",
    "game-of-life": """
size = len($matrix:16)
result = []
for row in range(size):
    line = []
    for column in range(size):
        alive = sum(
            $matrix:16[(row + move) % size][(column + side) % size] > 4
            for move in (-1, 0, 1)
            for side in (-1, 0, 1)
            if move or side
        )
        line.append(1 if alive == 3 or alive == 2 and $matrix:16[row][column] > 4 else 0)
    result.append(line)
=> result | any
""",
    "cheapest-path": """
size = len($matrix:40)
table = [[0] * size for _ in range(size)]
for row in range(size):
    for column in range(size):
        above = table[row - 1][column] if row else 10 ** 6
        before = table[row][column - 1] if column else 10 ** 6
        step = min(above, before) if row or column else 0
        table[row][column] = step + $matrix:40[row][column]
=> table[-1][-1] if size else 0 | int
""",
    "grid-paths": """
def count_paths(rows, columns, memo):
    if (rows, columns) in memo:
        return memo[rows, columns]
    if rows == 0 or columns == 0:
        return 1
    memo[rows, columns] = count_paths(rows - 1, columns, memo) + count_paths(rows, columns - 1, memo)
    return memo[rows, columns]
---
=> count_paths(#4:8#, #4:8#, {}) | int
""",
}
