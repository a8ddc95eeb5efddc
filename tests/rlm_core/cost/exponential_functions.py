"""Texts of functions that take exponential time: searches and enumerations of many forms."""

TEXTS = """
def rod(n, prices):
    if n == 0:
        return 0
    best = -1
    for i in range(1, n + 1):
        best = max(best, prices[i - 1] + rod(n - i, prices))
    return best


def partitions(target, coins):
    if target < 0:
        return 0
    if target == 0:
        return 1
    return sum(partitions(target - c, coins) for c in coins)


def determinant(matrix):
    if len(matrix) == 1:
        return matrix[0][0]
    total = 0
    for i in range(len(matrix)):
        sub = [row[:i] + row[i + 1:] for row in matrix[1:]]
        total += (-1) ** i * matrix[0][i] * determinant(sub)
    return total


def heaps(arr):
    res = []

    def generate(k, arr):
        if k == 1:
            res.append(tuple(arr))
            return
        generate(k - 1, arr)
        for i in range(k - 1):
            if k % 2 == 0:
                arr[i], arr[k - 1] = arr[k - 1], arr[i]
            else:
                arr[0], arr[k - 1] = arr[k - 1], arr[0]
            generate(k - 1, arr)

    generate(len(arr), arr)
    return res


def dice(sides, n):
    counts = [0] * (sides * n + 1)
    for numbers in product(range(1, sides + 1), repeat=n):
        counts[sum(numbers)] += 1
    return counts


def words(alphabet, length):
    for letters in itertools.product(alphabet, repeat=length):
        print("".join(letters))


class Graph:
    def print_path(self, s, d, visited, path):
        visited[s] = True
        path.append(s)
        if s == d:
            print(path)
        else:
            for i in self.graph[s]:
                if visited[i] == False:
                    self.print_path(i, d, visited, path)
        path.pop()
        visited[s] = False


def all_paths(graph, start, end, path=[]):
    path = path + [start]
    if start == end:
        return [path]
    paths = []
    for node in graph[start]:
        if node not in path:
            paths.extend(all_paths(graph, node, end, path))
    return paths


def perft(depth, board):
    if depth == 1:
        return board.legal_moves.count()
    count = 0
    for move in board.legal_moves:
        board.push(move)
        count += perft(depth - 1, board)
        board.pop()
    return count


def knapsack(items, cap):
    n = len(items)
    best = 0
    for i in range(1, int(math.pow(2, n))):
        best = max(best, i)
    return best


def queens(board, col):
    if col >= len(board):
        return True
    for i in range(len(board)):
        if safe(board, i, col):
            board[i][col] = 1
            if queens(board, col + 1):
                return True
            board[i][col] = 0
    return False


def sudoku(grid):
    for r in range(9):
        for c in range(9):
            if grid[r][c] == 0:
                for v in range(1, 10):
                    if ok(grid, r, c, v):
                        grid[r][c] = v
                        if sudoku(grid):
                            return True
                        grid[r][c] = 0
                return False
    return True


def add_ops(num, target):
    res = []

    def dfs(path, pos, value, last):
        if pos == len(num):
            if value == target:
                res.append(path)
            return
        for i in range(pos, len(num)):
            cur = int(num[pos:i + 1])
            dfs(path + "+" + str(cur), i + 1, value + cur, cur)
            dfs(path + "-" + str(cur), i + 1, value - cur, -cur)
            dfs(path + "*" + str(cur), i + 1, value - last + last * cur, last * cur)

    dfs("", 0, 0, 0)
    return res


def word_break(s, words):
    if not s:
        return True
    for i in range(1, len(s) + 1):
        if s[:i] in words and word_break(s[i:], words):
            return True
    return False


def permutations(items):
    if len(items) <= 1:
        return [items]
    result = []
    for i in range(len(items)):
        rest = items[:i] + items[i + 1:]
        for p in permutations(rest):
            result.append([items[i]] + p)
    return result


def permute(a, l, r):
    if l == r:
        print(a)
    else:
        for i in range(l, r + 1):
            a[l], a[i] = a[i], a[l]
            permute(a, l + 1, r)
            a[l], a[i] = a[i], a[l]


def combos(n):
    out = []
    for r in range(n + 1):
        out.extend(itertools.combinations(range(n), r))
    return out


def masks(items):
    best = 0
    for mask in range(1 << len(items)):
        best = max(best, mask)
    return best


def tsp(cities):
    return min(itertools.permutations(cities), key=len)


def color(graph, m, colors, v):
    if v == len(graph):
        return True
    for c in range(1, m + 1):
        if is_safe(graph, colors, v, c):
            colors[v] = c
            if color(graph, m, colors, v + 1):
                return True
            colors[v] = 0
    return False


def binary(n, prefix=""):
    if n == 0:
        print(prefix)
        return
    binary(n - 1, prefix + "0")
    binary(n - 1, prefix + "1")


def parens(n, open_, close, s, out):
    if len(s) == 2 * n:
        out.append(s)
        return
    if open_ < n:
        parens(n, open_ + 1, close, s + "(", out)
    if close < open_:
        parens(n, open_, close + 1, s + ")", out)


def powerset(items):
    result = [[]]
    for item in items:
        result += [subset + [item] for subset in result]
    return result


def look(n, k):
    def walk(i, chosen):
        if i == n:
            yield list(chosen)
            return
        yield from walk(i + 1, chosen)
        yield from walk(i + 1, chosen + [i])
    return list(walk(0, []))


def grid_paths(m, n):
    if m == 1 or n == 1:
        return 1
    return grid_paths(m - 1, n) + grid_paths(m, n - 1)


def powers(n):
    for i in range(int(math.pow(2, n))):
        print(i)


def partitions(n, largest=None):
    if largest is None:
        largest = n
    if n == 0:
        yield []
        return
    for k in range(min(n, largest), 0, -1):
        for rest in partitions(n - k, k):
            yield [k] + rest


def compositions(n):
    if n == 0:
        yield ()
    for k in range(1, n + 1):
        for rest in compositions(n - k):
            yield (k,) + rest


def lcs(a, b, i, j):
    if i == len(a) or j == len(b):
        return 0
    if a[i] == b[j]:
        return 1 + lcs(a, b, i + 1, j + 1)
    return max(lcs(a, b, i + 1, j), lcs(a, b, i, j + 1))


def edit(a, b):
    if not a:
        return len(b)
    if not b:
        return len(a)
    if a[0] == b[0]:
        return edit(a[1:], b[1:])
    return 1 + min(edit(a[1:], b), edit(a, b[1:]), edit(a[1:], b[1:]))


def knap(i, w, weights, values):
    if i < 0 or w <= 0:
        return 0
    skip = knap(i - 1, w, weights, values)
    take = 0
    if weights[i] <= w:
        take = values[i] + knap(i - 1, w - weights[i], weights, values)
    return max(skip, take)


def subset_sum(nums, target):
    if target == 0:
        return True
    if not nums:
        return False
    first, *rest = nums
    return subset_sum(rest, target) or subset_sum(rest, target - first)


def combos(items, k):
    if k == 0:
        return [[]]
    if not items:
        return []
    head, tail = items[0], items[1:]
    return [[head] + c for c in combos(tail, k - 1)] + combos(tail, k)


def alphabeta(node, depth, alpha, beta, maximizing):
    if depth == 0 or node.is_terminal():
        return node.value()
    if maximizing:
        for move in node.legal_moves():
            node.push(move)
            alpha = max(alpha, alphabeta(node, depth - 1, alpha, beta, False))
            node.pop()
            if alpha >= beta:
                break
        return alpha
    for move in node.legal_moves():
        node.push(move)
        beta = min(beta, alphabeta(node, depth - 1, alpha, beta, True))
        node.pop()
        if alpha >= beta:
            break
    return beta


def passwords(chars, n):
    if n == 0:
        yield ""
        return
    for c in chars:
        for rest in passwords(chars, n - 1):
            yield c + rest


def expand(pattern):
    if "{" not in pattern:
        return [pattern]
    head, _, rest = pattern.partition("{")
    alternatives, _, tail = rest.partition("}")
    result = []
    for a in alternatives.split(","):
        for t in expand(tail):
            result.append(head + a + t)
    return result


def held_karp(distances):
    n = len(distances)
    best = {}
    for size in range(2, n):
        for subset in combinations(range(1, n), size):
            for k in subset:
                best[(subset, k)] = min(distances[m][k] for m in subset)
    return best


def tsp2(cities, path):
    if len(path) == len(cities):
        return length(path)
    best = float("inf")
    for c in cities:
        if c not in path:
            best = min(best, tsp2(cities, path + [c]))
    return best


def truth(variables, env, expr):
    if not variables:
        return [expr(env)]
    name, *rest = variables
    out = []
    for value in (False, True):
        env[name] = value
        out += truth(rest, env, expr)
    return out


def count(n, memo={}):
    if n <= 1:
        return 1
    return count(n - 1) + count(n - 2)


def ackermann(m, n):
    if m == 0:
        return n + 1
    if n == 0:
        return ackermann(m - 1, 1)
    return ackermann(m - 1, ackermann(m, n - 1))


def hilbert(depth, turtle):
    if depth == 0:
        return
    turtle.left(90)
    hilbert(depth - 1, turtle)
    turtle.forward(1)
    hilbert(depth - 1, turtle)
    hilbert(depth - 1, turtle)


def flips(text):
    results = [""]
    for ch in text:
        results = [r + c for r in results for c in (ch.lower(), ch.upper())]
    return results


def cartesian(pools):
    result = [[]]
    for pool in pools:
        result = [x + [y] for x in result for y in pool]
    return result


def walks(graph, start, steps):
    found = [[start]]
    for _ in range(steps):
        found = [path + [node] for path in found for node in graph[path[-1]]]
    return found


def towers(number, start, spare, end):
    if number == 1:
        print(start, end)
    else:
        towers(number - 1, start, end, spare)
        towers(1, start, spare, end)
        towers(number - 1, spare, start, end)


def partitions1(set_):
    if not set_:
        yield ()
        return
    for i in range(2 ** len(set_) // 2):
        parts = [set(), set()]
        for item in set_:
            parts[i & 1].add(item)
            i >>= 1
        for b in partitions1(parts[1]):
            yield (parts[0],) + b


class Queens:
    def place(self, rows):
        if len(rows) == self.n:
            return rows
        for row in range(self.n):
            if self.is_safe(rows, row):
                found = self.place(rows + [row])
                if found is not None:
                    return found
        return None


def joint(variables, seen, table):
    if not variables:
        return table[seen]
    first, rest = variables[0], variables[1:]
    return sum([joint(rest, {**seen, first: value}, table) for value in table.values(first)])


def guessed(values, squares):
    if all(len(values[s]) == 1 for s in squares):
        return values
    s = min(squares)
    for digit in values[s]:
        found = guessed(assigned(values.copy(), s, digit), squares)
        if found:
            return found
    return None


def placed(assignment, problem):
    if len(assignment) == len(problem.variables):
        return assignment
    name = problem.next_variable(assignment)
    for value in problem.values(name):
        problem.assign(name, value)
        found = placed(assignment, problem)
        if found is not None:
            return found
        problem.restore(name)
    return None


def cyclic(graph, start):
    path = set()

    def visit(vertex):
        path.add(vertex)
        for neighbour in graph.get(vertex, ()):
            if neighbour in path or visit(neighbour):
                return True
        path.remove(vertex)
        return False

    return visit(start)


def covered(grid, i, j, left):
    kept = grid[i][j]
    grid[i][j] = -1
    if not left:
        return True
    for di, dj in ((1, 0), (0, 1), (-1, 0), (0, -1)):
        ni, nj = i + di, j + dj
        if grid[ni][nj] != -1:
            if covered(grid, ni, nj, left - 1):
                return True
    grid[i][j] = kept
    return False
"""
