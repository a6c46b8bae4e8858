"""Discovery every night, as tenants' settings say."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Protocol

import structlog

from mneme_server.common.canonical import JsonObject
from mneme_server.common.clock import DAY_US, MICROSECONDS, MINUTE_US, now_us
from mneme_server.common.errors import AlreadyExists, InvalidArgument, MnemeError, NotFound
from mneme_server.features.causal.discovery import require_known_before
from mneme_server.features.causal.model import DiscoveryQuestion, DiscoverySchedule
from mneme_server.features.causal.store.schedules import SqlSchedules

LOOK_EVERY_S = 30.0
"""How often is looked whether a night has come."""

_log = structlog.get_logger(__name__)


class DiscoveryStarter(Protocol):
    """What starts discoveries."""

    def start(
        self,
        kind: str,
        tenant_id: str,
        operation_id: str,
        request: JsonObject,
        require: Callable[[], JsonObject | None] = lambda: None,
    ) -> Any:
        """Start an operation; the same id and request again change nothing."""
        ...


@dataclass(frozen=True, slots=True)
class NightlyDiscovery:
    """Starts the operations that tenants' schedules ask for, each night once.

    A night's operation has the night in its id. Whoever is interrupted between starting it and
    noting that starts it again, which changes nothing; going on with it is up to the operations.

    Args:
        schedules: in the catalog, so that no tenant is opened to look.
        operations: starts what Discover does.
        require_tenant: raises NotFound for a tenant that is gone.
        now: tells the time in microseconds since 1970.
    """

    schedules: SqlSchedules
    operations: DiscoveryStarter
    require_tenant: Callable[[str], object]
    now: Callable[[], int] = now_us

    def get(self, tenant_id: str) -> DiscoverySchedule:
        """Return a tenant's schedule."""
        return self.schedules.get(tenant_id) or DiscoverySchedule()

    def set(
        self, tenant_id: str, *, enabled: bool, minute: int, question: DiscoveryQuestion
    ) -> DiscoverySchedule:
        """Set a tenant's schedule; return it as it is now.

        Raises:
            InvalidArgument: what is to be adjusted for comes after the attempt; the question names
                somebody, or is a dry run.
        """
        _require_lasting(question)
        known = self.get(tenant_id)
        next_us = _next(minute, self.now()) if enabled else None
        if enabled and known.enabled and known.minute == minute:
            next_us = known.next_us  # It may be due: a new question does not put it off.
        elif next_us is not None and _operation_of(next_us) == known.last_operation:
            next_us += DAY_US  # That night was discovered in, at an earlier time.
        asked = replace(known, minute=minute, question=question, next_us=next_us)
        self.schedules.set(tenant_id, asked)
        return asked

    def look(self) -> None:
        """Start what is due. What the server slept through is started once, not once a night."""
        now = self.now()
        for tenant_id in self.schedules.due(now):
            try:
                self._start(tenant_id, now)
            except NotFound:
                continue  # The tenant is being deleted, and its schedule with it.
            except MnemeError as error:
                _log.warning("nightly discovery cannot be started, will be tried again",
                             tenant=tenant_id, error=str(error))  # fmt: skip

    def _start(self, tenant_id: str, now: int) -> None:
        schedule = self.get(tenant_id)
        if schedule.next_us is None:
            return  # It was set anew meanwhile.

        def require() -> None:
            self.require_tenant(tenant_id)

        operation_id = _operation_of(schedule.next_us)
        request: JsonObject = {"question": schedule.question.as_json()}
        with suppress(AlreadyExists):  # It began before the schedule was given another question.
            self.operations.start(
                "discover",
                tenant_id,
                operation_id,
                request,
                require,
            )
        after = replace(
            schedule,
            next_us=_next(schedule.minute, now),
            last_us=now,
            last_operation=operation_id,
        )
        self.schedules.started(tenant_id, schedule, after)


def _require_lasting(question: DiscoveryQuestion) -> None:
    """Check that a question may be asked every night.

    Raises:
        InvalidArgument: it may not.
    """
    require_known_before(question)
    if question.dry_run:
        raise InvalidArgument(
            "a dry run every night would keep nothing, and nobody would read it",
            field="question.dry_run",
        )
    for name in ("user_id", "agent_id", "session_id"):
        if getattr(question.filter, name):
            raise InvalidArgument(
                "a schedule outlasts what is forgotten, so that it must name no"
                f" {name.removesuffix('_id')}",
                field=f"question.filter.{name}",
            )


def _operation_of(start_us: int) -> str:
    """Return the id of the operation of the night in which it is to start."""
    night = datetime.fromtimestamp(start_us / MICROSECONDS, UTC).date()
    return f"nightly-discovery-{night}"


def _next(minute: int, after_us: int) -> int:
    """Return when a minute of the day comes next."""
    due_us = after_us - after_us % DAY_US + minute * MINUTE_US
    return due_us if due_us > after_us else due_us + DAY_US
