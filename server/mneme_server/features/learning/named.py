"""Dimensions for facts that nobody declared."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray


class Dimensions:
    """The dimensions of a vector and the facts that they stand for.

    A fact gets one when it is first noticed, as long as there are any left; later facts share
    dimensions by their hash.

    Args:
        size: how many there are.
        names: the facts that have one already, in order.
    """

    def __init__(self, size: int, names: Sequence[str] = ()) -> None:
        self.size = size
        self._places = {name: place for place, name in enumerate(names)}

    @property
    def names(self) -> list[str]:
        """The facts that have a dimension of their own, in the order of these."""
        return list(self._places)

    def notice(self, names: Iterable[str]) -> None:
        """Give dimensions to facts that are new."""
        for name in names:
            if len(self._places) >= self.size:
                return
            self._places.setdefault(name, len(self._places))

    def place(self, name: str) -> int | None:
        """Return the dimension of a fact; None for a new one that could get its own."""
        known = self._places.get(name)
        if known is not None or len(self._places) < self.size:
            return known
        digest = hashlib.blake2b(name.encode(), digest_size=8).digest()
        return int.from_bytes(digest) % self.size

    def vector(self, facts: Iterable[tuple[str, float]]) -> NDArray[np.float64]:
        """Return facts as a vector of `size` numbers; new ones are left out."""
        vector = np.zeros(self.size)
        for name, number in facts:
            place = self.place(name)
            if place is not None:
                vector[place] += number
        return vector
