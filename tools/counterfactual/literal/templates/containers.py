"""Containers and text of literal size: lists, dicts, sets, deques, strings, bytes, copies, slices, counters, heaps."""

TEMPLATES = r"""
== repeat-list | 2*n+60 | 8*n
=> [«0¦None¦1.5¦False¦""¦-1»] * N
~~ comprehension | 30*n | 8*n
=> [«0¦None¦1.5¦False¦""¦-1» for _ in range(N)]

== repeat-string | 0.05*n+60 | n
=> "«x¦-¦=¦ »" * N

== repeat-string-longer | 0.6*n+60 | 6*n
$text = "«abcdef¦lorem ¦12,34;¦key=va»" * N
=> «$text¦len($text)¦$text[:20]¦$text.startswith("z")»

== zero-bytes | 0.05*n+60 | n
=> «bytes(N)¦bytearray(N)¦b"\0" * N¦bytearray(b"a" * N)¦bytes(bytearray(N))»

== bytearray-fill | 40*n | n
$buffer = bytearray(N)
for $i in range(N):
    $buffer[$i] = $i «& 255¦% 251¦% 7»
=> «$buffer¦bytes($buffer)¦len($buffer)»
~~ untouched | 0.05*n+60 | n
$buffer = bytearray(N)
=> «$buffer¦bytes($buffer)¦len($buffer)»

== list-copies | 2.5*n*4 | 8*n*5
$base = [0] * N
=> [«list($base)¦$base[:]¦$base.copy()¦$base + [1]» for _ in range(#2:12#)]
~~ aliases | 2*n+300 | 8*n
$base = [0] * N
=> [$base for _ in range(#2:12#)]

== slice-halves | 16*n | 8*n*2+32*n
$values = list(range(N))
=> «$values[: len($values) // 2] + $values[len($values) // 2 :]¦$values[::-1]¦$values[::2]¦$values[1:]¦$values[:-1]»
~~ unsliced | 14*n | 40*n
$values = list(range(N))
=> $values

== slice-in-loop | 3*n*20 | 48*n
$values = list(range(N))
$total = 0
for $k in range(#4:60#):
    $total += len($values[$k:])
=> $total
~~ index-in-loop | 14*n+2000 | 40*n
$values = list(range(N))
$total = 0
for $k in range(#4:60#):
    $total += len($values) - $k
=> $total

== dict-build | 60*n | 90*n
=> {$i: @e($i) for $i in range(N)}
~~ list | 40*n | 40*n
=> [@e($i) for $i in range(N)]

== dict-strings | 150*n | 150*n
$table = {}
for $i in range(N):
    $table[f"«key¦row¦item_»{$i}"] = $i
=> «$table¦len($table)»

== dict-counting | 75*n | 400
$counts = {}
for $i in range(N):
    $key = $i % #3:60#
    $counts[$key] = $counts.get($key, 0) + 1
=> $counts
~~ default | 65*n | 500
$counts = collections.defaultdict(int)
for $i in range(N):
    $counts[$i % #3:60#] += 1
=> $counts

== dict-of-lists | 70*n | 45*n
$groups = {}
for $i in range(N):
    $groups.setdefault($i % #3:90#, []).append($i)
=> $groups

== dict-iterate | 45*n+60*n | 90*n
$table = dict.fromkeys(range(N), «0¦1¦None»)
$total = 0
for $key, $value in $table.items():
    $total += $key
=> $total

== dict-merge | 90*n | 190*n
$first = {$i: 1 for $i in range(N)}
$second = {$i: 2 for $i in range(N // 2, N)}
=> «{**$first, **$second}¦$first | $second¦dict($first, **{str($k): 1 for $k in range(9)})»

== set-build | 25*n | 70*n
=> «set(range(N))¦{*range(N)}¦frozenset(range(N))¦{$i for $i in range(N)}»

== set-operations | 60*n | 150*n
$left = set(range(N))
$right = set(range(0, N, #2:5#))
=> len($left «&¦|¦-¦^» $right)
~~ lists | 15*n+2*n*n | 80*n
$left = list(range(N))
$right = list(range(0, N, #2:5#))
=> len([$x for $x in $left if $x in $right])

== membership-set | 70*n | 70*n
$known = set(range(N))
$hits = 0
for $x in range(0, N * 2, 2):
    if $x in $known:
        $hits += 1
=> $hits
~~ list | 11*n*n | 40*n
$known = list(range(N))
$hits = 0
for $x in range(0, N * 2, 2):
    if $x in $known:
        $hits += 1
=> $hits

== membership-few | 25*n+1000 | 70*n
$known = {*range(N)}
=> sum($x in $known for $x in range(-#3:40#, 0))
~~ list | 15*n+10*n*10 | 40*n
$known = [*range(N)]
=> sum($x in $known for $x in range(-#3:40#, 0))

== unique-order | 90*n | 40*n
$seen = set()
$result = []
for $i in range(N):
    $key = $i * $i % #50:5000#
    if $key not in $seen:
        $seen.add($key)
        $result.append($key)
=> $result
~~ list | 4*n*300 | 40000
$seen = []
for $i in range(N):
    $key = $i * $i % #50:5000#
    if $key not in $seen:
        $seen.append($key)
=> $seen
~~ fromkeys | 60*n | 40000
=> list(dict.fromkeys($i * $i % #50:5000# for $i in range(N)))

== deque-rotate | 40*n | 8*n
$queue = collections.deque(range(N))
$total = 0
while $queue:
    $total += $queue.popleft()
=> $total
~~ list-pop-front | 60*n+0.35*n*n | 40*n
$queue = list(range(N))
$total = 0
while $queue:
    $total += $queue.pop(0)
=> $total
~~ list-pop-back | 45*n | 40*n
$queue = list(range(N))
$total = 0
while $queue:
    $total += $queue.pop()
=> $total

== deque-window | 60*n | 2000
$window = collections.deque(maxlen=#3:80#)
for $i in range(N):
    $window.append($i)
=> «list($window)¦sum($window)»

== list-insert-front | 70*n+0.3*n*n | 40*n
$values = []
for $i in range(N):
    $values.insert(0, $i)
=> «$values¦len($values)»
~~ deque | 40*n | 40*n
$values = collections.deque()
for $i in range(N):
    $values.appendleft($i)
=> «$values¦len($values)»
~~ reversed | 40*n | 40*n
$values = []
for $i in range(N):
    $values.append($i)
$values.reverse()
=> «$values¦len($values)»

== list-remove | 14*n+7*n*n | 40*n
$values = list(range(N))
for $i in range(N - 1, -1, -1):
    $values.remove($i)
=> $values
~~ pop | 45*n | 40*n
$values = list(range(N))
for $i in range(N - 1, -1, -1):
    $values.pop()
=> $values

== list-index | 14*n+7*n*20 | 40*n | 100-10**9
$values = list(range(N))
$total = 0
for $k in range(#4:60#):
    $total += $values.«index¦count»(N - 1 - $k)
=> $total
~~ arithmetic | 14*n+3000 | 40*n
$values = list(range(N))
$total = 0
for $k in range(#4:60#):
    $total += $values[N - 1 - $k]
=> $total

== tuples-list | 80*n | 120*n
=> [($i, «str($i)¦$i * 2¦float($i)¦None») for $i in range(N)]

== records-list | 200*n | 300*n
=> [{"id": $i, "@text": "@w", "@number": $i «* 2¦% 10¦+ 1»} for $i in range(N)]
~~ tuples | 70*n | 90*n
=> [($i, "@w", $i «* 2¦% 10¦+ 1») for $i in range(N)]
~~ generator | 300 | 250
=> ({"id": $i, "@text": "@w", "@number": $i «* 2¦% 10¦+ 1»} for $i in range(N))

== records-filter | 280*n | 300*n
$records = [{"id": $i, "@number": $i % 100, "@flag": $i % 3 == 0} for $i in range(N)]
=> [$record["id"] for $record in $records if $record["@flag"] and $record["@number"] > #5:90#]

== records-sort | 450*n | 250*n
$records = [{"id": $i, "@number": ($i * 7919) % 1009} for $i in range(N)]
$records.sort(key=lambda $record: $record["@number"])
=> $records[«0¦-1»]

== objects-list | 250*n | 150*n
class $Node:
    def __init__(self, $value):
        self.value = $value
        self.next = None
---
=> [$Node($i) for $i in range(N)]
~~ slots | 200*n | 90*n
class $Node:
    __slots__ = ("value", "next")

    def __init__(self, $value):
        self.value = $value
        self.next = None
---
=> [$Node($i) for $i in range(N)]

== linked-list | 250*n | 150*n
class $Node:
    def __init__(self, $value, $rest):
        self.value = $value
        self.rest = $rest
---
$head = None
for $i in range(N):
    $head = $Node($i, $head)
$length = 0
while $head is not None:
    $length += 1
    $head = $head.rest
=> $length

== object-methods | 130*n | 300
class $Counter:
    step = #1:9#

    def __init__(self):
        self.total = 0

    def add(self, $amount):
        self.total += $amount * self.step
---
$counter = $Counter()
for $i in range(N):
    $counter.add($i)
=> $counter.total
~~ direct | 40*n | 64
$total = 0
for $i in range(N):
    $total += $i * #1:9#
=> $total

== namedtuples | 250*n+90000 | 150*n
$Point = collections.namedtuple("$Point", "x y")
$points = [$Point($i, $i «* 2¦+ 1») for $i in range(N)]
=> «sum($point.x for $point in $points)¦$points¦len($points)»

== dataclasses-list | 300*n | 150*n
@dataclasses.dataclass
class $Record:
    name: str
    amount: int
---
=> [$Record("@w", $i) for $i in range(N)]

== deep-copy | 900*n | 200*n
$rows = [[$i, $i + 1] for $i in range(N)]
=> copy.deepcopy($rows)
~~ shallow | 60*n | 150*n
$rows = [[$i, $i + 1] for $i in range(N)]
=> copy.copy($rows)

== deep-copy-dict | 1500*n | 300*n
$table = {$i: {"@text": "@w", "values": [$i]} for $i in range(N)}
=> copy.deepcopy($table)
~~ by-hand | 300*n | 300*n
$table = {$i: {"@text": "@w", "values": [$i]} for $i in range(N)}
=> {$key: dict($value) for $key, $value in $table.items()}

== counter-numbers | 60*n | 3000
=> collections.Counter($i % #3:90# for $i in range(N))

== counter-text | 20*n*8 | 10*n
$text = "the quick brown fox " * N
=> collections.Counter(«$text¦$text.split()»).most_common(#1:5#)

== heap-push | 250*n | 40*n
$heap = []
for $i in range(N):
    heapq.heappush($heap, ($i * 7919) % 10007)
=> $heap[0]
~~ heapify | 70*n | 40*n
$heap = [($i * 7919) % 10007 for $i in range(N)]
heapq.heapify($heap)
=> $heap[0]
~~ sorted | 150*n | 48*n
=> sorted(($i * 7919) % 10007 for $i in range(N))[0]

== heap-push-pop | 700*n | 40*n
$heap = []
for $i in range(N):
    heapq.heappush($heap, ($i * 7919) % 10007)
$total = 0
while $heap:
    $total += heapq.heappop($heap)
=> $total

== heap-largest | 100*n | 40*n
$values = [($i * 7919) % 10007 for $i in range(N)]
=> heapq.«nlargest¦nsmallest»(#2:30#, $values)
~~ sorted | 180*n | 56*n
$values = [($i * 7919) % 10007 for $i in range(N)]
=> sorted($values)[-#2:30#:]

== bisect-lookups | 150*n | 40*n
$values = list(range(0, N * 3, 3))
$total = 0
for $i in range(N):
    $total += bisect.bisect_left($values, $i)
=> $total
~~ scan | 14*n+2*n*n | 40*n
$values = list(range(0, N * 3, 3))
$total = 0
for $i in range(N):
    $total += $values.index($i * 3)
=> $total

== insort | 250*n+0.2*n*n | 40*n
$values = []
for $i in range(N):
    bisect.insort($values, ($i * 7919) % 10007)
=> $values
~~ append-sort | 150*n | 48*n
$values = []
for $i in range(N):
    $values.append(($i * 7919) % 10007)
$values.sort()
=> $values

== join-numbers | 110*n | 60*n
=> "«,¦ ¦\n¦-»".join(«str($i) for $i in range(N)¦map(str, range(N))¦[str($i) for $i in range(N)]»)
~~ concatenation | 160*n | 6*n
$text = ""
for $i in range(N):
    $text += str($i) + "«,¦ ¦\n¦-»"
=> $text

== join-parts | 90*n | 16*n
$parts = []
for $i in range(N):
    $parts.append("«x¦ab¦row»" if $i % 2 else "y")
=> "".join($parts)
~~ plus-equals | 60*n | 3*n
$text = ""
for $i in range(N):
    $text += "«x¦ab¦row»" if $i % 2 else "y"
=> $text
~~ prepend | 60*n+0.05*n*n | 6*n
$text = ""
for $i in range(N):
    $text = ("«x¦ab¦row»" if $i % 2 else "y") + $text
=> $text

== format-lines | 250*n | 100*n
$lines = []
for $i in range(N):
    $lines.append(«f"{$i:>8} {$i * 1.5:.2f}"¦"{}: {}".format($i, $i * 2)¦"%d=%s" % ($i, "v")»)
=> "\n".join($lines)

== split-text | 20*n*5 | 60*n*5
$text = "@w low high mid end " * N
=> «$text.split()¦$text.split(" ")¦len($text.split())»

== text-methods | 150*n | 200*n
$lines = ["  @w, Low;HIGH  "] * N
=> [$line.strip().lower().replace(";", ",") for $line in $lines]

== replace-text | 12*n | 12*n
$text = "alpha beta " * N
=> $text.«replace("beta", "gamma")¦upper()¦title()¦replace("a", "")¦swapcase()»

== text-count | 15*n | 20*n
$text = "one two three four, " * N
=> «$text.count("three")¦$text.find("five")¦$text.rfind("zero")¦"six" in $text»

== char-loop | 45*n*8 | 8*n
$vowels = 0
for $char in "counting" * N:
    if $char in "aeiou":
        $vowels += 1
=> $vowels
~~ count | 30*n | 8*n
$text = "counting" * N
=> sum($text.count($char) for $char in "aeiou")

== caesar | 120*n*5 | 30*n
$text = "hello" * N
=> "".join(chr((ord($char) - 97 + #1:25#) % 26 + 97) for $char in $text)
~~ translate | 15*n*5 | 10*n
$text = "hello" * N
$table = str.maketrans("abcdefghijklmnopqrstuvwxyz", "defghijklmnopqrstuvwxyzabc")
=> $text.translate($table)

== reverse-text | 25*n | 12*n
$text = "stream" * N
=> «$text[::-1]¦"".join(reversed($text))»

== palindromes | 220*n | 64
=> sum(1 for $i in range(N) if str($i) == str($i)[::-1])

== encode-text | 8*n | 20*n
$text = "naïve café " * N
=> «$text.encode("utf-8")¦$text.encode().decode("utf-8")¦len($text.encode("utf-16"))»

== products | 40*n*n | 300+40*n | 2-100000
$count = 0
for $left, $right in itertools.product(range(N), repeat=2):
    if $left < $right:
        $count += 1
=> $count

== products-list | 60*n*n*n | 64*n*n*n | 2-3000
=> list(itertools.product(range(N), repeat=3))
~~ count | 25*n*n*n | 300
=> sum(1 for _ in itertools.product(range(N), repeat=3))

== product-binary | 90*2**n | 300 | 3-40
=> sum(1 for $bits in itertools.product((0, 1), repeat=N) if sum($bits) == #1:4#)

== permutations-count | 60*exp(lgamma(n+1)) | 400 | 3-15
=> sum(1 for _ in itertools.permutations(range(N)))
~~ listed | 90*exp(lgamma(n+1)) | 140*exp(lgamma(n+1))
=> list(itertools.permutations(range(N)))

== combinations-pairs | 25*n*n | 300+40*n | 3-10**6
=> sum($a + $b for $a, $b in itertools.combinations(range(N), 2))
~~ listed | 50*n*n/2 | 34*n*n
=> list(itertools.combinations(range(N), 2))

== combinations-triples | 45*n*n*n/6 | 300 | 4-20000
$count = 0
for $a, $b, $c in itertools.combinations(range(1, N), 3):
    if $a * $a + $b * $b == $c * $c:
        $count += 1
=> $count

== accumulate | 40*n | 45*n
=> «list(itertools.accumulate(range(N)))¦list(itertools.accumulate(range(1, N), max))¦[*itertools.accumulate(range(N))][-1]»

== chain-lists | 30*n*5 | 40*n*2
$blocks = [range(N) for _ in range(#2:9#)]
=> «list(itertools.chain.from_iterable($blocks))¦sum(itertools.chain(*$blocks))¦[$x for $block in $blocks for $x in $block]»

== group-runs | 90*n | 300
=> sum(1 for _ in itertools.groupby(range(N), key=lambda $x: $x // #3:50#))

== flatten-sum | 0.35*n*n*8+100*n | 60*n
$rows = [[$i] * 4 for $i in range(N)]
=> sum($rows, [])
~~ comprehension | 150*n | 130*n
$rows = [[$i] * 4 for $i in range(N)]
=> [$x for $row in $rows for $x in $row]

== tuple-concatenation | 2*n*n+60*n | 16*n
$result = ()
for $i in range(N):
    $result += ($i,)
=> $result
~~ list | 35*n | 40*n
$result = []
for $i in range(N):
    $result.append($i)
=> tuple($result)

== growing-copies | 1.2*n*n | 4*n*n+40*n | 3-30000
$history = []
$state = []
for $i in range(N):
    $state.append($i)
    $history.append(«list($state)¦$state[:]¦tuple($state)»)
=> len($history)
~~ shared | 50*n | 48*n
$history = []
$state = []
for $i in range(N):
    $state.append($i)
    $history.append($state)
=> len($history)

== lists-of-lists | 25*n*1000 | 8*n*1000 | 1-300000
=> [[0] * 1000 for _ in range(N)]
~~ aliased | 60+8*n | 8*n
=> [[0] * 1000] * N

== array-numbers | 15*n | 12*n
=> array.array("«i¦q¦d»", «range(N)¦[0] * N¦[1] * N»)

== chunks | 30*n | 56*n
$values = list(range(N))
=> [$values[$i : $i + #5:500#] for $i in range(0, len($values), #5:500#)]

== sliding-sums | 60*n*10 | 50*n
$values = [$i % 17 for $i in range(N)]
$width = #4:60#
=> [sum($values[$i : $i + $width]) for $i in range(len($values) - $width)]
~~ running | 90*n | 70*n
$values = [$i % 17 for $i in range(N)]
$width = #4:60#
$total = sum($values[:$width])
$sums = [$total]
for $i in range($width, len($values)):
    $total += $values[$i] - $values[$i - $width]
    $sums.append($total)
=> $sums
"""
