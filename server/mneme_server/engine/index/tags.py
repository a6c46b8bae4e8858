"""Sets of tags as numbers: the memories of a session mostly carry the same."""

from __future__ import annotations

from collections.abc import Collection


class TagSets(dict[tuple[str, ...], int]):
    """Numbers sets of tags in the order in which they are first seen; -1 stands for no tags.

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
