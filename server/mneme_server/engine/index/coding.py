"""The coding of documents as the values of columns, where names stand as numbers."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache
from hashlib import blake2b
from typing import Any, TypeAlias

from mneme_server.common.records import compiled
from mneme_server.common.texts import composed
from mneme_server.engine.corpus.attributes import HELD
from mneme_server.engine.corpus.document import Document
from mneme_server.engine.corpus.words import name_words
from mneme_server.engine.index.words.languages import asks, count_words

# A name: one to three words, "Here are the details: ..." is none.
_LABEL = re.compile(r"([^\W\d_][\w.'\-]{0,40}(?: [^\W\d_][\w.'\-]{0,40}){0,2}):\s")


class Coding:
    """What the numbers in columns stand for. One writer; readers need no lock."""

    def __init__(self) -> None:
        self.tags, self.authors = TagSets(), NameCodes()
        self.sessions, self.roles = StringCodes(), StringCodes()
        known: dict[str, AnyCodes] = {
            "tags": self.tags, "author": self.authors, "session": self.sessions, "role": self.roles,
        }  # fmt: skip
        self.of_columns: Mapping[str, AnyCodes] = {held: StringCodes() for held in _CODED} | known
        """By the columns' names."""

    def values(self, documents: Sequence[Document]) -> Mapping[str, Sequence[Any]]:
        """Return what stands of documents in each column, by the columns' names."""
        return _values_of()(documents, **self.of_columns)


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


_CODED = [held for held, attribute in HELD.items() if attribute.coded]
_READ = {
    **{held: f"d.{attribute.name}" for held, attribute in HELD.items()},
    "kind": "d.kind.name",
    "words": "count_words(d.text)",
    "asks": "asks(d.text)",
    "spoken": "d.spoken",
    "failed": "d.failed",
    "author": "author_of(d)",
    "fingerprint": "fingerprint(d.text)",
}
"""What stands in each column of a document `d`; of those with numbers, the name."""


@cache
def _values_of() -> Callable[..., Mapping[str, Sequence[Any]]]:
    """Return what `Coding.values` does: a list for each column, as one would write them, as each
    event that is recorded passes here alone."""
    coded = [*_CODED, "author"]
    lists = (
        f"{held!r}: [{f'{held}[{read}]' if held in coded else read} for d in documents]"
        for held, read in _READ.items()
    )
    functions = (count_words, asks, author_of, fingerprint)
    known = {function.__name__: function for function in functions}
    body = f"{{{', '.join(lists)}}}"
    return compiled("values_of", f"documents, {', '.join(coded)}", body, known)
