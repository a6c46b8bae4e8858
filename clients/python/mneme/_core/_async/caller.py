"""The calls of a client."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from typing import Any

import grpc
from google.protobuf.message import Message

from mneme._core._async.long_running import AsyncLongRunning
from mneme._core.aio import AsyncStream, AsyncTransport, each
from mneme._core.calling import Items
from mneme._core.iterables import AnyIterable
from mneme._core.resuming import Resumption, patience_of
from mneme._core.retry import Attempts
from mneme._core.rpc import AnswerT, ItemT, RequestT, Rpc


class AsyncCaller(AsyncTransport):
    """The four kinds of calls, on a channel."""

    async def _start(
        self, rpc: Rpc[RequestT, AnswerT], fields: Mapping[str, Any], timeout: float | None
    ) -> AsyncLongRunning[Any, Any]:
        """Start an operation."""
        answer: Any = await self._unary(rpc, fields, timeout)
        return AsyncLongRunning(self, answer.operation)

    async def _unary(
        self, rpc: Rpc[RequestT, AnswerT], fields: Mapping[str, Any], timeout: float | None
    ) -> AnswerT:
        request = rpc.build(fields)
        limit = self._connection.timeout if timeout is None else timeout
        attempts = Attempts(rpc, self._connection.retries, limit)
        while True:
            call = self._callable(rpc, self._channel.unary_unary)
            asked = self._freshness.token
            try:
                response, trailing = await self._answer(
                    call, request, self._options(attempts.time_left)
                )
            except grpc.RpcError as failure:
                error = self._error_of(failure)
                pause = attempts.pause_after(error)
                if pause is None:
                    raise error from failure
            else:
                self._freshness.note(trailing, asked)
                return rpc.answer(response)
            await asyncio.sleep(pause)

    async def _client_stream(
        self, rpc: Rpc[RequestT, AnswerT], items: AnyIterable[Any], timeout: float | None
    ) -> AnswerT:
        call = self._callable(rpc, self._channel.stream_unary)
        source, asked = AsyncSource(rpc, each(items)), self._freshness.token
        try:
            response, trailing = await self._answer_to_all(
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
    ) -> AsyncStream[AnswerT]:
        connection = self._connection
        patience = patience_of(connection.retries, connection.timeout) if resumes else 0.0
        attempts = Attempts(rpc, connection.retries, timeout)
        resumption = Resumption(rpc, fields, attempts, patience)
        return self._stream(
            "unary_stream", rpc, resumption.next_request, timeout, resumption=resumption
        )

    def _bidirectional(
        self, rpc: Rpc[RequestT, AnswerT], items: AnyIterable[Any], timeout: float | None
    ) -> AsyncStream[AnswerT]:
        source = AsyncSource(rpc, each(items))
        return self._stream("stream_stream", rpc, source.requests, timeout, items=source)

    async def _pages(
        self,
        rpc: Rpc[RequestT, AnswerT],
        fields: Mapping[str, Any],
        items_of: Callable[[AnswerT], Iterable[ItemT]],
        timeout: float | None,
    ) -> AsyncIterator[ItemT]:
        token = ""
        while True:
            page = await self._unary(rpc, {**fields, "page_token": token}, timeout)
            for item in items_of(page):
                yield item
            token = getattr(page, "next_page_token", "")
            if not token:
                return


class AsyncSource(Items):
    """The requests of a stream, made of the caller's items as they come."""

    async def requests(self) -> AsyncIterator[Message]:
        """Yield the requests."""
        try:
            async for item in self._items:
                yield self._rpc.build_item(item)
        except Exception as error:
            self.error = error
            raise
