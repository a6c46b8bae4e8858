"""Admission: the line that a call stands in, and room for it, both known before it is served."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from mneme_server.common.errors import Reason, ResourceExhausted
from mneme_server.common.identity import DEFAULT_TENANT
from mneme_server.edge.grpc.call import Authenticator, authorizations_in, bearer
from mneme_server.edge.grpc.methods import Method, StreamKind
from mneme_server.edge.grpc.workers import Lane, Workers

NOBODY = ""
"""The lane of calls that need no key, such as health checks."""
STRANGERS = "?"
"""The lane of keys that were not used before, or are none. No tenant has such an id."""

_RETRY_S = 1.0


class Admission:
    """Shows calls to their lanes.

    It looks only at what is in memory, because gRPC asks on the one thread that takes all calls.
    """

    def __init__(
        self, workers: Workers, authenticator: Authenticator, *, auth_required: bool
    ) -> None:
        self._workers = workers
        self._authenticator = authenticator
        self._without_key = NOBODY if auth_required else DEFAULT_TENANT
        self.refusals = ThreadPoolExecutor(1, thread_name_prefix="grpc-refuse")
        """Serves the calls that there is no room for: it takes no time, and no place."""

    def admits(self, method: Method | None, metadata: Iterable[tuple[str, str | bytes]]) -> bool:
        """Have the call that gRPC submits next stand in its lane; tell whether there is room."""
        if method is None or method.scope is None:
            return self._workers.next_is(Lane(NOBODY, streams=method is not None))
        tenant_id, whose = self._without_key, None
        for authorization in authorizations_in(metadata):  # One: more are refused.
            whose = partial(self._tenant_of, bearer(authorization))
            tenant_id = whose() or STRANGERS
        # A watch lets its thread go once it is open.
        streams = method.stream is not None and method.stream is not StreamKind.WATCH
        return self._workers.next_is(
            Lane(tenant_id, streams), whose if tenant_id == STRANGERS else None
        )

    def _tenant_of(self, secret: str) -> str:
        """Return whose key it is; nothing for one that was not used before, or is none."""
        caller = self._authenticator.known(secret)
        return "" if caller is None else caller.tenant_id


def too_many_calls() -> ResourceExhausted:
    """Return what the calls beyond a tenant's places are refused with."""
    return ResourceExhausted(
        "too many of this tenant's calls are waiting; send fewer at once, try again in a second",
        reason=Reason.TOO_MANY_CALLS,
        retry_after_s=_RETRY_S,
    )
