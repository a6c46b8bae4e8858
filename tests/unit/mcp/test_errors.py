from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from mneme import ConfigurationError
from mneme.errors import (
    BY_CODE,
    ArgumentError,
    DeadlineExceededError,
    FieldViolation,
    InternalError,
    InvalidArgumentError,
    MnemeError,
    NotFoundError,
    PermissionDeniedError,
    ResourceExhaustedError,
    UnauthenticatedError,
    UnavailableError,
    UnimplementedError,
)
from mneme_mcp import arguments
from mneme_mcp.errors import Place, explain, failure_of
from mneme_mcp.tools.alerts import UpdateArguments
from mneme_mcp.toolsets import TOOLSETS, tools_of
from pydantic import ValidationError

PLACE = Place("memory.local:50051")
OVER_HTTP = replace(PLACE, over_http=True)


def spelling(tool: str) -> Callable[[str], str]:
    (spec,) = (spec for spec in tools_of(TOOLSETS) if spec.name == tool)
    return spec.arguments.model_construct().spelled


def test_a_missing_key_is_answered_with_where_to_put_it() -> None:
    error = UnauthenticatedError("no", reason="API_KEY_MISSING")
    assert "set MNEME_API_KEY" in explain(error, PLACE)
    assert "Authorization: Bearer" in explain(error, OVER_HTTP)
    assert "MNEME_API_KEY" not in explain(error, OVER_HTTP)


def test_a_wrong_key_is_told_from_a_missing_one() -> None:
    said = explain(UnauthenticatedError("no", reason="API_KEY_INVALID"), PLACE)
    assert "unknown or was revoked" in said
    assert "mneme admin keys create" in said


def test_a_stopped_server_is_answered_with_how_to_start_it_and_where_it_was_sought() -> None:
    said = explain(UnavailableError("failed to connect"), PLACE)
    assert "memory.local:50051" in said
    assert "mneme-server serve" in said
    assert "MNEME_ADDRESS" in said


def test_a_server_that_is_not_ready_says_why_itself() -> None:
    error = UnavailableError("the backend is down", reason="EMBEDDING_FAILED", retry_after=3.0)
    assert explain(error, PLACE) == "the backend is down. Try again in 3 s."


@pytest.mark.parametrize(
    ("tool", "path", "spelled"),
    [
        ("agentlens_recall", "start_time", "from"),
        ("agentlens_recall", "tags[2]", "tags[2]"),
        ("agentlens_learn", "filter.agent_id", "agentId"),
        ("agentlens_learn", "lesson.title", "title"),
        ("reflection_search", "filter.project", "project"),
        ("reflection_search", "filter.outcomes", "outcomeFilter"),
        ("agentlens_context", "topic", "query"),
        ("reflection_store", "what_worked[0]", "whatWorked[0]"),
        ("memory_log", "type", "event_type"),
        ("agentlens_log_event", "events[0].id", "eventId"),
        ("sleep", "open_todos[0].content", "open_todos[0].content"),
        ("agentlens_log_event", "events[0].payload.tool_name", "payload.tool_name"),
        ("skill_create", "signature.inputs.name", "inputs.name"),
        ("learning_start_session", "config.learning_rate", "config.learning_rate"),
        ("agentdb_search", "filter.any_tags[0]", "filters.tags[0]"),
        ("agentdb_search", "filter.user_id", "user_id"),
        ("agentdb_delete", "memory_ids[3]", "vector_ids[3]"),
        ("agentdb_delete", "filter.metadata.priority", "filters.metadata.priority"),
        ("alert_update", "rule.id", "rule_id"),
        ("alert_update", "rule.scope.tags[1]", "tags[1]"),
        ("agentlens_reflect", "cost_analysis.bucket", "params.bucket"),
        ("agentlens_reflect", "tool_sequences.max_length", "params.maxLength"),
    ],
)
def test_fields_at_fault_are_named_as_the_caller_named_them(
    tool: str, path: str, spelled: str
) -> None:
    error = InvalidArgumentError("bad", violations=[FieldViolation(path, "is too long")])
    said = explain(error, replace(PLACE, spelled=spelling(tool)))
    assert said == f"{spelled}: is too long."


def test_what_is_said_of_a_field_names_it_as_the_caller_did_too() -> None:
    problem = "replaces everything; to confirm, set confirm_tenant_id to 't'"
    error = InvalidArgumentError("bad", violations=[FieldViolation("confirm_tenant_id", problem)])
    said = explain(error, replace(PLACE, spelled=spelling("agentdb_init")))
    assert said == ("confirm_tenant: replaces everything; to confirm, set confirm_tenant to 't'.")


