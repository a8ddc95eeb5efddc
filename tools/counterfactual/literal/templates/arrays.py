"""Arrays of literal size with numpy: creation, arithmetic, reductions, products, sorts, indexing, temporaries."""

TEMPLATES = r"""
== np-create | 0.3*n+300 | 8*n | 1-10**12
=> np.«zeros(N)¦ones(N)¦empty(N)¦full(N, 1.5)¦arange(N)¦linspace(0, 1, N)»
~~ list | 3*n | 8*n
=> [0.0] * N

== np-create-small-type | 0.05*n+300 | n | 1-10**12
=> np.«zeros(N, dtype=np.uint8)¦ones(N, dtype=bool)¦full(N, 7, dtype=np.int8)»
~~ wide | 0.5*n+300 | 8*n
=> np.«zeros(N, dtype=np.int64)¦ones(N, dtype=float)¦full(N, 7, dtype=np.int64)»

== np-create-square | 0.5*n*n+300 | 8*n*n | 1-10**6
=> np.«zeros((N, N))¦ones((N, N))¦eye(N)¦full((N, N), 0.5)¦identity(N)»
~~ half-type | 0.3*n*n+300 | 4*n*n
=> np.«zeros((N, N), dtype=np.float32)¦ones((N, N), dtype=np.float32)¦eye(N, dtype=np.float32)¦full((N, N), 0.5, dtype=np.float32)¦identity(N, dtype=np.float32)»

== np-plus-scalar | 0.8*n*n+1000 | 16*n*n | 1-10**6
=> np.«zeros((N, N))¦ones((N, N))» «+ 1¦* 2.5¦- 0.5»
~~ in-place | 0.6*n*n+1000 | 8*n*n
$grid = np.«zeros((N, N))¦ones((N, N))»
$grid «+= 1¦*= 2.5¦-= 0.5»
=> $grid

== np-sum-arange | 1.2*n+3000 | 8*n | 1-10**12
=> «np.arange(N).sum()¦np.sum(np.arange(N))¦int(np.arange(N).max())¦np.mean(np.arange(N))»
~~ python | 14*n | 64
=> sum(range(N))

== np-elementwise | 2*n+3000 | 24*n | 1-10**12
$x = np.arange(N, dtype=«float¦np.float64»)
=> «$x * $x + 1¦2 * $x - $x / 3¦$x ** 2 + $x¦($x - 1) * ($x + 1)»
~~ python | 80*n | 40*n
$x = [float($i) for $i in range(N)]
=> [$value * $value + 1 for $value in $x]
~~ float32 | 1*n+3000 | 12*n
$x = np.arange(N, dtype=np.float32)
=> «$x * $x + 1¦2 * $x - $x / 3¦$x ** 2 + $x¦($x - 1) * ($x + 1)»

== np-functions | 12*n+2000 | 16*n | 1-10**12
$x = np.linspace(0.1, 1, N)
=> np.«sin($x)¦exp($x)¦log($x)¦tanh($x)¦cos($x)»
~~ python | 90*n | 40*n
$x = [0.1 + 0.9 * $i / N for $i in range(N)]
=> [math.«sin($value)¦exp($value)¦log($value)¦tanh($value)¦cos($value)» for $value in $x]

== np-functions-sum | 2*n+3000 | 16*n | 1-10**12
=> np.«sqrt(np.arange(N)).sum()¦abs(np.arange(N) - 5).max()¦square(np.arange(N)).mean()»

== np-random | 6*n+15000 | 8*n | 1-10**11
$rng = np.random.default_rng(#1:99#)
=> $rng.«random(N)¦normal(size=N)¦integers(0, 100, N)»

== np-random-square | 10*n*n+1000 | 8*n*n | 1-200000
=> np.random.«rand(N, N)¦randn(N, N)¦random((N, N))»

== np-random-statistics | 8*n+20000 | 16*n | 1-10**11
$values = np.random.default_rng(#1:99#).normal(size=N)
=> «($values.mean(), $values.std())¦np.percentile($values, #1:99#)¦np.median($values)¦$values.var()»

== np-matmul | 0.06*n*n*n+2000 | 24*n*n | 1-20000
$a = np.ones((N, N))
=> «$a @ $a¦np.dot($a, $a)¦np.matmul($a, $a.T)¦($a @ $a).sum()»
~~ float32 | 0.03*n*n*n+2000 | 12*n*n
$a = np.ones((N, N), dtype=np.float32)
=> «$a @ $a¦np.dot($a, $a)¦np.matmul($a, $a.T)¦($a @ $a).sum()»
~~ python | 50*n*n*n | 16*n*n
$a = [[1.0] * N for _ in range(N)]
=> [[sum($x * $y for $x, $y in zip($row, $column)) for $column in zip(*$a)] for $row in $a]

== np-matvec | 1.5*n*n+2000 | 8*n*n+24*n | 1-100000
$a = np.ones((N, N))
$x = np.arange(N, dtype=float)
=> $a @ $x

== np-matmul-loop | 1500*n+1000 | 20000 | 1-10**8
$a = np.eye(#4:30#)
for _ in range(N):
    $a = $a @ $a
=> $a

== np-matmul-repeat | 0.06*n*n*n*5 | 24*n*n | 1-10000
$a = np.eye(N)
$b = np.full((N, N), 0.5)
for _ in range(#2:12#):
    $a = $a @ $b
=> $a

== np-solve | 0.05*n*n*n+8000 | 24*n*n | 2-20000
$a = np.eye(N) * 2 + np.ones((N, N))
=> np.linalg.«solve($a, np.ones(N))¦inv($a)¦det($a)»

== np-eigen | 0.4*n*n*n+15000 | 30*n*n | 2-5000
$a = np.eye(N) + np.ones((N, N))
=> np.linalg.«eigvalsh($a)¦svd($a)[1]¦norm($a, 2)»

== np-sort | 15*n+2000 | 16*n | 1-10**11
$values = np.random.default_rng(#1:99#).random(N)
=> «np.sort($values)¦np.argsort($values)¦np.unique($values)»
~~ maximum | 5*n+2000 | 8*n
$values = np.random.default_rng(#1:99#).random(N)
=> $values.max()

== np-sort-list | 100*n | 60*n
$values = ((np.arange(N) * 7919) % 10007).tolist()
=> sorted($values)

== np-mask | 3*n+3000 | 20*n | 1-10**12
$values = np.arange(N)
=> $values[$values % #2:20# == 0]«¦.sum()¦.copy()»
~~ python | 50*n | 20*n
=> [$value for $value in range(N) if $value % #2:20# == 0]

== np-where | 5*n+3000 | 30*n | 1-10**12
$values = np.arange(N)
=> np.where($values % 2 == 0, $values, «-$values¦0¦$values * 3»)

== np-fancy-index | 10*n+4000 | 24*n | 1-10**11
$values = np.arange(N)
$order = np.random.default_rng(#1:99#).permutation(N)
=> $values[$order]

== np-slices | 0.4*n+1500 | 8*n | 1-10**12
$values = np.zeros(N)
=> «$values[::2]¦$values[1:] - 0¦$values.reshape(-1)¦$values[: N // 2]¦$values[::-1]»

== np-copies | 0.6*n*4+2000 | 40*n | 1-10**11
$base = np.ones(N)
=> [$base.copy() for _ in range(#2:9#)]
~~ views | 0.2*n+2000 | 8*n
$base = np.ones(N)
=> [$base[:] for _ in range(#2:9#)]

== np-concatenate | 1.5*n*4+2000 | 16*n*4 | 1-10**10
$blocks = [np.full(N, $k) for $k in range(#2:9#)]
=> np.«concatenate($blocks)¦hstack($blocks)¦vstack($blocks)¦stack($blocks)»

== np-append-loop | 4000*n+0.3*n*n | 16*n | 2-10**6
$values = np.array([])
for $i in range(N):
    $values = np.append($values, $i)
=> $values
~~ list | 35*n+40*n | 48*n
$values = []
for $i in range(N):
    $values.append($i)
=> np.array($values)

== np-from-list | 45*n+1000 | 48*n
=> np.array(«list(range(N))¦[$i * 0.5 for $i in range(N)]¦range(N)»)

== np-element-loop | 110*n | 8*n
$values = np.zeros(N)
for $i in range(N):
    $values[$i] = $i «* 2¦+ 1¦* $i»
=> $values
~~ vector | 1.5*n+2000 | 24*n
$values = np.arange(N, dtype=float)
=> $values «* 2¦+ 1¦* $values»

== np-iterate | 60*n | 8*n
$total = 0.0
for $value in np.ones(N):
    $total += $value
=> $total
~~ sum | 1*n+3000 | 8*n
=> np.ones(N).sum()

== np-scalar-loop | 150*n | 300
$total = np.float64(0)
for $i in range(N):
    $total = $total + np.float64($i)
=> $total
~~ floats | 50*n | 64
$total = 0.0
for $i in range(N):
    $total = $total + float($i)
=> $total

== np-small-loop | 1000*n | 2000
$state = np.zeros(#2:50#)
for _ in range(N):
    $state = $state * 0.9 + 1
=> $state

== np-axis-sum | 1.5*n*n+3000 | 8*n*n | 1-100000
$grid = np.ones((N, N))
=> «$grid.sum(axis=0)¦$grid.mean(axis=1)¦$grid.max(axis=0)¦$grid.cumsum(axis=1)[-1]»

== np-broadcast | 1.5*n*n+3000 | 8*n*n | 1-100000
$x = np.arange(N)
=> «$x[:, None] + $x¦np.outer($x, $x)¦$x[:, None] * $x[None, :]¦np.add.outer($x, $x)»
~~ python | 45*n*n | 40*n*n
=> [[$a + $b for $b in range(N)] for $a in range(N)]

== np-distances | 8*n*n+4000 | 40*n*n | 2-50000
$points = np.random.default_rng(#1:99#).random((N, 2))
$gaps = $points[:, None, :] - $points[None, :, :]
=> np.sqrt(($gaps ** 2).sum(axis=-1))

== np-transpose-copy | 2*n*n+2000 | 16*n*n | 1-100000
$grid = np.ones((N, N))
=> «$grid.T.copy()¦np.ascontiguousarray($grid.T)¦$grid.T + $grid»
~~ view | 0.6*n*n+2000 | 8*n*n
$grid = np.ones((N, N))
=> $grid.T

== np-cube | 0.8*n*n*n+1000 | 16*n*n*n | 1-5000
=> «np.ones((N, N, N)) * 2¦np.ones((N, N, N)).astype(np.float32)¦np.zeros((N, N, N)) + 1»

== np-rows | 0.8*n*100+1000 | 1600*n | 1-10**9
=> np.«ones((N, 100)) + np.ones((N, 100))¦ones((N, 100)) * np.arange(100)»

== np-cast | 1.2*n+1500 | 12*n | 1-10**11
=> np.arange(N).astype(«np.float32¦np.int32¦np.float32¦"float32"»)

== np-bincount | 15*n+9000 | 20*n+3000 | 1-10**11
=> np.«bincount(np.arange(N) % #5:900#)¦histogram(np.arange(N), bins=#5:90#)[0]»

== np-cumulative | 3*n+2000 | 16*n | 1-10**11
=> np.«cumsum(np.arange(N))¦diff(np.arange(N))¦cumsum(np.ones(N))»

== np-fft | 30*n+15000 | 40*n | 4-10**9
=> np.fft.«fft(np.ones(N))¦rfft(np.ones(N))»

== np-convolve | 1.5*n*30+3000 | 16*n | 60-10**9
=> np.convolve(np.ones(N), np.ones(#5:50#))

== np-temporaries | 3*n+4000 | 32*n | 1-10**11
$x = np.linspace(0, 1, N)
=> ($x * 2 + 1) / ($x + 3) - $x ** 2
~~ in-place | 2.5*n+5000 | 16*n
$x = np.linspace(0, 1, N)
$x *= 2
$x += 1
$x /= 3
=> $x

== np-strings | 160*n+2000 | 60*n
=> np.array([str($i) for $i in range(N)])

== np-tolist | 25*n+1000 | 40*n
=> np.arange(N).tolist()

== np-moving-mean | 12*n+5000 | 40*n | 60-10**9
$series = np.sin(np.arange(N) / 10)
$total = np.cumsum($series)
$width = #3:50#
=> ($total[$width:] - $total[:-$width]) / $width

== np-power-iteration | 1.5*n*n*20+50000 | 8*n*n | 2-20000
$a = np.ones((N, N)) + np.eye(N)
$x = np.ones(N)
for _ in range(#5:60#):
    $x = $a @ $x
    $x /= np.linalg.norm($x)
=> $x

== np-gradient-steps | 15*n*20*10+40000 | 80*n*3 | 10-10**7
$rng = np.random.default_rng(#1:99#)
$x, $y = $rng.random((N, 8)), $rng.random(N)
$w = np.zeros(8)
for _ in range(#5:60#):
    $w -= 0.01 * $x.T @ ($x @ $w - $y) / len($y)
=> $w
"""
