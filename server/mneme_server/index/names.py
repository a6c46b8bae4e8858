"""Names in code, paths, codes and numbers: as one word beside the words that they consist of.

A text is split into words at everything but letters and digits. Of `generate_relationships` only
two common words would be left, which many texts have, and of `PaymentTimeout` one that nobody asks
for who writes "payment timeout".
"""

from __future__ import annotations

import re

# Every part is looked at from its beginning alone, and whole, so that a text of one endless word
# takes no longer than others.
_NAME = re.compile(
    r"(?<![^\W_])[^\W_]++(?:(?:::|[._/\\@-])[^\W_]++)+"  # a.b, a_b, a-b, a/b, a::b, a@b
    r"|(?<![^\W_])[A-Za-z]*[a-z][A-Z][A-Za-z]*(?![^\W_])"  # aB
)
_PART = re.compile(r"[^\W_]+")
_HUMP = re.compile(r"[A-Z]*[a-z]+|[A-Z]+")
# Most texts have no name. Each of these is told by its first character, which takes a tenth of
# the time.
_SEPARATED = re.compile(r"[._/\\@:-]\w")
_HUMPED = re.compile(r"[A-Z](?<=[a-z].)")
_JOINER = "\ua78f"
"""A letter, so that it splits no word, that no name has."""


def with_names(text: str) -> str:
    """Return a text and, behind it, what is to be found of its names beside their words.

    The parts of a name stand together there, so that `get_user`, `get-user` and `getUser` are the
    same word; what has digits alone keeps its parts apart: 1.23 is not 12.3. The words in a name
    like `getUser` stand there one by one.
    """
    if not _SEPARATED.search(text) and not _HUMPED.search(text):
        return text
    found: list[str] = []
    for name in _NAME.findall(text):
        parts = _PART.findall(name)
        if len(parts) > 1:
            digits = all(map(str.isdigit, parts))
            found.append((_JOINER if digits else "").join(parts))
        for part in parts:
            humps = _HUMP.findall(part)
            if len(humps) > 1 and "".join(humps) == part:
                found += humps
    return f"{text} {' '.join(found)}"
