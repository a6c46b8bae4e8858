"""What tenants, or peers, share, so that none of them can take all of it."""

from __future__ import annotations

from collections import Counter


class Shares:
    """Counts who holds how much of something that there is so much of.

    Nobody gets more than is left then: half of it while alone, a third beside another that takes as
    much, and so on. So there is always room for one more, whoever came before. Changed by one
    thread; others may look.

    Args:
        total: of whatever is counted.
    """

    def __init__(self, total: int) -> None:
        self.left = total
        self._held: Counter[str] = Counter()

    def held(self, who: str) -> int:
        """Return how much one holds."""
        return self._held[who]

    def has_room(self, who: str, more: int = 0) -> bool:
        """Tell whether one may hold so much more."""
        return self._held[who] + more <= self.left - more

    def change(self, who: str, by: int) -> None:
        """Count more for one, or less."""
        self.left -= by
        self._held[who] += by
        if not self._held[who]:
            del self._held[who]

    def take(self, who: str, more: int) -> bool:
        """Count more for one where it may hold that; tell whether it may."""
        if not self.has_room(who, more):
            return False
        self.change(who, more)
        return True
