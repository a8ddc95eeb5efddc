# growth: 1
def is_even(n):
    return n % 2 == 0


# growth: 1
def last_or_none(items):
    return items[-1] if items else None


# growth: 1
class Counter:
    def __init__(self):
        self.hits = {}

    def hit(self, key):
        self.hits[key] = self.hits.get(key, 0) + 1
        return self.hits[key]


# growth: log n
def binary_search(values, target):
    low, high = 0, len(values) - 1
    while low <= high:
        middle = (low + high) // 2
        if values[middle] == target:
            return middle
        if values[middle] < target:
            low = middle + 1
        else:
            high = middle - 1
    return -1


# growth: log n
def digits(n):
    count = 0
    while n > 0:
        n //= 10
        count += 1
    return count


# growth: log n
def power(base, exponent):
    result = 1
    while exponent:
        if exponent & 1:
            result *= base
        base *= base
        exponent >>= 1
    return result


# growth: log n
def integer_root(n):
    low, high = 0, n
    while low < high:
        middle = (low + high + 1) // 2
        if middle * middle <= n:
            low = middle
        else:
            high = middle - 1
    return low


# growth: sqrt n
def is_prime(n):
    if n < 2:
        return False
    d = 2
    while d * d <= n:
        if n % d == 0:
            return False
        d += 1
    return True


