"""REST: the paths and spellings that scripts and dashboards know."""

from __future__ import annotations

from urllib.parse import quote

import pytest
from mneme.v1 import event_service_pb2 as events_pb
from support.api import Api
from support.http import Http
from support.making import event, lesson, list_lessons, recall, record, session_of

TOKENS = {"title": "Check tokens", "content": "Refresh the token before a deployment"}


def made(http: Http, **fields: object) -> dict[str, object]:
    saved: dict[str, object] = http("POST", "/api/lessons", TOKENS | fields)
    return saved


def test_a_created_lesson_is_the_answer_with_every_field(http: Http) -> None:
    saved = made(http, importance="high", agentId="deployer", context={"stage": "prod", "n": 1})
    assert saved["title"] == TOKENS["title"]
    assert saved["importance"] == "high"
    assert saved["agentId"] == "deployer"
    assert saved["category"] == "general"
    assert saved["context"] == {"stage": "prod", "n": 1}
    assert saved["sourceSessionId"] == ""
    assert saved["accessCount"] == 0
    assert saved["archivedAt"] is None
    assert str(saved["createdAt"]).endswith("Z")
    assert http.get(f"/api/lessons/{saved['id']}")["id"] == saved["id"]


def test_what_is_written_over_http_is_read_over_grpc_and_the_other_way_round(
    api: Api, http: Http
) -> None:
    made(http, lessonId="from-http")
    lesson(api, "from grpc", lesson_id="from-grpc")
    assert {one.id for one in list_lessons(api)} == {"from-http", "from-grpc"}
    assert {one["id"] for one in http.get("/api/lessons")["lessons"]} == {"from-http", "from-grpc"}


def test_lessons_are_filtered_by_plain_parameters(http: Http) -> None:
    made(http, lessonId="a", category="deployment", importance="high", agentId="x")
    made(http, lessonId="b", category="deployment", importance="low", agentId="x")
    made(http, lessonId="c", category="coding", importance="high", agentId="y")

    def ids(**given: str) -> set[str]:
        return {one["id"] for one in http.get("/api/lessons", params=given)["lessons"]}

    assert ids(category="deployment") == {"a", "b"}
    assert ids(importance="high", agentId="x") == {"a"}
    assert ids(importance="HIGH") == {"a", "c"}
    assert ids(**{"filter.category": "coding"}) == {"c"}


def test_a_list_takes_limit_and_offset_and_tells_the_total(http: Http) -> None:
    for number in range(5):
        made(http, lessonId=f"lesson-{number}")
    every = [one["id"] for one in http.get("/api/lessons")["lessons"]]
    page = http.get("/api/lessons?limit=2&offset=1")
    assert [one["id"] for one in page["lessons"]] == every[1:3]
    assert page["total"] == 5
    beyond = http.get("/api/lessons?limit=2&offset=5")
    assert (beyond["lessons"], beyond["total"], beyond["nextPageToken"]) == ([], 5, "")
    last = http.get("/api/lessons?limit=2&offset=4")
    assert [one["id"] for one in last["lessons"]] == every[4:]
    second = http.get("/api/lessons", params={"limit": 2, "pageToken": page["nextPageToken"]})
    assert [one["id"] for one in second["lessons"]] == every[3:5]


def test_searching_lessons_answers_as_the_list_does_with_scores(http: Http) -> None:
    made(http, lessonId="tokens", category="deployment")
    made(http, lessonId="soup", title="Soup", content="Salt it at the end")
    found = http.get("/api/lessons?search=refresh+the+token&limit=1")
    assert [one["id"] for one in found["lessons"]] == ["tokens"]
    assert found["lessons"][0]["title"] == TOKENS["title"]
    assert found["lessons"][0]["score"] > 0
    assert found["total"] == 2
    following = http.get("/api/lessons?search=refresh+the+token&limit=1&offset=1")
    assert [one["id"] for one in following["lessons"]] == ["soup"]
    assert http.get("/api/lessons?search=token&category=coding")["lessons"] == []


def test_a_put_changes_the_fields_that_it_names_and_null_clears_one(http: Http) -> None:
    made(http, lessonId="one", agentId="deployer", importance="high")
    changed = http("PUT", "/api/lessons/one", {"title": "Tokens", "agentId": None})
    assert (changed["title"], changed["agentId"]) == ("Tokens", "")
    assert (changed["content"], changed["importance"]) == (TOKENS["content"], "high")


def test_a_put_with_an_old_etag_is_refused(http: Http) -> None:
    saved = made(http, lessonId="one")
    http("PUT", "/api/lessons/one", {"title": "first", "etag": saved["etag"]})
    stale = http.error("PUT", "/api/lessons/one", {"title": "second", "etag": saved["etag"]})
    assert (stale.http_status, stale.reason) == (409, "ETAG_MISMATCH")


