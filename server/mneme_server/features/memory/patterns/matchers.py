"""The matchers of patterns: regular expressions and structures, kept once they are compiled."""

from __future__ import annotations

import json
import re
import threading
import time
import unicodedata
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import cached_property
from itertools import islice
from typing import Any, Protocol
from urllib.parse import unquote

import jsonschema_rs
import re2

from mneme_server.common.canonical import Json
from mneme_server.common.errors import InvalidArgument
from mneme_server.common.texts import composed
from mneme_server.features.memory.patterns.model import Regex, Structural, StructureOf, TextMatch

_MOST = 32
"""Matchers kept, each of some MiB at most."""
MOST_MATCHES = 100
"""Matches shown of one text."""
_MEMORY = 2 * 2**20
"""Bytes that an expression may take when it is compiled, and while it is looked for."""
_ONE_BYTE = re.compile(r"(?<!\\)(?:\\\\)*\\C")
# What says where a text begins or ends, or that a line's ends do not count.
_OF_TEXTS = re.compile(r"\\[AzZQ]|\(\?[a-zA-Z]*-[a-zA-Z]*m")
_MOST_PARTS = 2_000
"""Parts of a schema, with each reference counted as what it leads to."""
_REGEX_BYTES = 2 * 2**20
_KEPT = 4_096
"""Different items of which it is remembered whether they match: metadata repeat themselves."""
_DATA = frozenset({"const", "enum", "default", "examples"})
_NAMED = frozenset(
    {"properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"}
)
"""Keywords whose value maps names to schemas."""
_BEGINNINGS = frozenset((b"{", b"["))


def matcher_of(definition: Regex | Structural) -> Matcher:
    """Return what finds a pattern.

    Raises:
        InvalidArgument: it cannot be used.
    """
    if isinstance(definition, Regex):
        return RegexMatcher(definition.expression)
    return StructuralMatcher(json.loads(definition.schema_json), definition.of)


class Matcher(Protocol):
    """Tells which of many items match."""

    def matching(self, joined: bytes) -> Collection[int]:
        """Return which of the items match, from 0; `joined` are they, in UTF-8, with NUL between
        them."""
        ...


class KeptMatchers:
    """The matchers that tenants used last. Thread-safe, and so are they."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[str, Regex | Structural], tuple[Matcher, float]] = (
            OrderedDict()
        )

    def of(self, tenant_id: str, definition: Regex | Structural) -> Matcher:
        """Return a tenant's matcher."""
        key = (tenant_id, definition)
        with self._lock:
            kept = self._kept.get(key)
            if kept is not None:
                self._kept.move_to_end(key)
                return kept[0]
        made = matcher_of(definition)
        with self._lock:
            self._kept[key] = (made, self._clock())
            while len(self._kept) > _MOST:
                self._kept.popitem(last=False)
        return made

    def clear(self, tenant_id: str, older_s: float = 0.0) -> int:
        """Forget a tenant's matchers made at least so many seconds ago; return how many."""
        latest = self._clock() - older_s
        with self._lock:
            gone = [
                key
                for key, (_, made) in self._kept.items()
                if key[0] == tenant_id and made <= latest
            ]
            for key in gone:
                del self._kept[key]
        return len(gone)