# growth: sqrt n
def divisors(n):
    result = []
    for d in range(1, int(n**0.5) + 1):
        if n % d == 0:
            result.append(d)
            if d != n // d:
                result.append(n // d)
    return result


# growth: n
def maximum(values):
    best = values[0]
    for value in values:
        if value > best:
            best = value
    return best


# growth: n
def is_palindrome(text):
    i, j = 0, len(text) - 1
    while i < j:
        if text[i] != text[j]:
            return False
        i += 1
        j -= 1
    return True


# growth: n
def max_subarray(nums):
    best = current = nums[0]
    for x in nums[1:]:
        current = max(x, current + x)
        best = max(best, current)
    return best


# growth: n
class Solution:
    def twoSum(self, nums, target):
        seen = {}
        for i, x in enumerate(nums):
            if target - x in seen:
                return [seen[target - x], i]
            seen[x] = i


# growth: n
class Solution:
    def isValid(self, s):
        stack = []
        pairs = {")": "(", "]": "[", "}": "{"}
        for c in s:
            if c in pairs:
                if not stack or stack.pop() != pairs[c]:
                    return False
            else:
                stack.append(c)
        return not stack


# growth: n
class Solution:
    def lengthOfLongestSubstring(self, s):
        last = {}
        start = best = 0
        for i, c in enumerate(s):
            if c in last and last[c] >= start:
                start = last[c] + 1
            last[c] = i
            best = max(best, i - start + 1)
        return best


# growth: n
def tree_depth(node):
    if node is None:
        return 0
    return 1 + max(tree_depth(node.left), tree_depth(node.right))


# growth: n
def fibonacci(n):
    a, b = 0, 1
    for _ in range(n):
        a, b = b, a + b
    return a


# growth: n
from functools import cache


@cache
def stairs(n):
    if n <= 1:
        return 1
    return stairs(n - 1) + stairs(n - 2)


# growth: n log n
def sort_by_length(words):
    return sorted(words, key=len)


# growth: n log n
class Solution:
    def merge(self, intervals):
        intervals.sort()
        merged = [intervals[0]]
        for start, end in intervals[1:]:
            if start <= merged[-1][1]:
                merged[-1][1] = max(merged[-1][1], end)
            else:
                merged.append([start, end])
        return merged


# growth: n log n
import heapq


def heap_sort(values):
    heap = []
    for value in values:
        heapq.heappush(heap, value)
    return [heapq.heappop(heap) for _ in range(len(heap))]


# growth: n log n
import bisect


class Solution:
    def lengthOfLIS(self, nums):
        tails = []
        for x in nums:
            i = bisect.bisect_left(tails, x)
            if i == len(tails):
                tails.append(x)
            else:
                tails[i] = x
        return len(tails)


# growth: n log n
def merge_sort(a):
    if len(a) <= 1:
        return a
    m = len(a) // 2
    left, right = merge_sort(a[:m]), merge_sort(a[m:])
    out = []
    i = j = 0
    while i < len(left) and j < len(right):
        if left[i] <= right[j]:
            out.append(left[i])
            i += 1
        else:
            out.append(right[j])
            j += 1
    return out + left[i:] + right[j:]


# growth: mn
def transpose_sum(matrix):
    total = 0
    for row in matrix:
        for value in row:
            total += value
    return total


# growth: mn
class Solution:
    def uniquePaths(self, m, n):
        dp = [[1] * n for _ in range(m)]
        for i in range(1, m):
            for j in range(1, n):
                dp[i][j] = dp[i - 1][j] + dp[i][j - 1]
        return dp[-1][-1]


# growth: mn
class Solution:
    def longestCommonSubsequence(self, text1, text2):
        previous = [0] * (len(text2) + 1)
        for a in text1:
            current = [0]
            for j, b in enumerate(text2):
                current.append(previous[j] + 1 if a == b else max(previous[j + 1], current[j]))
            previous = current
        return previous[-1]


# growth: mn
class Solution:
    def coinChange(self, coins, amount):
        best = [0] + [amount + 1] * amount
        for coin in coins:
            for value in range(coin, amount + 1):
                best[value] = min(best[value], best[value - coin] + 1)
        return best[amount] if best[amount] <= amount else -1


# growth: n^2
def has_duplicates(values):
    for i in range(len(values)):
        for j in range(i + 1, len(values)):
            if values[i] == values[j]:
                return True
    return False


# growth: n^2
def bubble_sort(a):
    for i in range(len(a)):
        for j in range(len(a) - 1 - i):
            if a[j] > a[j + 1]:
                a[j], a[j + 1] = a[j + 1], a[j]
    return a


# growth: n^2
class Solution:
    def longestPalindrome(self, s):
        best = ""
        for center in range(len(s)):
            for left, right in ((center, center), (center, center + 1)):
                while left >= 0 and right < len(s) and s[left] == s[right]:
                    left -= 1
                    right += 1
                if right - left - 1 > len(best):
                    best = s[left + 1 : right]
        return best


# growth: n^2
class Solution:
    def threeSum(self, nums):
        nums.sort()
        result = []
        for i in range(len(nums) - 2):
            if i and nums[i] == nums[i - 1]:
                continue
            j, k = i + 1, len(nums) - 1
            while j < k:
                s = nums[i] + nums[j] + nums[k]
                if s < 0:
                    j += 1
                elif s > 0:
                    k -= 1
                else:
                    result.append([nums[i], nums[j], nums[k]])
                    j += 1
                    while j < k and nums[j] == nums[j - 1]:
                        j += 1
        return result


# growth: n^3
def matrix_product(a, b):
    n = len(a)
    c = [[0] * n for _ in range(n)]
    for i in range(n):
        for j in range(n):
            for k in range(n):
                c[i][j] += a[i][k] * b[k][j]
    return c


# growth: n^3
def floyd_warshall(distance):
    n = len(distance)
    for k in range(n):
        for i in range(n):
            for j in range(n):
                if distance[i][k] + distance[k][j] < distance[i][j]:
                    distance[i][j] = distance[i][k] + distance[k][j]
    return distance


# growth: n^3
class Solution:
    def maxCoins(self, nums):
        values = [1] + nums + [1]
        n = len(values)
        dp = [[0] * n for _ in range(n)]
        for length in range(2, n):
            for left in range(n - length):
                right = left + length
                for middle in range(left + 1, right):
                    gain = values[left] * values[middle] * values[right]
                    dp[left][right] = max(dp[left][right], dp[left][middle] + gain + dp[middle][right])
        return dp[0][-1]


# growth: 2^n
def fib(n):
    if n < 2:
        return n
    return fib(n - 1) + fib(n - 2)


# growth: 2^n
class Solution:
    def subsets(self, nums):
        result = []

        def visit(i, chosen):
            if i == len(nums):
                result.append(chosen[:])
                return
            visit(i + 1, chosen)
            chosen.append(nums[i])
            visit(i + 1, chosen)
            chosen.pop()

        visit(0, [])
        return result


# growth: 2^n
class Solution:
    def permute(self, nums):
        if len(nums) <= 1:
            return [nums]
        result = []
        for i in range(len(nums)):
            for rest in self.permute(nums[:i] + nums[i + 1 :]):
                result.append([nums[i]] + rest)
        return result


# growth: 2^n
from itertools import product


def all_passwords(alphabet, length):
    return ["".join(letters) for letters in product(alphabet, repeat=length)]


# growth: n
from collections import deque


def bfs(graph, start):
    seen = {start}
    queue = deque([start])
    while queue:
        node = queue.popleft()
        for neighbour in graph[node]:
            if neighbour not in seen:
                seen.add(neighbour)
                queue.append(neighbour)
    return seen


# growth: n
def word_counts(words):
    counts = {}
    for word in words:
        counts[word] = counts.get(word, 0) + 1
    return counts
