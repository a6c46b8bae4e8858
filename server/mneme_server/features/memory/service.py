"""MemoryService."""

from __future__ import annotations

import time
from collections.abc import Iterator

from mneme.v1 import memory_service_pb2 as pb

from mneme_server.common.errors import InvalidArgument, MnemeError, Reason
from mneme_server.common.watchdog import Watchdog
from mneme_server.edge.grpc.batches import Batches, BatchLimits
from mneme_server.edge.grpc.call import Call
from mneme_server.edge.grpc.errors import fields
from mneme_server.edge.grpc.paging import Pages
from mneme_server.edge.grpc.updates import changes_of
from mneme_server.features.memory import messages as convert
from mneme_server.features.memory.insertion import CreateMemories
from mneme_server.features.memory.memories import DeleteMemories, Memories
from mneme_server.features.memory.model import Figures, MemoryFilter, NewMemory, Stored
from mneme_server.features.memory.search import SearchMemories


class MemoryServicer:
    """Serves `mneme.v1.MemoryService`. `dimension` is the length of vectors."""

    def __init__(
        self,
        *,
        insert: CreateMemories,
        memories: Memories,
        search: SearchMemories,
        delete: DeleteMemories,
        dimension: int,
        watchdog: Watchdog,
        stream_limits: BatchLimits | None = None,
    ) -> None:
        self._insert = insert
        self._memories = memories
        self._search = search
        self._delete = delete
        self._dimension = dimension
        self._watchdog = watchdog
        self._stream_limits = stream_limits or BatchLimits()

    def CreateMemory(self, request: pb.CreateMemoryRequest, call: Call) -> pb.CreateMemoryResponse:
        """Store a memory."""
        with fields(id="memory_id"):
            stored = self._insert.one(
                call.tenant,
                convert.new_memory(request),
                similar=request.similar_limit,
                wait_indexed=request.wait_indexed,
            )
        return convert.insertion(stored, self._dimension)

    def CreateMemories(
        self, request_iterator: Iterator[pb.CreateMemoriesRequest], call: Call
    ) -> Iterator[pb.CreateMemoriesResponse]:
        """Store a stream of memories batch by batch, and acknowledge each."""
        batches = Batches(_streamed(request_iterator), self._stream_limits)
        call.on_end(batches.end)
        progress = _StreamProgress(self._dimension)
        try:
            for batch in batches:
                answer = progress.after(self._insert.insert(call.tenant, batch))
                # Who never reads holds up who writes, without end.
                with self._watchdog.limit(self._stream_limits.idle_s, call.cancel):
                    yield answer
        except MnemeError as error:
            _locate(error, progress.acknowledged)
            error.metadata["recorded"] = str(progress.acknowledged)
            raise
        if not progress.acknowledged:
            yield progress.after(Stored())

    def GetMemory(self, request: pb.GetMemoryRequest, call: Call) -> pb.GetMemoryResponse:
        """Return a memory."""
        with fields(id="memory_id"):
            memory = self._memories.get(call.tenant, request.memory_id)
        return pb.GetMemoryResponse(memory=convert.memory(memory))

    def UpdateMemory(self, request: pb.UpdateMemoryRequest, call: Call) -> pb.UpdateMemoryResponse:
        """Change a memory."""
        changes = changes_of(request, "memory", convert.read_memory, text="-")
        with fields(id="memory.id", supersedes="memory.supersedes", user_id="memory.user_id"):
            updated = self._memories.update(
                call.tenant, request.memory.id, changes, etag=request.memory.etag
            )
        return convert.updated(updated)

    def ListMemories(self, request: pb.ListMemoriesRequest, call: Call) -> pb.ListMemoriesResponse:
        """List memories."""
        pages = Pages(request)
        filter_ = convert.memory_filter(
            request.filter,
            include_superseded=request.include_superseded,
            only_pinned=request.only_pinned,
        )
        memories, total = self._memories.page(
            call.tenant,
            filter_,
            pages.after(int, str),
            pages.size + 1,
        )
        page, token = pages.fit(memories, convert.memory, lambda last: (last.since_us, last.id))
        return pb.ListMemoriesResponse(memories=page, next_page_token=token, total_size=total)

    def SearchMemories(
        self, request: pb.SearchMemoriesRequest, call: Call
    ) -> pb.SearchMemoriesResponse:
        """Search memories by meaning."""
        found = self._search.search(
            call.tenant,
            request.query,
            convert.memory_filter(request.filter, include_superseded=request.include_superseded),
            limit=request.limit,
            min_similarity=request.min_similarity,
            rerank=request.rerank,
            shared=not request.only_own,
        )
        return convert.search_response(found)

    def DeleteMemories(
        self, request: pb.DeleteMemoriesRequest, call: Call
    ) -> pb.DeleteMemoriesResponse:
        """Delete memories, or tell which would be deleted."""
        began = time.perf_counter()
        filter_ = convert.memory_filter(request.filter, include_superseded=True)
        picks = filter_ != MemoryFilter(include_superseded=True)
        if not picks and not request.memory_ids:
            raise InvalidArgument(
                "give memory_ids, or a condition in filter; to delete all memories give"
                " filter.end_time",
                reason=Reason.MISSING_REQUIRED_FIELD,
                field="memory_ids",
            )
        deleted = self._delete.delete(
            call.tenant,
            request.memory_ids,
            filter_ if picks else None,
            dry_run=request.dry_run,
            cascade=request.cascade,
        )
        return convert.deletion(deleted, time.perf_counter() - began, dry_run=request.dry_run)


class _StreamProgress:
    """What became of a stream so far."""

    def __init__(self, dimension: int) -> None:
        self.acknowledged = 0
        self._known = 0
        self._figures = Figures()
        self._dimension = dimension

    def after(self, stored: Stored) -> pb.CreateMemoriesResponse:
        """Return the acknowledgement of one more batch."""
        self.acknowledged += len(stored.receipts)
        self._known += sum(receipt.known for receipt in stored.receipts)
        self._figures += stored.figures
        return pb.CreateMemoriesResponse(
            inserted_count=self.acknowledged - self._known,
            known_count=self._known,
            acknowledged_count=self.acknowledged,
            receipts=map(convert.receipt, stored.receipts),
            figures=convert.figures(self._figures, self._dimension),
        )


def _streamed(requests: Iterator[pb.CreateMemoriesRequest]) -> Iterator[tuple[NewMemory, int]]:
    """Yield the memories of a stream and their sizes in bytes, encoded."""
    for index, request in enumerate(requests):
        try:
            yield convert.new_memory(request.memory, "memory"), request.ByteSize()
        except InvalidArgument as error:
            error.metadata["message_index"] = str(index)
            raise


def _locate(error: MnemeError, start: int) -> None:
    """Name the message of the stream where the error names a memory of the batch.

    `start` is the place of the batch's first memory in the stream.
    """
    if error.item is not None:
        error.metadata["message_index"] = str(start + error.item)
        error.field = f"memory.{error.field}"
