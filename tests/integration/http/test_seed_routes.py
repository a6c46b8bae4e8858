"""The routes of the first HTTP interface answer as it showed them, asked by `curl` from outside."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from support.api import Api
from support.making import event, record
from support.server import LocalServer

TIMES = "from=2020-01-01T00:00:00Z&to=2040-01-01T00:00:00Z"
LESSON = {
    "id", "tenantId", "agentId", "category", "title", "content", "context", "importance",
    "sourceSessionId", "sourceEventId", "accessCount", "lastAccessedAt", "createdAt", "updatedAt",
    "archivedAt",
}  # fmt: skip
RESULT = {"sourceType", "sourceId", "score", "text", "metadata"}
INSIGHT = {"type", "summary", "data", "confidence"}
SESSION = {"sessionId", "summary", "relevanceScore", "startedAt", "endedAt", "keyEvents"}
KEY_EVENT = {"eventType", "summary", "timestamp"}
ANALYSES = (
    "error_patterns", "tool_sequences", "cost_analysis", "performance_trends", "session_comparison",
)  # fmt: skip
GIVEN = {
    "title": "Check auth tokens",
    "content": "An auth error means that the token must be refreshed",
    "category": "deployment",
    "importance": "high",
    "agentId": "X",
}

Curl = Callable[..., Any]


class Outside:
    """Calls by `curl`, as whoever has a key and nothing else does."""

    def __init__(self, address: str, secret: str | None) -> None:
        self._address = address
        self._key = ["-H", f"authorization: Bearer {secret}"] if secret else []

    def __call__(self, path: str, verb: str = "GET", body: Any = None) -> Any:
        status, said = self.ask(path, verb, body)
        assert status == 200, said
        return said

    def ask(self, path: str, verb: str = "GET", body: Any = None) -> tuple[int, Any]:
        given = ["-H", "content-type: application/json", "-d", json.dumps(body)] if body else []
        options = ["-sS", "-X", verb, "-w", "\n%{http_code}", *self._key, *given]
        ran = subprocess.run(
            ["curl", *options, self._address + path],
            capture_output=True,
            text=True,
            check=True,
            timeout=120,
        )
        said, _, status = ran.stdout.rpartition("\n")
        return int(status), json.loads(said)


@pytest.fixture
def curl(server: LocalServer, api: Api) -> Outside:
    return Outside(server.http_address, api.secret)


@pytest.fixture
def other(server: LocalServer) -> Outside:
    """Another tenant's."""
    return Outside(server.http_address, server.keys.tenant().secret)


def has(said: Mapping[str, Any], names: set[str]) -> None:
    assert names - set(said) == set()


def remembered(api: Api) -> None:
    record(
        api,
        event("auth error: the token expired", "s", "tool_error", agent_id="X", name="login"),
        event("database migrations went well", "s", agent_id="X", metadata={"userId": "user123"}),
        wait=True,
    )


def test_recall(api: Api, curl: Outside, other: Outside) -> None:
    remembered(api)
    path = "/api/recall?query=auth+error&scope=events&limit=10"
    told = curl(path)
    assert (told["query"], told["totalResults"]) == ("auth error", len(told["results"]))
    has(told["results"][0], RESULT)
    assert told["results"][0]["sourceType"] == "event"
    for scope in ("sessions", "lessons", "all"):
        curl(f"/api/recall?query=auth+error&scope={scope}&agentId=X&{TIMES}")
    assert curl(path + "&minScore=1")["results"] == []
    assert other(path)["results"] == []


def test_lessons_are_created_listed_read_changed_and_archived(curl: Outside, api: Api) -> None:
    made = curl("/api/lessons", "POST", GIVEN)
    has(made, LESSON)
    assert {name: made[name] for name in GIVEN} == GIVEN
    assert made["tenantId"] == api.tenant_id
    assert (made["context"], made["accessCount"], made["archivedAt"]) == ({}, 0, None)
    query = "?category=deployment&agentId=X&importance=high&limit=5&offset=0"
    listed = curl("/api/lessons" + query)
    assert (listed["total"], [one["id"] for one in listed["lessons"]]) == (1, [made["id"]])
    has(listed["lessons"][0], LESSON)
    (found,) = curl("/api/lessons?search=refresh+the+token")["lessons"]
    has(found, LESSON)
    path = f"/api/lessons/{made['id']}"
    assert curl(path)["accessCount"] == 2
    assert curl(path, "PUT", {"content": "changed"})["content"] == "changed"
    assert curl(path, "DELETE") == {"id": made["id"], "archived": True}
    assert curl("/api/lessons")["lessons"] == []
    assert curl("/api/lessons?includeArchived=true")["lessons"][0]["archivedAt"] is not None


