"""Two texts of one function, for tests that compare versions: the items without repetitions, in their order."""

SLOW = """\
def distinct(items):
    seen = []
    for item in items:
        if item not in seen:
            seen.append(item)
    return seen
"""
FAST = "def distinct(items):\n    return list(dict.fromkeys(items))\n"
