"""Tenants that are moved to another database while they are served and written."""

from __future__ import annotations

import signal
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import pytest
from mneme import MnemeClient, errors
from mneme.v1 import admin_service_pb2 as admin_pb
from mneme_server.common.errors import Unavailable
from mneme_server.engine.cluster.moves import LiveMove
from mneme_server.engine.store.tenant_copy import copy_rows
from support.postgres import PostgresServer
from support.server import (
    ADMIN_KEY,
    ServerProcess,
    local_server,
    run_command,
    server_process,
)

PATIENCE_S = 120.0
EVENTS = 300


def database(url: str) -> str:
    return url.partition("@/")[2].partition("?")[0]


def rows_in(postgres: PostgresServer, url: str, table: str = "events") -> int:
    """Return how many rows of all tenants a database has."""
    there = postgres.execute("SELECT to_regclass('mneme.events')", database=database(url))
    if there == [(None,)]:
        return 0
    (row,) = postgres.execute(f"SELECT count(*) FROM mneme.{table}", database=database(url))
    return int(row[0])


def filled(address: str, tenant_id: str = "acme") -> str:
    """Make a tenant that keeps something; return its key."""
    with MnemeClient(address, api_key=ADMIN_KEY) as admin:
        admin.create_tenant(tenant_id)
        key = admin.create_api_key(tenant_id=tenant_id, name="its own").secret
    with MnemeClient(address, api_key=key) as client:
        client.create_lesson(title="Retry after a timeout", content="It mostly succeeds.")
        for first in range(0, EVENTS, 100):
            client.record_events([_event(n) for n in range(first, first + 100)])
        client.record_events([_event(EVENTS)], wait_indexed=True)
    return key


def _event(number: int) -> dict[str, Any]:
    return {
        "id": f"e{number}", "session_id": f"s{number % 7}", "event_type": "message",
        "text": f"the heron number {number} eats fish",
    }  # fmt: skip


def answers(client: MnemeClient) -> dict[str, Any]:
    """What a tenant says of all that must stay what it is."""
    verified = client.verify_events()
    checkpoint = client.get_checkpoint()
    return {
        "events": {one.id: (one.hash, one.sequence) for one in client.iter_events()},
        "valid": verified.valid,
        "log": (checkpoint.origin, checkpoint.size, checkpoint.root_hash),
        "lessons": [one.title for one in client.iter_lessons()],
        "heron": [one.source_id for one in client.recall("the heron number 7").results],
    }


def move(address: str, to: str, tenant_id: str = "acme") -> Any:
    """Move a tenant and wait for that."""
    with MnemeClient(address, api_key=ADMIN_KEY, retries=0) as admin:
        return admin.move_tenant(tenant_id=tenant_id, database=to).result(PATIENCE_S)


class Writer:
    """Records events one after the other, each until it is acknowledged, until it is told to
    stop."""

    def __init__(self, address: str, key: str) -> None:
        self._client = MnemeClient(address, api_key=key, timeout=PATIENCE_S, retries=4)
        self.acknowledged: list[str] = []
        self.failures: list[BaseException] = []
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._write)

    def __enter__(self) -> Writer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._thread.join(PATIENCE_S)
        self._client.close()

    def _write(self) -> None:
        while not self._stopped.is_set():
            name = f"w{len(self.acknowledged)}"
            given = {"id": name, "session_id": "w", "event_type": "message", "text": f"an {name}"}
            try:
                self._client.record_events([given])
            except errors.UnavailableError:
                continue  # Refused for longer than the client repeats: the same one again.
            except BaseException as error:
                self.failures.append(error)
                return
            self.acknowledged.append(name)
            time.sleep(0.02)  # Others have a turn.

    def wait(self, more: int) -> None:
        """Wait until so many more have been acknowledged."""
        wanted, until = len(self.acknowledged) + more, time.monotonic() + PATIENCE_S
        while len(self.acknowledged) < wanted and not self.failures:
            assert time.monotonic() < until
            time.sleep(0.01)


