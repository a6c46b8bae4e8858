"""Ports to storage, of the use cases of alerts."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from mneme_server.engine.corpus.tenant_store import CorpusUnit
from mneme_server.features.alerts.model import (
    AlertEntry,
    AlertState,
    Delivery,
    EntryFilter,
    Rule,
    Secret,
)
from mneme_server.features.events.history import HistoryReader, RecordMeasures


class AlertRuleRepository(Protocol):
    """The tenant's rules."""

    def get(self, rule_id: str) -> Rule | None:
        """Return a rule, or None."""
        ...

    def enabled(self) -> Sequence[Rule]:
        """Return all rules that are enabled."""
        ...

    def save(self, rule: Rule) -> None:
        """Insert a rule, or change it."""
        ...

    def remove(self, rule_id: str) -> None:
        """Remove a rule."""
        ...

    def page(
        self, state: AlertState | None, after: tuple[int, str] | None, limit: int
    ) -> Sequence[Rule]:
        """Return rules, latest first, after the key (created_us, id)."""
        ...

    def count(self, state: AlertState | None) -> int:
        """Return how many there are."""
        ...


class AlertHistoryRepository(Protocol):
    """What the tenant's rules triggered."""

    def get(self, entry_id: str) -> AlertEntry | None:
        """Return an entry, or None."""
        ...

    def save(self, entry: AlertEntry) -> None:
        """Insert an entry, or change it."""
        ...

    def page(
        self, filter_: EntryFilter, after: tuple[int, str] | None, limit: int
    ) -> Sequence[AlertEntry]:
        """Return entries, latest first, after the key (triggered_us, id)."""
        ...

    def count(self, filter_: EntryFilter) -> int:
        """Return how many there are."""
        ...

    def keep(self, most: int) -> None:
        """Remove the oldest of those that are resolved, with their deliveries, beyond so many."""
        ...


class AlertDeliveryRepository(Protocol):
    """The messages about what was triggered."""

    def add(self, deliveries: Sequence[Delivery]) -> None:
        """Insert messages."""
        ...

    def save(self, delivery: Delivery) -> None:
        """Keep what became of a message, unless it is gone."""
        ...

    def of_entries(self, entry_ids: Collection[str]) -> Mapping[str, Sequence[Delivery]]:
        """Return the messages to channels about entries, in the order in which they were made."""
        ...

    def due(self, now_us: int, limit: int) -> Sequence[Delivery]:
        """Return messages that are to be sent by now, the one that waits longest first."""
        ...

    def waiting(self) -> int:
        """Return how many messages are still to be sent."""
        ...

    def next_us(self) -> int | None:
        """Return when the next message is to be sent; None without any."""
        ...


class AlertSecretRepository(Protocol):
    """What the tenant's webhooks are signed with."""

    def get(self) -> Secret | None:
        """Return it; None: it was never made."""
        ...

    def set(self, secret: Secret) -> None:
        """Keep it."""
        ...


class AlertsUnit(CorpusUnit, Protocol):
    """One transaction, as far as alerts are concerned."""

    @property
    def alert_rules(self) -> AlertRuleRepository:
        """The tenant's rules."""
        ...

    @property
    def alert_history(self) -> AlertHistoryRepository:
        """What they triggered."""
        ...

    @property
    def alert_deliveries(self) -> AlertDeliveryRepository:
        """The messages about it."""
        ...

    @property
    def alert_secrets(self) -> AlertSecretRepository:
        """What webhooks are signed with."""
        ...

    @property
    def measures(self) -> RecordMeasures:
        """What the tenant's record says."""
        ...

    @property
    def history(self) -> HistoryReader:
        """The record, by columns."""
        ...
