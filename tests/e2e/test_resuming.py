"""Events that are streamed survive broken connections and killed servers: none lost, none twice."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
from mneme import AsyncMnemeClient, MnemeClient, errors
from mneme.types import NewEventFields, Recorded
from support.server import ADMIN_KEY, ServerProcess, local_server

EVENTS = 1_500
CUTS = (100, 700, 1_200)


class Relay:
    """Passes connections on, until they are cut."""

    def __init__(self, target: str) -> None:
        host, _, port = target.rpartition(":")
        self._target = (host, int(port))
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._open: list[socket.socket] = []
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        """Break every connection."""
        while self._open:
            with suppress(OSError):
                self._open.pop().shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._listener.close()
        self.cut()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(self._target)
                self._open += [client, server]
                for source, sink in ((client, server), (server, client)):
                    threading.Thread(target=_pass, args=(source, sink), daemon=True).start()


def _pass(source: socket.socket, sink: socket.socket) -> None:
    with suppress(OSError):
        while some := source.recv(65_536):
            sink.sendall(some)
    with suppress(OSError):
        sink.shutdown(socket.SHUT_RDWR)


def numbered(cut: Any = None) -> Iterator[NewEventFields]:
    for n in range(EVENTS):
        if cut is not None and n in CUTS:
            cut()
        yield {"session_id": "s", "event_type": "on_step", "text": "", "name": f"{n}"}


def names_in(client: MnemeClient) -> list[str]:
    return [event.name for event in client.iter_events(session_id="s", page_size=1000)]


@pytest.fixture
def relay(tmp_path: Path) -> Iterator[Relay]:
    with (
        local_server(tmp_path / "data", auth="disabled") as server,
        closing(Relay(server.address)) as relay,
    ):
        yield relay


def test_an_upload_goes_on_after_broken_connections(relay: Relay) -> None:
    counts: list[Recorded] = []
    with MnemeClient(relay.address) as client:
        recorded = client.record_all(numbered(relay.cut), on_acknowledged=counts.append)
        assert recorded.acknowledged_count == EVENTS
        assert recorded.recorded_count + recorded.duplicate_count == EVENTS
        assert sorted(names_in(client), key=int) == [str(n) for n in range(EVENTS)]
        assert client.verify_events(session_id="s").valid
    assert [c.acknowledged_count for c in counts] == sorted(c.acknowledged_count for c in counts)


def test_an_upload_of_the_asyncio_client_goes_on_after_broken_connections(relay: Relay) -> None:
    async def numbered_later() -> AsyncIterator[NewEventFields]:
        for event in numbered(relay.cut):
            yield event
            await asyncio.sleep(0)

    async def main() -> Recorded:
        async with AsyncMnemeClient(relay.address) as client:
            return await client.record_all(numbered_later())

    recorded = asyncio.run(asyncio.wait_for(main(), 120))
    assert recorded.acknowledged_count == EVENTS
    with MnemeClient(relay.address) as client:
        assert sorted(names_in(client), key=int) == [str(n) for n in range(EVENTS)]


def test_an_upload_goes_on_when_its_server_is_killed_and_started_again(tmp_path: Path) -> None:
    listen = f"unix:{tmp_path / 'socket'}"  # A port could be another's by the next start.
    servers = [ServerProcess(tmp_path / "data", listen=listen)]
    acknowledged: list[int] = []

    def restart() -> None:
        servers[-1].kill()
        servers.append(ServerProcess(tmp_path / "data", listen=listen))

    try:
        with MnemeClient(listen, api_key=ADMIN_KEY) as client:
            key = client.create_api_key("default", "uploader", scopes=["read", "write"]).secret
        patience_s = 300.0  # As long as a start may take.
        with MnemeClient(listen, api_key=key, timeout=patience_s) as client:
            recorded = client.record_all(
                numbered(restart),
                on_acknowledged=lambda c: acknowledged.append(c.acknowledged_count),
            )
            assert recorded.acknowledged_count == EVENTS
            names = names_in(client)
            assert sorted(names, key=int) == [str(n) for n in range(EVENTS)]
            assert client.verify_events(session_id="s").valid
    finally:
        assert servers[-1].stop() == 0


def test_what_the_server_refuses_is_not_sent_again(relay: Relay) -> None:
    taken: NewEventFields = {"id": "e", "session_id": "s", "event_type": "message", "text": "one"}
    with MnemeClient(relay.address) as client:
        client.record_events([taken])
        with pytest.raises(errors.AlreadyExistsError):
            client.record_all([taken, {**taken, "text": "other"}])


def test_an_error_of_the_caller_s_own_events_reaches_the_caller(relay: Relay) -> None:
    def broken() -> Iterator[NewEventFields]:
        yield {"session_id": "s", "event_type": "message", "text": "one"}
        raise OSError("the disk is gone")

    with MnemeClient(relay.address) as client, pytest.raises(OSError, match="the disk is gone"):
        client.record_all(broken())


def test_an_upload_of_nothing_records_nothing(relay: Relay) -> None:
    with MnemeClient(relay.address) as client:
        assert client.record_all([]) == Recorded()
