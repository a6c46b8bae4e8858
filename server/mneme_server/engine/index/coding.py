"""The coding of documents as the values of columns, where names stand as numbers."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from hashlib import blake2b
from typing import Any, TypeAlias

from mneme_server.common.texts import composed
from mneme_server.engine.corpus.document import Document
from mneme_server.engine.corpus.words import name_words
from mneme_server.engine.index.words.languages import asks, count_words

# A name: one to three words, "Here are the details: ..." is none.
_LABEL = re.compile(r"([^\W\d_][\w.'\-]{0,40}(?: [^\W\d_][\w.'\-]{0,40}){0,2}):\s")


class Coding:
    """What the numbers in columns stand for. One writer; readers need no lock."""

    def __init__(self) -> None:
        self.tags, self.authors = TagSets(), NameCodes()
        self.kinds, self.sessions, self.roles = StringCodes(), StringCodes(), StringCodes()
        self.agents, self.users, self.projects = StringCodes(), StringCodes(), StringCodes()
        self.categories, self.types, self.names = StringCodes(), StringCodes(), StringCodes()
        self.of_columns: Mapping[str, AnyCodes] = {
            "kind": self.kinds, "session": self.sessions, "agent": self.agents,
            "user": self.users, "project": self.projects, "category": self.categories,
            "author": self.authors, "type": self.types, "name": self.names,
            "role": self.roles, "tags": self.tags,
        }  # fmt: skip
        """By the columns' names."""

    def values(self, documents: Sequence[Document]) -> Mapping[str, Sequence[Any]]:
        """Return what stands of documents in each column, by the columns' names."""
        return {
            "doc_id": [d.doc_id for d in documents],
            "kind": [self.kinds[d.kind.name] for d in documents],
            "session": [self.sessions[d.session_id] for d in documents],
            "position": [d.position for d in documents],
            "timestamp_us": [d.timestamp_us for d in documents],
            "importance": [d.importance for d in documents],
            "words": [count_words(d.text) for d in documents],
            "asks": [asks(d.text) for d in documents],
            "spoken": [d.spoken for d in documents],
            "failed": [d.failed for d in documents],
            "author": [self.authors[author_of(d)] for d in documents],
            "agent": [self.agents[d.agent_id] for d in documents],
            "user": [self.users[d.user_id] for d in documents],
            "project": [self.projects[d.project] for d in documents],
            "category": [self.categories[d.category] for d in documents],
            "type": [self.types[d.type] for d in documents],
            "name": [self.names[d.name] for d in documents],
            "role": [self.roles[d.role] for d in documents],
            "severity": [d.severity for d in documents],
            "shape": [d.shape for d in documents],
            "value": [d.value for d in documents],
            "archived": [d.archived for d in documents],
            "fingerprint": [fingerprint(d.text) for d in documents],
            "tags": [self.tags[d.tags] for d in documents],
        }


class StringCodes(dict[str, int]):
    """Strings as numbers, so that columns can hold them, in the order in which they are first seen;
    -1 stands for the empty one.

    `codes[value]` numbers a new value; `get` does not.
    """

    def __init__(self) -> None:
        super().__init__({"": -1})
        self.names: list[str] = []

    def __missing__(self, value: str) -> int:
        number = self[value] = len(self.names)
        self.names.append(value)
        return number

    def restore(self, names: list[str]) -> None:
        """Take over the names of others, in the order of their numbers."""
        self.names = names
        self.update(zip(names, range(len(names)), strict=True))


class NameCodes(StringCodes):
    """Codes of names that can be looked up by their words. One writer; readers need no lock."""

    def __init__(self) -> None:
        super().__init__()
        self._by_word: dict[str, list[int]] = {}
        self._by_spelling: dict[str, list[int]] = {}

    def __missing__(self, value: str) -> int:
        number = super().__missing__(value)
        self._note(value, number)
        return number

    def restore(self, names: list[str]) -> None:
        """See `StringCodes`."""
        super().restore(names)
        for number, name in enumerate(names):
            self._note(name, number)

    def _note(self, value: str, number: int) -> None:
        self._by_spelling.setdefault(composed(value.casefold()), []).append(number)
        for word in name_words(value):
            self._by_word.setdefault(word, []).append(number)

    def named_by(self, words: Collection[str]) -> list[int]:
        """Return the numbers of the names that have one of these words, in lower case."""
        return [number for word in words for number in self._by_word.get(word, ())]

    def spelled(self, name: str) -> list[int]:
        """Return the numbers of the names that are this one in any case."""
        return self._by_spelling.get(composed(name.casefold()), [])


class TagSets(dict[tuple[str, ...], int]):
    """Sets of tags as numbers, in the order in which they are first seen; -1 stands for no tags.
    The memories of a session mostly carry the same.

    One writer; readers need no lock.
    """

    def __init__(self) -> None:
        super().__init__({(): -1})
        self.names: list[tuple[str, ...]] = []
        self._with: dict[str, list[int]] = {}

    def __missing__(self, tags: tuple[str, ...]) -> int:
        number = len(self.names)
        self._note(tags, number)
        self.names.append(tags)
        self[tags] = number
        return number

    def restore(self, names: list[tuple[str, ...]]) -> None:
        """Take over the sets of others, in the order of their numbers."""
        self.names = names
        self.update(zip(names, range(len(names)), strict=True))
        for number, tags in enumerate(names):
            self._note(tags, number)

    def holding(self, tags: Collection[str]) -> list[int]:
        """Return the numbers of the sets that hold all of these tags."""
        least = min((self._with.get(tag, []) for tag in tags), key=len, default=[])
        return [number for number in least[:] if set(self.names[number]).issuperset(tags)]

    def _note(self, tags: tuple[str, ...], number: int) -> None:
        for tag in set(tags):
            self._with.setdefault(tag, []).append(number)


AnyCodes: TypeAlias = StringCodes | TagSets


def fingerprint(text: str) -> int:
    """Return 64 bits that are the same for equal texts, whichever of Unicode's forms they are in,
    in every process."""
    data = composed(text).encode(errors="surrogatepass")
    return int.from_bytes(blake2b(data, digest_size=8).digest(), "little", signed=True)


def author_of(document: Document) -> str:
    """Return the document's agent, else the leading label ("Ann: ...") of what is said, else ""."""
    if document.agent_id or not document.spoken:
        return document.agent_id
    label = _LABEL.match(composed(document.text))
    return label[1] if label and not label[1][0].islower() else ""
