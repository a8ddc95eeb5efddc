"""Ordinary small functions on short strings."""

import re
from pathlib import PurePosixPath

_WORD = re.compile(r"\w+")
_UNITS = {"k": 1e3, "m": 1e6, "g": 1e9}
LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40}


def parse_pair(text):
    key, _, value = text.partition("=")
    return key.strip(), value.strip()


def parse_version(version):
    return tuple(int(part) for part in version.split("."))


def slugify(title):
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")


def parse_size(text):
    text = text.strip().lower()
    if text and text[-1] in _UNITS:
        return int(float(text[:-1]) * _UNITS[text[-1]])
    return int(text)


def initials(name):
    return "".join(part[0].upper() for part in name.split())


def is_email(text):
    return "@" in text and "." in text.rsplit("@", 1)[-1]


def snake_case(name):
    return "".join("_" + c.lower() if c.isupper() else c for c in name).lstrip("_")


def camel_case(name):
    head, *tail = name.split("_")
    return head + "".join(word.title() for word in tail)


def truncate(text, width=20):
    return text if len(text) <= width else text[: width - 1] + "…"


def level_of(name):
    return LEVELS.get(name.lower(), 20)


def parse_header(line):
    if ":" not in line:
        raise ValueError(f"bad header: {line!r}")
    name, value = line.split(":", 1)
    return name.lower(), value.strip()


def file_stem(path):
    return PurePosixPath(path).stem


def extension_of(path):
    name = path.rsplit("/", 1)[-1]
    return name.rpartition(".")[2] if "." in name else ""


def words(text):
    return _WORD.findall(text)


def format_duration(seconds):
    minutes, seconds = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours}h {minutes:02d}m"
    return f"{minutes}m {seconds:02d}s"


def format_bytes(count):
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024:
            return f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} TiB"


def parse_query(query):
    result = {}
    for part in query.split("&"):
        key, _, value = part.partition("=")
        result.setdefault(key, []).append(value)
    return result


def mask(card):
    return "*" * (len(card) - 4) + card[-4:]


def indent(text, prefix="    "):
    return "\n".join(prefix + line if line else line for line in text.splitlines())


def bool_from_env(value):
    return value.strip().lower() in {"1", "true", "yes", "on"}


def greeting(name, polite=True):
    if not name:
        return "Hello!"
    return f"Dear {name}," if polite else f"Hi {name}"
