"""Ports to what the use cases of events need from storage."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from mneme_server.engine.corpus.tenant import OpenTenant
from mneme_server.engine.corpus.tenant_store import CorpusUnit
from mneme_server.features.events.chain import ChainLink


class Witness(Protocol):
    """What else knows of what was recorded, and was signed: the tenant's log."""

    def against_all(self, tenant_id: str, tenant: OpenTenant) -> str:
        """Return what speaks against the tenant's log; empty: nothing."""
        ...

    def against_links(
        self, tenant_id: str, unit: CorpusUnit, session: str, links: Sequence[ChainLink]
    ) -> tuple[int, str] | None:
        """Return the first of these links of a session's chain against which something speaks, by
        its place among them, and what; None: nothing does. The session is named by its digest."""
        ...

    def against_session(self, unit: CorpusUnit, session_id: str, recallable: int) -> str:
        """Return what speaks against it that a session has so many events that can be recalled;
        empty: nothing."""
        ...


class RecordLog(Protocol):
    """The tenant's log, as far as the record of events is concerned."""

    def end(self) -> tuple[object, ...]:
        """Return what tells two logs apart: the name, the number of leaves, the root over them."""
        ...
