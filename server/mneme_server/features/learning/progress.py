"""What learning did, added up."""

from __future__ import annotations

from mneme_server.features.learning.learner import Learned


class Since:
    """What learning did since something: sums, and their means."""

    def __init__(self) -> None:
        self._updates = 0
        self._loss = self._value = self._norm = 0.0
        self._has_loss = self._has_value = 0

    def add(self, learned: Learned) -> None:
        """Note what learning did; means are weighted by how often something was corrected."""
        weight = learned.updates
        self._updates += weight
        self._norm += weight * learned.gradient_norm
        if learned.loss is not None:
            self._loss += weight * learned.loss
            self._has_loss += weight
        if learned.value is not None:
            self._value += weight * learned.value
            self._has_value += weight

    def taken(self) -> Learned:
        """Return what was done, and begin anew."""
        done = Learned(
            updates=self._updates,
            loss=self._loss / self._has_loss if self._has_loss else None,
            value=self._value / self._has_value if self._has_value else None,
            gradient_norm=self._norm / self._updates if self._updates else 0.0,
        )
        self.__init__()  # type: ignore[misc]
        return done
