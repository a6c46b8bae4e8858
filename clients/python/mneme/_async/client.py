"""The client: a connection to a server."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from functools import cached_property
from types import TracebackType
from typing import Any

from mneme._async.attempts import AsyncAttempt
from mneme._async.choosing import AsyncChooser
from mneme._async.recording import AsyncRecordsAll
from mneme._attempt import PAST_LESSONS
from mneme._choice import ALGORITHM
from mneme._core._async.long_running import AsyncLongRunning
from mneme._core.connection import TlsConfig, connection_of
from mneme._generated.answers import Operation
from mneme._generated.services import AsyncServices, AsyncStubs


class AsyncMnemeClient(AsyncServices, AsyncRecordsAll):
    """A connection to a Mneme server, with a method for every RPC.

        async with AsyncMnemeClient() as client:
            await client.record_events([
                {"session_id": "s1", "event_type": "tool_error", "name": "pytest", "error": "…"},
            ])
            answer = await client.recall("why did the tests fail", scopes=["event"])
            for result in answer:
                print(result.score, result.text)

    Arguments are the request's fields as plain Python values: datetimes with a time zone,
    timedeltas, dicts for JSON and for nested messages, names for enums. Answers hold the same
    kinds of values (`mneme.types`); `raw` is the message behind one, and `mneme.to_dict` makes
    JSON of it. Lists come by page
    (`list_sessions`) or as a walk over all pages (`iter_sessions`). Failures are the errors of
    `mneme.errors`.

    Calls that have the effect of one when they are sent twice are retried while the server
    cannot be reached, e.g. because it restarts, until their time is over; ids that the caller
    leaves open are made here for that purpose. What a server refuses with a delay (a rate limit, a
    full queue) is sent again after that delay when the call's time allows. However many calls are
    made at once, those beyond what the server takes on one connection wait for their turn.

    In synchronous code one client may be used by many threads at once; one for asyncio belongs to
    the event loop in which it is first used. Neither survives `os.fork`: make it in the child.

    Args:
        address: HOST, HOST:PORT, `unix:PATH`, or with `grpcs://` for TLS; default
            MNEME_ADDRESS, else 127.0.0.1:50051.
        api_key: the secret "mn_…"; default MNEME_API_KEY.
        tls: True checks the server against the system's certificates, a path against that file,
            a `TlsConfig` says more; default MNEME_TLS (1, or a path), else plaintext.
        insecure: allow an API key over plaintext to another machine; default MNEME_INSECURE.
        timeout: seconds for a call, retries included; None: no limit. Streams have no limit
            unless their call gives one.
        retries: how often a call may be sent again; None: as often as its timeout allows, or for
            half a minute where it has none.
        wait_for_ready: let calls wait for a server that is not up yet, until their timeout.
        read_own_writes: have what is read show what this client wrote before, whichever server
            answers: a call carries the newest `consistency_token`.
        tenant: the tenant that the key opens, where a balancer spreads calls over several servers:
            it is sent as `x-mneme-tenant`, so that the tenant's calls meet the same one. That makes
            them faster, and nothing else: which tenant answers, the key says alone. Default
            MNEME_TENANT.
        options: further gRPC channel options.

    Raises:
        ConfigurationError: the settings cannot be used.
    """

    def __init__(
        self,
        address: str | None = None,
        *,
        api_key: str | None = None,
        tls: bool | str | os.PathLike[str] | TlsConfig | None = None,
        insecure: bool | None = None,
        timeout: float | None = 30.0,
        retries: int | None = None,
        wait_for_ready: bool = False,
        read_own_writes: bool = True,
        tenant: str | None = None,
        options: Iterable[tuple[str, Any]] = (),
    ) -> None:
        super().__init__(
            connection_of(
                address=address,
                api_key=api_key,
                tls=tls,
                insecure=insecure,
                timeout=timeout,
                retries=retries,
                wait_for_ready=wait_for_ready,
                read_own_writes=read_own_writes,
                tenant=tenant,
                options=options,
            )
        )

    def attempt(
        self,
        task: str,
        *,
        session_id: str,
        project: str = "",
        agent_id: str = "",
        tags: Iterable[str] | None = None,
        enabled: bool = True,
        auto_reflect: bool = True,
        include_past_lessons: int = PAST_LESSONS,
    ) -> AsyncAttempt:
        """An attempt at a task, which loads past lessons and stores a reflection.

        Args:
            task: what is attempted, in words.
            session_id: the session of the attempt.
            project: the project; past lessons are those of the same project.
            agent_id: the agent.
            tags: labels of the reflection; None: those that the task's words give.
            enabled: whether anything is loaded and stored at all.
            auto_reflect: whether a reflection is stored after the work.
            include_past_lessons: how many to load; 0: none.
        """
        return AsyncAttempt(
            self,
            task,
            session_id=session_id,
            project=project,
            agent_id=agent_id,
            tags=None if tags is None else tuple(tags),
            enabled=enabled,
            auto_reflect=auto_reflect,
            include_past_lessons=include_past_lessons,
        )

    def chooser(
        self,
        session_id: str,
        *,
        algorithm: str = ALGORITHM,
        config: Mapping[str, Any] | None = None,
        success: float = 1.0,
        failure: float = 0.0,
        explore: bool = True,
    ) -> AsyncChooser:
        """Something that chooses among options by what worked, and learns what works.

        Args:
            session_id: the learning session; started when it is first needed, and gone on with if
                it exists.
            algorithm: what learns; `thompson` and `linucb` learn from tens of rewards.
            config: the algorithm's keys; those left out have their defaults.
            success: the reward of a function that `run` called and that returned.
            failure: the reward of work that raised an exception.
            explore: whether to try options to learn from; if not, the best so far is chosen.
        """
        return AsyncChooser(
            self,
            session_id,
            algorithm=algorithm,
            config=config,
            success=success,
            failure=failure,
            explore=explore,
        )

    async def operation(
        self, operation_id: str, *, tenant_id: str | None = None
    ) -> AsyncLongRunning[Operation, Any]:
        """An operation that was started before, perhaps by another process.

        Args:
            operation_id: its id.
            tenant_id: the tenant whose it is; None: the administrator's, or the caller's.

        Raises:
            NotFoundError: there is none, or it ended more than a week ago.
        """
        found = await self.get_operation(operation_id, tenant_id=tenant_id)
        return AsyncLongRunning(self, found.operation, tenant_id)

    @property
    def address(self) -> str:
        """Where the server is."""
        return self._connection.target

    @property
    def metadata(self) -> tuple[tuple[str, str], ...]:
        """What every call must carry: the API key. For calls through `raw`."""
        return self._connection.metadata

    @cached_property
    def raw(self) -> AsyncStubs:
        """The generated stubs: `client.raw.recall.Recall(request, metadata=client.metadata)`.

        Their calls are not sent again.
        """
        return AsyncStubs(self._channel)

    async def __aenter__(self) -> AsyncMnemeClient:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()
