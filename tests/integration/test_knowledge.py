"""The knowledge log: a line is written once, and comes back when it bears on the work."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import grpc
import pytest
from mneme.v1 import knowledge_pb2 as pb
from support.api import Api, refused

ERROR, SUCCESS, PATTERN = (
    pb.KNOWLEDGE_TYPE_ERROR, pb.KNOWLEDGE_TYPE_SUCCESS, pb.KNOWLEDGE_TYPE_PATTERN,
)  # fmt: skip


def rate(successes: int, tries: int) -> pb.SuccessRate:
    return pb.SuccessRate(successes=successes, tries=tries)


def log(api: Api, context: str, lesson: str, **fields: Any) -> pb.CreateKnowledgeResponse:
    given = {"project": "gptcoach2", "type": ERROR} | fields
    return api.learn.CreateKnowledge(
        pb.CreateKnowledgeRequest(context=context, lesson=lesson, **given)
    )


def query(api: Api, text: str, **fields: Any) -> pb.SearchKnowledgeResponse:
    chosen = {name: fields.pop(name) for name in ("project", "type", "tags") if name in fields}
    return api.learn.SearchKnowledge(
        pb.SearchKnowledgeRequest(query=text, filter=pb.KnowledgeFilter(**chosen), **fields)
    )


def fill(api: Api) -> None:
    log(
        api,
        "npm install failed with EACCES",
        "always verify ownership before npm operations",
        command="sudo chown -R $USER . && npm ci",
        success_rate=rate(9, 10),
        tags=["npm", "permissions"],
    )
    log(api, "node_modules corruption", "reinstall from the lock file", success_rate=rate(7, 8))
    log(api, "deploying to production", "drain the load balancer first", type=PATTERN)
    log(api, "slow database query", "add an index on the foreign key", project="ixcoach-api")


def test_npm_error_returns_relevant_entries(api: Api) -> None:
    fill(api)
    lessons = [found.entry.lesson for found in query(api, "npm install permissions error").entries]
    assert lessons[0] == "always verify ownership before npm operations"
    assert "drain the load balancer first" not in lessons


def test_memories_take_less_than_500_tokens(api: Api) -> None:
    for number in range(30):
        log(api, f"build step {number} failed " + "because of x " * 20, "clean and retry " * 20)
    answer = query(api, "the build failed", limit=30)
    assert 0 < answer.token_count <= 500
    assert answer.omitted_count == 30 - len(answer.entries)
    # English prose takes about four characters a token with common tokenizers.
    assert len(answer.markdown) / 4 <= 500


def test_agent_b_sees_lessons_learned_by_agent_a(api: Api, server: Any) -> None:
    log(api, "npm install failed", "verify ownership", agent_id="agent-a")
    agent_b = server.keys.key(api.tenant_id)
    (found,) = query(agent_b, "npm install fails").entries
    assert found.entry.agent_id == "agent-a"


def test_the_answer_is_the_markdown_of_the_specification(api: Api) -> None:
    log(
        api,
        "npm install → EACCES",
        "Run chown first",
        command="sudo chown -R $USER .",
        success_rate=rate(9, 10),
        timestamp=datetime(2025, 10, 28, 4, 58, 1, tzinfo=UTC),
    )
    assert query(api, "npm permissions").markdown == (
        "**Relevant Memories (1):**\n\n"
        "1. [2025-10-28] npm install → EACCES: Run chown first"
        " `sudo chown -R $USER .` (9/10 success)"
    )


def test_recent_entries_come_first_among_equally_relevant_ones(api: Api) -> None:
    now = datetime.now(UTC)
    for days in (400, 1, 90):
        log(
            api, "npm install failed", "lesson", agent_id=f"{days}", timestamp=now - timedelta(days)
        )
    found = query(api, "npm install failed").entries
    assert [one.entry.agent_id for one in found] == ["1", "90", "400"]


def test_one_success_out_of_one_does_not_beat_ninety_out_of_a_hundred(api: Api) -> None:
    log(api, "npm install failed", "try this", success_rate=rate(1, 1), agent_id="lucky")
    log(api, "npm install failed", "try this", success_rate=rate(90, 100), agent_id="proven")
    found = query(api, "npm install failed").entries
    assert [one.entry.agent_id for one in found] == ["proven", "lucky"]
    assert found[0].success_lower_bound == pytest.approx(0.826, abs=0.001)
    assert found[1].success_lower_bound == pytest.approx(0.207, abs=0.001)


def test_the_same_line_is_logged_once(api: Api) -> None:
    assert not log(api, "npm install failed", "verify ownership").duplicate
    assert log(api, "npm install failed", "verify ownership").duplicate
    assert len(query(api, "npm").entries) == 1


def test_an_id_that_is_taken_by_other_content_is_refused(api: Api) -> None:
    log(api, "npm install failed", "verify ownership", entry_id="k1")
    with pytest.raises(grpc.RpcError) as refused:
        log(api, "npm install failed", "something else", entry_id="k1")
    assert refused.value.code() == grpc.StatusCode.ALREADY_EXISTS


def test_repository_type_and_labels_filter(api: Api) -> None:
    fill(api)
    for fields, wanted in (
        ({"project": "ixcoach-api"}, {"add an index on the foreign key"}),
        ({"type": PATTERN}, {"drain the load balancer first"}),
        ({"tags": ["npm"]}, {"always verify ownership before npm operations"}),
        ({"type": SUCCESS}, set()),
    ):
        found = query(api, "what went wrong with the install", **fields).entries
        assert {one.entry.lesson for one in found} <= wanted, fields
        assert bool(found) == bool(wanted), fields


def test_a_query_without_an_answer_says_so(api: Api) -> None:
    answer = query(api, "anything")
    assert not answer.entries
    assert answer.markdown == "No relevant memories found."


@pytest.mark.parametrize(
    ("given", "field"),
    [
        (rate(2, 1), "success_rate.successes"),
        (rate(-1, 1), "success_rate.successes"),
        (rate(1, 0), "success_rate.tries"),
        (rate(1, 1_000_000_000), "success_rate.tries"),
    ],
)
def test_a_success_rate_that_is_none_is_refused(
    given: pb.SuccessRate, field: str, api: Api
) -> None:
    with refused() as failure:
        log(api, "npm install failed", "verify ownership", success_rate=given)
    assert failure.code == grpc.StatusCode.INVALID_ARGUMENT
    assert failure.fields[field]


def test_a_success_rate_comes_back_as_it_was_given(api: Api) -> None:
    log(api, "npm install failed", "verify ownership", success_rate=rate(0, 7), agent_id="known")
    log(api, "npm install failed", "verify ownership", agent_id="unknown")
    found = {one.entry.agent_id: one for one in query(api, "npm install failed").entries}
    assert found["known"].entry.success_rate == rate(0, 7)
    assert found["known"].success_lower_bound == 0
    assert not found["unknown"].entry.HasField("success_rate")
    assert not found["unknown"].HasField("success_lower_bound")


def listed(api: Api, **filter_: Any) -> list[str]:
    request = pb.ListKnowledgeRequest(filter=pb.KnowledgeFilter(**filter_))
    return [entry.id for entry in api.learn.ListKnowledge(request).entries]


def test_entries_are_listed_newest_first_in_pages(api: Api) -> None:
    for name, day in (("b", 2), ("a", 2), ("old", 1), ("new", 3)):
        when = datetime(2026, 1, day, tzinfo=UTC)
        log(api, name, name, entry_id=name, timestamp=when)
    found: list[str] = []
    token = ""
    while True:
        request = pb.ListKnowledgeRequest(page_size=3, page_token=token)
        page = api.learn.ListKnowledge(request)
        assert page.total_size == 4
        found += [entry.id for entry in page.entries]
        token = page.next_page_token
        if not token:
            break
    assert found == ["new", "b", "a", "old"]


def test_a_list_has_what_passes_all_filters(api: Api) -> None:
    log(api, "one", "one", entry_id="one", tags=["npm", "ci"])
    log(api, "two", "two", entry_id="two", tags=["npm"], type=SUCCESS)
    log(api, "three", "three", entry_id="three", project="other")
    assert set(listed(api, project="gptcoach2")) == {"one", "two"}
    assert listed(api, type=SUCCESS) == ["two"]
    assert listed(api, tags=["npm", "ci"]) == ["one"]
    assert listed(api, tags=["np"]) == listed(api, project="gpt") == []
    request = pb.ListKnowledgeRequest(filter=pb.KnowledgeFilter(tags=["npm"]))
    assert api.learn.ListKnowledge(request).total_size == 2


def test_a_line_that_was_changed_is_known_when_its_log_is_sent_again(api: Api) -> None:
    first = log(api, "npm install failed", "verify ownership").entry
    changed = api.learn.UpdateKnowledge(
        pb.UpdateKnowledgeRequest(
            entry=pb.KnowledgeEntry(
                id=first.id, success_rate=rate(1, 2), tags=["b", "a"], type=PATTERN
            ),
            update_mask={"paths": ["success_rate", "tags", "type", "command"]},
        )
    ).entry
    assert (changed.type, list(changed.tags), changed.lesson) == (PATTERN, ["a", "b"], first.lesson)
    assert (changed.success_rate, changed.timestamp) == (rate(1, 2), first.timestamp)
    again = log(api, "npm install failed", "verify ownership")
    assert again.duplicate
    assert again.entry == changed
    assert query(api, "npm", tags=["a"]).entries[0].entry == changed


def test_a_deleted_line_is_logged_again_when_it_is_sent_again(api: Api) -> None:
    first = log(api, "npm install failed", "verify ownership").entry
    api.learn.DeleteKnowledge(pb.DeleteKnowledgeRequest(entry_id=first.id))
    again = log(api, "npm install failed", "verify ownership")
    assert not again.duplicate
    assert again.entry.id == first.id
    assert listed(api) == [first.id]


@pytest.mark.parametrize("field", ["id", "timestamp"])
def test_neither_the_id_nor_the_time_of_a_line_is_changed(field: str, api: Api) -> None:
    entry = log(api, "npm install failed", "verify ownership").entry
    request = pb.UpdateKnowledgeRequest(
        entry=pb.KnowledgeEntry(id=entry.id), update_mask={"paths": [field]}
    )
    with refused() as failure:
        api.learn.UpdateKnowledge(request)
    assert failure.code == grpc.StatusCode.INVALID_ARGUMENT
