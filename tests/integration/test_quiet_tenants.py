"""Rules of tenants in which nothing happens: evaluated when they are due, and not before."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from integration.test_alerts import history, rule, triggered
from mneme.v1 import alert_service_pb2 as pb
from mneme_server.common.clock import MINUTE_US, now_us
from support.api import Api
from support.contexts import end, eventually
from support.making import event, record
from support.server import local_server


def shift(data: Path, tenant: str, back_us: int) -> None:
    """Have the tenant's rules, and what was recorded, be so much older."""
    with closing(sqlite3.connect(data / "tenants" / tenant / "mneme.db")) as database, database:
        database.execute("UPDATE alert_rules SET created_at = created_at - ?", (back_us,))
        database.execute("UPDATE events SET timestamp = timestamp - ?", (back_us,))
    with closing(sqlite3.connect(data / "catalog.db")) as catalog, catalog:
        catalog.execute(
            "UPDATE alert_due SET due_at = due_at - ? WHERE tenant_id = ?", (back_us, tenant)
        )


def silence(api: Api) -> pb.AlertRule:
    # Embedded and ended: what waits for that, or for a summary, is a reason to open a tenant.
    record(api, event("the last sign of life", "s"), wait=True)
    end(api, "s")
    return rule(api, "NO_EVENTS_FOR", window_minutes=10)


@pytest.mark.on_sqlite("it looks into a tenant's file, or the catalog's")
def test_a_server_opens_the_quiet_tenant_that_is_due_and_no_other(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with local_server(data) as server:
        apis = [server.keys.tenant("quiet") for _ in range(3)]
        made = [silence(api) for api in apis]
        due = [(api.tenant_id, api.secret) for api in apis]
        workers = server.application.runtime._workers
        jobs = [worker for name, worker in workers.items() if name != "alerts"]
        for tenant_id, _ in due:
            eventually(
                lambda one=tenant_id: workers["alerts"].due_of(one) or 0,
                lambda seen: seen > now_us() + 5 * MINUTE_US,
            )
            eventually(
                lambda one=tenant_id: any(job.is_waiting(one) for job in jobs),
                lambda busy: not busy,
            )
    with closing(sqlite3.connect(data / "catalog.db")) as catalog:
        noted = catalog.execute("SELECT tenant_id FROM alert_due WHERE work = 'alerts'").fetchall()
    assert sorted(noted) == sorted((tenant_id,) for tenant_id, _ in due)
    (first, secret), *others = due
    shift(data, first, 10 * MINUTE_US)
    with local_server(data) as server:
        tenants = server.application.runtime.tenants

        def opened() -> set[str]:
            return {one.tenant_id for one in tenants.open_tenants()}

        eventually(opened, lambda seen: first in seen)  # Nobody's call opens it.
        api = server.keys.api(secret, first)
        entry = triggered(api, made[0])
        assert entry.message.startswith("Nothing was recorded for 10 minutes")
        record(api, event("it lives", "t"))
        (found,) = eventually(lambda: history(api), lambda seen: seen[0].HasField("resolved_at"))
        assert found.id == entry.id
        assert not opened() & {tenant_id for tenant_id, _ in others}
