"""Operations as the Python clients follow them, on a real server."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from mneme import AsyncMnemeClient, MnemeClient
from mneme.errors import CancelledError, DataLossError, NotFoundError
from mneme_server.common.progress import Step
from support.server import ADMIN_KEY, LocalServer, local_server, server_process


@pytest.fixture
def client(server: LocalServer) -> Iterator[MnemeClient]:
    with MnemeClient(server.address, api_key=ADMIN_KEY) as client:
        yield client


def test_it_comes_to_its_result_and_is_found_again_by_its_id(client: MnemeClient) -> None:
    backup = client.backup()
    made = backup.result(timeout=60)
    assert Path(made.path).stat().st_size == made.size_bytes
    assert backup.done
    again = client.operation(backup.id)
    assert again.result() == made
    assert again.operation.progress.stage == "checking"
    with pytest.raises(NotFoundError):
        client.operation("nope")


def test_a_failure_is_raised_as_the_call_would_have(client: MnemeClient) -> None:
    made = Path(client.backup().result(timeout=60).path)
    made.write_bytes(b"no database any more")
    restore = client.restore(made.name)
    with pytest.raises(DataLossError, match="damaged"):
        restore.result(timeout=60)
    assert isinstance(restore.operation.error, DataLossError)
    assert list(restore.updates()) == [restore.operation]


def test_waiting_ends_with_its_time_and_stops_nothing(tmp_path: Path) -> None:
    with (
        local_server(tmp_path / "data") as server,
        MnemeClient(server.address, api_key=ADMIN_KEY) as client,
    ):
        jobs = server.application.runtime.jobs
        taken = jobs.submit("default", _until_cancelled)
        backup = client.backup()
        with pytest.raises(TimeoutError, match="it goes on"):
            backup.wait(timeout=0.1)
        assert backup.operation.state == "queued"
        backup.cancel()
        with pytest.raises(CancelledError):
            backup.result(timeout=60)
        taken.cancel()


def _until_cancelled(step: Step) -> None:
    while True:
        step.report("waiting")


def test_waiting_goes_on_through_a_restart_of_the_server(tmp_path: Path) -> None:
    address = f"unix:{tmp_path / 'socket'}"  # A port could be another's by the next start.
    with (
        server_process(tmp_path / "data", listen=address) as first,
        MnemeClient(address, api_key=ADMIN_KEY) as client,
    ):
        backup = client.backup()
        backup.operation.raw.done = False  # As if it had not been quick.
        first.kill()
        with server_process(tmp_path / "data", listen=address):
            assert backup.result(timeout=60).size_bytes


def test_the_asynchronous_client_does_the_same(server: LocalServer) -> None:
    async def main() -> None:
        async with AsyncMnemeClient(server.address, api_key=ADMIN_KEY) as client:
            backup = await client.backup()
            made = await backup.result(timeout=60)
            again = await client.operation(backup.id)
            assert (await again.result()) == made
            assert (await again.refresh()).state == "succeeded"
            assert (await again.cancel()).state == "succeeded"

    asyncio.run(main())
