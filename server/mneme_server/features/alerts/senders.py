"""Threads that send: no tenant's messages wait for another's."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, NamedTuple, TypeVar

from mneme_server.common.fairness import FairQueue

PER_TENANT = 4
"""Messages of a tenant that are sent at once."""
_MOST = 256
"""Messages that are sent at once over all tenants. Where as many are slow, tenants take turns."""

T = TypeVar("T")


class _Waiting(NamedTuple):
    tenant_id: str
    work: Callable[[], Any]
    future: Future[Any]


class Senders:
    """Threads that wait for receivers, so many for each tenant. Thread-safe.

    A receiver may take as long as an attempt may last. As each tenant has threads of its own, the
    slow ones of one hold up nobody else's messages.
    """

    def __init__(self, per_tenant: int = PER_TENANT, most: int = _MOST) -> None:
        self._per_tenant = per_tenant
        self._most = most
        self._lock = threading.Lock()  # Guards what follows.
        self._waiting: FairQueue[_Waiting] = FairQueue()
        self._running: Counter[str] = Counter()
        self._threads = 0
        self._closed = False

    def room(self, tenant_id: str) -> int:
        """Return how many more messages of a tenant would be sent at once."""
        with self._lock:
            taken = self._running[tenant_id] + self._waiting.waiting_of(tenant_id)
        return max(0, self._per_tenant - taken)

    def submit(self, tenant_id: str, work: Callable[[], T]) -> Future[T]:
        """Have work done that sends a tenant's message; its future is cancelled if the server stops
        before."""
        future: Future[T] = Future()
        with self._lock:
            if self._closed:
                future.cancel()
                return future
            self._waiting.push(tenant_id, _Waiting(tenant_id, work, future))
            started = self._next() if self._threads < self._most else None
            if started is None:
                return future
            self._threads += 1
        threading.Thread(
            target=self._run, args=(started,), name="alert-sending", daemon=True
        ).start()
        return future

    def close(self) -> None:
        """Send nothing more; what is being sent ends by itself."""
        with self._lock:
            self._closed = True
            while (one := self._waiting.pop()) is not None:
                one.future.cancel()

    def _next(self) -> _Waiting | None:
        one = self._waiting.pop(lambda one: self._running[one.tenant_id] < self._per_tenant)
        if one is not None:
            self._running[one.tenant_id] += 1
        return one

    def _run(self, one: _Waiting) -> None:
        at_work: _Waiting | None = one
        while at_work is not None:
            result, error = None, None
            try:
                result = at_work.work()
            except BaseException as raised:  # Whatever it is, it is told to who waits for it.
                error = raised
            with self._lock:
                self._running[at_work.tenant_id] -= 1
                if not self._running[at_work.tenant_id]:
                    del self._running[at_work.tenant_id]
                done, at_work = at_work, self._next()
                if at_work is None:
                    self._threads -= 1
            if error is None:
                done.future.set_result(result)
            else:
                done.future.set_exception(error)
