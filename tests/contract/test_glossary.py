"""The glossary's words are those of the API and the code, and no record of the API is missing."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from google.protobuf.descriptor import Descriptor
from support.api import METHODS
from support.server import REPOSITORY

TEXT = (REPOSITORY / "docs/glossary.md").read_text()
ROWS = [line.strip("|").split("|", 1) for line in TEXT.splitlines() if line.startswith("| **")]
TERMS = sorted(set(re.findall(r"\*\*(.+?)\*\*", "\n".join(" ".join(row) for row in ROWS))))
QUOTED = sorted(set(re.findall(r"`(\w+)`", TEXT)))
CODE = ("server/mneme_server", "clients/python/mneme", "mcp_adapter/mneme_mcp")
_DEFINED = re.compile(r"^ *(?:class|def|async def) (\w+)", re.MULTILINE)
_READS = ("Get", "List", "Create", "Start", "Store", "Insert", "Query")
# Somebody who is no part of it, and what the code calls `data_dir`.
NOT_IN_CODE = {"operator", "data folder"}


def _words(name: str) -> tuple[str, ...]:
    """Return the words of an identifier in small letters: of `LearningSession` and `a_word` two."""
    parts = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+", name)
    return tuple(part.lower() for part in parts)


def _identifiers() -> Iterator[str]:
    """Yield the names of folders, modules, classes and functions, and of the API."""
    for part in CODE:
        for path in (REPOSITORY / part).rglob("*.py"):
            yield from path.relative_to(REPOSITORY / part).with_suffix("").parts
            if path.stem.endswith(("_pb2", "_pb2_grpc")):
                continue
            yield from _DEFINED.findall(path.read_text())
    for message in _messages():
        yield message.name
        yield from (field.name for field in message.fields)
    yield from (method.name for method in METHODS.values())


def _messages() -> dict[Descriptor, None]:
    """Return the messages of the API that requests and answers are made of."""
    found: dict[Descriptor, None] = {}
    waiting = [one for m in METHODS.values() for one in (m.input_type, m.output_type)]
    while waiting:
        message = waiting.pop()
        if message not in found and message.file.package == "mneme.v1":
            found[message] = None
            waiting += [f.message_type for f in message.fields if f.message_type is not None]
    return found


def _records() -> set[str]:
    """Return the messages that calls make, get or list and that have an id of their own."""
    return {
        field.message_type.name
        for method in METHODS.values()
        if method.name.startswith(_READS)
        for field in method.output_type.fields
        if field.message_type is not None and "id" in field.message_type.fields_by_name
    }


@pytest.fixture(scope="module")
def identifiers() -> list[tuple[str, ...]]:
    return sorted({_words(name) for name in _identifiers()})


def _holds(name: tuple[str, ...], term: tuple[str, ...]) -> bool:
    """Whether a term's words stand side by side in a name; its last one may be a plural there."""
    plural = (*term[:-1], term[-1] + "s")
    size = len(term)
    return any(name[i : i + size] in (term, plural) for i in range(len(name) - size + 1))


def test_every_word_of_the_glossary_is_a_word_of_the_code(
    identifiers: list[tuple[str, ...]],
) -> None:
    unknown = {t for t in TERMS if not any(_holds(name, _words(t)) for name in identifiers)}
    assert unknown == NOT_IN_CODE


def test_every_name_that_the_glossary_quotes_is_there(identifiers: list[tuple[str, ...]]) -> None:
    assert not {name for name in QUOTED if _words(name) not in identifiers}


def test_every_record_of_the_api_is_in_the_glossary() -> None:
    records = _records()
    assert len(records) > 10
    terms = {_words(term) for term in TERMS}
    missing = set()
    for record in records:
        words = _words(record)
        parts = [words[:i] for i in range(1, len(words) + 1)] + [
            words[i:] for i in range(len(words))
        ]
        if not terms.intersection(parts):
            missing.add(record)
    assert not missing, f"docs/glossary.md has no word for {sorted(missing)}"


def test_no_word_is_explained_twice() -> None:
    explained = [term for row in ROWS for term in re.findall(r"\*\*(.+?)\*\*", row[0])]
    assert len(explained) > 50
    assert len(explained) == len(set(explained))
