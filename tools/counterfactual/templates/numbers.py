"""Templates over numbers: number theory, dynamic programming, matrices, simulation."""

NUMBERS: dict[str, str] = {
    "sieve": """
limit = #50:3000#
flags = [True] * (limit + 1)
flags[0] = flags[1] = False
for number in range(2, int(limit ** 0.5) + 1):
    if flags[number]:
        for other in range(number * number, limit + 1, number):
            flags[other] = False
=> [number for number, flag in enumerate(flags) if flag] | ints
""",
    "trial-division": """
def is_prime(number):
    if number < 2:
        return False
    for divisor in range(2, «number¦int(number ** 0.5) + 1»):
        if number % divisor == 0:
            return False
    return True
---
result = []
for number in range(#20:200#):
    if is_prime(number):
        result.append(number)
=> result | ints
""",
    "gcd-fold": """
def gcd(left, right):
    while right:
        left, right = right, left % right
    return left
---
result = 0
for value in $ints:
    result = gcd(result, value + «1¦6¦12»)
=> result | int
""",
    "fibonacci": """
def fibonacci(number, memo):
    if number in memo:
        return memo[number]
    if number < 2:
        return number
    memo[number] = fibonacci(number - 1, memo) + fibonacci(number - 2, memo)
    return memo[number]
---
memo = {}
result = [fibonacci(number, memo) for number in range(#8:17#)]
=> «result | ints¦result[-1] | int»
""",
    "collatz": """
best, longest = 0, 0
for start in range(1, #10:150#):
    number, steps = start, 0
    while number != 1:
        «number = number // 2 if number % 2 == 0 else 3 * number + 1¦if number % 2:
            number = 3 * number + 1
        else:
            number //= 2»
        steps += 1
    if steps > longest:
        best, longest = start, steps
=> (best, longest) | any
""",
    "digit-sums": """
result = []
for value in $ints:
    total = 0
    «while value > 0:
        total += value % 10
        value //= 10¦for digit in str(value):
        total += int(digit)»
    result.append(total)
=> result | ints
""",
    "matrix-product": """
size = len($matrix:16)
result = [[0] * size for _ in range(size)]
for index in range(size):
    for other in range(size):
        for step in range(size):
            result[index][other] += $matrix:16[index][step] * $matrix:16[step][other]
=> result | any
""",
    "transpose": """
result = []
for column in range(len($matrix:40)):
    result.append([row[column] for row in $matrix:40«¦[::-1]»])
=> result | any
""",
    "row-sums": """
totals = [sum(row) for row in $matrix:40]
columns = [sum(row[index] for row in $matrix:40) for index in range(len($matrix:40))]
=> «{"rows": totals, "columns": columns}¦max(totals + columns, default=0)» | any
""",
    "coin-change": """
amount = #20:300#
coins = «(1, 5, 10, 25)¦(1, 2, 5)¦(2, 3, 7, 11)»
table = [0] + [amount + 1] * amount
for value in range(1, amount + 1):
    for coin in coins:
        if coin <= value and table[value - coin] + 1 < table[value]:
            table[value] = table[value - coin] + 1
=> table[amount] | int
""",
    "knapsack": """
def best_value(index, room, items, memo):
    if index == len(items) or room <= 0:
        return 0
    key = (index, room)
    if key in memo:
        return memo[key]
    best = best_value(index + 1, room, items, memo)
    weight, gain = items[index]
    if weight <= room:
        best = max(best, gain + best_value(index + 1, room - weight, items, memo))
    memo[key] = best
    return best
---
items = [(value % 7 + 1, value) for value in $ints:11]
=> best_value(0, #8:30#, items, {}) | int
""",
    "combinations": """
count = 0
for combo in itertools.combinations(range(#6:14#), «2¦3»):
    total = sum(combo)
    if @cond(total):
        count += 1
=> count | int
""",
    "to-base": """
digits = "0123456789abcdefghijklmnopqrstuvwxyz"
result = []
for value in $ints:
    text = ""
    while value:
        value, rest = divmod(value, «2¦3¦16»)
        text = digits[rest] + text
    result.append(text or "0")
=> result | words
""",
    "polynomial": """
coefficients = [«3, 0, -2, 5¦1, 4, 7¦2, -1, 0, 0, 6»]
result = []
for value in $floats:
    total = 0
    for coefficient in coefficients:
        total = total * value + coefficient
    result.append(total)
=> result | ints
""",
    "pascal": """
rows = [[1]]
for _ in range(#5:40#):
    previous = rows[-1]
    rows.append([1] + [left + right for left, right in zip(previous, previous[1:])] + [1])
=> «rows¦rows[-1]¦[sum(row) for row in rows]» | any
""",
    "random-walk": """
state, position = #3:900#, 0
visited = set()
for _ in range(#30:600#):
    state = (state * 1103515245 + 12345) % 2147483648
    position += 1 if state % 3 else -1
    visited.add(position)
=> «position¦len(visited)» | any
""",
    "divisors": """
result = {}
for number in range(1, #20:150#):
    result[number] = [divisor for divisor in range(1, number + 1) if number % divisor == 0]
=> «result¦[number for number in result if sum(result[number]) - number == number]» | any
""",
    "power-table": """
modulus = «97¦1009¦65537»
result = []
for base in range(2, #10:80#):
    value = 1
    for _ in range(#5:30#):
        value = value * base % modulus
    result.append(value)
=> result | ints
""",
}