def test_a_tenant_that_is_written_meanwhile_moves_whole_and_back_there_is_nothing(
    tmp_path: Path, url: str, postgres: PostgresServer
) -> None:
    data = tmp_path / "data"
    with local_server(data, databases=f"west={url}") as server:
        key = filled(server.address)
        with MnemeClient(server.address, api_key=key) as client:
            before = answers(client)
            with Writer(server.address, key) as writer:
                writer.wait(5)
                moved = move(server.address, "west")
                writer.wait(5)
            assert writer.failures == []
            after = answers(client)
        assert moved.database == "west"
        assert moved.row_count > EVENTS
        assert moved.caught_up_count > 0
        assert set(writer.acknowledged) == after["events"].keys() - before["events"].keys()
        assert before["events"].items() <= after["events"].items()
        assert after["valid"]
        assert after["lessons"] == before["lessons"]
        assert after["log"][0] == before["log"][0]
        assert not (data / "tenants" / "acme" / "mneme.db").exists()
        assert rows_in(postgres, url) == len(after["events"])
        (listed,) = [
            one
            for one in server.keys.admin.admin.ListTenants(admin_pb.ListTenantsRequest()).tenants
            if one.id == "acme"
        ]
        assert listed.database == "west"
        with MnemeClient(server.address, api_key=key) as client:
            kept = client.get_memory_stats().database
        assert (kept.engine, kept.path) == ("postgresql", "")
        assert kept.size_bytes > 0
    with (
        local_server(data, databases=f"west={url}") as server,
        MnemeClient(server.address, api_key=key) as client,
    ):
        again = answers(client)
        # What was embedded only then may be found before what was.
        assert {**again, "heron": after["heron"]} == after
        client.record_events([_event(9999)], wait_indexed=True)
        assert client.recall("the heron number 9999").results[0].source_id == "e9999"


def test_what_was_moved_is_deleted_where_it_is(
    tmp_path: Path, url: str, postgres: PostgresServer
) -> None:
    with local_server(tmp_path / "data", databases=f"west={url}") as server:
        key = filled(server.address)
        with MnemeClient(server.address, api_key=key) as client:
            before = answers(client)
            move(server.address, "west")
            assert answers(client) == before
        assert rows_in(postgres, url) > 0
        with MnemeClient(server.address, api_key=ADMIN_KEY) as admin:
            admin.delete_tenant("acme").result(PATIENCE_S)
        assert rows_in(postgres, url) == 0
        filled(server.address)
        assert rows_in(postgres, url) == 0, "a new one of that name is where new ones are"


def test_what_cannot_be_moved_is_refused_and_stays(
    tmp_path: Path, url: str, postgres: PostgresServer
) -> None:
    with local_server(tmp_path / "cluster", database_url=url) as cluster:
        cluster.keys.admin.admin.CreateTenant(admin_pb.CreateTenantRequest(tenant_id="acme"))
        with pytest.raises(errors.FailedPreconditionError, match="mneme-server migrate"):
            move(cluster.address, "west")
        assert move(cluster.address, "").database == "", "it is there"
        nowhere = "postgresql://nobody@127.0.0.1:1/none"
        databases = f"west={url} nowhere={nowhere}"
        with local_server(tmp_path / "data", databases=databases) as server:
            key = filled(server.address)
            with pytest.raises(errors.AlreadyExistsError, match="acme in west"):
                move(server.address, "west")
            with pytest.raises(errors.NotFoundError, match="names nowhere, west"):
                move(server.address, "east")
            with pytest.raises(errors.UnavailableError):
                move(server.address, "nowhere")
            assert move(server.address, "").database == "", "it is there"
            with local_server(tmp_path / "third", databases=f"west={url}") as third:
                filled(third.address, "guest")
                move(third.address, "west", "guest")
                filled(server.address, "guest")
                with pytest.raises(errors.AlreadyExistsError, match="guest in west"):
                    move(server.address, "west", "guest")
                with pytest.raises(errors.FailedPreconditionError, match="mneme-server migrate"):
                    move(third.address, "", "guest")
                assert rows_in(postgres, url) == EVENTS + 1
            failed = run_command("migrate", tmp_path / "fourth", "--to", url)
            assert failed.returncode == 1, "a server serves from it"
            with MnemeClient(server.address, api_key=key) as client:
                assert len(list(client.iter_events())) == EVENTS + 1
                client.record_events([_event(9999)])


