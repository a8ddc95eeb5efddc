"""A function whose cost depends on the size of an input, in a way that its text alone does not say."""

NAMES = """\
def names(orders):
    found = []
    for order in orders:
        if order.name:
            found.append(order.name.strip().lower())
    return found
"""
