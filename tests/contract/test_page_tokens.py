"""Where a listing or a watch goes on is told by the server: what it never told is refused."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from google.protobuf.message_factory import GetMessageClass
from mneme.v1 import alert_service_pb2 as alert_pb
from mneme.v1 import causal_pb2 as causal_pb
from mneme.v1 import episode_pb2 as episode_pb
from mneme.v1 import event_service_pb2 as events_pb
from mneme.v1 import experiment_pb2 as experiment_pb
from mneme.v1 import learn_service_pb2 as learn_pb
from mneme.v1 import reflection_pb2 as reflection_pb
from mneme.v1 import skill_service_pb2 as skill_pb
from support.api import METHODS, grpc, reads_well, refused
from support.valid_requests import valid
from support.world import World

INVALID = grpc.StatusCode.INVALID_ARGUMENT
_PAGED = sorted(rpc for rpc, m in METHODS.items() if "page_token" in m.input_type.fields_by_name)
_OTHER_FILTERS: dict[str, dict[str, Any]] = {
    "ListSessions": {"agent_id": "a"},
    "ListGrades": {"grader": "ann"},
    "ListEvents": {"session_id": "session-0"},
    "ListLessons": {"filter": learn_pb.LessonFilter(category="general")},
    "ListMemories": {"include_superseded": True},
    "ListPatternStats": {"name": "times-of-day"},
    "ListApiKeys": {"include_revoked": True},
    "ListOperations": {"kind": "backup"},
    "ListReflections": {"filter": reflection_pb.ReflectionFilter(session_id="session-0")},
    "ListKnowledge": {"filter": {"project": "other"}},
    "ListEpisodes": {"filter": episode_pb.EpisodeFilter(session_id="session-0")},
    "ListSkills": {"filter": skill_pb.SkillFilter(project="project")},
    "ListAlertRules": {"state": alert_pb.ALERT_STATE_OK},
    "ListAlertHistory": {"rule_id": "rule-0"},
    "ListEdges": {"filter": causal_pb.EdgeFilter(effect="effect")},
    "ListExperiments": {"status": experiment_pb.EXPERIMENT_STATUS_COMPLETED},
    "GetTimeline": {"agent_id": "a"},
    "ListLearningSessions": {"algorithm": "sarsa"},
    "ListTrajectories": {"session_id": "next-project"},
}


def _first_token(rpc: str, world: World) -> str:
    request: Any = valid(rpc, world)
    request.page_size = 1
    token: str = world.api.call(rpc, request)[0].next_page_token  # type: ignore[attr-defined]
    assert token, "the tests need a second page"
    return token


def _page_token_is_refused(rpc: str, world: World, token: str, request: Any = None) -> None:
    request = valid(rpc, world) if request is None else request
    request.page_token = token
    with refused() as failure:
        world.api.call(rpc, request)
    assert (failure.code, failure.reason) == (INVALID, "INVALID_FILTER"), token
    assert failure.field == "page_token"
    reads_well(failure)


@pytest.mark.parametrize("rpc", _PAGED)
def test_a_damaged_page_token_is_refused(rpc: str, world: World) -> None:
    token = _first_token(rpc, world)
    raw = bytearray(base64.urlsafe_b64decode(token))
    for place in range(len(raw)):
        flipped = bytearray(raw)
        flipped[place] ^= 1
        _page_token_is_refused(rpc, world, base64.urlsafe_b64encode(flipped).decode())
    for broken in (token[:-4], token[4:], token + token, "!", "é", "a", "/w==", " " + token):
        _page_token_is_refused(rpc, world, broken)


@pytest.mark.parametrize("rpc", _PAGED)
def test_a_page_token_that_was_made_up_is_refused(rpc: str, world: World) -> None:
    for made_up in (b"[" * 1_400, b'{"a":' * 200, json.dumps([10**400, "x"]).encode(), b"null"):
        token = base64.urlsafe_b64encode(b"\0" * 9 + made_up).decode()
        _page_token_is_refused(rpc, world, token)


@pytest.mark.parametrize("rpc", _PAGED)
def test_a_page_token_of_another_rpc_is_refused(rpc: str, world: World) -> None:
    for other in _PAGED:
        if other != rpc:
            _page_token_is_refused(rpc, world, _first_token(other, world))


@pytest.mark.parametrize("rpc", _PAGED)
def test_a_page_token_of_other_filters_is_refused(rpc: str, world: World) -> None:
    method = METHODS[rpc]
    filters = {f.name for f in method.input_type.fields} - {"page_size", "page_token"}
    if not filters:
        pytest.skip(f"{method.name} has no filters")
    assert method.name in _OTHER_FILTERS, f"say in _OTHER_FILTERS other filters of {method.name}"
    request = GetMessageClass(method.input_type)(**_OTHER_FILTERS[method.name])
    _page_token_is_refused(rpc, world, _first_token(rpc, world), request)


@pytest.mark.parametrize("rpc", _PAGED)
def test_a_page_token_serves_pages_of_any_size(rpc: str, world: World) -> None:
    request: Any = valid(rpc, world)
    request.page_token = _first_token(rpc, world)
    request.page_size = 2
    assert world.api.call(rpc, request)[0].ListFields()


@pytest.mark.parametrize("cursor", ["9" * 20, str(2**64), str(2**63)])
def test_a_cursor_that_no_event_can_have_is_refused(cursor: str, world: World) -> None:
    with refused() as failure:
        list(world.api.events.WatchEvents(events_pb.WatchEventsRequest(after_cursor=cursor)))
    assert (failure.code, failure.reason) == (INVALID, "INVALID_PARAMETER")
    assert failure.field == "after_cursor"
    reads_well(failure)
