"""How many documents there are of each kind and in each session, and how many words these hold."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mneme_server.engine.corpus.kinds import MAX_KINDS


class DocumentCounts:
    """Counts by the numbers of kinds and sessions; -1 stands for no session.

    One writer; readers need no lock.
    """

    def __init__(self) -> None:
        self._kinds = np.zeros(MAX_KINDS, np.int64)
        self._sessions = np.zeros(1, np.int64)
        self._words = np.zeros(1, np.int64)  # The last one is that of no session.

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        return self._sessions.nbytes + self._words.nbytes

    def of_kinds(self, kinds: NDArray[np.int64]) -> int:
        """Return how many documents are of these kinds."""
        return int(self._kinds[kinds].sum())

    def in_sessions(self, sessions: NDArray[np.int64]) -> int:
        """Return how many documents these sessions hold."""
        return int(self._sessions[sessions].sum())

    def words(self, sessions: NDArray[np.int32]) -> NDArray[np.int64]:
        """Return how many words each of these sessions holds; 0 for no session."""
        return self._words[sessions]

    def reserve(self, sessions: int) -> None:
        """Make room for so many sessions."""
        missing = sessions - len(self._words)
        if missing > 0:
            more = np.zeros(missing + len(self._words) // 2, np.int64)
            self._words = np.concatenate([self._words, more])
            self._sessions = np.concatenate([self._sessions, more])

    def add(
        self,
        kinds: NDArray[np.uint8],
        sessions: NDArray[np.int32],
        words: NDArray[np.int32],
        sign: int,
    ) -> None:
        """Count documents (n,), or with a sign of -1 take them off."""
        if kinds.size == 1:  # As nearly always; the rest takes ten times as long.
            self._kinds[kinds[0]] += sign
            if sessions[0] >= 0:
                self._words[sessions[0]] += sign * words[0]
                self._sessions[sessions[0]] += sign
            return
        np.add.at(self._kinds, kinds, sign)
        within = sessions >= 0
        np.add.at(self._words, sessions[within], sign * words[within])
        np.add.at(self._sessions, sessions[within], sign)