@pytest.mark.parametrize(
    ("body", "field"),
    [({"titel": "x"}, "titel"), ({"id": "other", "title": "x"}, "id"), ({}, "update_mask")],
)
def test_a_put_of_what_cannot_be_changed_is_refused_by_name(
    http: Http, body: dict[str, str], field: str
) -> None:
    made(http, lessonId="one")
    refused = http.error("PUT", "/api/lessons/one", body)
    assert (refused.http_status, list(refused.fields)) == (400, [field])


def test_knowledge_is_listed_and_with_a_query_it_is_searched(http: Http) -> None:
    line = {"project": "shop", "type": "error", "context": "npm install", "lesson": "check first"}
    http("POST", "/api/knowledge", {**line, "entryId": "npm"})
    listed = http.get("/api/knowledge?project=shop")
    assert ([one["id"] for one in listed["entries"]], listed["total"]) == (["npm"], 1)
    for path in ("/api/knowledge", "/api/search/knowledge"):
        found = http.get(f"{path}?query=npm&project=shop&tokenBudget=100")
        assert [one["entry"]["id"] for one in found["entries"]] == ["npm"]
        assert "check first" in found["markdown"]
    assert http.get("/api/knowledge?query=npm&project=other")["entries"] == []


def test_deleting_a_lesson_archives_it_and_only_its_own_path_deletes_it(http: Http) -> None:
    made(http, lessonId="one")
    assert http("DELETE", "/api/lessons/one") == {"id": "one", "archived": True}
    assert http.get("/api/lessons")["lessons"] == []
    (kept,) = http.get("/api/lessons?includeArchived=true")["lessons"]
    assert kept["archivedAt"] is not None
    assert http("POST", "/api/lessons/one/unarchive")["archivedAt"] is None
    assert http("POST", "/api/lessons/one/delete")["id"] == "one"
    assert http.get("/api/lessons?includeArchived=true")["lessons"] == []


@pytest.mark.parametrize(
    "identifier", ["a/b", "a:b", "50%", "two words", "ü ñ", "a?b#c", "%2F", "."]
)
def test_ids_may_hold_any_character(http: Http, identifier: str) -> None:
    made(http, lessonId=identifier)
    path = f"/api/lessons/{quote(identifier, safe='')}"
    if identifier == ".":  # A client may not send it as it is; encoded it is an id like others.
        path = "/api/lessons/%2E"
    assert http.get(path)["id"] == identifier
    assert http("DELETE", path)["id"] == identifier


def test_recall_answers_as_over_grpc_and_repeats_the_query(api: Api, http: Http) -> None:
    record(api, event("the login failed with a bad token", "session", agent_id="a"), wait=True)
    made(http, lessonId="tokens")
    told = http.get("/api/recall?query=auth+token+error&scope=events&limit=10")
    (found,) = told["results"]
    over_grpc = recall(api, "auth token error", scopes=["event"]).results[0]
    assert (found["sourceType"], found["sourceId"]) == ("event", over_grpc.source_id)
    assert found["score"] == pytest.approx(over_grpc.score)
    assert found["text"] == "the login failed with a bad token"
    assert told["query"] == "auth token error"
    assert told["totalResults"] == 1
    every = http.get("/api/recall?query=auth+token+error&scope=all")["results"]
    assert {one["sourceType"] for one in every} >= {"event", "lesson"}
    several = http.get("/api/recall?query=token&scope=lessons&scope=events")["results"]
    assert {one["sourceType"] for one in several} == {"event", "lesson"}


def test_recall_drops_what_scores_below_the_minimum_and_takes_times(api: Api, http: Http) -> None:
    record(api, event("the login failed with a bad token", "session"), wait=True)
    ask = {"query": "login token", "scope": ["events"]}
    assert http("POST", "/api/recall", ask | {"minScore": 0})["results"]
    assert http("POST", "/api/recall", ask | {"minScore": 1})["results"] == []
    assert http("POST", "/api/recall", ask | {"to": "2001-01-01T00:00:00Z"})["results"] == []
    assert http("POST", "/api/recall", ask | {"from": "2001-01-01T00:00:00+01:00"})["results"]


def test_a_long_question_goes_in_a_body(http: Http) -> None:
    made(http)
    assert http("POST", "/api/recall", {"query": "token " * 1_000})["results"]


