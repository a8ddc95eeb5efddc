"""Texts of functions that take quadratic time in what is passed, in a few lines each, and what certainly pays it.

``FORMS`` maps the name of a function to the inputs that its square, or product, depends on. Each costs at ten thousand
items many times what a linear loop would.
"""

TEXT = """
import copy
import numpy as np
import pandas as pd


def pop_front(items):
    waiting = list(items)
    while waiting:
        waiting.pop(0)


def delete_front(items):
    waiting = list(items)
    for _ in range(len(items)):
        del waiting[0]


def sum_of_lists(lists):
    return sum(lists, [])


def plus_list(items):
    result = []
    for item in items:
        result = result + [item]
    return result


def plus_bytes(items):
    data = b""
    for item in items:
        data += item
    return data


def plus_tuple(items):
    result = ()
    for item in items:
        result += (item,)
    return result


def front_text(items):
    text = ""
    for item in items:
        text = item + text
    return text


def cut_list(items):
    for _ in range(len(items)):
        items = items[1:]


def set_union(items):
    active = set()
    for item in items:
        active = active | {item}
    return active


def merged_tables(tables):
    result = {}
    for table in tables:
        result = {**result, **table}
    return result


def prefix_sums(items):
    return [sum(items[:i]) for i in range(len(items))]


def prefix_max(items):
    return [max(items[: i + 1]) for i in range(len(items))]


def counts(items):
    return {item: items.count(item) for item in items}


def keys_by_number(table):
    return [list(table.keys())[i] for i in range(len(table))]


def sort_each_time(items):
    ordered = []
    for item in items:
        ordered.append(item)
        ordered.sort()
    return ordered


def copy_each_time(items):
    result = []
    for item in items:
        result.append(list(items))
    return result


def states(steps):
    state, history = {}, []
    for name in steps:
        state[name] = len(state)
        history.append(copy.deepcopy(state))
    return history


def set_each_time(left, right):
    return [x for x in left if x in set(right)]


def append_array(items):
    values = np.array([])
    for item in items:
        values = np.append(values, item)
    return values


def concat_frames(frames):
    table = pd.DataFrame()
    for frame in frames:
        table = pd.concat([table, frame])
    return table


def join_each_time(words):
    lines = []
    for i in range(len(words)):
        lines.append(" ".join(words[:i]))
    return lines


def replace_all(text, table):
    for old, new in table.items():
        text = text.replace(old, new)
    return text
"""

FORMS: dict[str, tuple[str, ...]] = {
    "pop_front": ("items",),
    "delete_front": ("items",),
    "sum_of_lists": ("lists",),
    "plus_list": ("items",),
    "plus_bytes": ("items",),
    "plus_tuple": ("items",),
    "front_text": ("items",),
    "cut_list": ("items",),
    "set_union": ("items",),
    "merged_tables": ("tables",),
    "prefix_sums": ("items",),
    "prefix_max": ("items",),
    "counts": ("items",),
    "keys_by_number": ("table",),
    "sort_each_time": ("items",),
    "copy_each_time": ("items",),
    "states": ("steps",),
    "set_each_time": ("left", "right"),
    "append_array": ("items",),
    "concat_frames": ("frames",),
    "join_each_time": ("words",),
    "replace_all": ("table", "text"),
}
