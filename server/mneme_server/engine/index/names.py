"""Names in code, paths, codes and numbers: as one word beside the words that they consist of.

A text is split into words at everything but letters and digits. Of `generate_relationships` only
two common words would be left, which many texts have, and of `PaymentTimeout` one that nobody asks
for who writes "payment timeout".
"""

from __future__ import annotations

import re
from collections.abc import Iterator

# A place inside a name, where two parts meet or a hump begins, is found by its first character,
# which takes a tenth of the time of looking for names; most texts have none.
_INSIDE = re.compile(r"[._/\\@:A-Z-](?:(?<=[^\W_][._/\\@:-]):?\w|(?<=[a-z][A-Z]))")
_NAME = re.compile(r"[^\W_]++(?:(?:::|[._/\\@-])[^\W_]++)*")  # a, a.b, a_b, a-b, a/b, a::b, a@b
_PART = re.compile(r"[^\W_]+")
_HUMP = re.compile(r"[A-Z]*[a-z]+|[A-Z]+")
# 15000, 15,000
_NUMBER = re.compile(r"(?<![\w.,/-])[1-9](?:\d{3,14}|\d{0,2}(?:,\d{3}){1,4})(?!\w|[.,]\d)")
_GROUP = re.compile(r"(?<=\d)(?=(?:\d{3})+$)")
_LONGEST_PART = 80
_JOINER = "\ua78f"
"""A letter, so that it splits no word, that no name has."""


def with_names(text: str) -> str:
    """Return a text and, behind it, what is to be found of its names beside their words.

    The parts of a name stand together there, so that `get_user`, `get-user` and `getUser` are the
    same word; what has digits alone keeps its parts apart: 1.23 is not 12.3. The words in a name
    like `getUser` stand there one by one.
    """
    found: list[str] = []
    for name in _names_in(text):
        parts = _PART.findall(name)
        if len(parts) > 1:
            digits = all(map(str.isdigit, parts))
            found.append((_JOINER if digits else "").join(parts))
        for part in parts:
            humps = _HUMP.findall(part)
            if len(humps) > 1 and "".join(humps) == part:
                found += humps
    return f"{text} {' '.join(found)}" if found else text


def regrouped(text: str) -> str:
    """Return a text with its large numbers as others write them: 15000 as 15,000 and back."""
    return _NUMBER.sub(_regrouped, text)


def _regrouped(match: re.Match[str]) -> str:
    number = match[0]
    return number.replace(",", "") if "," in number else _GROUP.sub(",", number)


def _names_in(text: str) -> Iterator[str]:
    end = 0
    for inside in _INSIDE.finditer(text):
        start = place = inside.start()
        if place < end:
            continue
        while start > max(end, place - _LONGEST_PART) and text[start - 1].isalnum():
            start -= 1
        match = _NAME.match(text, start)
        if match is not None:
            yield match[0]
            end = match.end()
