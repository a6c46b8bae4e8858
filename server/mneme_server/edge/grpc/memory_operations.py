"""The RPCs that are operations on memory, as OpenTelemetry's conventions for generative AI name
them, and the span of each.

https://github.com/open-telemetry/semantic-conventions-genai/blob/main/docs/gen-ai/gen-ai-spans.md
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from google.protobuf.json_format import MessageToDict

from mneme_server.common import tracing
from mneme_server.common.tracing import Span, Value
from mneme_server.edge.grpc.call import Call
from mneme_server.edge.grpc.methods import Method
from mneme_server.edge.grpc.pipeline import Respond

NAME = "gen_ai.operation.name"
STORE = "gen_ai.memory.store.id"
RECORD = "gen_ai.memory.record.id"
COUNT = "gen_ai.memory.record.count"
QUERY = "gen_ai.memory.query.text"
RECORDS = "gen_ai.memory.records"


class OperationName(Enum):
    """What is done, by the conventions' names."""

    SEARCH = "search_memory"
    CREATE = "create_memory"
    UPSERT = "upsert_memory"
    UPDATE = "update_memory"
    DELETE = "delete_memory"
    CREATE_STORE = "create_memory_store"
    DELETE_STORE = "delete_memory_store"


@dataclass(frozen=True, slots=True)
class MemoryOperation:
    """What an RPC does to memory, and where its messages tell of it.

    Args:
        name: what it does.
        record: the path of the one record's id in the answer; empty where there is not one.
        counts: fields of the answer with records, or their number.
        asked: fields of the request with records, whose number counts instead.
        query: the request's field with the question.
        store: the path in the request of the store's id, where it is not the caller's tenant.
    """

    name: OperationName
    record: str = ""
    counts: Sequence[str] = ()
    asked: str = ""
    query: str = ""
    store: str = ""


def _search(counts: Sequence[str] = ("results",), query: str = "query") -> MemoryOperation:
    return MemoryOperation(OperationName.SEARCH, counts=counts, query=query)


OPERATIONS: Mapping[str, MemoryOperation] = {
    "RecallService/Recall": _search(),
    "RecallService/RecallWithCertificate": _search(),
    "MemoryService/SearchMemories": _search(),
    "LearnService/SearchLessons": _search(),
    "LearnService/SearchReflections": _search(query="task_description"),
    "LearnService/SearchKnowledge": _search(("entries",)),
    "SkillService/SearchEpisodes": _search(query="task"),
    "SkillService/SearchSkills": _search(query="task"),
    "ContextService/SearchSessions": _search(),
    "ContextService/GetContext": _search(
        ("sessions", "lessons", "reflections", "episodes", "skills"), "topic"
    ),
    "ContextService/GetProfile": MemoryOperation(OperationName.SEARCH, counts=("items",)),
    "EventService/RecordEvents": MemoryOperation(OperationName.CREATE, asked="events"),
    "EventService/StreamEvents": MemoryOperation(
        OperationName.CREATE, counts=["acknowledged_count"]
    ),
    "LearnService/CreateLesson": MemoryOperation(OperationName.CREATE, record="lesson.id"),
    "LearnService/CreateReflection": MemoryOperation(OperationName.CREATE, record="reflection.id"),
    "LearnService/CreateKnowledge": MemoryOperation(OperationName.CREATE, record="entry.id"),
    "SkillService/CreateEpisode": MemoryOperation(OperationName.CREATE, record="episode.id"),
    "SkillService/CreateSkill": MemoryOperation(OperationName.CREATE, record="skill.id"),
    # What says the same again is not stored twice, and what a memory supersedes is marked.
    "MemoryService/CreateMemory": MemoryOperation(OperationName.UPSERT, record="memory.id"),
    "MemoryService/CreateMemories": MemoryOperation(
        OperationName.UPSERT, counts=["acknowledged_count"]
    ),
    "LearnService/ImportLessons": MemoryOperation(OperationName.UPSERT, asked="lessons"),
    "SkillService/ImportEpisodes": MemoryOperation(OperationName.UPSERT, asked="episodes"),
    "MemoryService/UpdateMemory": MemoryOperation(OperationName.UPDATE, record="memory.id"),
    "LearnService/UpdateLesson": MemoryOperation(OperationName.UPDATE, record="lesson.id"),
    "LearnService/ArchiveLesson": MemoryOperation(OperationName.UPDATE, record="lesson.id"),
    "LearnService/UnarchiveLesson": MemoryOperation(OperationName.UPDATE, record="lesson.id"),
    "LearnService/UpdateReflection": MemoryOperation(OperationName.UPDATE, record="reflection.id"),
    "LearnService/UpdateKnowledge": MemoryOperation(OperationName.UPDATE, record="entry.id"),
    "SkillService/UpdateEpisode": MemoryOperation(OperationName.UPDATE, record="episode.id"),
    "SkillService/UpdateSkill": MemoryOperation(OperationName.UPDATE, record="skill.id"),
    "MemoryService/DeleteMemories": MemoryOperation(OperationName.DELETE, counts=["deleted_count"]),
    "LearnService/DeleteLesson": MemoryOperation(OperationName.DELETE, record="lesson.id"),
    "LearnService/DeleteReflection": MemoryOperation(OperationName.DELETE, record="reflection.id"),
    "LearnService/DeleteKnowledge": MemoryOperation(OperationName.DELETE, record="entry.id"),
    "SkillService/DeleteEpisode": MemoryOperation(OperationName.DELETE, record="episode.id"),
    "SkillService/DeleteSkill": MemoryOperation(OperationName.DELETE, record="skill.id"),
    "AdminService/CreateTenant": MemoryOperation(OperationName.CREATE_STORE, store="tenant_id"),
    "AdminService/DeleteTenant": MemoryOperation(OperationName.DELETE_STORE, store="tenant_id"),
}
"""By `SERVICE/RPC`. The others answer with what is known by its id, or do other things."""


