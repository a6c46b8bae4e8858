"""The calls of a client."""

# Made of ../_async/caller.py by scripts/unasync.py. Do not edit.

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import grpc
from google.protobuf.message import Message

from mneme._core._sync.long_running import LongRunning
from mneme._core.calling import Items
from mneme._core.resuming import Resumption, patience_of
from mneme._core.retry import Attempts
from mneme._core.rpc import AnswerT, ItemT, RequestT, Rpc
from mneme._core.sync import Stream, Transport, each


class SyncCaller(Transport):
    """The four kinds of calls, on a channel."""

    def _start(
        self, rpc: Rpc[RequestT, AnswerT], fields: Mapping[str, Any], timeout: float | None
    ) -> LongRunning[Any, Any]:
        """Start an operation."""
        answer: Any = self._unary(rpc, fields, timeout)
        return LongRunning(self, answer.operation)

    def _unary(
        self, rpc: Rpc[RequestT, AnswerT], fields: Mapping[str, Any], timeout: float | None
    ) -> AnswerT:
        request = rpc.build(fields)
        limit = self._connection.timeout if timeout is None else timeout
        attempts = Attempts(rpc, self._connection.retries, limit)
        while True:
            call = self._callable(rpc, self._channel.unary_unary)
            asked = self._freshness.token
            try:
                response, trailing = self._answer(call, request, self._options(attempts.time_left))
            except grpc.RpcError as failure:
                error = self._error_of(failure)
                pause = attempts.pause_after(error)
                if pause is None:
                    raise error from failure
            else:
                self._freshness.note(trailing, asked)
                return rpc.answer(response)
            time.sleep(pause)

    def _client_stream(
        self, rpc: Rpc[RequestT, AnswerT], items: Iterable[Any], timeout: float | None
    ) -> AnswerT:
        call = self._callable(rpc, self._channel.stream_unary)
        source, asked = Source(rpc, each(items)), self._freshness.token
        try:
            response, trailing = self._answer_to_all(
                call, source.requests(), self._options(timeout)
            )
        except grpc.RpcError as failure:
            source.raise_own_error()
            raise self._error_of(failure) from failure
        self._freshness.note(trailing, asked)
        return rpc.answer(response)

    def _server_stream(
        self,
        rpc: Rpc[RequestT, AnswerT],
        fields: Mapping[str, Any],
        timeout: float | None,
        *,
        resumes: bool = True,
    ) -> Stream[AnswerT]:
        connection = self._connection
        patience = patience_of(connection.retries, connection.timeout) if resumes else 0.0
        attempts = Attempts(rpc, connection.retries, timeout)
        resumption = Resumption(rpc, fields, attempts, patience)
        return self._stream(
            "unary_stream", rpc, resumption.next_request, timeout, resumption=resumption
        )

    def _bidirectional(
        self, rpc: Rpc[RequestT, AnswerT], items: Iterable[Any], timeout: float | None
    ) -> Stream[AnswerT]:
        source = Source(rpc, each(items))
        return self._stream("stream_stream", rpc, source.requests, timeout, items=source)

    def _pages(
        self,
        rpc: Rpc[RequestT, AnswerT],
        fields: Mapping[str, Any],
        items_of: Callable[[AnswerT], Iterable[ItemT]],
        timeout: float | None,
    ) -> Iterator[ItemT]:
        token = ""
        while True:
            page = self._unary(rpc, {**fields, "page_token": token}, timeout)
            for item in items_of(page):
                yield item
            token = getattr(page, "next_page_token", "")
            if not token:
                return


class Source(Items):
    """The requests of a stream, made of the caller's items as they come."""

    def requests(self) -> Iterator[Message]:
        """Yield the requests."""
        try:
            for item in self._items:
                yield self._rpc.build_item(item)
        except Exception as error:
            self.error = error
            raise