def test_reflecting_takes_the_parameters_of_the_analysis(api: Api, http: Http) -> None:
    record(api, event("it failed", "s", "tool_error", agent_id="X"))
    told = http.get(
        "/api/reflect?analysis=error_patterns&agentId=X&from=2020-01-01T00:00:00Z"
        '&to=2040-01-01T00:00:00Z&params={"minCount":1}'
    )
    assert told["analysis"] == "error_patterns"
    assert told["metadata"]["eventsAnalyzed"] == 1
    assert set(told["metadata"]["timeRange"]) == {"from", "to"}
    posted = http("POST", "/api/reflect", {"analysis": "cost_analysis", "params": {}})
    assert posted["costAnalysis"] is not None
    assert http.get("/api/analytics?analysis=tool_sequences")["toolSequences"] is not None


def test_context_names_its_topic_and_holds_lessons_without_a_wrapper(api: Api, http: Http) -> None:
    record(api, event("migrating the database went well", "s", agent_id="a"), wait=True)
    made(http, lessonId="m", title="Migrations", content="Back up the database before a migration")
    told = http.get("/api/context?topic=database+migrations&limit=5")
    assert told["topic"] == "database migrations"
    assert told["totalSessions"] >= 1
    assert {"sessionId", "summary", "relevanceScore", "startedAt", "endedAt", "keyEvents"} <= set(
        told["sessions"][0]
    )
    assert told["lessons"][0]["id"] == "m"
    assert told["lessons"][0]["title"] == "Migrations"


def test_sessions_and_events_are_recorded_and_read(api: Api, http: Http) -> None:
    started = http("POST", "/api/sessions", {"sessionId": "s/1", "agentId": "a", "tags": ["x"]})
    assert (started["id"], started["status"]) == ("s/1", "active")
    events = [
        {"sessionId": "s/1", "agentId": "a", "eventType": "tool_call", "text": "one", "id": "e1"},
        {"sessionId": "s/1", "agentId": "a", "eventType": "tool_error", "severity": "error"},
    ]
    receipts = http("POST", "/api/events", {"events": events})
    assert (receipts["recordedCount"], len(receipts["receipts"])) == (2, 2)
    found = http.get("/api/events?sessionId=s/1&limit=1")
    assert [one["eventType"] for one in found["events"]] == ["tool_call"]
    assert found["nextPageToken"]
    ended = http("POST", "/api/sessions/s%2F1/end", {"status": "completed"})
    assert (ended["id"], ended["eventCount"]) == ("s/1", 2)
    assert session_of(api, "s/1").status == events_pb.SESSION_STATUS_COMPLETED
    assert http.get("/api/sessions?tags=x&limit=10")["total"] == 1
    assert [one["id"] for one in http.get("/api/agents")["agents"]] == ["a"]
    assert http.get("/api/events/verification")["valid"] is True
    assert http.get("/api/stats")["tenant"]["eventCount"] == 2


def test_keys_and_tenants_are_made_by_an_administrator(over_http: object, admin: Api) -> None:
    http: Http = over_http(admin)  # type: ignore[operator]
    http("POST", "/api/tenants", {"tenantId": "made-over-http"})
    made_key = http(
        "POST", "/api/keys", {"tenantId": "made-over-http", "name": "n", "scopes": ["read"]}
    )
    assert made_key["apiKey"]["scopes"] == ["read"]
    with_key = Http(http.address, made_key["secret"])
    try:
        assert with_key.get("/api/lessons")["lessons"] == []
        denied = with_key.error("POST", "/api/lessons", TOKENS)
        assert (denied.http_status, denied.reason) == (403, "SCOPE_MISSING")
        assert denied.metadata["required_scope"] == "write"
    finally:
        with_key.close()
    assert http("DELETE", f"/api/keys/{made_key['apiKey']['id']}")["revokedAt"] is not None


def test_memories_are_stored_searched_and_changed(http: Http) -> None:
    stored = http(
        "POST", "/api/memories",
        {"text": "Ann likes tea", "tags": ["taste"], "metadata": {"who": "ann"}},
    )  # fmt: skip
    memory = stored["memory"]
    found = http("POST", "/api/search/memories", {"query": "tea", "metadata": {"who": "ann"}})
    assert [one["id"] for one in found["results"]] == [memory["id"]]
    assert found["results"][0]["similarity"] > 0
    assert http.get("/api/search/memories?query=tea&tags=other")["results"] == []
    changed = http("PUT", f"/api/memories/{memory['id']}", {"tags": ["taste", "drink"]})
    assert set(changed["tags"]) == {"taste", "drink"}
    gone = http("POST", "/api/memories/delete", {"memoryIds": [memory["id"]]})
    assert gone["deletedCount"] == 1
