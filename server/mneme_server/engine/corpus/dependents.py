"""Dependents: they rest on something, and go with it when it is deleted with all that does."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Protocol

from mneme_server.engine.corpus.tenant_store import CorpusUnit


class Dependents(Protocol):
    """A kind of thing that rests on others."""

    @property
    def name(self) -> str:
        """What they are called: "episodes"."""
        ...

    def resting_on(self, unit: CorpusUnit, gone: Mapping[str, Collection[str]]) -> Collection[str]:
        """Return the ids of those that must go when others do.

        `gone` are the ids of what goes, by what it is called: "memories", and dependents that were
        asked before. Nothing is changed.
        """
        ...

    def remove(self, unit: CorpusUnit, ids: Collection[str]) -> None:
        """Remove these, in the transaction; what stays must not name them any more."""
        ...
