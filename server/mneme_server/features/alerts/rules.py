"""Keeping rules, and reading what they triggered."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from mneme_server.common import turns
from mneme_server.common.clock import later_us, now_us
from mneme_server.common.errors import (
    FailedPrecondition,
    InvalidArgument,
    Reason,
)
from mneme_server.common.etags import existing, require_unchanged
from mneme_server.common.identity import new_id
from mneme_server.engine.corpus.tenant import OpenTenants
from mneme_server.engine.corpus.tenant_store import CorpusUnit
from mneme_server.features.alerts.channels import AllowedChannels
from mneme_server.features.alerts.model import (
    MAX_RULES,
    AlertCondition,
    AlertEntry,
    AlertState,
    Delivery,
    EntryFilter,
    Resolution,
    Rule,
    WatchedMeasure,
)
from mneme_server.features.alerts.store.history import SqlAlertDeliveries, SqlAlertHistory
from mneme_server.features.alerts.store.rules import SqlAlertRules


@dataclass(frozen=True, slots=True)
class AlertRules:
    """The use cases of rules.

    Args:
        allowed: what the operator allows.
        changed: told the tenant when a rule was made or changed.
    """

    tenants: OpenTenants
    allowed: AllowedChannels
    changed: Callable[[str], object] = lambda _tenant: None

    def create(self, tenant_id: str, given: Rule) -> Rule:
        """Create the rule; an empty id is made. The same content again changes nothing but whose
        its channels are: they are the key's that sets them last.

        Raises:
            InvalidArgument: it makes no sense, or a channel is not allowed.
            AlreadyExists: the id is taken by other content.
            FailedPrecondition: there are too many.
        """
        require_sense(given)
        self.allowed.require(given.channels)
        now = now_us()
        rule = replace(given, id=given.id or new_id(), created_us=now, updated_us=now)
        with self.tenants.open(tenant_id) as tenant, tenant.write() as unit:
            rules = unit.get(SqlAlertRules)
            known = rules.get(rule.id)
            if known is not None:
                require_unchanged("alert rule", known, known.differing(rule))
                return _kept(unit, known, rule.key_id)
            if rules.count(None) >= MAX_RULES:
                raise FailedPrecondition(
                    f"there are {MAX_RULES} rules already; delete one, or widen another's scope"
                )
            rules.save(rule)
        self.changed(tenant_id)
        return rule

    def get(self, tenant_id: str, rule_id: str) -> Rule:
        """Return the rule.

        Raises:
            NotFound: there is no such rule.
        """
        with self.tenants.open(tenant_id) as tenant, tenant.read() as unit:
            return _existing(unit, rule_id)

    def page(
        self, tenant_id: str, state: AlertState | None, after: tuple[int, str] | None, limit: int
    ) -> tuple[Sequence[Rule], int]:
        """Return rules, latest first, after that key; and how many match."""
        with self.tenants.open(tenant_id) as tenant, tenant.read() as unit:
            page = unit.get(SqlAlertRules).page(state, after, limit)
            return page, unit.get(SqlAlertRules).count(state)

    def update(
        self,
        tenant_id: str,
        rule_id: str,
        changes: Mapping[str, Any],
        key_id: str = "",
        *,
        etag: str = "",
    ) -> Rule:
        """Change the given fields. Channels that are given, be they the same, are that key's from
        then on; another change does not make them so: nobody vouches for what they did not name.

        Raises:
            NotFound: there is no such rule.
            Aborted: `etag` is given and is not the rule's any more.
            InvalidArgument: it makes no sense then, or a channel is not allowed.
        """
        if "channels" in changes:
            self.allowed.require(changes["channels"])
        with self.tenants.open(tenant_id) as tenant, tenant.write() as unit:
            before = _existing(unit, rule_id, etag)
            after = replace(before, **changes)
            require_sense(after)
            if "channels" in changes:
                after = replace(after, key_id=key_id)
            if not after.differing(before):
                return _kept(unit, before, after.key_id)
            after = replace(after, updated_us=later_us(before.updated_us))
            if not after.enabled:
                after = _closed(unit, after, Resolution.DISABLED)
            unit.get(SqlAlertRules).save(after)
        self.changed(tenant_id)
        return after

    def delete(self, tenant_id: str, rule_id: str, *, etag: str = "") -> Rule:
        """Delete the rule, and return it as it was. Its history stays.

        Raises:
            NotFound: there is no such rule.
            Aborted: `etag` is given and is not the rule's any more.
        """
        with self.tenants.open(tenant_id) as tenant, tenant.write() as unit:
            rule = _existing(unit, rule_id, etag)
            _closed(unit, rule, Resolution.DELETED)
            unit.get(SqlAlertRules).remove(rule_id)
        return rule

    def history(
        self,
        tenant_id: str,
        filter_: EntryFilter,
        after: tuple[int, str] | None,
        limit: int,
    ) -> tuple[Sequence[tuple[AlertEntry, Sequence[Delivery]]], int]:
        """Return what was triggered, latest first, after that key, with its messages; and how many
        match."""
        with self.tenants.open(tenant_id) as tenant, tenant.read() as unit:
            page = turns.read_page(
                partial(unit.get(SqlAlertHistory).page, filter_),
                after,
                limit,
                lambda one: (one.triggered_us, one.id),
            )
            sent = unit.get(SqlAlertDeliveries).of_entries([one.id for one in page])
            total = unit.get(SqlAlertHistory).count(filter_)
        return [(one, sent.get(one.id, ())) for one in page], total


def require_sense(rule: Rule) -> None:
    """Check that what a rule says fits together.

    Raises:
        InvalidArgument: it does not.
    """
    if rule.resolve_threshold is not None and rule.resolve_threshold > rule.threshold:
        raise InvalidArgument(
            "a rule cannot resolve at a value that triggers it: resolve_threshold must be at most"
            " threshold",
            reason=Reason.OUT_OF_RANGE,
            field="resolve_threshold",
        )
    if rule.condition is AlertCondition.ERROR_RATE_EXCEEDS and rule.threshold > 1:
        raise InvalidArgument(
            "a share is at most 1, so that more than that never happens: 5 % are 0.05",
            reason=Reason.OUT_OF_RANGE,
            field="threshold",
        )
    needs: tuple[tuple[AlertCondition, str, bool], ...] = (
        (AlertCondition.ERROR_PATTERN_EXCEEDS, "pattern", bool(rule.pattern.strip())),
        (AlertCondition.TREND_EXCEEDS, "trend", rule.trend is not WatchedMeasure.NONE),
    )
    for condition, name, given in needs:
        word = condition.name.lower()
        if rule.condition is condition and not given:
            raise InvalidArgument(
                f"{word} needs a {name}", reason=Reason.MISSING_REQUIRED_FIELD, field=name
            )
        if rule.condition is not condition and getattr(rule, name):
            raise InvalidArgument(f"only {word} has a {name}", field=name)


def _existing(unit: CorpusUnit, rule_id: str, etag: str = "") -> Rule:
    """Return the rule, which must still have this etag, if one is given."""
    return existing("alert rule", unit.get(SqlAlertRules).get(rule_id), rule_id, etag)


def _kept(unit: CorpusUnit, known: Rule, key_id: str) -> Rule:
    """Return a rule whose channels, the same as before, are a key's from now on."""
    if known.key_id == key_id:
        return known
    mine = replace(known, key_id=key_id, updated_us=later_us(known.updated_us))
    unit.get(SqlAlertRules).save(mine)
    return mine


def _closed(unit: CorpusUnit, rule: Rule, why: Resolution) -> Rule:
    """Resolve what the rule triggered, if it did; return the rule without it."""
    entry = unit.get(SqlAlertHistory).get(rule.open_entry) if rule.open_entry else None
    if entry is not None:
        unit.get(SqlAlertHistory).save(
            replace(entry, resolved_us=max(now_us(), entry.triggered_us), resolution=why)
        )
    return replace(rule, open_entry="")