class RegexMatcher:
    """Finds a regular expression in texts, by an engine that takes time in proportion to the text
    (RE2).

    An expression is looked for in thousands of texts at once: as lines of one long text, in which
    the engine never lets a match reach beyond a line. Texts that have line breaks of their own, and
    expressions that tell the beginning of a text from that of a line, are looked at one by one.

    Expressions and texts are compared in the form NFC of Unicode; matches are those of the text as
    it is stored.

    Raises:
        InvalidArgument: it is none, or it takes too much memory.
    """

    def __init__(self, expression: str) -> None:
        if _ONE_BYTE.search(expression):  # What it matches may be no text.
            raise _expression_refused(r"\C matches half a character", expression)
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

    def matches(self, text: str) -> Sequence[TextMatch]:
        """Return the places of a text that match, the first `MOST_MATCHES`, without empty ones."""
        searched = Searched(text)
        found = (m for m in self._alone.finditer(searched.text) if m.end() > m.start())
        return [
            TextMatch(
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
        raise _expression_refused(text, expression) from error
    finally:
        re2.purge()  # The library keeps what it compiled, too.


def _expression_refused(why: str, expression: str) -> InvalidArgument:
    return InvalidArgument(
        f"the expression {expression!r:.120} cannot be used: {why}", field="regex.expression"
    )


class Searched:
    """A text as it is searched, in the form NFC: `text`; it knows where that is as it is stored."""

    def __init__(self, stored: str) -> None:
        self._stored = stored
        self.text = composed(stored)

    def stored(self, start: int, end: int) -> tuple[str, int, int]:
        """Return what is stored of a part of `text`, where that starts and where it ends; nothing
        of a part that there is not, which starts at -1."""
        if start < 0:
            return "", start, end
        if self.text is not self._stored:
            start, end = self._places[start], self._places[end]
        return self._stored[start:end], start, end

    @cached_property
    def _places(self) -> list[int]:
        """Where each character of `text` is stored, and the end. Of a run that became several
        characters, each has a place in it, the first its beginning."""
        places: list[int] = []
        start = 0
        for run in _runs(self._stored):
            places += [start + min(place, len(run)) for place in range(len(composed(run)))]
            start += len(run)
        return [*places, start]


def _runs(text: str) -> Iterator[str]:
    """Yield the parts of a text, each of which has its form whatever is beside it."""
    run = ""
    for character in text:
        if run and not _joins(run, character):
            yield run
            run = ""
        run += character
    if run:
        yield run


def _joins(run: str, character: str) -> bool:
    """Tell whether a character is one with those before it."""
    if character.isascii():
        return False
    if unicodedata.combining(character):
        return True
    return composed(run + character) != composed(run) + composed(character)


class StructuralMatcher:
    """Finds structures: JSON that is valid under a JSON Schema.

    A schema comes from a caller, and must neither read anything else nor keep the server busy:
    references stay inside it, never lead back to themselves, and count as what they lead to.

    Raises:
        InvalidArgument: the schema is none, leads outside or back to itself, or is too large.
    """

    def __init__(self, schema: Any, of: StructureOf) -> None:
        _Walk(schema).measure()
        self._of = of
        try:
            self._validator = jsonschema_rs.validator_for(
                schema,
                retriever=_outside,
                pattern_options=jsonschema_rs.RegexOptions(
                    size_limit=_REGEX_BYTES, dfa_size_limit=_REGEX_BYTES
                ),
            )
        except ValueError as error:
            raise _schema_refused(str(error).partition("\n")[0]) from error
        self._known: dict[bytes, bool] = {}

    def matching(self, joined: bytes) -> Sequence[int]:
        """Return which of the items match; see `Matcher`."""
        known = self._known
        found = []
        for place, item in enumerate(joined.split(b"\0")):
            valid = known.get(item)
            if valid is None:
                if len(known) >= _KEPT:
                    known.clear()
                valid = known[item] = self._matches(item)
            if valid:
                found.append(place)
        return found

    def _matches(self, item: bytes) -> bool:
        if self._of is StructureOf.TEXT and item[:1] not in _BEGINNINGS and not _may_be_json(item):
            return False
        try:
            value = json.loads(item)
        except (ValueError, RecursionError):
            return False
        try:
            return bool(self._validator.is_valid(value))
        except (ValueError, RecursionError):  # A number that no double holds, or too deep.
            return False


def _may_be_json(item: bytes) -> bool:
    """Tell whether a text may be JSON that is neither an object nor a list."""
    return item.strip()[:1] in (b"{", b"[", b'"') or item[:1] in b"-0123456789tfn \t\r\n"


def _outside(uri: str) -> Any:
    raise ValueError(f"{uri} is outside the schema")


class _Walk:
    """A walk over a schema that counts its parts, references included."""

    def __init__(self, schema: Any) -> None:
        self._schema = schema
        self._sizes: dict[str, int] = {}
        self._open: set[str] = set()

    def measure(self) -> None:
        """Count the parts.

        Raises:
            InvalidArgument: there are too many, or a reference leads outside or in a circle.
        """
        try:
            size = self._of_reference("#", top=True)
        except RecursionError:
            raise _schema_refused("its references lead on too far") from None
        if size > _MOST_PARTS:
            raise _schema_refused(
                f"it has more than {_MOST_PARTS} parts, each reference counted as what it leads to"
            )

    def _of_reference(self, reference: Any, *, top: bool = False) -> int:
        if not isinstance(reference, str) or not reference.startswith("#"):
            raise _schema_refused(
                f"$ref {reference!r:.100} leads outside the schema; it must begin with #"
            )
        if reference in self._open:
            raise _schema_refused(f"$ref {reference!r:.100} leads back to itself")
        if reference not in self._sizes:
            self._open.add(reference)
            self._sizes[reference] = self._of(self._at(reference), top=top)
            self._open.discard(reference)
        return self._sizes[reference]

    def _of(self, schema: Any, *, top: bool = False) -> int:
        if isinstance(schema, list):
            return sum(self._of(one) for one in schema)
        if not isinstance(schema, dict):
            return 1
        for word in ("$dynamicRef", "$recursiveRef"):
            if word in schema:
                raise _schema_refused(f"{word} is not supported")
        if not top and any(isinstance(schema.get(word), str) for word in ("$id", "id", "$schema")):
            raise _schema_refused("$id and $schema belong to the top of the schema")
        size = 1 + (self._of_reference(schema["$ref"]) if "$ref" in schema else 0)
        size += sum(self._of(part) for part in _parts(schema))
        # Sizes grow without end when references double them again and again.
        return min(size, 10 * _MOST_PARTS)

    def _at(self, reference: str) -> Any:
        """Return the part of the schema that a JSON pointer leads to.

        Raises:
            InvalidArgument: it leads nowhere.
        """
        part: Any = self._schema
        if reference == "#":
            return part
        nowhere = _schema_refused(
            f"$ref {reference!r:.100} leads nowhere; give a JSON pointer such as #/$defs/name"
        )
        if not reference.startswith("#/"):
            raise nowhere
        for step in unquote(reference[2:]).split("/"):
            name = step.replace("~1", "/").replace("~0", "~")
            if isinstance(part, dict) and name in part:
                part = part[name]
            elif isinstance(part, list) and name.isdecimal() and int(name) < len(part):
                part = part[int(name)]
            else:
                raise nowhere
        return part


def _parts(schema: dict[str, Json]) -> Iterator[Any]:
    for word, value in schema.items():
        if word in _DATA or word == "$ref":
            continue
        if word in _NAMED and isinstance(value, dict):
            yield from value.values()
        else:
            yield value


def _schema_refused(why: str) -> InvalidArgument:
    return InvalidArgument(f"the schema cannot be used: {why}"[:1000], field="structural.schema")
