"""What is asked for one user holds nothing of another one's, whichever call and kind of memory.

Every call that reads and takes a user is found by its descriptor, so a new one is tested as soon as
it is there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from mneme import MnemeClient
from mneme.v1 import auth_pb2, options_pb2
from mneme.v1 import event_service_pb2 as events_pb
from mneme.v1 import reflect_service_pb2 as reflect_pb
from support.api import METHODS, Api
from support.contexts import get_context
from support.descriptors import Leaf, leaves, narrows
from support.making import event, recall, record
from support.server import LocalServer

TOPIC = "the salary review of the finance team"
ERROR = "the payroll service refused the salary review: quota exceeded"
USERS = {"ann": "annsecret", "bob": "bobsecret"}
_QUESTIONS = ("query", "topic", "task", "task_description")
_scope: Any = options_pb2.required_scope


def _tells(client: MnemeClient, user: str, word: str) -> None:
    """Have a user's sessions tell, teach and leave the word, in every kind of memory."""
    for n in range(2):
        session = f"{user}-{n}"
        client.start_session(session_id=session, user_id=user, project="p", agent_id="a")
        client.record_events(
            [
                {"session_id": session, "event_type": "message", "text": f"{TOPIC}: {word} {n}"},
                {
                    "session_id": session, "event_type": "tool_error", "name": "payroll",
                    "error": f"{ERROR} for {word}", "text": f"{ERROR} for {word}",
                },
            ]
        )  # fmt: skip
        client.create_reflection(
            session, f"{TOPIC}, of {word}", outcome="failure", project="p", agent_id="a",
            what_did_not_work=[f"{ERROR}, said {word}"], next_strategy=f"ask {word} first",
        )  # fmt: skip
        client.sleep(
            session, progress=[f"{TOPIC}: {word} was told"],
            open_todos=[{"content": f"finish {TOPIC} with {word}"}],
        )  # fmt: skip
        client.create_lesson(
            f"{ERROR}", f"{TOPIC}: {word} knows how", source_session_id=session, project="p"
        )
        client.create_memory(f"{TOPIC} is for {word}", user_id=user, project="p")
        client.create_episode(
            task=f"finish {TOPIC} with {word}", reward=1.0, success=True, session_id=session,
            critique=f"{word} was glad", user_id=user, project="p", episode_id=f"{session}-tried",
        )  # fmt: skip
    client.create_skill(
        f"{word} reviews", description=f"{TOPIC}: as {word} does it", project="p",
        skill_id=f"{user}-skill", source_episode_ids=[f"{user}-0-tried"],
    )  # fmt: skip
    for _ in range(3):
        client.record_skill_use(f"{user}-skill", success=True)
    client.create_pattern("reviews", description=TOPIC, regex={"expression": "salary"})


@pytest.fixture(scope="module")
def api(server: LocalServer) -> Api:
    """Return a tenant whose two users did the same; nothing below may change it."""
    api = server.keys.tenant("users-apart", *(one for one in auth_pb2.KeyScope.values() if one))
    with MnemeClient(server.address, api_key=api.secret) as client:
        # A reflection may be there before its session is.
        client.create_reflection("ann-0", f"{TOPIC}: annsecret", outcome="failure", project="p")
        for user, word in reversed(USERS.items()):
            _tells(client, user, word)
    return api


def _filters(rpc: str) -> Sequence[Leaf]:
    return [
        leaf
        for leaf in leaves(METHODS[rpc].input_type)
        if leaf.field.name == "user_id" and narrows(leaf.field)
    ]


ASKED = [
    pytest.param(rpc, leaf, id=f"{rpc.rpartition('.')[2]}-{leaf.path}")
    for rpc, method in sorted(METHODS.items())
    if method.GetOptions().Extensions[_scope] == auth_pb2.KEY_SCOPE_READ
    for leaf in _filters(rpc)
]


def _requests(rpc: str, leaf: Leaf, user: str) -> Iterator[Message]:
    request: Any = GetMessageClass(METHODS[rpc].input_type)()
    for field in request.DESCRIPTOR.fields:
        if field.name in _QUESTIONS:
            setattr(request, field.name, TOPIC)
        if field.name == "limit":
            request.limit = 50
        if field.name == "name" and rpc.endswith("MatchPattern"):
            request.name = "reviews"
    leaf.put(request, user)
    if not isinstance(request, reflect_pb.ReflectRequest):
        yield request
        return
    for analysis in filter(None, reflect_pb.Analysis.values()):
        asked = reflect_pb.ReflectRequest(analysis=analysis)  # type: ignore[arg-type]
        asked.MergeFrom(request)
        yield asked


def test_there_are_calls_to_ask() -> None:
    named = {param.values[0].rpartition("/")[2] for param in ASKED}
    assert {"Recall", "GetContext", "WakeUp", "SearchSessions", "SearchMemories"} <= named
    assert {"SearchReflections", "SearchEpisodes", "ListSessions", "GetTimeline"} <= named


@pytest.mark.parametrize(("rpc", "leaf"), ASKED)
@pytest.mark.parametrize("user", USERS)
def test_no_call_for_a_user_returns_what_is_another_ones(
    rpc: str, leaf: Leaf, user: str, api: Api
) -> None:
    (other,) = (word for name, word in USERS.items() if name != user)
    for request in _requests(rpc, leaf, user):
        answer = str(api.call(rpc, request))
        assert other not in answer
        assert USERS[user] in answer or rpc.endswith(("/Reflect", "/ListSessions"))


def test_what_a_users_sessions_taught_is_found_for_that_user(api: Api) -> None:
    found = recall(api, TOPIC, user_id="ann", scopes=["reflection"], limit=50)
    assert len(found.results) == 3  # The one too that was there before the session.
    context = get_context(api, TOPIC, user_id="ann", limit=20)
    assert {lesson.lesson.source_session_id for lesson in context.lessons} == {"ann-0", "ann-1"}
    assert [skill.skill_id for skill in context.skills] == ["ann-skill"]
    assert context.reflections
    assert context.episodes


def test_what_somebody_else_said_in_a_users_session_is_not_that_users(server: LocalServer) -> None:
    api = server.keys.tenant("users-in-one-session")
    api.events.StartSession(events_pb.StartSessionRequest(session_id="s", user_id="bob"))
    record(
        api,
        event(f"{TOPIC}: bob", "s"),
        event(f"{TOPIC}: ann", "s", metadata={"user_id": "ann"}),
        event("ann failed", "s", kind="error", error="ann", metadata={"user_id": "ann"}),
        wait=True,
    )
    (found,) = get_context(api, TOPIC, user_id="bob").sessions
    assert [one.summary for one in found.key_events] == [f"{TOPIC}: bob"]
    (found,) = get_context(api, TOPIC).sessions
    assert len(found.key_events) == 3
