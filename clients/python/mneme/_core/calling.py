"""What making calls has in common for both clients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mneme._core.connection import Connection
from mneme._core.freshness import Freshness
from mneme._core.misspelt import tells_misspelt
from mneme._core.rpc import Rpc
from mneme._core.tracing import trace_context
from mneme.errors import ClosedError


class Caller:
    """Knows how calls are made, and keeps what makes them.

    Args:
        connection: where the server is, and how patient to be with it.
    """

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        tells_misspelt(cls)

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._calls: dict[str, Any] = {}
        self._closed = False
        self._freshness = Freshness(connection.read_own_writes)

    @property
    def consistency_token(self) -> str:
        """The state that this client has written last, for others to read at least that; empty
        before its first write. Set it to one that another client wrote to read at least that.
        """
        return self._freshness.token

    @consistency_token.setter
    def consistency_token(self, token: str) -> None:
        self._freshness.token = token

    def _options(self, timeout: float | None) -> dict[str, Any]:
        return {
            "timeout": timeout,
            "metadata": (*self._connection.metadata, *self._freshness.metadata, *trace_context()),
            "wait_for_ready": self._connection.wait_for_ready or None,
        }

    def _callable(self, rpc: Rpc[Any, Any], make: Callable[..., Any]) -> Any:
        if self._closed:
            raise ClosedError
        found = self._calls.get(rpc.path)
        if found is None:
            found = self._calls[rpc.path] = callable_of(rpc, make)
        return found


class Items:
    """What a caller sends one after another; remembers what came of it to an error.

    gRPC hides the error of a caller's own items behind a cancelled call.

    Args:
        rpc: makes requests of them.
        items: the caller's.
    """

    def __init__(self, rpc: Rpc[Any, Any], items: Any) -> None:
        self._rpc = rpc
        self._items = items
        self.error: Exception | None = None

    def raise_own_error(self) -> None:
        """Raise what the items raised, if they did."""
        if self.error is not None:
            raise self.error


def callable_of(rpc: Rpc[Any, Any], make: Callable[..., Any]) -> Any:
    """What calls the RPC, made by a method of a channel."""
    return make(
        rpc.path,
        request_serializer=rpc.request.SerializeToString,
        response_deserializer=rpc.response.FromString,
    )
