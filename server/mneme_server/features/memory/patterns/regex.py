"""Regular expressions, on an engine that takes time in proportion to the text (RE2).

An expression is looked for in thousands of texts at once: as lines of one long text, in which the
engine never lets a match reach beyond a line. Texts that have line breaks of their own, and
expressions that tell the beginning of a text from that of a line, are looked at one by one.

Expressions and texts are compared in the form NFC of Unicode; matches are those of the text as it
is stored.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice
from typing import Any

import re2

from mneme_server.common.errors import InvalidArgument
from mneme_server.common.texts import composed
from mneme_server.features.memory.patterns.model import Match
from mneme_server.features.memory.patterns.searched import Searched

MOST_MATCHES = 100
"""Matches shown of one text."""
_MEMORY = 2 * 2**20
"""Bytes that an expression may take when it is compiled, and while it is looked for."""
_ONE_BYTE = re.compile(r"(?<!\\)(?:\\\\)*\\C")
# What says where a text begins or ends, or that a line's ends do not count.
_OF_TEXTS = re.compile(r"\\[AzZQ]|\(\?[a-zA-Z]*-[a-zA-Z]*m")


class RegexMatcher:
    """Finds an expression in texts.

    Raises:
        InvalidArgument: it is none, or it takes too much memory.
    """

    def __init__(self, expression: str) -> None:
        if _ONE_BYTE.search(expression):  # What it matches may be no text.
            raise _refused(r"\C matches half a character", expression)
        expression = composed(expression)
        self._alone = _compiled(expression)
        lines = "(?m)" + expression
        self._in_lines = None if _OF_TEXTS.search(expression) else _compiled(lines, never_nl=True)

    def matching(self, joined: bytes) -> Sequence[int]:
        """Return which of the texts match; see `Matcher`."""
        joined = _composed(joined)
        if self._in_lines is None:
            return self._one_by_one(enumerate(joined.split(b"\0")))
        if b"\n" not in joined:
            return self._lines(joined.replace(b"\0", b"\n"))
        texts = joined.split(b"\0")
        of_lines = [place for place, text in enumerate(texts) if b"\n" not in text]
        blob = b"\n".join(texts[place] for place in of_lines)
        found = [of_lines[place] for place in self._lines(blob)] if of_lines else []
        others = ((place, text) for place, text in enumerate(texts) if b"\n" in text)
        return sorted([*found, *self._one_by_one(others)])

    def _lines(self, blob: bytes) -> list[int]:
        """Return the numbers of the lines that match."""
        found: list[int] = []
        search = self._in_lines.search  # type: ignore[union-attr]
        start = counted = line = 0
        while start <= len(blob):
            match = search(blob, start)
            if match is None:
                break
            at = match.start()
            line += blob.count(b"\n", counted, at)
            counted = at
            found.append(line)
            end = blob.find(b"\n", at)
            if end < 0:
                break
            start = end + 1
        return found

    def _one_by_one(self, texts: Any) -> list[int]:
        search = self._alone.search
        return [place for place, text in texts if search(text) is not None]

    def matches(self, text: str) -> Sequence[Match]:
        """Return the places of a text that match, the first `MOST_MATCHES`, without empty ones."""
        searched = Searched(text)
        found = (m for m in self._alone.finditer(searched.text) if m.end() > m.start())
        return [
            Match(
                *searched.stored(*match.span()),
                [
                    searched.stored(*match.span(place + 1))[0]
                    for place in range(len(match.groups()))
                ],
            )
            for match in islice(found, MOST_MATCHES)
        ]


def _composed(joined: bytes) -> bytes:
    return joined if joined.isascii() else composed(joined.decode()).encode()


def _compiled(expression: str, *, never_nl: bool = False) -> Any:
    options = re2.Options()
    options.max_mem = _MEMORY
    options.log_errors = False
    options.never_nl = never_nl
    try:
        return re2.compile(expression, options)
    except re2.error as error:
        said = error.args[0] if error.args else ""
        text = said.decode(errors="replace") if isinstance(said, bytes) else str(said)
        raise _refused(text, expression) from error
    finally:
        re2.purge()  # The library keeps what it compiled, too.


def _refused(why: str, expression: str) -> InvalidArgument:
    return InvalidArgument(
        f"the expression {expression!r:.120} cannot be used: {why}", field="regex.expression"
    )
