"""Translation between the messages of memories and the domain."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from operator import attrgetter
from typing import Any, cast

from mneme.v1 import common_pb2
from mneme.v1 import memory_service_pb2 as pb

from mneme_server.common.canonical import canonical_json
from mneme_server.common.clock import DAY_US, now_us
from mneme_server.common.errors import InvalidArgument, Reason
from mneme_server.common.stored import reads
from mneme_server.edge.grpc.conversions import (
    json_of,
    stored_time,
    struct_of,
    time_range,
    to_timestamp,
)
from mneme_server.edge.grpc.paging import fitting
from mneme_server.features.memory.model import (
    Deleted,
    Figures,
    FoundMemory,
    Importance,
    Memory,
    MemoryFilter,
    MemoryReceipt,
    NewMemory,
    Stored,
    Updated,
)
from mneme_server.features.memory.search import FoundMemories
from mneme_server.features.memory.values import ValueRange, equal, leaves, less, more

_MS = 1_000
_MOST_CONDITIONS = 64
_MOST_IDS = 10_000
_NAMES = {"metadata_json": "metadata", "since_us": "since"}
"""What the message calls fields of the domain that differ."""


def new_memory(message: pb.InsertMemoryRequest | pb.NewMemory, path: str = "") -> NewMemory:
    """Return the memory that a message stores; `path` is the message's in its request."""
    memory_id = message.memory_id if isinstance(message, pb.InsertMemoryRequest) else message.id
    memory = Memory(
        id=memory_id,
        text=message.text,
        user_id=message.user_id,
        agent_id=message.agent_id,
        project=message.project,
        tags=tuple(sorted(set(message.tags))),
        metadata_json=canonical_json(json_of(message, "metadata", path)),
        importance=Importance(message.importance),
        supersedes=tuple(sorted(set(message.supersedes))),
    )
    return NewMemory(memory, stored_time(message, "since", path), message.keep_copy)


@reads("memory")
def memory(stored: Memory) -> pb.Memory:
    """Return the message of a memory."""
    return pb.Memory(
        id=stored.id,
        text=stored.text,
        tags=stored.tags,
        metadata=struct_of(stored.metadata_json),
        user_id=stored.user_id,
        agent_id=stored.agent_id,
        project=stored.project,
        importance=cast("common_pb2.Importance", stored.importance),
        since=to_timestamp(stored.since_us),
        supersedes=stored.supersedes,
        superseded_by=stored.superseded_by,
        until=None if stored.until_us is None else to_timestamp(stored.until_us),
        created_at=to_timestamp(stored.created_us),
        updated_at=to_timestamp(stored.updated_us),
        etag=stored.etag,
    )


def found_memory(found: FoundMemory) -> pb.FoundMemory:
    """Return the message of a memory that was found."""
    return pb.FoundMemory(
        memory=memory(found.memory),
        similarity=found.similarity,
        causal_uplift=found.uplift,
        score=found.score,
    )


def insertion(stored: Stored, dimension: int) -> pb.InsertMemoryResponse:
    """Return what became of one memory; `dimension` is the length of vectors."""
    (receipt,) = stored.receipts
    return pb.InsertMemoryResponse(
        memory=memory(receipt.memory),
        already_known=receipt.known,
        differing=[_NAMES.get(name, name) for name in receipt.differing if name != "text"],
        similar=fitting(map(found_memory, stored.similar or ())),
        similar_unknown=stored.similar is None,
        superseded=fitting(map(memory, stored.superseded)),
        figures=figures(stored.figures, dimension),
    )


def updated(given: Updated) -> pb.UpdateMemoryResponse:
    """Return the answer to a change."""
    return pb.UpdateMemoryResponse(
        memory=memory(given.memory),
        already_known=bool(given.known_id),
        known_memory_id=given.known_id,
    )


def receipt(given: MemoryReceipt) -> pb.MemoryReceipt:
    """Return the message of a receipt."""
    return pb.MemoryReceipt(memory_id=given.memory.id, already_known=given.known)


def figures(given: Figures, dimension: int) -> pb.InsertionFigures:
    """Return the message of what storing took."""
    return pb.InsertionFigures(
        cache_hits=given.cache_hits,
        cache_misses=given.cache_misses,
        queued_count=given.queued,
        embedding_ms=given.embedding_s * _MS,
        writing_ms=given.writing_s * _MS,
        vectors_per_second=given.vectors_per_second,
        embedding_dimension=dimension,
    )


def search_response(found: FoundMemories) -> pb.SearchMemoriesResponse:
    """Return the message of what a search found."""
    return pb.SearchMemoriesResponse(
        results=fitting(map(found_memory, found.results)),
        total_matches=found.matches,
        matches_capped=found.capped,
        searched_count=found.searched,
        pending_count=found.pending,
        index_kind=f"VECTOR_INDEX_KIND_{found.index_mode.upper()}",
        embedding_ms=found.embedding_s * _MS,
        search_ms=found.search_s * _MS,
        rerank_ms=found.rerank_s * _MS,
        partial=found.partial,
    )


