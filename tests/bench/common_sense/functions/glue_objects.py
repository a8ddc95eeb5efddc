"""Ordinary small functions and methods: lookups, data classes, arithmetic, dispatch."""

import enum
import math
import os
from collections import namedtuple
from dataclasses import dataclass, field, replace
from datetime import datetime

DEFAULTS = {"host": "localhost", "port": 8080, "debug": False}
Point = namedtuple("Point", "x y")


class Colour(enum.Enum):
    RED = 1
    GREEN = 2


@dataclass
class Item:
    name: str
    price: float
    quantity: int = 1
    tags: list = field(default_factory=list)

    @property
    def total(self):
        return self.price * self.quantity

    def tagged(self, tag):
        return tag in self.tags

    def with_price(self, price):
        return replace(self, price=price)


class Account:
    def __init__(self, owner, balance=0):
        self.owner = owner
        self.balance = balance
        self.history = []

    def deposit(self, amount):
        if amount <= 0:
            raise ValueError("amount must be positive")
        self.balance += amount
        self.history.append(("deposit", amount))
        return self.balance

    def withdraw(self, amount):
        if amount > self.balance:
            return False
        self.balance -= amount
        self.history.append(("withdraw", amount))
        return True

    def __repr__(self):
        return f"Account({self.owner!r}, {self.balance})"


class Vector:
    def __init__(self, x, y, z=0.0):
        self.x, self.y, self.z = x, y, z

    def __add__(self, other):
        return Vector(self.x + other.x, self.y + other.y, self.z + other.z)

    def dot(self, other):
        return self.x * other.x + self.y * other.y + self.z * other.z

    def length(self):
        return math.sqrt(self.dot(self))


class Stack:
    def __init__(self):
        self._items = []

    def push(self, item):
        self._items.append(item)

    def pop(self):
        if not self._items:
            raise IndexError("empty")
        return self._items.pop()

    def is_empty(self):
        return len(self._items) == 0


class Registry:
    def __init__(self):
        self._handlers = {}

    def register(self, name, handler):
        self._handlers[name] = handler

    def dispatch(self, name, *args):
        handler = self._handlers.get(name)
        return handler(*args) if handler else None


class TreeNode:
    def __init__(self, value, left=None, right=None):
        self.value = value
        self.left = left
        self.right = right

    def is_leaf(self):
        return self.left is None and self.right is None


def clamp(value, low, high):
    return max(low, min(high, value))


def get_setting(name, overrides):
    return overrides.get(name, DEFAULTS.get(name))


def merge_settings(overrides):
    return {**DEFAULTS, **overrides}


def distance(a, b):
    return math.hypot(a.x - b.x, a.y - b.y)


def celsius(fahrenheit):
    return (fahrenheit - 32) * 5 / 9


def leap_year(year):
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)


def grade(score):
    if score >= 90:
        return "A"
    if score >= 80:
        return "B"
    if score >= 70:
        return "C"
    return "F"


def swap_keys(row):
    return {"first": row["given_name"], "last": row["family_name"], "age": row.get("age", 0)}


def colour_of(code):
    return Colour(code).name.lower()


def next_even(n):
    return n if n % 2 == 0 else n + 1


def bmi(weight, height):
    return round(weight / height**2, 1)


def average(values):
    return sum(values) / len(values) if values else 0.0


def cart_total(items):
    return sum(item.price * item.quantity for item in items)


def iso_day(moment):
    return moment.strftime("%Y-%m-%d")


def join_url(base, path):
    return base.rstrip("/") + "/" + path.lstrip("/")


def home_file(name):
    return os.path.join(os.path.expanduser("~"), name)


def parse_flags(argv):
    flags = {}
    for argument in argv:
        if argument.startswith("--"):
            name, _, value = argument[2:].partition("=")
            flags[name] = value or True
    return flags


def http_status(code):
    match code:
        case 200 | 201 | 204:
            return "success"
        case 404:
            return "not found"
        case _ if code >= 500:
            return "server error"
        case _:
            return "other"


def dig(data, *keys):
    for key in keys:
        if not isinstance(data, dict) or key not in data:
            return None
        data = data[key]
    return data


def compound_interest(principal, rate, years):
    return principal * (1 + rate) ** years


def roman(number):
    result = ""
    for value, letters in ((10, "X"), (9, "IX"), (5, "V"), (4, "IV"), (1, "I")):
        while number >= value:
            result += letters
            number -= value
    return result


def triangle_kind(a, b, c):
    sides = {a, b, c}
    return {1: "equilateral", 2: "isosceles", 3: "scalene"}[len(sides)]
