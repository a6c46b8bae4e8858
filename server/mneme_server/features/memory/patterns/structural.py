"""Structures: JSON that is valid under a JSON Schema.

A schema comes from a caller, and must neither read anything else nor keep the server busy:
references stay inside it, never lead back to themselves, and count as what they lead to.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import unquote

import jsonschema_rs

from mneme_server.common.canonical import Json
from mneme_server.common.errors import InvalidArgument
from mneme_server.features.memory.patterns.model import StructureOf

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


class StructuralMatcher:
    """Holds JSON against a schema.

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
            raise _refused(str(error).partition("\n")[0]) from error
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


_BEGINNINGS = frozenset((b"{", b"["))


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
            raise _refused("its references lead on too far") from None
        if size > _MOST_PARTS:
            raise _refused(
                f"it has more than {_MOST_PARTS} parts, each reference counted as what it leads to"
            )

    def _of_reference(self, reference: Any, *, top: bool = False) -> int:
        if not isinstance(reference, str) or not reference.startswith("#"):
            raise _refused(
                f"$ref {reference!r:.100} leads outside the schema; it must begin with #"
            )
        if reference in self._open:
            raise _refused(f"$ref {reference!r:.100} leads back to itself")
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
                raise _refused(f"{word} is not supported")
        if not top and any(isinstance(schema.get(word), str) for word in ("$id", "id", "$schema")):
            raise _refused("$id and $schema belong to the top of the schema")
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
        nowhere = _refused(
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


def _refused(why: str) -> InvalidArgument:
    return InvalidArgument(f"the schema cannot be used: {why}"[:1000], field="structural.schema")
