"""Functions that look expensive and cost little: big numbers that nothing iterates over, early exits, unused streams.

Their size is in the text like that of the others, but the cost does not follow it.
"""

TEMPLATES = r"""
== big-range-unused | 150 | 48 | 10-10**12
$span = range(N)
=> «len($span)¦$span[-1]¦N - 1 in $span¦$span.stop¦bool($span)¦$span[5]»
~~ iterated | 14*n | 64 | 10-10**12
$span = range(N)
=> sum($span)

== big-comparison | 60 | 0 | 10-10**18
$value = #2:5000#
=> «$value < N¦min($value, N)¦$value if $value < N else N¦N > $value > 0»

== big-constant-arithmetic | 60 | 32 | 10-10**18
$size = N
=> «$size * 2 + 1¦$size // 7¦$size % 1000¦f"{$size:,}"¦divmod($size, 60)¦$size ** 0.5¦str($size)»

== first-match | 400 | 250 | 100-10**12
for $i in range(N):
    if $i «> #2:60#¦* $i > #50:3000#¦== #3:90#»:
        return $i
=> -1
~~ exhaustive | 35*n | 64 | 100-10**12
$last = -1
for $i in range(N):
    if $i «> #2:60#¦* $i > #50:3000#¦== #3:90#»:
        $last = $i
=> $last

== break-after | 40*30 | 64 | 1000-10**12
$count = 0
for $i in range(N):
    if $count >= #5:900#:
        break
    $count += 1
=> $count
~~ no-break | 40*n | 64 | 1000-10**12
$count = 0
for $i in range(N):
    if $count < 0:
        break
    $count += 1
=> $count

== generator-unused | 300 | 250 | 10-10**12
$lazy = (@e($i) for $i in range(N))
=> «$lazy¦next($lazy)¦[next($lazy), next($lazy)]¦type($lazy).__name__»
~~ consumed | 45*n | 250 | 10-10**12
$lazy = (@e($i) for $i in range(N))
=> sum($lazy)

== islice-stream | 60*40 | 300 | 100-10**12
$stream = (@e($i) for $i in range(N))
=> «list(itertools.islice($stream, #3:60#))¦sum(itertools.islice($stream, #3:60#))»
~~ whole | 50*n | 40*n | 100-10**12
$stream = (@e($i) for $i in range(N))
=> «list($stream)¦sum($stream)»

== early-return | 80 | 32 | 100-10**12
$ready = "«start¦stop¦go»".startswith("«s¦st¦g»")
if len("@w") > 1:
    return $ready
$total = 0
for $i in range(N):
    $total += $i
=> $total
~~ late | 40*n | 64 | 100-10**12
$ready = "«start¦stop¦go»".startswith("«s¦st¦g»")
if len("@w") > 100:
    return $ready
$total = 0
for $i in range(N):
    $total += $i
=> $total

== false-branch | 80 | 32 | 100-10**12
$enabled = «False¦0¦""¦None»
$total = 0
if $enabled:
    for $i in range(N):
        $total += $i
=> $total
~~ true-branch | 40*n | 64 | 100-10**12
$enabled = True
$total = 0
if $enabled:
    for $i in range(N):
        $total += $i
=> $total

== short-circuit | 90 | 64 | 100-10**12
$flag = «True¦1 < 2¦bool("x")»
=> $flag or «sum(range(N))¦any($i < 0 for $i in range(N))¦list(range(N))»
~~ evaluated | 20*n | 64 | 100-10**12
$flag = «False¦1 > 2¦bool("")»
=> $flag or «sum(range(N))¦any($i < 0 for $i in range(N))¦list(range(N))»

== membership-range | 90 | 48 | 10-10**12
=> #2:9000# in range(«0, N, 3¦N¦1, N»)
~~ membership-list | 15*n | 36*n | 10-10**12
=> -1 in list(range(N))

== any-first | 500 | 300 | 10-10**12
=> any(«$i > #1:20#¦$i % #2:9# == #0:1#¦$i * 2 >= #2:30#» for $i in range(N))

== next-default | 600 | 300 | 50-10**12
=> next(($i for $i in range(1, N) if $i % #2:40# == 0), None)

== zip-short | 70*10 | 300 | 100-10**12
$labels = ["@w", "low", "high", "none"]
=> «dict(zip($labels, range(N)))¦list(zip(range(N), $labels))¦[$pair for $pair in zip($labels, itertools.count(), range(N))]»

== empty-loop-over-literal | 300 | 64 | 10-10**12
$total = 0
for $x in (#1:9#, #2:99#, #5:50#):
    $total += $x * N
=> $total

== map-unused | 150 | 250 | 10-10**12
$mapped = map(«str¦abs¦float», range(N))
=> «next($mapped)¦$mapped is not None¦iter($mapped)»
~~ listed | 70*n | 60*n | 10-10**12
$mapped = map(«str¦abs¦float», range(N))
=> list($mapped)

== lambda-uncalled | 120 | 150 | 10-10**12
$later = lambda: sum(range(N))
=> «callable($later)¦$later¦{"run": $later}»
~~ called | 14*n | 64 | 10-10**12
$later = lambda: sum(range(N))
=> $later()

== nested-function-uncalled | 120 | 150 | 10-10**12
def $heavy():
    $values = [$i * $i for $i in range(N)]
    return sum($values)

=> «$heavy.__name__¦$heavy is None¦[$heavy]»
~~ called | 50*n | 40*n | 10-10**12
def $heavy():
    $values = [$i * $i for $i in range(N)]
    return sum($values)

=> $heavy()

== exception-first | 500 | 400 | 100-10**12
try:
    $value = int("«x¦none¦@w»")
    for $i in range(N):
        $value += $i
except ValueError:
    $value = -1
=> $value

== return-in-try | 150 | 64 | 100-10**12
$values = {"«low¦high»": #1:50#, "@w": N}
for $key, $value in $values.items():
    if $value < N:
        return $key
for $i in range(N):
    $values[$i] = $i
=> $values

== itertools-infinite | 60*30 | 300 | 10-10**12
$total = 0
for $i in itertools.count():
    if $i >= #5:600# or $i >= N:
        break
    $total += $i
=> $total

== cycle-take | 60*30 | 300 | 10-10**12
=> [$x for $x, _ in zip(itertools.cycle("«abc¦xy¦0123»"), range(min(N, #5:200#)))]

== big-slice-small | 200 | 100 | 100-10**12
$span = range(N)
=> «list($span[:#2:30#])¦sum($span[-#2:30#:])¦[$i for $i in $span[#2:9#:#10:60#]]»

== repeat-lazy | 150 | 64 | 100-10**12
$copies = itertools.repeat("@w", N)
=> «next($copies)¦$copies¦[next($copies), next($copies)]»
~~ listed | 8*n | 8*n | 100-10**12
$copies = itertools.repeat("@w", N)
=> list($copies)
"""
