"""Loops over literal ranges: plain, nested, triangular, strided, ``while``, comprehensions and consumed generators."""

TEMPLATES = r"""
== sum-range | 13*n | 64
=> «sum(range(N))¦sum(range(1, N + 1))¦sum(range(0, N))»
~~ closed-form | 60 | 0
$size = N
=> $size * ($size - 1) // 2

== count-loop | 40*n | 64
$total = 0
for $i in range(N):
    $total += @e($i)
=> $total
~~ generator | 45*n | 200
=> sum(@e($i) for $i in range(N))
~~ list | 45*n | 40*n
=> sum([@e($i) for $i in range(N)])

== filter-count | 55*n | 64
$count = 0
for $i in range(N):
    if @c($i):
        $count += 1
=> $count
~~ comprehension | 50*n | 20*n
=> len([$i for $i in range(N) if @c($i)])
~~ generator | 55*n | 200
=> sum(1 for $i in range(N) if @c($i))

== pass-loop | 12*n | 64
for _ in range(N):
    pass
=> «None¦True¦"done"»

== nested-square | 38*n*n | 64 | 2-10**6
$total = 0
for $i in range(N):
    for $j in range(N):
        $total += $i «*¦+¦^¦-» $j
=> $total
~~ single | 40*n | 64
$total = 0
for $i in range(N):
    $total += $i * 3
=> $total
~~ triangle | 20*n*n | 64
$total = 0
for $i in range(N):
    for $j in range($i«¦ + 1»):
        $total += $i + $j
=> $total

== nested-fixed | 40*n*40 | 64
$total = 0
for $i in range(N):
    for $j in range(#5:200#):
        $total += «$i ^ $j¦$i * $j¦1¦$j & 3»
=> $total

== nested-fixed-outer | 40*n*20 | 64
$hits = 0
for $i in range(#3:80#):
    for $j in range(N):
        if ($i + $j) % #2:9# == 0:
            $hits += 1
=> $hits

== triangular | 20*n*n | 64 | 2-10**6
$count = 0
for $i in range(N):
    for $j in range($i):
        if «($i ^ $j) & 1¦$i * $j % 7 == 0¦$j > 10»:
            $count += 1
=> $count

== triangular-upper | 22*n*n | 64 | 2-10**6
$total = 0
for $i in range(N):
    for $j in range($i + 1, N):
        $total += $j - $i
=> $total

== triple-loop | 40*n*n*n | 64 | 2-20000
$total = 0
for $i in range(N):
    for $j in range(N):
        for $k in range(N):
            $total += $i * $j - $k
=> $total
~~ double | 40*n*n | 64
$total = 0
for $i in range(N):
    for $j in range(N):
        $total += $i * $j
=> $total

== triple-triangle | 7*n*n*n | 64 | 3-20000
$count = 0
for $i in range(N):
    for $j in range($i):
        for $k in range($j):
            $count += 1
=> $count

== strided | 40*n/4 | 64
$total = 0
for $i in range(0, N, #2:20#):
    $total += $i
=> $total
~~ every | 40*n | 64
$total = 0
for $i in range(0, N):
    $total += $i
=> $total

== downward | 40*n | 64
$total = 0
for $i in range(N, 0, -1):
    $total «+=¦^=¦-=» $i
=> $total

== harmonic | 4*n*log(n+2)*10 | 64 | 3-10**8
$count = 0
for $i in range(1, N):
    for $j in range($i, N, $i):
        $count += 1
=> $count
~~ quadratic | 35*n*n | 64
$count = 0
for $i in range(1, N):
    for $j in range(1, N):
        $count += 1
=> $count

== while-add | 50*n | 64
$i = 0
$total = 0
while $i < N:
    $total += «$i¦2¦$i & 15»
    $i += 1
=> $total
~~ for | 38*n | 64
$total = 0
for $i in range(N):
    $total += «$i¦2¦$i & 15»
=> $total

== while-step | 50*n/5 | 64
$position = 0
$steps = 0
while $position < N:
    $position += #2:12#
    $steps += 1
=> $steps

== while-down | 45*n | 64
$left = N
while $left > 0:
    $left -= 1
=> $left

== while-double | 40*log(n)+60 | 64 | 2-10**18
$value = 1
$steps = 0
while $value < N:
    $value *= «2¦3¦10»
    $steps += 1
=> $steps
~~ linear | 40*n | 64
$value = 1
$steps = 0
while $value < N:
    $value += 1
    $steps += 1
=> $steps

== while-halve | 50*log(n)+60 | 64 | 2-10**18
$value = N
$steps = 0
while $value > 1:
    $value //= «2¦3¦10»
    $steps += 1
=> $steps

== while-true-break | 60*n | 64
$i = 0
while True:
    if $i >= N:
        break
    $i += 1
=> $i

== loop-log-inner | 55*n*log(n+2)*1.5 | 64
$total = 0
for $i in range(N):
    $value = $i
    while $value > 0:
        $value //= 2
        $total += 1
=> $total

== loop-divmod-digits | 60*n*log(n+2)/2 | 64
$total = 0
for $i in range(N):
    $value = $i
    while $value:
        $value, $digit = divmod($value, 10)
        $total += $digit
=> $total
~~ strings | 120*n*log(n+2)/2 | 300
$total = 0
for $i in range(N):
    $total += sum(int($char) for $char in str($i))
=> $total

== list-comprehension | 40*n | 40*n
=> [@e($i) for $i in range(N)]
~~ set | 60*n | 70*n
=> {@e($i) for $i in range(N)}
~~ generator | 400 | 250
=> (@e($i) for $i in range(N))

== append-loop | 45*n | 40*n
$result = []
for $i in range(N):
    $result.append(@e($i))
=> $result
~~ concatenation | 100*n+2*n*n | 48*n
$result = []
for $i in range(N):
    $result = $result + [@e($i)]
=> $result
~~ insert-front | 60*n+0.3*n*n | 40*n
$result = []
for $i in range(N):
    $result.insert(0, @e($i))
=> $result

== nested-comprehension | 35*n*n | 9*n*n | 2-200000
=> [[«0¦$j¦$i * $j¦$i + $j» for $j in range(N)] for $i in range(N)]
~~ flat | 40*n*n | 9*n*n
=> [«0¦$j¦$i * $j¦$i + $j» for $i in range(N) for $j in range(N)]

== pair-comprehension | 70*n*n | 64*n*n | 2-100000
=> [($i, $j) for $i in range(N) for $j in range(«N¦$i»)]

== max-generator | 45*n | 200
=> «max¦min»(@e($i) for $i in range(1, N))

== any-all-scan | 40*n | 200
=> «any($i < 0 for $i in range(N))¦all($i >= 0 for $i in range(N))¦any($i == -1 for $i in range(N))»
~~ stops-at-once | 400 | 300
=> «any($i >= 0 for $i in range(N))¦all($i < 0 for $i in range(N))¦any($i == 1 for $i in range(N))»

== sorted-generator | 80*n+20*n*log(n+2) | 48*n
=> sorted(@e($i) for $i in range(N))

== list-of-range | 14*n | 40*n
=> «list(range(N))¦[*range(N)]¦tuple(range(N))¦list(range(0, N))»
~~ lazy | 120 | 48
=> range(N)

== map-filter | 60*n | 64
=> sum(map(lambda $x: @e($x), «range(N)¦filter(lambda $y: @c($y), range(N))»))
~~ listed | 70*n | 40*n
=> sum(list(map(lambda $x: @e($x), «range(N)¦filter(lambda $y: @c($y), range(N))»)))

== zip-enumerate | 60*n | 100
$total = 0
for $i, $x in enumerate(«range(N)¦zip(range(N), range(N))»):
    $total += $i
=> $total

== float-loop | 45*n | 64
$value = 0.0
for $i in range(1, N):
    $value += «1.0 / $i¦$i * 0.5¦1.0 / ($i * $i)¦(-1) ** $i / $i»
=> $value

== math-loop | 70*n | 64
$total = 0.0
for $i in range(1, N):
    $total += math.«sqrt($i)¦sin($i)¦log($i)¦exp(-$i / 1000)¦hypot($i, 2.0)¦atan2($i, 3)»
=> $total

== gcd-loop | 70*n | 64
$count = 0
for $i in range(1, N):
    if math.gcd($i, #12:5000#) == 1:
        $count += 1
=> $count

== gcd-pairs | 70*n*n | 64 | 2-100000
$count = 0
for $i in range(1, N):
    for $j in range(1, N):
        $count += math.gcd($i, $j) == 1
=> $count

== loop-call-helper | 75*n | 64
def $transform($x):
    return @e($x)
---
$total = 0
for $i in range(N):
    $total += $transform($i)
=> $total
~~ inlined | 40*n | 64
$total = 0
for $i in range(N):
    $total += @e($i)
=> $total
~~ mapped | 60*n | 200
def $transform($x):
    return @e($x)
---
=> sum(map($transform, range(N)))

== loop-call-deep | 190*n | 64
def $scale($x):
    return $x * 2


def $shift($x):
    return $scale($x) + 1


def $transform($x):
    return $shift($x) - 3
---
$total = 0
for $i in range(N):
    $total += $transform($i)
=> $total

== loop-call-loop | 40*n*50 | 64
def $weigh($x):
    $weight = 0
    for $k in range(#8:150#):
        $weight += $x ^ $k
    return $weight
---
$total = 0
for $i in range(N):
    $total += $weigh($i)
=> $total
~~ hoisted | 40*n+2500 | 64
def $weigh($x):
    $weight = 0
    for $k in range(#8:150#):
        $weight += $x ^ $k
    return $weight
---
$total = 0
$fixed = $weigh(7)
for $i in range(N):
    $total += $fixed + $i
=> $total

== quadratic-helper | 35*n*n | 300 | 2-10**6
def $compare($values):
    $pairs = 0
    for $x in $values:
        for $y in $values:
            if $x < $y:
                $pairs += 1
    return $pairs
---
=> $compare(«list(range(N))¦range(N)¦[$i * 7 % 101 for $i in range(N)]»)
~~ linear | 40*n | 300
def $compare($values):
    $pairs = 0
    for $at, $x in enumerate($values):
        $pairs += $at
    return $pairs
---
=> $compare(«list(range(N))¦range(N)¦[$i * 7 % 101 for $i in range(N)]»)

== continue-loop | 50*n | 64
$kept = 0
for $i in range(N):
    if $i % #2:12#:
        continue
    $kept += $i
=> $kept

== try-in-loop | 70*n | 64
$failures = 0
for $i in range(N):
    try:
        $value = int(«$i¦"12"¦str($i)»)
    except ValueError:
        $failures += 1
=> $failures

== raise-in-loop | 250*n | 400
$failures = 0
for $i in range(N):
    try:
        raise «ValueError("bad")¦KeyError($i)»
    except («ValueError, ¦»KeyError):
        $failures += 1
    except ValueError:
        $failures += 2
=> $failures

== collatz | 70*n*60 | 64 | 2-10**7
$longest = 0
for $i in range(1, N):
    $value, $steps = $i, 0
    while $value != 1:
        $value = $value // 2 if $value % 2 == 0 else 3 * $value + 1
        $steps += 1
    $longest = max($longest, $steps)
=> $longest

== linear-congruential | 60*n | 64
$state = #3:9999#
for _ in range(N):
    $state = ($state * 1103515245 + 12345) % 2147483648
=> $state

== monte-carlo | 110*n | 64
$rng = random.Random(#1:999#)
$inside = 0
for _ in range(N):
    $x, $y = $rng.random(), $rng.random()
    if $x * $x + $y * $y <= 1.0:
        $inside += 1
=> 4 * $inside / N

== random-draws | 500*n | 40*n
=> [random.«randint(1, 100)¦randrange(1000)¦choice("abcdef")¦uniform(0, 5)» for _ in range(N)]

== newton | 110*n | 64
$guess = 1.0
for _ in range(N):
    $guess = 0.5 * ($guess + #2:99# / $guess)
=> $guess

== bit-count | 75*n | 64
=> sum(«bin($i).count("1")¦$i.bit_count()¦$i.bit_length()» for $i in range(N))

== isinstance-loop | 60*n | 64
$count = 0
for $x in range(N):
    if isinstance($x, «int¦str¦(float, str)»):
        $count += 1
=> $count

== range-three-levels | 40*n*30 | 64
$total = 0
for $i in range(#2:8#):
    for $j in range(#2:8#):
        for $k in range(N):
            $total += $i + $j + $k
=> $total
"""