def test_another_tenants_lessons_are_not_there(curl: Outside, other: Outside) -> None:
    path = f"/api/lessons/{curl('/api/lessons', 'POST', GIVEN)['id']}"
    assert other("/api/lessons")["total"] == 0
    missing = other.ask("/api/lessons/nobodys")
    for verb, body in (("GET", None), ("PUT", {"content": "x"}), ("DELETE", None)):
        status, said = other.ask(path, verb, body)
        assert (status, said["error"]["status"]) == (404, "NOT_FOUND")
        assert said["error"]["details"][0]["reason"] == missing[1]["error"]["details"][0]["reason"]


@pytest.mark.parametrize("analysis", ANALYSES)
def test_reflect(api: Api, curl: Outside, other: Outside, analysis: str) -> None:
    remembered(api)
    path = f"?analysis={analysis}&agentId=X&{TIMES}"
    for route in ("/api/reflect", "/api/analytics"):
        told = curl(route + path)
        assert told["analysis"] == analysis
        has(told["metadata"], {"sessionsAnalyzed", "eventsAnalyzed", "timeRange"})
        has(told["metadata"]["timeRange"], {"from", "to"})
        for insight in told["insights"]:
            has(insight, INSIGHT)
        assert other(route + path)["metadata"]["eventsAnalyzed"] == 0


def test_context(api: Api, curl: Outside, other: Outside) -> None:
    remembered(api)
    curl("/api/lessons", "POST", GIVEN | {"title": "Database migrations need a backup"})
    path = "/api/context?topic=database+migrations&userId=user123&limit=5"
    told = curl(path + f"&agentId=X&{TIMES}")
    assert (told["topic"], told["totalSessions"]) == ("database migrations", len(told["sessions"]))
    has(curl("/api/context?topic=database+migrations")["lessons"][0], LESSON)
    for session in told["sessions"]:
        has(session, SESSION)
        for one in session["keyEvents"]:
            has(one, KEY_EVENT)
    assert other(path)["totalSessions"] == 0


def test_events_sessions_and_agents_say_whose_they_are(api: Api, curl: Outside) -> None:
    events = [{"id": "e", "sessionId": "s", "agentId": "X", "eventType": "tool_call"}]
    assert curl("/api/events", "POST", {"events": events})["recordedCount"] == 1
    said = [
        *curl("/api/events?sessionId=s")["events"],
        *curl("/api/sessions")["sessions"],
        curl("/api/sessions/s"),
        *curl("/api/agents")["agents"],
    ]
    assert [one["tenantId"] for one in said] == [api.tenant_id] * 4
    assert curl("/api/stats")["tenant"]["eventCount"] == 1


def test_alerts(api: Api, curl: Outside, other: Outside) -> None:
    rule = {"ruleId": "r", "name": "Errors", "condition": "event_count_exceeds", "threshold": 5}
    made = curl("/api/alerts/rules", "POST", rule)
    has(made, {"id", "tenantId", "name", "enabled", "condition", "threshold", "windowMinutes"})
    has(made, {"scope", "notifyChannels", "createdAt", "updatedAt"})
    assert made["tenantId"] == api.tenant_id
    assert curl("/api/alerts/history")["entries"] == []
    assert other("/api/alerts/rules")["rules"] == []


def test_what_is_exported_names_no_tenant_and_can_be_imported_elsewhere(
    curl: Outside, other: Outside, server: LocalServer, api: Api
) -> None:
    made = curl("/api/lessons", "POST", GIVEN)
    line = curl("/api/exports/lessons")
    assert (line["id"], "tenantId" in line) == (made["id"], False)
    assert other("/api/imports/lessons", "POST", {"lessons": [line]})["createdCount"] == 1


def test_health_needs_no_key(server: LocalServer) -> None:
    assert Outside(server.http_address, None)("/api/health") == {"status": "serving"}
    status, said = Outside(server.http_address, None).ask("/api/lessons")
    assert (status, said["error"]["status"]) == (401, "UNAUTHENTICATED")


def test_an_administrator_makes_tenants_and_their_keys(server: LocalServer, admin: Api) -> None:
    curl = Outside(server.http_address, admin.secret)
    curl("/api/tenants", "POST", {"tenantId": "of-the-seed"})
    made = curl("/api/keys", "POST", {"tenantId": "of-the-seed", "name": "n", "scopes": ["read"]})
    assert made["apiKey"]["tenantId"] == "of-the-seed"
    assert Outside(server.http_address, made["secret"])("/api/lessons")["lessons"] == []