def told(method: Method, respond: Respond) -> Respond:
    """Have what serves an RPC be told of, where that is an operation on memory."""
    operation = OPERATIONS.get(f"{method.service}/{method.name}")
    if operation is None:
        return respond

    def serve(request: Any, call: Call) -> Any:
        with tracing.doing(operation.name.value, {NAME: operation.name.value}) as span:
            _tell_request(span, operation, request, call)
            answer = respond(request, call)
            _tell_answer(span, operation, answer)
            return answer

    def serve_stream(requests: Any, call: Call) -> Iterator[Any]:
        with tracing.doing(operation.name.value, {NAME: operation.name.value}) as span:
            span.tell({STORE: call.tenant})
            for answer in respond(requests, call):
                _tell_answer(span, operation, answer)
                yield answer

    return serve if method.stream is None else serve_stream


def _tell_request(span: Span, operation: MemoryOperation, request: Any, call: Call) -> None:
    if not span.is_told:
        return
    said: dict[str, Value] = {STORE: _at(request, operation.store) or call.tenant}
    if operation.asked:
        said[COUNT] = len(getattr(request, operation.asked))
    if operation.query and span.tells_texts:
        said[QUERY] = getattr(request, operation.query)
    span.tell(said)


def _tell_answer(span: Span, operation: MemoryOperation, answer: Any) -> None:
    if not span.is_told:
        return
    said: dict[str, Value] = {}
    if operation.record:
        said[RECORD] = str(_at(answer, operation.record))
        said[COUNT] = 1
    found = [getattr(answer, name) for name in operation.counts]
    if found:
        said[COUNT] = sum(one if isinstance(one, int) else len(one) for one in found)
    if operation.name is OperationName.SEARCH and span.tells_texts:
        # The conventions let a record's content be any JSON: it is what the caller got.
        records = [{"content": MessageToDict(one)} for results in found for one in results]
        said[RECORDS] = json.dumps(records)
    span.tell(said)


def _at(message: Any, path: str) -> Any:
    if not path:
        return ""
    for name in path.split("."):
        message = getattr(message, name)
    return message
