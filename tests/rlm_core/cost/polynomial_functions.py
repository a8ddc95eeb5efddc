"""Texts of functions that look like those of exponential time and are not.

Walks over the parts of an object, results that are remembered, and loops that end with the call. Also a game whose
positions may be few: its text does not say that each move leads to new ones.
"""

TEXTS = """
def walk(node, path):
    for name, child in node.items():
        path.append(name)
        walk(child, path)
        path.pop()


def encode(obj, markers):
    key = id(obj)
    if key in markers:
        raise ValueError("circular")
    markers[key] = obj
    for item in obj:
        encode(item, markers)
    del markers[key]


def limited(node, depth):
    if depth == 0:
        return
    for child in node.children:
        limited(child, depth - 1)


class Client:
    def poll(self, retries):
        if retries == 0:
            raise OSError
        for host in self.hosts:
            try:
                return self.get(host)
            except OSError:
                return self.poll(retries - 1)


def rod(n, prices, memo):
    if n in memo:
        return memo[n]
    if n == 0:
        return 0
    best = -1
    for i in range(1, n + 1):
        best = max(best, prices[i - 1] + rod(n - i, prices, memo))
    memo[n] = best
    return best


def lines(n):
    if n == 0:
        yield ""
        return
    for x in lines(n - 1):
        if x:
            yield x + "a"
        else:
            yield x + "b"


def include(elem, loader, depth):
    i = 0
    while i < len(elem):
        e = elem[i]
        if e.tag == "include":
            if depth == 0:
                raise ValueError
            node = loader(e.href)
            include(node, loader, depth - 1)
            elem[i] = node
        else:
            include(e, loader, depth)
        i += 1


def scoped(node, env):
    for child in node.children:
        env["x"] = child.name
        scoped(child, env)
        env["x"] = None


def listing(folder, depth):
    import os
    for name in os.listdir(folder):
        if depth > 0:
            listing(os.path.join(folder, name), depth - 1)


def dfs(graph, node, visited, stack):
    visited.add(node)
    stack.append(node)
    for other in graph[node]:
        if other not in visited:
            dfs(graph, other, visited, stack)
        elif other in stack:
            raise ValueError
    stack.pop()


def flatten(values, out=None):
    if out is None:
        out = []
    for value in values:
        if isinstance(value, list):
            flatten(value, out)
        else:
            out.append(value)
    return out


def partition(items, low, high):
    if low < high:
        i = low
        for j in range(low, high):
            if items[j] < items[high]:
                items[i], items[j] = items[j], items[i]
                i += 1
        partition(items, low, i - 1)
        partition(items, i + 1, high)


def heapify(items, n, i):
    largest = i
    left, right = 2 * i + 1, 2 * i + 2
    if left < n and items[left] > items[largest]:
        largest = left
    if largest != i:
        items[i], items[largest] = items[largest], items[i]
        heapify(items, n, largest)


def pairs(items):
    rest = items[1:]
    if not rest:
        return []
    done = pairs(rest)
    return done + [items[0]]


def fill(image, x, y, color):
    if image[x][y] == color:
        return
    image[x][y] = color
    fill(image, x + 1, y, color)
    fill(image, x - 1, y, color)
    fill(image, x, y + 1, color)
    fill(image, x, y - 1, color)


def chunked(data, size):
    if not data:
        return
    for i in range(len(data)):
        if data[i] == 0:
            chunked(data[i + 1:], size)
            break


def parse(tokens, i):
    while i < len(tokens):
        if tokens[i] == "(":
            i = parse(tokens, i + 1)
        elif tokens[i] == ")":
            return i + 1
        else:
            i += 1
    return i


def retry(job, left):
    for delay in (1, 2, 3):
        if job.run():
            return True
    return left > 0 and retry(job, left - 1)


def play(game, state, depth):
    if depth == 0:
        return game.value(state)
    return max(play(game, game.result(state, move), depth - 1) for move in game.moves(state))


def levels(root, depth):
    frontier = [root]
    for _ in range(depth):
        frontier = [child for node in frontier for child in node.children]
    return frontier


class Index:
    def nodes(self, keys):
        found = [(0, sorted(keys))]
        for start in self.offsets[1:-1]:
            following = []
            for index, part in found:
                following.extend([(start + place, some) for place, some in self.positions(part, index)])
            found = following
        return found


def convert(f, u, K):
    if not u:
        return [K(c) for c in f]
    return [convert(c, u - 1, K) for c in f]


def negated(g, u):
    if not u:
        return g
    return [negated(-c, u - 1) for c in g]


def tree(node, depth, limit):
    if depth > limit:
        return
    tree(node.left, depth + 1, limit)
    tree(node.right, depth + 1, limit)


def splitting(a, b, level=0):
    if b - a == 1:
        return a
    middle = (a + b) // 2
    if level < 4:
        print(level)
    return splitting(a, middle, level + 1) * splitting(middle, b, level + 1)


def components(graph, node, seen, stack):
    seen[node] = len(stack)
    stack.append(node)
    for other in graph[node]:
        if seen[other] == 0:
            components(graph, other, seen, stack)
    while stack[-1] is not node:
        seen[stack.pop()] = -1


def few(items, k):
    return list(combinations(items, k))


def clip(polygon, edges):
    vertices = polygon
    for edge in edges:
        kept = []
        for vertex in vertices:
            if edge.inside(vertex):
                kept.append(vertex)
            if edge.crosses(vertex):
                kept.append(edge.crossing(vertex))
        vertices = kept
    return vertices


def draw(path):
    for m in re.finditer(r"m[^m]+", "".join(step[0] for step in path)):
        draw(path[m.start(0) : m.end(0)])


def sums(n):
    if n == 0:
        return 1
    rest = sums(n - 1)
    more = rest + 1
    return rest + more


def render(node, context):
    parts = []
    for name, child in node.items():
        own = context.copy()
        own.update(name=name)
        parts.append(render(child, own))
    return parts


def names(tree, path, limit):
    if len(path) >= limit:
        return path
    for key in tree:
        names(tree[key], path + [key], limit)


def replaced(tree, parts, value):
    if len(parts) == 1:
        changed = Tree()
        for name, mode, key in tree.items():
            if name != parts[0]:
                changed.add(name, mode, key)
        changed.add(parts[0], 0, value)
        return changed
    else:
        changed = Tree()
        found = False
        for name, mode, key in tree.items():
            if name == parts[0]:
                if stat.S_ISDIR(mode):
                    inner = store[key]
                else:
                    inner = Tree()
                changed.add(name, 1, replaced(inner, parts[1:], value))
                found = True
            else:
                changed.add(name, mode, key)
        if not found:
            inner = Tree()
            changed.add(parts[0], 1, replaced(inner, parts[1:], value))
        return changed


class Rectangles:
    def split(self, a, b):
        parts = []
        if a.top < b.top:
            parts.append(1)
        if b.bottom < a.bottom:
            parts.append(2)
        return parts

    def covers(self, other):
        left = [other]
        for one in self.rectangles:
            rest = []
            for piece in left:
                if one.contains(piece):
                    continue
                if piece.intersects(one):
                    rest.extend(self.split(piece, one))
                else:
                    rest.append(piece)
            left = rest
        return not left


def resolved(schema, defs):
    result = {}
    for key, value in schema.items():
        if "$ref" in value:
            whole = value.copy()
            whole.update(defs[whole.pop("$ref")])
            result[key] = resolved(whole, defs)
        else:
            result[key] = resolved(value, defs)
    return result


def keys(name, array):
    return list(product([name], *[range(number) for number in array.numblocks]))


def indices(shape):
    return list(product(*map(range, shape)))


def settings(options):
    result = []
    for values in product(*options.values()):
        result.append(dict(zip(options, values)))
    return result


def rows(lists):
    return list(itertools.product(*lists))


def filled_knapsack(i, weights, values, left, table):
    if table[i][left] < 0:
        if left < weights[i - 1]:
            value = filled_knapsack(i - 1, weights, values, left, table)
        else:
            value = max(
                filled_knapsack(i - 1, weights, values, left, table),
                filled_knapsack(i - 1, weights, values, left - weights[i - 1], table) + values[i - 1],
            )
        table[i][left] = value
    return table[i][left]


def filled_binomial(n, k, table=None):
    if table is None:
        table = [[0] * (k + 1) for _ in range(n + 1)]
    if k == 0:
        table[n][k] = 1
    if table[n][k] == 0:
        table[n][k] = filled_binomial(n - 1, k, table) + filled_binomial(n - 1, k - 1, table)
    return table[n][k]


def sorted_from_both_ends(array, left, right):
    i, j = left, right
    pivot = array[(left + right) // 2]
    while i <= j:
        while array[i] < pivot:
            i += 1
        while array[j] > pivot:
            j -= 1
        if i <= j:
            array[i], array[j] = array[j], array[i]
            i += 1
            j -= 1
    if left < j:
        sorted_from_both_ends(array, left, j)
    if i < right:
        sorted_from_both_ends(array, i, right)


def reached(graph, start, path=[]):
    path = path + [start]
    for neighbour in graph[start]:
        if neighbour not in path:
            path = reached(graph, neighbour, path)
    return path


def coloured(vertex, graph, colour):
    colour[vertex] = 1
    for neighbour in graph[vertex]:
        if colour[neighbour] == 0:
            coloured(neighbour, graph, colour)
    colour[vertex] = 2


def stepped(points, targets):
    for place, target in enumerate(targets):
        if abs(points[place] - target) > 1:
            nearer = targets.copy()
            nearer[place] = target / 2
            points = stepped(points, nearer)
    return points


def partition(values, start, end):
    i, j, pivot = start, end, start
    while i < j:
        while values[i] < values[pivot]:
            i += 1
        while values[j] > values[pivot]:
            j -= 1
        if i < j:
            values[i], values[j] = values[j], values[i]
    if i < end:
        partition(values, i + 1, end)
    if j > start:
        partition(values, start, j - 1)


def luby(i):
    k = 1
    while True:
        if i == (1 << k) - 1:
            return 1 << (k - 1)
        if (1 << (k - 1)) <= i < (1 << k) - 1:
            return luby(i - (1 << (k - 1)) + 1)
        k += 1


def bubbles(board, row, column, met):
    if row < 0 or row >= len(board):
        return
    for place in met:
        if place == (row, column):
            return
    met.append((row, column))
    bubbles(board, row + 1, column, met)
    bubbles(board, row - 1, column, met)
    bubbles(board, row, column + 1, met)


def distance(first, second):
    if len(first) < len(second):
        return distance(second, first)
    return sum(a != b for a, b in zip(first, second))
"""
