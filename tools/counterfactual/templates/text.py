"""Templates over text: counting, formatting, comparing, encoding."""

TEXT: dict[str, str] = {
    "word-frequency": """
counts = {}
for word in $text.«lower().¦»split():
    word = word.strip(".,;")
    if «@test(word)¦word»:
        counts[word] = counts.get(word, 0) + 1
=> counts | mapping
""",
    "caesar": """
shift = #1:25#
parts = []
for char in $text:
    if char.isalpha():
        base = ord("a") if char.islower() else ord("A")
        parts.append(chr((ord(char) - base + shift) % 26 + base))
    else:
        parts.append(char)
=> "".join(parts) | text
""",
    "run-length": """
parts = []
previous, count = None, 0
for char in $text:
    if char == previous:
        count += 1
    else:
        if previous is not None:
            parts.append(f"{previous}{count}")
        previous, count = char, 1
parts.append(f"{previous}{count}")
=> "".join(parts) | text
""",
    "palindromes": """
def is_palindrome(word):
    «return word == word[::-1]¦left, right = 0, len(word) - 1
    while left < right:
        if word[left] != word[right]:
            return False
        left += 1
        right -= 1
    return True»
---
result = [word for word in $words if is_palindrome(word«.lower()¦»)]
=> «result¦len(result)» | any
""",
    "slugs": """
seen = set()
result = []
for word in $words:
    slug = "".join(char if char.isalnum() else "-" for char in word.lower()).strip("-")
    while slug in seen:
        slug += "-x"
    seen.add(slug)
    result.append(slug)
=> result | words
""",
    "wrap-text": """
width = #12:72#
lines, current = [], ""
for word in $text.split():
    if len(current) + len(word) + 1 > width:
        lines.append(current)
        current = word
    else:
        current = f"{current} {word}".strip()
lines.append(current)
=> «lines | words¦"\\n".join(lines) | text»
""",
    "char-classes": """
vowels = «set("aeiou")¦"aeiou"»
letters = digits = spaces = 0
for char in $text:
    if char in vowels:
        letters += 1
    elif char.isdigit():
        digits += 1
    elif char == " ":
        spaces += 1
=> {"vowels": letters, "digits": digits, "spaces": spaces} | any
""",
    "anagrams": """
groups = {}
for word in $words:
    key = "".join(sorted(word«.lower()¦»))
    groups.setdefault(key, []).append(word)
=> [group for group in groups.values() if len(group) > 1] | any
""",
    "common-prefix": """
prefix = $words[0] if $words else ""
for word in $words«[1:]¦»:
    while not word.startswith(prefix):
        prefix = prefix[:-1]
    «if not prefix:
        break
¦»
=> prefix | text
""",
    "edit-distance": """
previous = list(range(len($text:6) + 1))
source = "«kitten sitting on the mitten¦a quick brown fox¦north by northwest¦$text $number»"
for index, left in enumerate(source, 1):
    current = [index]
    for other, right in enumerate($text:6, 1):
        cost = 0 if left == right else 1
        current.append(min(previous[other] + 1, current[-1] + 1, previous[other - 1] + cost))
    previous = current
=> previous[-1] | int
""",
    "fill-placeholders": """
result = "Dear {name}, your $item of {date} has {count} lines. " * #1:30#
for key, value in {"name": "Ada", "date": "today", "count": len($words)}.items():
    result = result.replace("{" + key + "}", str(value))
=> result | text
""",
    "initials": """
result = []
for word in $words:
    parts = word.replace("-", " ").split()
    result.append("".join(part[0].upper() for part in parts if part))
=> result | words
""",
    "ngrams": """
size = «2¦3¦4»
words = $text.split()
counts = {}
for index in range(len(words) - size + 1):
    gram = «tuple(words[index:index + size])¦" ".join(words[index:index + size])»
    counts[gram] = counts.get(gram, 0) + 1
=> counts | any
""",
    "checksum": """
value = #1:500#
for char in $text:
    value = (value * «31¦33¦131» + ord(char)) % «65521¦1000003¦2147483647»
=> «value | int¦hex(value) | text»
""",
    "justify": """
width = max((len(word) for word in $words), default=0)
lines = []
for word in $words:
    lines.append(word.«rjust¦ljust¦center»(width«¦ + 2», «"."¦" "»))
=> "\\n".join(lines) | text
""",
    "trie": """
root = {}
for word in $words:
    node = root
    for char in word:
        node = node.setdefault(char, {})
    node["$"] = word
node, count = root, 0
for char in "«al¦no¦or¦a»":
    node = node.get(char, {})
    count += 1
=> «(count, sorted(node))¦list(node)» | any
""",
    "escape": """
parts = []
for char in $text:
    «if char in "<>&":
        parts.append({"<": "&lt;", ">": "&gt;", "&": "&amp;"}[char])¦if not char.isalnum():
        parts.append(f"%{ord(char):02X}")»
    else:
        parts.append(char)
=> "".join(parts) | text
""",
    "subsequence": """
count = 0
for word in $words:
    position = 0
    for char in word:
        if position < len("«ana¦bob¦to¦el»") and char == "«aeb¦tor¦lin»"[position % 3]:
            position += 1
    if position > «0¦1»:
        count += 1
=> count | int
""",
    "markup": """
parts = ["<table>"]
for index, word in enumerate($words):
    parts.append(f"  <tr class='{'odd' if index % 2 else 'even'}'>")
    cell = @str(word)
    parts.append(f"    <td>{cell}</td>")
    parts.append("  </tr>")
parts.append("</table>")
=> "\\n".join(parts) | text
""",
}
