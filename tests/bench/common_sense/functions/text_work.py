"""Strings: building, splitting, searching, formatting."""

import string
import textwrap


def repeat_and_upper():
    return ("lorem ipsum " * 100_000).upper()


def join_numbers():
    return ",".join(str(i) for i in range(200_000))


def concatenate_in_loop():
    text = ""
    for i in range(100_000):
        text += str(i)
    return text


def split_long_text():
    text = "alpha beta gamma delta " * 50_000
    return text.split()


def count_words():
    text = "to be or not to be that is the question " * 20_000
    counts = {}
    for word in text.split():
        counts[word] = counts.get(word, 0) + 1
    return counts


def replace_everywhere():
    return ("abc" * 500_000).replace("b", "--")


def reverse_words():
    sentence = "the rain in spain stays mainly in the plain"
    return " ".join(reversed(sentence.split(" ")))


def caesar():
    text = "attack at dawn" * 10_000
    result = []
    for ch in text:
        if ch in string.ascii_lowercase:
            result.append(chr((ord(ch) - 97 + 3) % 26 + 97))
        else:
            result.append(ch)
    return "".join(result)


def is_palindrome_long():
    s = "abcdefghij" * 100_000
    return s == s[::-1]


def edit_distance():
    a = "kitten sitting on the mat" * 12
    b = "sitting kittens at the mall" * 12
    previous = list(range(len(b) + 1))
    for i, ca in enumerate(a, 1):
        current = [i]
        for j, cb in enumerate(b, 1):
            current.append(min(previous[j] + 1, current[j - 1] + 1, previous[j - 1] + (ca != cb)))
        previous = current
    return previous[-1]


def csv_lines():
    lines = []
    for i in range(50_000):
        lines.append("%d;%s;%.2f" % (i, "name" + str(i), i / 3))
    return "\n".join(lines)


def wrap_paragraph():
    paragraph = "word " * 20_000
    return textwrap.wrap(paragraph, width=70)


def find_needle():
    haystack = "a" * 10_000_000 + "b"
    return haystack.find("b")


def encode_decode():
    text = "grüße aus köln " * 200_000
    return text.encode("utf-8").decode("utf-8")


def vowels_in_text():
    text = "programming is understanding " * 5_000
    return sum(1 for letter in text if letter in "aeiou")
