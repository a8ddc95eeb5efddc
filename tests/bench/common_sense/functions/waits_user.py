"""Functions that wait for a person."""

import getpass
import sys
from getpass import getpass as ask_password


def ask_name():
    name = input("What is your name? ")
    return f"Hello, {name}"


def read_numbers():
    return [int(part) for part in input().split()]


def login():
    user = input("user: ")
    password = getpass.getpass()
    return user, password


def secret():
    return ask_password("Token: ")


def confirm(question):
    while True:
        answer = input(question + " [y/n] ").lower()
        if answer in ("y", "n"):
            return answer == "y"


def read_line():
    return sys.stdin.readline().strip()


def read_all():
    return sys.stdin.read().split()


def overwrite(path, force=False):
    if not force:
        if input(f"Overwrite {path}? ") != "yes":
            return False
    return True


def _prompt(label, default):
    text = input(f"{label} [{default}]: ").strip()
    return text or default


def configure():
    return {"host": _prompt("Host", "localhost"), "port": int(_prompt("Port", "8080"))}
