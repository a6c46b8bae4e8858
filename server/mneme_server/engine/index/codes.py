"""Strings as numbers, so that columns can hold them."""

from __future__ import annotations

from collections.abc import Collection

from mneme_server.common.texts import composed
from mneme_server.engine.corpus.names import name_words


class Codes(dict[str, int]):
    """Numbers strings in the order in which they are first seen; -1 stands for the empty one.

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


class NameCodes(Codes):
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
        """See `Codes`."""
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
