"""Translation between the messages of memories and the domain."""

from __future__ import annotations

from collections.abc import Iterator

from mneme.v1 import memory_service_pb2 as pb

from mneme_server.common.clock import DAY_US, now_us
from mneme_server.common.errors import InvalidArgument, Reason
from mneme_server.common.stored import reads
from mneme_server.edge.grpc.conversions import (
    json_of,
    stored_time,
    time_range,
)
from mneme_server.edge.grpc.paging import fitting
from mneme_server.edge.grpc.records import MessageReader, message_writer
from mneme_server.features.memory.model import (
    Deleted,
    Figures,
    FoundMemory,
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
_SETS = ("tags", "supersedes")


def _since(message: pb.Memory, path: str) -> int:
    since_us = stored_time(message, "since", path)
    if since_us is None:
        raise InvalidArgument(
            f"{path}.since is named in update_mask and must be set",
            reason=Reason.MISSING_REQUIRED_FIELD,
            field=f"{path}.since",
        )
    return since_us


memory = reads("memory")(message_writer(Memory, pb.Memory))
"""Return the message of a memory."""
read_memory = MessageReader(
    pb.Memory, Memory, sets=_SETS, made={"since_us": _since}, unread=["etag"]
)
"""Return the memory of a message."""
found_memory = message_writer(
    FoundMemory, pb.FoundMemory, spelled={"uplift": "causal_uplift"}, parts={"memory": memory}
)
"""Return the message of a memory that was found."""
# Since when it holds is known once it is stored.
_insertion = MessageReader(
    pb.CreateMemoryRequest,
    Memory,
    spelled={"id": "memory_id"},
    sets=_SETS,
    made={"since_us": lambda _message, _path: 0},
    unread=["keep_copy", "similar_limit", "wait_indexed"],
)
_one_of_many = MessageReader(
    pb.NewMemory,
    Memory,
    sets=_SETS,
    made={"since_us": lambda _message, _path: 0},
    unread=["keep_copy"],
)


def new_memory(message: pb.CreateMemoryRequest | pb.NewMemory, path: str = "") -> NewMemory:
    """Return the memory that a message stores; `path` is the message's in its request."""
    if isinstance(message, pb.CreateMemoryRequest):
        memory = _insertion(message, path)
    else:
        memory = _one_of_many(message, path)
    return NewMemory(memory, stored_time(message, "since", path), message.keep_copy)


def insertion(stored: Stored, dimension: int) -> pb.CreateMemoryResponse:
    """Return what became of one memory; `dimension` is the length of vectors."""
    (receipt,) = stored.receipts
    return pb.CreateMemoryResponse(
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


def memory_filter(
    message: pb.MemoryFilter, *, include_superseded: bool, only_pinned: bool = False
) -> MemoryFilter:
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
        only_pinned=only_pinned,
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
