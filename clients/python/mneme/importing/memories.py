"""Brings in memories as `mneme memories export` writes them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from mneme.client import MnemeClient
from mneme.errors import ArgumentError
from mneme.importing.plan import exact
from mneme.importing.reading import Broken, Record, read_records
from mneme.messages import CreateMemoriesResponse, Memory, NewMemory
from mneme.plain import from_dict

OnAcknowledged = Callable[[int], object]


def import_memories(
    client: MnemeClient, file: Path, *, on_acknowledged: OnAcknowledged = lambda _count: None
) -> CreateMemoriesResponse:
    """Import a file of memories; returns the counts and figures of those that were stored.

    The whole file is read before anything is sent, so that a broken line brings nothing in. Those
    with an id are kept apart even where two say the same; importing them again changes nothing.
    What supersedes what is told at the end, when all are there.

    Args:
        client: where they go.
        file: JSON Lines, or a JSON list.
        on_acknowledged: called with how many are durable so far.

    Raises:
        ArgumentError: a record is no memory; the message names its place.
        MnemeError: the server refused one; those before its batch are in.
    """
    with file.open("rb") as stream:
        memories = [_memory(record) for record in read_records(stream, str(file))]
    totals = CreateMemoriesResponse()
    for answer in client.create_memories(_apart(memories)):
        on_acknowledged(answer.acknowledged_count)
        totals = answer.raw
    superseding = [memory for memory in memories if memory.id and memory.supersedes]
    for _ in client.create_memories(superseding):
        pass
    return totals


def _apart(memories: Sequence[NewMemory]) -> Iterator[NewMemory]:
    """The memories, those with an id without what they supersede, which may come after them."""
    for memory in memories:
        if memory.id and memory.supersedes:
            alone = NewMemory()
            alone.CopyFrom(memory)
            alone.ClearField("supersedes")
            yield alone
        else:
            yield memory


def _memory(record: Record | Broken) -> NewMemory:
    if isinstance(record, Broken):
        raise ArgumentError(f"{record.place}: {record.reason}")
    try:
        read = from_dict(exact(record.value), Memory())
    except ArgumentError as error:
        raise ArgumentError(f"{record.place}: no memory: {error}") from error
    if not read.text:
        raise ArgumentError(f"{record.place}: no memory: it has no text")
    return NewMemory(
        id=read.id,
        text=read.text,
        user_id=read.user_id,
        agent_id=read.agent_id,
        project=read.project,
        tags=read.tags,
        metadata=read.metadata if read.HasField("metadata") else None,
        importance=read.importance,
        since=read.since if read.HasField("since") else None,
        supersedes=read.supersedes,
        pinned=read.pinned,
        keep_copy=bool(read.id),
    )
