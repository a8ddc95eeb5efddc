"""Algorithms of literal size: recursion, sorting, sieves, tables, matrices, graphs, simulations."""

TEMPLATES = r"""
== fibonacci | 110*1.618**n | 500 | 3-60
def $fib($n):
    if $n < 2:
        return $n
    return $fib($n - 1) + $fib($n - 2)
---
=> $fib(N)
~~ cached | 150*n | 150*n
@functools.«cache¦lru_cache(maxsize=None)»
def $fib($n):
    if $n < 2:
        return $n
    return $fib($n - 1) + $fib($n - 2)
---
=> $fib(N)
~~ loop | 40*n | 64
def $fib($n):
    $a, $b = 0, 1
    for _ in range($n):
        $a, $b = $b, $a + $b
    return $a
---
=> $fib(N)

== fibonacci-memo | 150*n | 150*n | 3-900
def $fib($n, $memo):
    if $n < 2:
        return $n
    if $n not in $memo:
        $memo[$n] = $fib($n - 1, $memo) + $fib($n - 2, $memo)
    return $memo[$n]
---
=> $fib(N, {})

== tribonacci | 110*1.84**n | 500 | 3-48
def $climb($n):
    if $n < 0:
        return 0
    if $n == 0:
        return 1
    return $climb($n - 1) + $climb($n - 2) + $climb($n - 3)
---
=> $climb(N)
~~ cached | 250*n | 200*n
@functools.cache
def $climb($n):
    if $n < 0:
        return 0
    if $n == 0:
        return 1
    return $climb($n - 1) + $climb($n - 2) + $climb($n - 3)
---
=> $climb(N)

== hanoi | 100*2**n | 500 | 2-45
def $move($disks, $source, $target, $spare):
    if $disks == 0:
        return 0
    $moves = $move($disks - 1, $source, $spare, $target)
    return $moves + 1 + $move($disks - 1, $spare, $target, $source)
---
=> $move(N, "A", "C", "B")
~~ formula | 60 | 32
=> 2 ** N - 1

== hanoi-list | 180*2**n | 75*2**n | 2-40
def $move($disks, $source, $target, $spare, $moves):
    if $disks > 0:
        $move($disks - 1, $source, $spare, $target, $moves)
        $moves.append(($source, $target))
        $move($disks - 1, $spare, $target, $source, $moves)
---
$moves = []
$move(N, "A", "C", "B", $moves)
=> len($moves)

== subsets | 150*2**n | 60*2**n | 2-35
def $subsets($values):
    if not $values:
        return [[]]
    $rest = $subsets($values[1:])
    return $rest + [[$values[0]] + $subset for $subset in $rest]
---
=> «$subsets(list(range(N)))¦len($subsets(list(range(N))))»

== subset-masks | 60*2**n*n | 64 | 2-40
$values = [$i * 3 + 1 for $i in range(N)]
$count = 0
for $mask in range(1 << N):
    $total = 0
    for $i in range(N):
        if $mask >> $i & 1:
            $total += $values[$i]
    if $total == #10:90#:
        $count += 1
=> $count
~~ table | 4000*n | 2000
$values = [$i * 3 + 1 for $i in range(N)]
$ways = [1] + [0] * 100
for $value in $values:
    for $amount in range(100, $value - 1, -1):
        $ways[$amount] += $ways[$amount - $value]
=> $ways[#10:90#]

== binary-tree-walk | 120*2**n | 600 | 2-40
def $walk($depth):
    if $depth == 0:
        return 1
    return $walk($depth - 1) + $walk($depth - 1)
---
=> $walk(N)
~~ shared | 60*n | 600
def $walk($depth):
    if $depth == 0:
        return 1
    return 2 * $walk($depth - 1)
---
=> $walk(N)

== binary-tree-build | 250*2**n | 130*2**n | 2-35
def $grow($depth):
    if $depth == 0:
        return None
    return {"left": $grow($depth - 1), "right": $grow($depth - 1)}
---
=> $grow(N)

== linear-recursion | 80*n | 100*n | 2-900
def $descend($n):
    if $n == 0:
        return 0
    return «1¦$n» + $descend($n - 1)
---
=> $descend(N)
~~ loop | 40*n | 64
def $descend($n):
    $total = 0
    while $n > 0:
        $total += «1¦$n»
        $n -= 1
    return $total
---
=> $descend(N)

== halving-recursion | 80*log(n+2) | 200 | 2-10**18
def $halve($n):
    if $n <= 1:
        return 0
    return 1 + $halve($n // «2¦3»)
---
=> $halve(N)

== halving-both | 130*n | 600 | 2-10**9
def $split($n):
    if $n <= 1:
        return 1
    return $split($n // 2) + $split($n - $n // 2)
---
=> $split(N)

== power-recursive | 90*log(n+2) | 200 | 2-10**18
def $power($base, $exponent):
    if $exponent == 0:
        return 1
    $half = $power($base, $exponent // 2)
    $square = $half * $half % 1000007
    return $square * $base % 1000007 if $exponent % 2 else $square
---
=> $power(#2:99#, N)
~~ loop | 50*n | 64
def $power($base, $exponent):
    $result = 1
    for _ in range($exponent):
        $result = $result * $base % 1000007
    return $result
---
=> $power(#2:99#, N)

== permutations-recursive | 800*exp(lgamma(n+1)) | 130*exp(lgamma(n+1)) | 2-14
def $arrange($items):
    if len($items) <= 1:
        return [$items]
    $result = []
    for $i, $item in enumerate($items):
        for $rest in $arrange($items[:$i] + $items[$i + 1 :]):
            $result.append([$item] + $rest)
    return $result
---
=> len($arrange(list(range(N))))

== queens | 7000*exp(lgamma(n+1))/n | 2000 | 4-14
def $place($row, $columns, $n):
    if $row == $n:
        return 1
    $count = 0
    for $column in range($n):
        if all(abs($column - $other) not in (0, $row - $at) for $at, $other in enumerate($columns)):
            $count += $place($row + 1, $columns + [$column], $n)
    return $count
---
=> $place(0, [], N)

== ackermann-small | 1000*4**n | 3000 | 2-8
def $ack($m, $n):
    if $m == 0:
        return $n + 1
    if $n == 0:
        return $ack($m - 1, 1)
    return $ack($m - 1, $ack($m, $n - 1))
---
=> $ack(3, N)

== grid-paths | 90*4**n/sqrt(n) | 600 | 2-22
def $paths($rows, $columns):
    if $rows == 0 or $columns == 0:
        return 1
    return $paths($rows - 1, $columns) + $paths($rows, $columns - 1)
---
=> $paths(N, N)
~~ cached | 250*n*n | 150*n*n
@functools.cache
def $paths($rows, $columns):
    if $rows == 0 or $columns == 0:
        return 1
    return $paths($rows - 1, $columns) + $paths($rows, $columns - 1)
---
=> $paths(N, N)
~~ table | 50*n*n | 40*n*n
def $paths($rows, $columns):
    $table = [[1] * ($columns + 1) for _ in range($rows + 1)]
    for $row in range(1, $rows + 1):
        for $column in range(1, $columns + 1):
            $table[$row][$column] = $table[$row - 1][$column] + $table[$row][$column - 1]
    return $table[$rows][$columns]
---
=> $paths(N, N)

== factorial-recursive | 120*n+n*n*0.1 | 200*n | 2-900
def $fact($n):
    return 1 if $n <= 1 else $n * $fact($n - 1)
---
=> $fact(N)
~~ library | 20*n | 2*n
=> math.factorial(N)

== merge-sort | 350*n*log(n+2)/2 | 60*n
def $sort($values):
    if len($values) <= 1:
        return $values
    $middle = len($values) // 2
    $left, $right = $sort($values[:$middle]), $sort($values[$middle:])
    $merged = []
    $i = $j = 0
    while $i < len($left) and $j < len($right):
        if $left[$i] <= $right[$j]:
            $merged.append($left[$i])
            $i += 1
        else:
            $merged.append($right[$j])
            $j += 1
    return $merged + $left[$i:] + $right[$j:]
---
=> $sort([($i * 7919) % 10007 for $i in range(N)])
~~ library | 120*n | 48*n
def $sort($values):
    return sorted($values)
---
=> $sort([($i * 7919) % 10007 for $i in range(N)])

== quick-sort | 100*n*log(n+2) | 100*n
def $sort($values):
    if len($values) < 2:
        return $values
    $pivot = $values[len($values) // 2]
    return (
        $sort([$x for $x in $values if $x < $pivot])
        + [$x for $x in $values if $x == $pivot]
        + $sort([$x for $x in $values if $x > $pivot])
    )
---
=> $sort([($i * 7919) % 100003 for $i in range(N)])

== bubble-sort | 45*n*n | 40*n | 3-10**6
$values = [($i * 7919) % 10007 for $i in range(N)]
for $i in range(len($values)):
    for $j in range(len($values) - 1 - $i):
        if $values[$j] > $values[$j + 1]:
            $values[$j], $values[$j + 1] = $values[$j + 1], $values[$j]
=> $values
~~ sorted | 120*n | 48*n
$values = [($i * 7919) % 10007 for $i in range(N)]
$values = sorted($values)
=> $values

== selection-sort | 25*n*n | 40*n | 3-10**6
$values = list(range(N, 0, -1))
for $i in range(len($values)):
    $low = $i
    for $j in range($i + 1, len($values)):
        if $values[$j] < $values[$low]:
            $low = $j
    $values[$i], $values[$low] = $values[$low], $values[$i]
=> $values
~~ method | 20*n | 40*n
$values = list(range(N, 0, -1))
$values.sort()
=> $values

== insertion-sort | 30*n*n | 40*n | 3-10**6
$values = [N - $i for $i in range(N)]
for $i in range(1, len($values)):
    $key = $values[$i]
    $j = $i - 1
    while $j >= 0 and $values[$j] > $key:
        $values[$j + 1] = $values[$j]
        $j -= 1
    $values[$j + 1] = $key
=> $values

== sort-numbers | 120*n | 48*n
$values = [($i * 7919) % #97:99991# for $i in range(N)]
=> «sorted($values)¦sorted($values, reverse=True)¦sorted($values)[-#1:9#:]»
~~ maximum | 55*n | 40*n
$values = [($i * 7919) % #97:99991# for $i in range(N)]
=> max($values)

== sort-with-key | 200*n | 60*n
$values = [($i * 31) % 1009 for $i in range(N)]
=> sorted($values, key=lambda $x: «-$x¦$x % 10¦($x % 7, $x)¦str($x)»)

== sort-strings | 500*n | 80*n
$names = [f"@w{($i * 7919) % 10007}" for $i in range(N)]
=> sorted($names«¦, key=str.lower¦, key=len»)

== sort-random | 350*n | 48*n
$rng = random.Random(#1:99#)
$values = [$rng.random() for _ in range(N)]
$values.sort()
=> $values[«0¦-1¦len($values) // 2»]

== shuffle | 450*n | 40*n
$values = list(range(N))
random.Random(#1:99#).shuffle($values)
=> $values

== sort-in-loop | 40*n*60 | 20000 | 2-10**7
$values = [($i * 37) % 101 for $i in range(#20:400#)]
$total = 0
for $k in range(N):
    $total += sorted($values)[$k % 10]
=> $total
~~ hoisted | 50*n+10000 | 20000
$values = [($i * 37) % 101 for $i in range(#20:400#)]
$ordered = sorted($values)
$total = 0
for $k in range(N):
    $total += $ordered[$k % 10]
=> $total

== sum-in-loop | 6*n*n+40*n | 40*n | 3-10**6
$values = list(range(N))
$result = []
for $i in range(len($values)):
    $result.append($values[$i] / (sum($values) + 1))
=> $result
~~ hoisted | 90*n | 64*n
$values = list(range(N))
$total = sum($values)
$result = []
for $i in range(len($values)):
    $result.append($values[$i] / ($total + 1))
=> $result

== max-in-loop | 12*n*n+40*n | 40*n | 3-10**6
$values = [($i * 7919) % 10007 for $i in range(N)]
=> [«max¦min»($values) - $x for $x in $values]
~~ hoisted | 80*n | 80*n
$values = [($i * 7919) % 10007 for $i in range(N)]
$high = «max¦min»($values)
=> [$high - $x for $x in $values]

== len-in-loop | 60*n | 40*n
$values = list(range(N))
$i = 0
while $i < len($values):
    $values[$i] «+=¦*=¦^=» 2
    $i += 1
=> $values

== prefix-sums | 6*n*n*0.5 | 40*n | 3-10**6
$values = [$i % 13 for $i in range(N)]
=> [sum($values[: $i + 1]) for $i in range(len($values))]
~~ accumulate | 50*n | 48*n
$values = [$i % 13 for $i in range(N)]
=> list(itertools.accumulate($values))

== two-sum | 25*n*n | 40*n | 3-10**6
$values = [$i * 2 for $i in range(N)]
for $i in range(len($values)):
    for $j in range($i + 1, len($values)):
        if $values[$i] + $values[$j] == -1:
            return ($i, $j)
=> None
~~ set | 75*n | 100*n
$values = [$i * 2 for $i in range(N)]
$seen = set()
for $value in $values:
    if -1 - $value in $seen:
        return $value
    $seen.add($value)
=> None

== duplicates | 15*n*n | 40*n | 3-10**6
$values = list(range(N))
$duplicates = []
for $i, $x in enumerate($values):
    if $x in $values[:$i]:
        $duplicates.append($x)
=> $duplicates
~~ set | 50*n | 100*n
$values = list(range(N))
=> len($values) - len(set($values))

== sieve | 90*n | 8*n | 4-10**9
$flags = [True] * (N + 1)
$flags[0] = $flags[1] = False
for $i in range(2, int(N ** 0.5) + 1):
    if $flags[$i]:
        for $j in range($i * $i, N + 1, $i):
            $flags[$j] = False
=> «sum($flags)¦[$i for $i, $flag in enumerate($flags) if $flag]»
~~ slices | 25*n | 9*n
$flags = bytearray([1]) * (N + 1)
$flags[0] = $flags[1] = 0
for $i in range(2, int(N ** 0.5) + 1):
    if $flags[$i]:
        $flags[$i * $i :: $i] = bytes(len(range($i * $i, N + 1, $i)))
=> sum($flags)

== trial-division | 8*n**1.5 | 64 | 4-10**8
def $is_prime($n):
    if $n < 2:
        return False
    for $d in range(2, int($n ** 0.5) + 1):
        if $n % $d == 0:
            return False
    return True
---
=> «sum(1 for $i in range(N) if $is_prime($i))¦sum($i for $i in range(N) if $is_prime($i))»
~~ naive | 4*n*n | 64
def $is_prime($n):
    if $n < 2:
        return False
    for $d in range(2, $n):
        if $n % $d == 0:
            return False
    return True
---
=> «sum(1 for $i in range(N) if $is_prime($i))¦sum($i for $i in range(N) if $is_prime($i))»

== divisors | 35*n | 300 | 10-10**12
=> [$d for $d in range(1, N + 1) if N % $d == 0]
~~ root | 35*sqrt(n) | 300
$small = [$d for $d in range(1, math.isqrt(N) + 1) if N % $d == 0]
=> sorted({*$small, *(N // $d for $d in $small)})

== factorize | 60*sqrt(n) | 200 | 10-10**13
$left = N + 1
$factors = []
$d = 2
while $d < math.isqrt(N):
    if $left % $d == 0:
        $factors.append($d)
    $d += 1
=> $factors

== perfect-numbers | 20*n*n | 64 | 3-10**6
$perfect = []
for $i in range(2, N):
    if sum($d for $d in range(1, $i) if $i % $d == 0) == $i:
        $perfect.append($i)
=> $perfect

== matrix-multiply | 60*n*n*n | 40*n*n | 2-5000
$a = [[$i + $j for $j in range(N)] for $i in range(N)]
$b = [[$i - $j for $j in range(N)] for $i in range(N)]
$c = [[0] * N for _ in range(N)]
for $i in range(N):
    for $j in range(N):
        for $k in range(N):
            $c[$i][$j] += $a[$i][$k] * $b[$k][$j]
=> $c
~~ zipped | 45*n*n*n | 80*n*n
$a = [[$i + $j for $j in range(N)] for $i in range(N)]
$b = [[$i - $j for $j in range(N)] for $i in range(N)]
=> [[sum($x * $y for $x, $y in zip($row, $column)) for $column in zip(*$b)] for $row in $a]

== matrix-transpose | 60*n*n | 25*n*n | 2-30000
$rows = [[$i * $j for $j in range(N)] for $i in range(N)]
=> «[list($row) for $row in zip(*$rows)]¦[[$row[$j] for $row in $rows] for $j in range(N)]»

== matrix-diagonal | 45*n*n+50*n | 20*n*n | 2-30000
$rows = [[$i + $j for $j in range(N)] for $i in range(N)]
=> sum($rows[$i][$i] for $i in range(N))
~~ full-sum | 60*n*n | 20*n*n
$rows = [[$i + $j for $j in range(N)] for $i in range(N)]
=> sum(sum($row) for $row in $rows)

== game-of-life | 600*n*n*3 | 20*n*n | 3-3000
$grid = [[($i * $j) % 3 == 0 for $j in range(N)] for $i in range(N)]
for _ in range(#1:5#):
    $next = [[False] * N for _ in range(N)]
    for $i in range(N):
        for $j in range(N):
            $near = sum(
                $grid[($i + $a) % N][($j + $b) % N] for $a in (-1, 0, 1) for $b in (-1, 0, 1) if $a or $b
            )
            $next[$i][$j] = $near == 3 or ($grid[$i][$j] and $near == 2)
    $grid = $next
=> sum(map(sum, $grid))

== knapsack | 150*n*30 | 16*n | 5-10**7
$weights = [$i % 11 + 1 for $i in range(#6:80#)]
$best = [0] * (N + 1)
for $weight in $weights:
    for $capacity in range(N, $weight - 1, -1):
        $best[$capacity] = max($best[$capacity], $best[$capacity - $weight] + $weight * 2)
=> $best[N]

== coin-change | 60*n*5 | 36*n | 5-10**7
$ways = [1] + [0] * N
for $coin in (1, 2, 5, 10, #20:50#):
    for $amount in range($coin, N + 1):
        $ways[$amount] += $ways[$amount - $coin]
=> $ways[N]

== longest-common | 150*n*n | 8*n*n | 3-20000
$left, $right = "abcde" * (N // 5 + 1), "badce" * (N // 5 + 1)
$table = [[0] * (len($right) + 1) for _ in range(len($left) + 1)]
for $i, $a in enumerate($left):
    for $j, $b in enumerate($right):
        $table[$i + 1][$j + 1] = $table[$i][$j] + 1 if $a == $b else max($table[$i][$j + 1], $table[$i + 1][$j])
=> $table[-1][-1]
~~ two-rows | 80*n*n | 20*n
$left, $right = "abcde" * (N // 5 + 1), "badce" * (N // 5 + 1)
$previous = [0] * (len($right) + 1)
for $a in $left:
    $current = [0]
    for $j, $b in enumerate($right):
        $current.append($previous[$j] + 1 if $a == $b else max($previous[$j + 1], $current[-1]))
    $previous = $current
=> $previous[-1]

== edit-distance | 15000*n | 600+6*n | 3-10**7
$source, $target = "kitten" * N, "sitting" * #1:3#
$previous = list(range(len($target) + 1))
for $i, $a in enumerate($source, 1):
    $current = [$i]
    for $j, $b in enumerate($target, 1):
        $current.append(min($previous[$j] + 1, $current[-1] + 1, $previous[$j - 1] + ($a != $b)))
    $previous = $current
=> $previous[-1]

== pascal | 25*n*n | 18*n*n | 2-600
$rows = [[1]]
for _ in range(N):
    $last = $rows[-1]
    $rows.append([1, *($a + $b for $a, $b in zip($last, $last[1:])), 1])
=> «$rows¦$rows[-1]¦len($rows)»

== longest-increasing | 25*n*n | 40*n | 3-10**6
$values = [($i * 7919) % 1009 for $i in range(N)]
$best = [1] * len($values)
for $i in range(len($values)):
    for $j in range($i):
        if $values[$j] < $values[$i] and $best[$j] + 1 > $best[$i]:
            $best[$i] = $best[$j] + 1
=> max($best)
~~ bisect | 150*n | 40*n
$values = [($i * 7919) % 1009 for $i in range(N)]
$tails = []
for $value in $values:
    $at = bisect.bisect_left($tails, $value)
    $tails[$at : $at + 1] = [$value]
=> len($tails)

== binary-search | 60*log(n+2)*2 | 64 | 5-10**15
$low, $high = 0, N
$wanted = N // 3
while $low < $high:
    $middle = ($low + $high) // 2
    if $middle < $wanted:
        $low = $middle + 1
    else:
        $high = $middle
=> $low
~~ scan | 10*n | 64
$low = 0
$wanted = N // 3
while $low < $wanted:
    $low += 1
=> $low

== breadth-first | 350*n | 120*n
$graph = {$i: [(2 * $i + 1) % N, (3 * $i + 2) % N] for $i in range(N)}
$seen = {0}
$queue = collections.deque([0])
while $queue:
    $node = $queue.popleft()
    for $other in $graph[$node]:
        if $other not in $seen:
            $seen.add($other)
            $queue.append($other)
=> len($seen)

== depth-first-grid | 450*n*n | 100*n*n | 2-3000
$seen = set()
$stack = [(0, 0)]
while $stack:
    $x, $y = $stack.pop()
    if ($x, $y) in $seen or not (0 <= $x < N and 0 <= $y < N):
        continue
    $seen.add(($x, $y))
    $stack += [($x + 1, $y), ($x - 1, $y), ($x, $y + 1), ($x, $y - 1)]
=> len($seen)

== floyd-warshall | 75*n*n*n | 40*n*n | 2-4000
$cost = [[($i * 17 + $j * 31) % 97 + 1 for $j in range(N)] for $i in range(N)]
for $k in range(N):
    for $i in range(N):
        for $j in range(N):
            if $cost[$i][$k] + $cost[$k][$j] < $cost[$i][$j]:
                $cost[$i][$j] = $cost[$i][$k] + $cost[$k][$j]
=> $cost[0][-1]

== dijkstra | 900*n | 200*n
$distance = {0: 0}
$heap = [(0, 0)]
while $heap:
    $cost, $node = heapq.heappop($heap)
    if $cost > $distance[$node]:
        continue
    for $other, $weight in (($node * 2 + 1, 3), ($node + 1, 2)):
        if $other < N and $cost + $weight < $distance.get($other, 10**12):
            $distance[$other] = $cost + $weight
            heapq.heappush($heap, ($distance[$other], $other))
=> len($distance)

== union-find | 350*n | 40*n
def $root($parent, $x):
    while $parent[$x] != $x:
        $parent[$x] = $parent[$parent[$x]]
        $x = $parent[$x]
    return $x
---
$parent = list(range(N))
for $i in range(N):
    $parent[$root($parent, $i)] = $root($parent, ($i * 7 + 3) % N)
=> $parent[0]

== random-walk | 120*n | 40*n
$rng = random.Random(#1:99#)
$position = 0
$path = [0]
for _ in range(N):
    $position += 1 if $rng.random() < 0.5 else -1
    $path.append($position)
=> «$path¦max($path)»

== euler-steps | 90*n | 64
$x, $v, $dt = 1.0, 0.0, 0.001
for _ in range(N):
    $v -= $x * $dt
    $x += $v * $dt
=> ($x, $v)

== n-body | 110*n*n | 500*n | 2-100000
$bodies = [[float($i), float($i % 7), 0.0] for $i in range(N)]
for $a in $bodies:
    for $b in $bodies:
        $dx, $dy = $b[0] - $a[0], $b[1] - $a[1]
        $a[2] += 1.0 / (1.0 + $dx * $dx + $dy * $dy)
=> $bodies[0]

== mandelbrot | 3500*n*n | 40*n*n | 2-20000
$rows = []
for $y in range(N):
    $row = []
    for $x in range(N):
        $z, $c = 0j, complex($x / N * 3 - 2, $y / N * 2 - 1)
        $steps = 0
        while abs($z) < 2 and $steps < #15:60#:
            $z = $z * $z + $c
            $steps += 1
        $row.append($steps)
    $rows.append($row)
=> $rows

== points-closest | 60*n*n | 100*n | 3-100000
$points = [(($i * 37) % 101, ($i * 53) % 103) for $i in range(N)]
=> min(math.dist($p, $q) for $i, $p in enumerate($points) for $q in $points[$i + 1 :])

== look-and-say | 130*1.3**n*3 | 30*1.3**n | 3-60
$text = "1"
for _ in range(N):
    $text = "".join(f"{len(list($group))}{$key}" for $key, $group in itertools.groupby($text))
=> len($text)

== cached-lookups | 90*n+200000 | 20000
@functools.lru_cache(maxsize=None)
def $slow($x):
    $total = 0
    for $k in range(#50:2000#):
        $total += $k * $x
    return $total
---
$total = 0
for $i in range(N):
    $total += $slow($i % 10)
=> $total
~~ uncached | 40*n*400 | 300
def $slow($x):
    $total = 0
    for $k in range(#50:2000#):
        $total += $k * $x
    return $total
---
$total = 0
for $i in range(N):
    $total += $slow($i % 10)
=> $total

== generator-pipeline | 130*n | 600
def $produce($n):
    for $i in range($n):
        yield $i


def $double($stream):
    for $x in $stream:
        yield $x * 2
---
=> sum($double($produce(N)))
~~ unused | 400 | 400
def $produce($n):
    for $i in range($n):
        yield $i


def $double($stream):
    for $x in $stream:
        yield $x * 2
---
=> $double($produce(N))

== yield-nested | 40*n*40 | 500
def $cells($n):
    for $i in range($n):
        for $j in range(#5:90#):
            yield $i, $j
---
=> sum($a ^ $b for $a, $b in $cells(N))
"""
