"""A date without a time is a day in UTC, on every surface: a span to that day includes it, what is
before it does not, whatever zone the machine is in."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from mneme import MnemeClient
from mneme.v1 import auth_pb2
from support.api import Api
from support.hosts import stdio_host
from support.http import Http
from support.server import LocalServer
from unit.cli.command import mneme

pytestmark = pytest.mark.anyio
DAYS = ("2026-04-30", "2026-05-01", "2026-05-02", "2026-05-03")
ZONES = ("UTC", "Pacific/Kiritimati", "America/Adak")


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
def tenant(server: LocalServer) -> Api:
    """Return a tenant with a memory of noon of each of four days; nothing below may change it."""
    api = server.keys.tenant("bare-dates", *(one for one in auth_pb2.KeyScope.values() if one))
    with MnemeClient(server.address, api_key=api.secret) as client:
        for day in DAYS:
            noon = datetime.fromisoformat(day).replace(hour=12, tzinfo=UTC)
            client.create_memory(f"note of {day}", memory_id=day, since=noon)
    return api


@pytest.fixture(params=ZONES)
def zone(
    request: pytest.FixtureRequest,
    server: LocalServer,
    tenant: Api,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[str]:
    monkeypatch.setenv("MNEME_ADDRESS", server.address)
    monkeypatch.setenv("MNEME_API_KEY", tenant.secret)
    monkeypatch.setenv("TZ", request.param)
    time.tzset()
    yield request.param
    monkeypatch.undo()
    time.tzset()


def said(*command: str) -> Any:
    result = mneme("--json", *command)
    assert result.code == 0, result.err
    return json.loads(result.out)


def ids(answer: Any, key: str = "source_id") -> list[str]:
    return sorted(one[key] for one in answer["results"])


def test_the_command_line_takes_days_from_the_first_to_the_last(zone: str) -> None:
    found = said("recall", "note", "--from", "2026-05-01", "--to", "2026-05-02")
    assert ids(found) == ["2026-05-01", "2026-05-02"]


@pytest.mark.parametrize("call", ["deleted", "called"])
def test_what_is_before_a_day_does_not_include_it(zone: str, call: str, tenant: Api) -> None:
    if call == "called":
        told = said("call", "DeleteMemories", "filter.end_time=2026-05-01", "dry_run=true")
    else:
        told = said("memories", "delete", "--before", "2026-05-01", "--dry-run")
    assert told["memory_ids"] == ["2026-04-30"]
    found = said("call", "Recall", "query=note", "start_time=2026-05-01", "end_time=2026-05-02")
    assert ids(found) == ["2026-05-01"]


async def test_a_model_takes_days_from_the_first_to_the_last(
    server: LocalServer, tenant: Api
) -> None:
    span = {"from": "2026-05-01", "to": "2026-05-02"}
    async with stdio_host(
        "--toolsets", "all", address=server.address, api_key=tenant.secret
    ) as host:
        found = await host.call_tool("agentlens_recall", {"query": "note", **span})
        assert found.structured_content is not None
        assert ids(found.structured_content, "sourceId") == ["2026-05-01", "2026-05-02"]
        told = await host.call_tool(
            "agentdb_delete", {"filters": {"before_timestamp": "2026-05-01"}, "dry_run": True}
        )
    assert "2026-04-30" in str(told.structured_content)
    assert "2026-05-01" not in str(told.structured_content)


def test_rest_says_what_to_write_instead_of_a_date(server: LocalServer, tenant: Api) -> None:
    http = Http(server.http_address, tenant.secret)
    asked = {"query": "note", "from": "2026-05-01", "to": "2026-05-02"}
    refused = http.error("GET", "/api/recall", params=asked)
    assert refused.http_status == 400
    assert "a time such as 2026-11-22T18:30:00Z" in refused.message
    http.close()
