"""Everything that can be asked about a tenant, and what must never be the answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import grpc
from google.protobuf.message import Message
from mneme.v1 import admin_service_pb2 as admin_pb
from mneme.v1 import context_service_pb2 as context_pb
from mneme.v1 import event_service_pb2 as events_pb
from mneme.v1 import knowledge_pb2, reflection_pb2
from mneme.v1 import learn_service_pb2 as learn_pb
from mneme.v1 import memory_service_pb2 as memory_pb
from mneme.v1 import recall_service_pb2 as recall_pb
from mneme.v1 import reflect_service_pb2 as reflect_pb

from support.api import Api, failure_of
from support.making import LLM_RESPONSE, TOOL_CALL, TOOL_ERROR, event, lesson, record

FORBIDDEN = frozenset(
    {grpc.StatusCode.INTERNAL, grpc.StatusCode.UNKNOWN, grpc.StatusCode.DEADLINE_EXCEEDED}
)


def questions() -> Iterator[tuple[str, Message]]:
    """Yield every RPC that reads, with a request that `fill` makes sensible; and three writes."""
    yield "mneme.v1.EventService/GetSession", events_pb.GetSessionRequest(session_id="s1")
    yield "mneme.v1.EventService/ListSessions", events_pb.ListSessionsRequest()
    yield "mneme.v1.EventService/ListEvents", events_pb.ListEventsRequest(page_size=1000)
    yield "mneme.v1.EventService/ListAgents", events_pb.ListAgentsRequest()
    yield "mneme.v1.EventService/VerifyEvents", events_pb.VerifyEventsRequest()
    for mode in (1, 2, 3):
        yield (
            "mneme.v1.RecallService/Recall",
            recall_pb.RecallRequest(query="the ferry to the island", mode=mode, limit=50),
        )
    yield "mneme.v1.LearnService/GetLesson", learn_pb.GetLessonRequest(lesson_id="rule-1")
    yield "mneme.v1.LearnService/ListLessons", learn_pb.ListLessonsRequest()
    yield "mneme.v1.LearnService/SearchLessons", learn_pb.SearchLessonsRequest(query="ferries")
    yield "mneme.v1.LearnService/ExportLessons", learn_pb.ExportLessonsRequest()
    yield "mneme.v1.MemoryService/GetMemory", memory_pb.GetMemoryRequest(memory_id="sea-1")
    yield "mneme.v1.MemoryService/ListMemories", memory_pb.ListMemoriesRequest()
    yield "mneme.v1.MemoryService/SearchMemories", memory_pb.SearchMemoriesRequest(query="ferries")
    yield "mneme.v1.LearnService/ListReflections", reflection_pb2.ListReflectionsRequest()
    yield (
        "mneme.v1.LearnService/SearchReflections",
        reflection_pb2.SearchReflectionsRequest(task_description="book a seat"),
    )
    yield "mneme.v1.LearnService/SummarizeReflections", reflection_pb2.SummarizeReflectionsRequest()
    yield (
        "mneme.v1.LearnService/SearchKnowledge",
        knowledge_pb2.SearchKnowledgeRequest(query="deck"),
    )
    for analysis in (1, 2, 3, 4, 5):
        yield "mneme.v1.ReflectService/Reflect", reflect_pb.ReflectRequest(analysis=analysis)
    yield "mneme.v1.ContextService/GetContext", context_pb.GetContextRequest(topic="the ferry")
    yield "mneme.v1.ContextService/GetProfile", context_pb.GetProfileRequest(user_id="ann")
    yield "mneme.v1.ContextService/WakeUp", context_pb.WakeUpRequest(project="p")
    yield "mneme.v1.ContextService/SearchSessions", context_pb.SearchSessionsRequest(query="ferry")
    yield "mneme.v1.ContextService/GetTimeline", context_pb.GetTimelineRequest()
    yield "mneme.v1.AdminService/GetStats", admin_pb.GetStatsRequest()
    yield (
        "mneme.v1.EventService/RecordEvents",
        events_pb.RecordEventsRequest(events=[event("one more ferry", "s1")]),
    )
    yield (
        "mneme.v1.LearnService/CreateLesson",
        learn_pb.CreateLessonRequest(title="After", content="the damage"),
    )
    yield (
        "mneme.v1.MemoryService/CreateMemory",
        memory_pb.CreateMemoryRequest(text="Ann takes the late ferry", user_id="ann"),
    )
    yield "mneme.v1.ContextService/Sleep", context_pb.SleepRequest(session_id="s1", progress=["x"])


def fill(api: Api) -> None:
    """Give a tenant some of everything."""
    for session in ("s1", "s2", "s3"):
        api.events.StartSession(
            events_pb.StartSessionRequest(
                session_id=session, project="p", agent_id="ann", user_id="u", tags=["sea"]
            )
        )
        record(
            api,
            *[event(f"the ferry number {n} leaves for the island", session, id=f"{session}-{n}",
                    at=n, payload={"seat": n, "where": {"deck": "upper"}}) for n in range(20)],
            event("", session, TOOL_CALL, id=f"{session}-call", name="book", call_id="c1", at=30,
                  payload={"arguments": {"seats": 2}}),
            event("no seats left", session, TOOL_ERROR, id=f"{session}-err", name="book",
                  call_id="c1", at=31),
            event("booked after all", session, LLM_RESPONSE, id=f"{session}-llm", model="m",
                  input_tokens=9, output_tokens=3, cost_usd=0.25, at=32),
            wait=True,
        )  # fmt: skip
    for n in range(5):
        lesson(api, f"Ferries {n}", "book a week ahead", lesson_id=f"rule-{n}", tags=["travel"])
    for n in range(3):
        api.learn.CreateReflection(
            reflection_pb2.CreateReflectionRequest(
                session_id=f"s{n + 1}", project="p", task_description="book a seat",
                outcome=reflection_pb2.OUTCOME_FAILURE, what_worked=["asking early"],
                what_did_not_work=["waiting"], next_strategy="ask earlier", tags=["sea"],
            )
        )  # fmt: skip
        api.learn.CreateKnowledge(
            knowledge_pb2.CreateKnowledgeRequest(
                project="harbour", type=1, context="the deck was full", lesson="come early"
            )
        )
        api.memory.CreateMemory(
            memory_pb.CreateMemoryRequest(
                memory_id=f"sea-{n}", text=f"Bo takes ferry {n}", user_id="bo", tags=["sea"]
            )
        )
    api.context.Sleep(context_pb.SleepRequest(session_id="s1", progress=["booked"]))
    api.context.Sleep(context_pb.SleepRequest(session_id="s2", open_todos=[{"content": "pay"}]))


def codes(api: Api) -> Mapping[str, set[grpc.StatusCode]]:
    """Ask everything; return the status codes by RPC.

    Raises:
        AssertionError: a call was answered as nothing may be; the message says which and how.
    """
    found: dict[str, set[grpc.StatusCode]] = {}
    for rpc, request in questions():
        code = grpc.StatusCode.OK
        try:
            api.call(rpc, request)
        except grpc.RpcError as error:
            code = error.code()
            if code in FORBIDDEN:
                failure = failure_of(error)
                raise AssertionError(f"{rpc}: {code.name} {failure.message}") from error
        found.setdefault(rpc, set()).add(code)
    return found
