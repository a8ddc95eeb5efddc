"""Library work on literal data: JSON, hashes, compression, regular expressions, big integers, dates, decimals."""

TEMPLATES = r"""
== json-dump | 60*n | 60*n
=> json.dumps(«list(range(N))¦[1.5] * N¦["@w"] * N»)

== json-round-trip | 120*n | 100*n
$data = list(range(N))
=> json.loads(json.dumps($data))
~~ copy | 18*n | 48*n
$data = list(range(N))
=> list($data)

== json-records | 1200*n | 600*n
$records = [{"id": $i, "@text": "@w", "@number": $i * 1.5} for $i in range(N)]
=> «json.dumps($records)¦json.loads(json.dumps($records))¦len(json.dumps($records, indent=2))»

== json-parse-loop | 1500*n | 2000 | 2-10**8
$raw = '{"@text": "@w", "@number": [1, 2, 3], "@flag": true}'
$total = 0
for $i in range(N):
    $data = json.loads($raw)
    $total += len($data["@number"])
=> $total
~~ hoisted | 55*n+2000 | 2000
$raw = '{"@text": "@w", "@number": [1, 2, 3], "@flag": true}'
$total = 0
$data = json.loads($raw)
for $i in range(N):
    $total += len($data["@number"])
=> $total

== json-nested | 300*n | 300*n | 2-400
$data = {}
for $i in range(N):
    $data = {"level": $i, "inner": $data}
=> json.dumps($data)

== json-dump-loop | 2500*n | 3000 | 2-10**8
$config = {"@text": "@w", "values": [1, 2, 3, 4.5], "nested": {"@flag": False}}
$size = 0
for _ in range(N):
    $size += len(json.dumps($config))
=> $size

== hash-bytes | 1.5*n+400 | n
=> hashlib.«sha256¦md5¦sha1¦sha512¦blake2b»(«b"x" * N¦bytes(N)»).hexdigest()

== hash-rounds | 550*n | 400
$digest = b"@w"
for _ in range(N):
    $digest = hashlib.«sha256¦md5¦sha1¦blake2b»($digest).digest()
=> $digest.hex()

== hash-strings | 750*n | 400
$best = "z"
for $i in range(N):
    $best = min($best, hashlib.«sha256¦md5¦sha1»(str($i).encode()).hexdigest())
=> $best

== hash-update | 60*n | 500
$hasher = hashlib.«sha256¦md5¦sha1»()
for $i in range(N):
    $hasher.update(b"«row¦line of text¦0»")
=> $hasher.hexdigest()

== key-derivation | 600*n | 1000 | 1-10**8
=> hashlib.pbkdf2_hmac("«sha256¦sha1¦sha512»", b"@w", b"salt", N).hex()

== crc-bytes | 0.5*n+200 | n
=> zlib.«crc32¦adler32»(b"«a¦ab¦\0»" * N)

== compress-bytes | 8*n+15000 | n+270000
$data = b"«abcabcabd¦0123456789¦xy»" * N
=> «len(zlib.compress($data))¦zlib.compress($data)¦zlib.compress($data, #1:9#)»

== compress-round-trip | 250*n+90000 | 30*n+270000
$data = "\n".join(f"«line¦row» {$i}" for $i in range(N)).encode()
=> zlib.decompress(zlib.compress($data)) == $data

== base64-round-trip | 4*n+500 | 4*n
$data = b"«abc¦x¦hello »" * N
=> «base64.b64decode(base64.b64encode($data))¦base64.b64encode($data)¦len(base64.b64encode($data).decode())¦base64.b16encode($data)»

== pickle-list | 60*n | 60*n
=> pickle.loads(pickle.dumps(«list(range(N))¦{$i: str($i) for $i in range(N)}¦[($i, $i) for $i in range(N)]»))

== struct-pack | 15*n | 40*n
=> struct.pack(f"{N}i", *range(N))

== struct-loop | 130*n | 33*n
=> b"".join(struct.pack("<«HI¦If¦Q¦ii»"[:2] , $i % 100) for $i in range(N))

== power-of-two | 0.02*n+60 | n/7.5 | 10-10**11
=> «1 << N¦(1 << N) - 1¦(1 << N).bit_length()»

== big-power | 0.02*n**1.6+100 | n | 10-10**8
=> «2¦3¦7¦10» ** N

== big-power-mod | 150*log(n+2)*2 | 200 | 10-10**18
=> pow(#2:999#, N, 10**9 + 7)
~~ without-mod | 0.04*n**1.6+100 | n
=> #2:999# ** N % (10**9 + 7)

== factorial | 0.5*n**1.6+60 | n*log(n+2)/5 | 3-10**7
=> «math.factorial(N)¦math.factorial(N) % 1000003¦math.factorial(N).bit_length()»
~~ loop | 0.08*n*n*1.5+40*n | n*log(n+2)/4
$result = 1
for $i in range(2, N + 1):
    $result *= $i
=> $result

== big-digits | 0.04*n*n+200 | n | 10-4000
=> «len(str(10 ** N))¦str(7 ** N)¦sum(int($digit) for $digit in str(2 ** N))»

== big-fibonacci | 40*n+0.005*n*n | n/3 | 10-10**8
$a, $b = 0, 1
for _ in range(N):
    $a, $b = $b, $a + $b
=> «$a¦$a.bit_length()»

== big-product | 40*n+0.03*n*n | n*3 | 3-10**6
=> math.prod(range(1, N))

== big-sum-powers | 100*n+0.03*n*n | n | 3-10**6
=> sum(2**$i for $i in range(N))

== binomials | 300*n+0.05*n**2.2 | 100+n*2 | 3-20000
=> «[math.comb(N, $k) for $k in range(0, N, N // #3:20# + 1)]¦max(math.comb(N, $k) for $k in range(0, N, N // #3:20# + 1))»

== fraction-sum | 900*n+0.3*n*n | 500+n | 2-100000
$total = fractions.Fraction(0)
for $i in range(1, N):
    $total += fractions.Fraction(1, $i)
=> $total
~~ floats | 45*n | 64
$total = 0.0
for $i in range(1, N):
    $total += 1 / $i
=> $total

== decimal-sum | 170*n | 300
$total = decimal.Decimal(0)
for $i in range(N):
    $total += decimal.Decimal("0.1")«¦ * $i»
=> $total

== decimal-digits | 8*n**1.5+2000 | 5*n | 10-10**7
with decimal.localcontext() as $context:
    $context.prec = N
    $root = decimal.Decimal(2).sqrt()
=> $root

== regex-search | 70*n | 4*n
$text = "«abc ¦x1y2 ¦id=7 »" * N
=> «len(re.findall(r"\d+", $text))¦re.search(r"needle", $text)¦re.sub(r"\s+", " ", $text)¦re.split(r"[ ,]", $text)»

== regex-findall | 110*n | 60*n
$text = "name=@w; " * N
=> re.findall(r"«(\w+)=(\w+)¦\w+¦[a-z]+=»", $text)

== regex-compile-loop | 450*n | 1000
$count = 0
for $i in range(N):
    $pattern = re.compile(r"«^\w+@\w+$¦\d{2,4}¦[a-f0-9]+»")
    if $pattern.search("@w 1234"):
        $count += 1
=> $count
~~ hoisted | 200*n | 1000
$count = 0
$pattern = re.compile(r"«^\w+@\w+$¦\d{2,4}¦[a-f0-9]+»")
for $i in range(N):
    if $pattern.search("@w 1234"):
        $count += 1
=> $count

== regex-lines | 700*n | 100*n
$lines = [f"2024-01-{$i % 28 + 1:02d} @w {$i}" for $i in range(N)]
$pattern = re.compile(r"(\d+)-(\d+)-(\d+) (\w+) (\d+)")
=> [$match.group(4) for $match in map($pattern.match, $lines) if $match]

== regex-nested | 60*2**n | 1500 | 3-40
=> re.«match¦fullmatch»(r"«(a+)+$¦(a|a)*$¦(a*)*b¦^(\w+)*!$»", "a" * N + "«-¦ ¦?»")
~~ flat | 1000+20*n | 1500
=> re.«match¦fullmatch»(r"«a+$¦a*$¦a*b¦^\w+!$»", "a" * N + "«-¦ ¦?»")

== regex-quadratic | 8*n*n | 2000+n | 5-10**6
=> re.«search¦findall»(r"«a+b¦a+$¦\w+@»", "a" * N + "c")

== regex-sub-function | 600*n | 60*n
$text = "cost 12 and 7; " * N
=> re.sub(r"\d+", lambda $match: str(int($match.group()) * 2), $text)

== dates-loop | 250*n | 60*n
$start = datetime.date(2020, 1, 1)
=> [$start + datetime.timedelta(days=$i % 3000) for $i in range(N)]

== dates-format | 1200*n | 70*n
$start = datetime.datetime(2021, 5, 17, 12, 30)
=> [($start + datetime.timedelta(minutes=$i)).«isoformat()¦strftime("%Y-%m-%d")» for $i in range(N)]

== dates-parse | 5000*n | 300
$total = 0
for _ in range(N):
    $moment = datetime.datetime.strptime("2023-04-05", "%Y-%m-%d")
    $total += $moment.day
=> $total
~~ iso | 250*n | 300
$total = 0
for _ in range(N):
    $moment = datetime.datetime.fromisoformat("2023-04-05")
    $total += $moment.day
=> $total

== csv-write | 500*n | 30*n
$buffer = io.StringIO()
$writer = csv.writer($buffer)
for $i in range(N):
    $writer.writerow([$i, "@w", $i * 2])
=> «$buffer.getvalue()¦len($buffer.getvalue())»

== csv-read | 350*n | 350*n
$lines = ["7,@w,3.5"] * N
=> «list(csv.reader($lines))¦sum(float($row[2]) for $row in csv.reader($lines))»
~~ split | 150*n | 200*n
$lines = ["7,@w,3.5"] * N
=> [$line.split(",") for $line in $lines]

== text-buffer | 60*n | 8*n
$buffer = io.StringIO()
for $i in range(N):
    $buffer.write("«line¦x,¦row\n»")
=> $buffer.getvalue()

== lines-parse | 200*n | 120*n
$text = "@text = @w\n" * N
$result = []
for $line in $text.splitlines():
    $key, _, $value = $line.partition(" = ")
    $result.append(($key, $value))
=> $result

== uuid-hex | 1800*n | 90*n
=> [uuid.uuid5(uuid.NAMESPACE_DNS, str($i)).hex for $i in range(N)]

== statistics-mean | 400*n | 100*n
$values = [$i % 97 for $i in range(N)]
=> statistics.«mean¦pstdev¦pvariance»($values)
~~ by-hand | 45*n | 8*n
$values = [$i % 97 for $i in range(N)]
=> sum($values) / len($values)

== reduce | 50*n | 64
=> functools.reduce(«operator.add¦lambda $x, $y: $x ^ $y¦operator.xor», range(N))

== parse-numbers | 90*n | 80*n
$raw = "«12¦7¦345» " * N
=> «[int($part) for $part in $raw.split()]¦sum(map(int, $raw.split()))¦[float($part) for $part in $raw.split()]»

== eval-loop | 16000*n | 9000 | 1-10**7
$total = 0
for _ in range(N):
    $total += int(ast.literal_eval("[1, 2, {'a': 3}]")[0])
=> $total

== escape-html | 40*n | 40*n
$text = "<a href='x'>@w & co</a>" * N
=> html.escape($text)

== wrap-text | 1200*n | 600*n
$text = "lorem ipsum dolor sit amet " * N
=> textwrap.«wrap($text, width=#30:80#)¦fill($text, width=#30:80#)»

== difference | 15000*n | 1200*n | 2-20000
$left = [f"line {$i}" for $i in range(N)]
$right = [f"line {$i + $i % 10 // 9}" for $i in range(N)]
=> len(list(difflib.unified_diff($left, $right)))
"""