def deletion(deleted: Deleted, took_s: float, *, dry_run: bool) -> pb.DeleteMemoriesResponse:
    """Return the message of what was deleted."""
    episodes, skills, edges = (
        deleted.resting.get(name, ()) for name in ("episodes", "skills", "causal_edges")
    )
    return pb.DeleteMemoriesResponse(
        deleted_count=len(deleted.memory_ids),
        vector_count=deleted.vectors,
        memory_ids=deleted.memory_ids[:_MOST_IDS],
        restored_ids=deleted.restored[:_MOST_IDS],
        took_ms=took_s * _MS,
        dry_run=dry_run,
        episode_count=len(episodes),
        episode_ids=episodes[:_MOST_IDS],
        skill_count=len(skills),
        skill_ids=skills[:_MOST_IDS],
        causal_edge_count=len(edges),
        causal_edge_ids=edges[:_MOST_IDS],
    )


def memory_filter(message: pb.MemoryFilter, *, include_superseded: bool) -> MemoryFilter:
    """Return the filter of a message that a request has as `filter`.

    Raises:
        InvalidArgument: a condition compares with no value, or with more than one, or there are too
            many; or times contradict each other.
    """
    start_us, end_us = time_range(message)
    if message.min_age_days:
        latest = now_us() - int(message.min_age_days * DAY_US) + 1
        end_us = latest if end_us is None else min(end_us, latest)
    values = list(dict.fromkeys(_spans(message)))
    if len(values) > _MOST_CONDITIONS:
        raise InvalidArgument(
            f"filter names {len(values)} values of metadata, at most {_MOST_CONDITIONS} are"
            " allowed",
            reason=Reason.OUT_OF_RANGE,
            field="filter.metadata",
        )
    return MemoryFilter(
        user_id=message.user_id,
        agent_id=message.agent_id,
        project=message.project,
        tags=tuple(sorted(set(message.tags))),
        any_tags=tuple(sorted(set(message.any_tags))),
        values=tuple(values),
        start_us=start_us,
        end_us=end_us,
        include_superseded=include_superseded,
    )


def _spans(message: pb.MemoryFilter) -> Iterator[ValueRange]:
    for key, spelling in leaves(json_of(message, "metadata", "filter")):
        yield ValueRange(key, spelling, spelling)
    for place, condition in enumerate(message.where):
        yield _span(condition, f"filter.where[{place}]")


def _span(condition: pb.MetadataCondition, path: str) -> ValueRange:
    given = [name for name in ("text", "number", "truth") if condition.HasField(name)]
    if len(given) != 1:
        raise InvalidArgument(
            f"{path} needs exactly one of text, number and truth to compare with",
            reason=Reason.INVALID_FILTER if given else Reason.MISSING_REQUIRED_FIELD,
            field=path,
        )
    value = getattr(condition, given[0])
    comparison = pb.MetadataComparison.Name(condition.comparison)
    kind = comparison.removeprefix("METADATA_COMPARISON_")
    if kind == "EQUAL":
        return equal(condition.key, value)
    if given == ["truth"]:
        raise InvalidArgument(
            f"{path}: a truth value can only be EQUAL",
            reason=Reason.INVALID_FILTER,
            field=f"{path}.comparison",
        )
    if kind in ("LESS", "AT_MOST"):
        return less(condition.key, value, same=kind == "AT_MOST")
    return more(condition.key, value, same=kind == "AT_LEAST")


def _since(message: pb.Memory) -> int:
    since_us = stored_time(message, "since", "memory")
    if since_us is None:
        raise InvalidArgument(
            "memory.since is named in update_mask and must be set",
            reason=Reason.MISSING_REQUIRED_FIELD,
            field="memory.since",
        )
    return since_us


# Fields that the domain has under another name or in another form than the message.
_CONVERTED: dict[str, tuple[str, Callable[[pb.Memory], Any]]] = {
    "importance": ("importance", lambda message: Importance(message.importance)),
    "tags": ("tags", lambda message: tuple(sorted(set(message.tags)))),
    "supersedes": ("supersedes", lambda message: tuple(sorted(set(message.supersedes)))),
    "metadata": (
        "metadata_json",
        lambda message: canonical_json(json_of(message, "metadata", "memory")),
    ),
    "since": ("since_us", _since),
}


def memory_changes(message: pb.Memory, named: Iterable[str]) -> dict[str, Any]:
    """Return the new values of the named fields, by domain field.

    They must have passed `named_fields` and their rules.
    """
    changes: dict[str, Any] = {}
    for path in named:
        name, read = _CONVERTED.get(path, (path, attrgetter(path)))
        changes[name] = read(message)
    return changes


def changed_fields_only(given: pb.Memory, named: Iterable[str]) -> pb.Memory:
    """Return a memory to validate: id, etag and the named fields as given, harmless others."""
    message = pb.Memory(id=given.id, etag=given.etag, text="unchanged")
    for path in named:
        message.ClearField(path)
        value = getattr(given, path)
        if path in ("tags", "supersedes"):
            getattr(message, path).extend(value)
        elif path in ("metadata", "since"):
            if given.HasField(path):
                getattr(message, path).CopyFrom(value)
        else:
            setattr(message, path, value)
    return message