def test_an_update_without_changes_says_which_there_may_be() -> None:
    with pytest.raises(ValidationError) as refused:
        UpdateArguments.model_validate({"rule_id": "r", "name": ""})
    said = arguments.explain(UpdateArguments, refused.value)
    assert said.startswith("give what to change. Arguments: ")
    assert "notify_channels" in said


def test_what_was_not_found_comes_with_how_to_find_it() -> None:
    said = explain(NotFoundError("there is no lesson 'x'"), replace(PLACE, if_missing="List them."))
    assert said == "there is no lesson 'x'. List them."


def test_a_limit_says_when_to_try_again() -> None:
    limited = ResourceExhaustedError("too fast", retry_after=12.2, reason="RATE_LIMITED")
    assert "in 12 s" in explain(limited, PLACE)


@pytest.mark.parametrize(("recorded", "told"), [("0", "none"), ("7", "the first 7")])
def test_a_stream_that_failed_says_how_many_are_stored(recorded: str, told: str) -> None:
    gone = UnavailableError("failed to connect", metadata={"recorded": recorded})
    assert explain(gone, PLACE).endswith(f"is up. Stored before it failed: {told}.")


def test_a_message_that_is_too_large_is_not_to_be_sent_again_as_it_is() -> None:
    too_large = ResourceExhaustedError("the request takes 9 bytes, at most 8 are allowed")
    failure = failure_of(too_large, PLACE)
    assert not failure.retryable
    assert failure.message == f"{too_large.message}. Send or ask for less at a time."


def test_a_bug_names_the_id_under_which_it_is_logged() -> None:
    said = explain(InternalError("oops", metadata={"error_id": "E1"}), PLACE)
    assert "E1" in said


def test_other_failures_say_what_to_do() -> None:
    assert "narrower time range" in explain(DeadlineExceededError("late"), PLACE)
    assert "older than this adapter" in explain(UnimplementedError("what"), PLACE)
    assert "key with that scope" in explain(PermissionDeniedError("needs write"), PLACE)
    assert "settings" in explain(ConfigurationError("the port is a number"), PLACE)


@pytest.mark.parametrize("kind", BY_CODE.values(), ids=lambda kind: kind.__name__)
def test_every_failure_of_the_client_is_put_in_words(kind: type[MnemeError]) -> None:
    said = explain(kind("something"), PLACE)
    assert said
    assert "Error(" not in said


@pytest.mark.parametrize("kind", BY_CODE.values(), ids=lambda kind: kind.__name__)
def test_every_failure_has_a_code_and_a_reason(kind: type[MnemeError]) -> None:
    failure = failure_of(kind("something"), PLACE)
    assert failure.code == kind.default_code.name
    assert failure.reason
    named = failure_of(kind("something", reason="QUEUE_FULL", retry_after=2.5), PLACE)
    assert (named.reason, named.retry_after) == ("QUEUE_FULL", 2.5)


def test_what_may_succeed_later_is_told_from_what_will_not() -> None:
    assert failure_of(UnavailableError("down"), PLACE).retryable
    assert failure_of(ResourceExhaustedError("full", reason="QUOTA_EXCEEDED"), PLACE).retryable
    assert not failure_of(NotFoundError("gone"), PLACE).retryable
    assert not failure_of(UnauthenticatedError("who"), PLACE).retryable


def test_what_the_client_does_not_send_names_its_argument_as_what_the_server_refuses_does() -> None:
    place = replace(PLACE, spelled=spelling("alert_update"))
    failure = failure_of(ArgumentError("rule.scope.project: is no text"), place)
    assert failure.message == "project: is no text."
    assert (failure.code, failure.reason) == ("INVALID_ARGUMENT", "INVALID_PARAMETER")
    assert failure.fields == [("project", "is no text")]
    assert failure.details == {"parameter": "project"}
    whole = failure_of(ArgumentError("nothing to send"), PLACE)
    assert (whole.message, whole.fields, whole.details) == ("nothing to send.", [], {})


def test_a_failure_names_its_fields_and_the_id_of_a_bug_in_the_tools_spelling() -> None:
    violations = [FieldViolation("limit", "limit: is too large")]
    failure = failure_of(InvalidArgumentError("bad", violations=violations), PLACE)
    error = (failure.result("wake_up").structured_content or {})["error"]
    assert error["fields"] == [{"name": "limit", "problem": "is too large"}]
    bug = failure_of(InternalError("oops", metadata={"error_id": "E1"}), PLACE)
    camel = (bug.result("agentlens_recall").structured_content or {})["error"]
    snake = (bug.result("sleep", camel=False).structured_content or {})["error"]
    assert camel["errorId"] == snake["error_id"] == "E1"
