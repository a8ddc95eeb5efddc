"""Orders of a shop: download, clean up, match with payments."""

import json
import time
from urllib.request import urlopen

SHOP = "https://shop.example/orders"


def download(pages=20):
    orders = []
    for page in range(pages):
        with urlopen(f"{SHOP}?page={page}") as answer:
            orders += json.load(answer)
        time.sleep(0.5)  # no more than two requests a second
    return orders


def without_duplicates(orders):
    kept = []
    for order in orders:
        if order not in kept:
            kept.append(order)
    return kept


def unpaid(orders, payments):
    return [order for order in orders if not any(payment["order"] == order["id"] for payment in payments)]


def revenue(orders):
    return sum(order["price"] * order["count"] for order in orders)


def price_table(rows=1_000_000):
    return {number: round(number * 1.19, 2) for number in range(rows)}