def test_a_tenant_that_comes_to_where_one_is_moving_to_keeps_what_it_has(
    tmp_path: Path, url: str, postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another server may make it after it was seen that there is none of the name."""
    monkeypatch.setattr(LiveMove, "require_room", lambda *_: None)
    with (
        local_server(tmp_path / "cluster", database_url=url) as cluster,
        local_server(tmp_path / "data", databases=f"west={url}") as server,
    ):
        theirs, ours = filled(cluster.address), filled(server.address)
        with pytest.raises(errors.AlreadyExistsError):
            move(server.address, "west")
        for address, key in ((cluster.address, theirs), (server.address, ours)):
            with MnemeClient(address, api_key=key) as client:
                client.record_events([_event(9999)])
                assert len(list(client.iter_events())) == EVENTS + 2
        assert rows_in(postgres, url) == EVENTS + 2


def test_calls_that_wait_for_others_to_end_count_as_refused(tmp_path: Path, url: str) -> None:
    with local_server(tmp_path / "data", databases=f"west={url}") as server:
        filled(server.address)
        tenants = server.application.runtime.tenants
        with (
            MnemeClient(server.address, api_key=ADMIN_KEY) as admin,
            tenants.open("acme"),
        ):
            moving = admin.move_tenant(tenant_id="acme", database="west")
            until = time.monotonic() + PATIENCE_S
            while not is_refused(tenants):
                assert time.monotonic() < until
                time.sleep(0.01)
            refused_at = time.monotonic()
            time.sleep(0.5)
            refused_s = time.monotonic() - refused_at
        with MnemeClient(server.address, api_key=ADMIN_KEY) as admin:
            moved = admin.operation(moving.id).result(PATIENCE_S)
        assert moved.refused.total_seconds() >= refused_s


def test_what_is_forgotten_while_a_tenant_is_copied_stops_the_move(
    tmp_path: Path, url: str, postgres: PostgresServer
) -> None:
    """What was copied of it would lie where the tenant goes, and nobody would know."""
    settings = {"databases": f"west={url}", "database_kept_days": 1}
    with local_server(tmp_path / "data", **settings) as server:
        key = filled(server.address)
        compared, go_on = threading.Event(), threading.Event()

        def compare(*_: object) -> str:
            compared.set()
            assert go_on.wait(PATIENCE_S)
            return "the same"

        moves = server.application._moving.served
        assert moves is not None
        cast(dict[str, Any], moves.checks)["until it was forgotten"] = compare
        with (
            MnemeClient(server.address, api_key=ADMIN_KEY) as admin,
            MnemeClient(server.address, api_key=key) as client,
        ):
            moving = admin.move_tenant(tenant_id="acme", database="west")
            assert compared.wait(PATIENCE_S)
            forgetting = admin.forget(tenant_id="acme", items=[{"kind": "event", "id": "e7"}])
            until = time.monotonic() + PATIENCE_S
            while "e7" in {one.id for one in client.iter_events()}:
                assert time.monotonic() < until
                time.sleep(0.02)
            go_on.set()
            with pytest.raises(errors.UnavailableError, match="forgotten"):
                moving.result(PATIENCE_S)
            assert rows_in(postgres, url) == 0
            assert forgetting.result(PATIENCE_S).statement
            assert len(list(client.iter_events())) == EVENTS
            client.record_events([_event(9999)])


def test_a_tenant_that_is_to_be_deleted_while_it_is_copied_leaves_nothing_in_either_place(
    tmp_path: Path, url: str, postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    copying, go_on = threading.Event(), threading.Event()

    def copy_later(*given: Any) -> None:
        copying.set()
        assert go_on.wait(PATIENCE_S)
        copy_rows(*given)

    monkeypatch.setattr("mneme_server.engine.cluster.moves.copy_rows", copy_later)
    data = tmp_path / "data"
    with local_server(data, databases=f"west={url}") as server:
        filled(server.address)
        with MnemeClient(server.address, api_key=ADMIN_KEY, retries=0) as admin:
            moving = admin.move_tenant(tenant_id="acme", database="west")
            assert copying.wait(PATIENCE_S)
            deletion = admin.delete_tenant("acme")
            assert deletion.operation.state == "queued", "it is being moved"
            go_on.set()
            assert moving.result(PATIENCE_S).database == "west"
            deletion.result(PATIENCE_S)
        assert rows_in(postgres, url) == 0
        assert not (data / "tenants" / "acme").exists()


def is_refused(tenants: Any) -> bool:
    try:
        with tenants.open("acme"):
            return False
    except Unavailable:
        return True


def test_what_was_moved_while_it_was_served_is_handed_over_with_the_keys(
    tmp_path: Path, url: str
) -> None:
    """From one machine to many: the catalog follows, and nothing is copied again."""
    data = tmp_path / "data"
    with local_server(data, databases=f"west={url}") as server:
        key, other = filled(server.address), filled(server.address, "other")
        with MnemeClient(server.address, api_key=key) as client:
            before = answers(client)
        move(server.address, "west")
    elsewhere = run_command("migrate", data, "--to", "sqlite:" + str(tmp_path / "x"),
                            databases=f"west={url}")  # fmt: skip
    assert elsewhere.returncode == 1
    assert "acme is in the database west" in elsewhere.stderr
    done = run_command("migrate", data, "--to", url, "--remove", databases=f"west={url}")
    assert done.returncode == 0, done.stderr
    assert "acme: had been copied and compared before" in done.stdout
    with local_server(tmp_path / "node", database_url=url) as server:
        with MnemeClient(server.address, api_key=key) as client:
            assert answers(client)["events"] == before["events"]
            client.record_events([_event(9999)])
        with MnemeClient(server.address, api_key=other) as client:
            assert len(list(client.iter_events())) == EVENTS + 1


def test_what_a_tenant_elsewhere_has_no_file_for_is_refused(tmp_path: Path, url: str) -> None:
    with local_server(tmp_path / "data", databases=f"west={url}") as server:
        filled(server.address)
        with MnemeClient(server.address, api_key=ADMIN_KEY) as admin:
            made = admin.backup(tenant_id="acme").result(PATIENCE_S)
            move(server.address, "west")
            with pytest.raises(errors.FailedPreconditionError, match="backups"):
                admin.backup(tenant_id="acme")
            with pytest.raises(errors.FailedPreconditionError, match="backups"):
                admin.restore(tenant_id="acme", backup=Path(made.path).name)


@pytest.mark.parametrize(
    "step", ["copying", "catching up", "comparing", "switching", "put", "put+"]
)
def test_killed_at_any_point_nothing_that_was_acknowledged_is_lost(
    step: str, tmp_path: Path, url: str, postgres: PostgresServer
) -> None:
    """After the next start the operation is begun anew, or has been done, and ends."""
    data = tmp_path / "data"
    databases = f"west={url}"
    server = ServerProcess(data, cut_at=f"move/{step}", databases=databases)
    key = filled(server.address)
    with MnemeClient(server.address, api_key=key) as client:
        before = answers(client)
    writer = Writer(server.address, key)
    with writer, MnemeClient(server.address, api_key=ADMIN_KEY) as admin:
        writer.wait(3)
        with suppress(errors.UnavailableError):  # It may die before the call is answered.
            admin.move_tenant(tenant_id="acme", database="west", operation_id="m")
        assert server.process.wait(PATIENCE_S) == -signal.SIGKILL
    server.keys.close()
    with server_process(data, databases=databases) as again:
        with MnemeClient(again.address, api_key=key) as client:
            # What was sent as it died may be there, or not.
            known = {one.id for one in client.iter_events()}
            assert set(writer.acknowledged) | before["events"].keys() <= known
            assert client.verify_events().valid
        with MnemeClient(again.address, api_key=ADMIN_KEY) as admin:
            assert admin.operation("m").result(PATIENCE_S).database == "west"
        with MnemeClient(again.address, api_key=key) as client:
            after = answers(client)
        assert after["events"].keys() == known
        assert after["valid"]
        assert rows_in(postgres, url) == len(known)
        assert not (data / "tenants" / "acme" / "mneme.db").exists()
