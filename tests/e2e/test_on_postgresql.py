"""One server whose tenants PostgreSQL keeps: what it promises on SQLite it promises there."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from mneme.v1 import admin_service_pb2 as admin_pb
from mneme.v1 import auth_pb2
from mneme.v1 import memory_stats_pb2 as stats_pb
from mneme.v1 import proof_service_pb2 as proof_pb
from support.api import Api
from support.making import event, list_events, recall, record, verify
from support.operations import finished
from support.postgres import QUIET, PostgresServer, empty_folder, programs, running
from support.server import LocalServer, ServerProcess, environment, local_server, run_command

ALL = (auth_pb2.KEY_SCOPE_READ, auth_pb2.KEY_SCOPE_WRITE)


@pytest.fixture
def server(tmp_path: Path, url: str) -> Iterator[LocalServer]:
    with local_server(tmp_path / "data", database_url=url) as server:
        yield server


def _code(failure: pytest.ExceptionInfo[grpc.RpcError]) -> grpc.StatusCode:
    code: grpc.StatusCode = failure.value.code()
    return code


def _texts(api: Api, query: str) -> list[str]:
    return [found.text for found in recall(api, query).results]


def test_what_was_acknowledged_outlives_a_kill_and_is_recalled_as_before(
    tmp_path: Path, url: str
) -> None:
    killed = ServerProcess(tmp_path / "data", database_url=url)
    api = killed.keys.tenant("acme", *ALL)
    sent = [event(f"the heron number {n} eats fish", id=f"e{n}") for n in range(20)]
    record(api, *sent, wait=True)
    found = _texts(api, "which heron eats fish")
    assert len(found) == 10
    killed.kill()
    again = ServerProcess(tmp_path / "data", database_url=url)
    try:
        api = again.keys.key("acme-1", *ALL)
        assert sorted(one.id for one in list_events(api)) == sorted(one.id for one in sent)
        assert _texts(api, "which heron eats fish") == found
        assert verify(api, "s").valid
        record(api, event("the otter sleeps", id="later"), wait=True)
        assert _texts(api, "who sleeps")[0] == "the otter sleeps"
    finally:
        again.stop()


def test_a_server_with_an_empty_folder_finds_everything_in_the_database(
    tmp_path: Path, url: str
) -> None:
    """The folder holds only what can be built from the database."""
    with local_server(tmp_path / "one", database_url=url) as first:
        api = first.keys.tenant("acme", *ALL)
        record(api, event("the badger digs at night", id="e1"), wait=True)
    assert not [*(tmp_path / "one").rglob("*.db")]
    with local_server(tmp_path / "another", database_url=url) as second:
        api = second.keys.key("acme-1", *ALL)
        assert _texts(api, "who digs") == ["the badger digs at night"]


def test_tenants_see_nothing_of_each_other(server: LocalServer) -> None:
    acme, rival = server.keys.tenant("acme", *ALL), server.keys.tenant("rival", *ALL)
    record(acme, event("the launch code is 1234", id="e1"), wait=True)
    record(rival, event("something else entirely", id="e1"), wait=True)
    assert _texts(rival, "launch code") == ["something else entirely"]
    assert [one.text for one in list_events(rival)] == ["something else entirely"]


def test_a_tenant_that_is_deleted_leaves_no_row(
    server: LocalServer, url: str, postgres: PostgresServer
) -> None:
    acme, rival = server.keys.tenant("acme", *ALL), server.keys.tenant("rival", *ALL)
    for api in (acme, rival):
        record(api, event("remember this", id="e1"), wait=True)
    finished(
        server.keys.admin,
        admin_pb.DeleteTenantRequest(tenant_id="acme-1"),
    )
    database = url.partition("@/")[2].partition("?")[0]
    tables = postgres.execute(
        "SELECT c.relname FROM pg_attribute AS a JOIN pg_class AS c ON c.oid = a.attrelid"
        " JOIN pg_namespace AS n ON n.oid = c.relnamespace"
        " WHERE nspname = 'mneme' AND relkind = 'r' AND attname = 'tenant_id'",
        database=database,
    )
    left = {
        tenant
        for (table,) in tables
        for (tenant,) in postgres.execute(f"SELECT tenant_id FROM mneme.{table}", database=database)
    }
    assert "acme-1" not in left
    assert "rival-2" in left
    assert _texts(rival, "remember") == ["remember this"]


def test_a_database_that_is_gone_for_a_moment_is_retryable_and_loses_nothing(
    tmp_path: Path,
) -> None:
    with running() as own, local_server(tmp_path / "data", database_url=own.url()) as server:
        api = server.keys.tenant("acme", *ALL)
        record(api, event("before", id="e1"), wait=True)
        own.stop(kill=True)
        try:
            with pytest.raises(grpc.RpcError) as refused:
                record(api, event("meanwhile", id="e2"))
            assert _code(refused) == grpc.StatusCode.UNAVAILABLE
        finally:
            own.start()
        record(api, event("meanwhile", id="e2"))
        assert sorted(one.id for one in list_events(api)) == ["e1", "e2"]


def test_a_folder_that_holds_tenants_on_sqlite_is_not_taken_for_empty(
    tmp_path: Path, url: str
) -> None:
    with local_server(tmp_path / "data"):
        pass
    ran = subprocess.run(
        [sys.executable, "-m", "mneme_server", "serve"],
        env=environment(tmp_path / "data", database_url=url),
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert ran.returncode != 0
    assert "mneme-server migrate --to" in ran.stderr


def test_what_is_not_supported_there_is_refused_and_changes_nothing(server: LocalServer) -> None:
    api = server.keys.tenant("acme", *ALL)
    record(api, event("keep this", id="e1", agent_id="a"), wait=True)
    admin = server.keys.admin.admin
    calls = [
        lambda: admin.Backup(admin_pb.BackupRequest(tenant_id="acme-1")),
        lambda: admin.Restore(admin_pb.RestoreRequest(tenant_id="acme-1", backup="x.db")),
    ]
    for call in calls:
        with pytest.raises(grpc.RpcError) as refused:
            call()
        assert _code(refused) == grpc.StatusCode.FAILED_PRECONDITION
        assert "not supported yet where PostgreSQL" in refused.value.details()
    assert _texts(api, "keep") == ["keep this"]


def test_nothing_is_forgotten_before_it_is_said_how_long_backups_are_kept(
    server: LocalServer,
) -> None:
    api = server.keys.tenant("acme", *ALL)
    record(api, event("keep this", id="e1", agent_id="a"), wait=True)
    with pytest.raises(grpc.RpcError) as refused:
        finished(
            server.keys.admin,
            admin_pb.ForgetRequest(tenant_id="acme-1", agent_id="a"),
        )
    assert _code(refused) == grpc.StatusCode.FAILED_PRECONDITION
    assert "MNEME_DATABASE_KEPT_DAYS" in refused.value.details()
    assert _texts(api, "keep") == ["keep this"]


def _rows_with(postgres: PostgresServer, url: str, text: str) -> list[str]:
    """Return the tables with a row that has the text."""
    database = url.partition("@/")[2].partition("?")[0]
    tables = postgres.execute(
        "SELECT quote_ident(schemaname) || '.' || quote_ident(tablename) FROM pg_tables"
        " WHERE schemaname LIKE 'mneme%'",
        database=database,
    )
    asked = f"WHERE strpos(t::text, '{text}') > 0 OR strpos(t::text, '{text.encode().hex()}') > 0"
    return [
        name
        for (name,) in tables
        if postgres.execute(f"SELECT 1 FROM {name} AS t {asked} LIMIT 1", database=database)
    ]


def test_what_is_forgotten_is_in_no_table_and_the_receipt_says_until_when_copies_hold_it(
    tmp_path: Path, postgres: PostgresServer, url: str
) -> None:
    with local_server(tmp_path / "data", database_url=url, database_kept_days=30) as server:
        api = server.keys.tenant("acme", *ALL)
        record(api, event("the xylophone is ann's", id="e1", agent_id="ann"), wait=True)
        record(api, event("the drum is bob's", "other", id="e2"), wait=True)
        assert _rows_with(postgres, url, "xylophone") != []
        request = admin_pb.ForgetRequest(tenant_id="acme-1", agent_id="ann")
        told = finished(server.keys.admin, request)
        assert _rows_with(postgres, url, "xylophone") == []
        assert _texts(api, "whose is the drum") == ["the drum is bob's"]
    kept = told.kept_until.ToDatetime() - told.erased_at.ToDatetime()
    assert kept.days == 30
    assert json.loads(told.statement)["kept_until"] == str(told.kept_until.ToMicroseconds())
    key = Ed25519PublicKey.from_public_bytes(told.public_key)
    key.verify(told.signature, told.statement.encode())


def test_the_keys_that_sign_logs_are_in_the_database_and_encrypted(
    tmp_path: Path, postgres: PostgresServer, url: str
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("a secret of the tests")
    with local_server(tmp_path / "one", database_url=url, key_file=secret) as server:
        api = server.keys.tenant("acme", *ALL)
        record(api, event("one", id="e1"), wait=True)
        keys = api.proof.ListLogKeys(proof_pb.ListLogKeysRequest()).keys
        assert not (tmp_path / "one" / "keys").exists()
    assert _rows_with(postgres, url, "ENCRYPTED PRIVATE KEY") == ["mneme_catalog.log_private_keys"]
    with local_server(tmp_path / "two", database_url=url, key_file=secret) as server:
        api = server.keys.key("acme-1", *ALL)
        assert api.proof.ListLogKeys(proof_pb.ListLogKeysRequest()).keys == keys
        record(api, event("two", id="e2"), wait=True)
        assert api.proof.GetCheckpoint(proof_pb.GetCheckpointRequest()).note


def test_no_server_starts_that_would_keep_signing_keys_in_the_database_as_they_are(
    tmp_path: Path, url: str
) -> None:
    refused = run_command("serve", tmp_path / "data", database_url=url, plain_keys="false")
    assert refused.returncode == 1
    for said in ("MNEME_KEY_FILE", "openssl rand", "MNEME_PLAIN_KEYS"):
        assert said in refused.stderr
    missing = tmp_path / "missing"
    refused = run_command("serve", tmp_path / "data", database_url=url, key_file=missing)
    assert refused.returncode == 1
    assert "MNEME_KEY_FILE: No such file" in refused.stderr


def test_a_node_with_another_secret_than_the_others_does_not_start(
    tmp_path: Path, url: str
) -> None:
    right, wrong = tmp_path / "right", tmp_path / "wrong"
    right.write_text("a secret of the tests")
    wrong.write_text("a secret of somebody else")
    with local_server(tmp_path / "one", database_url=url, key_file=right) as server:
        refused = run_command("serve", tmp_path / "two", database_url=url, key_file=wrong)
        assert refused.returncode == 1
        assert "MNEME_KEY_FILE holds another secret" in refused.stderr
        api = server.keys.tenant("acme", *ALL)
        assert api.proof.GetCheckpoint(proof_pb.GetCheckpointRequest()).note


def test_the_statistics_name_what_keeps_a_tenant(server: LocalServer) -> None:
    api = server.keys.tenant("acme", *ALL)
    record(api, event("the heron ate", id="e1"))
    database = api.memory.GetMemoryStats(stats_pb.GetMemoryStatsRequest()).database
    assert (database.engine, database.path) == ("postgresql", "")
    assert database.folder_bytes > database.size_bytes > 0


def test_a_dump_of_the_database_brings_everything_back(
    tmp_path: Path, postgres: PostgresServer, url: str
) -> None:
    """As the guide has it: tenants, keys, the logs and their chains are all in the database."""
    database = url.partition("@/")[2].partition("?")[0]
    with local_server(tmp_path / "data", database_url=url) as server:
        api = server.keys.tenant("acme", *ALL)
        sent = [event(f"the heron number {n} eats fish", id=f"e{n}") for n in range(20)]
        record(api, *sent, wait=True)
        found = _texts(api, "which heron eats fish")
        note = api.proof.GetCheckpoint(proof_pb.GetCheckpointRequest()).note
        postgres.run("pg_dump", "-Fc", "-f", f"{database}.dump", database)
        record(api, event("written after the dump", id="late"), wait=True)
    postgres.execute(f"CREATE DATABASE restored_{database}")
    postgres.run("pg_restore", "--exit-on-error", "-d", f"restored_{database}", f"{database}.dump")
    restored = postgres.url(f"restored_{database}")
    with local_server(tmp_path / "another", database_url=restored) as server:
        api = server.keys.key("acme-1", *ALL)
        assert sorted(one.id for one in list_events(api)) == sorted(one.id for one in sent)
        assert _texts(api, "which heron eats fish") == found
        assert verify(api, "s").valid
        assert api.proof.GetCheckpoint(proof_pb.GetCheckpointRequest()).note == note
        record(api, event("the otter sleeps", id="later"), wait=True)
        assert _texts(api, "who sleeps")[0] == "the otter sleeps"


def test_the_database_as_it_was_at_a_moment_is_served_again(tmp_path: Path) -> None:
    """As the guide has it: a base backup, and the log that was archived since."""
    with empty_folder() as folder, empty_folder() as archive, empty_folder() as another:
        archiving = ("-c", "archive_mode=on", "-c", f"archive_command=cp %p {archive}/%f")
        postgres = PostgresServer(programs(), folder, (*QUIET, *archiving))
        try:
            with local_server(tmp_path / "data", database_url=postgres.url()) as server:
                api = server.keys.tenant("acme", *ALL)
                record(api, event("the heron eats fish", id="e1"), wait=True)
                postgres.run("pg_basebackup", "-D", another / "data", "--checkpoint=fast")
                record(api, event("the otter eats crabs", id="e2"), wait=True)
                postgres.execute("SELECT pg_create_restore_point('before')")
                record(api, event("written by mistake", id="late"), wait=True)
            ((last,),) = postgres.execute("SELECT pg_walfile_name(pg_switch_wal())")
            until = time.monotonic() + 60
            while not (archive / last).exists():
                assert time.monotonic() < until, "the log is not archived"
                time.sleep(0.05)
        finally:
            postgres.stop()
        recovering = (
            *("-c", f"restore_command=cp {archive}/%f %p"),
            *("-c", "recovery_target_name=before"),
            *("-c", "recovery_target_action=promote"),
        )
        restored = PostgresServer(programs(), another, (*QUIET, *recovering), backup=True)
        try:
            until = time.monotonic() + 60
            while restored.execute("SELECT pg_is_in_recovery()") != [(False,)]:
                assert time.monotonic() < until, "it does not end its recovery"
                time.sleep(0.05)
            with local_server(tmp_path / "other", database_url=restored.url()) as server:
                api = server.keys.key("acme-1", *ALL)
                assert sorted(one.id for one in list_events(api)) == ["e1", "e2"]
                assert _texts(api, "who eats crabs")[0] == "the otter eats crabs"
                assert verify(api, "s").valid
                record(api, event("the owl sleeps", id="later"), wait=True)
        finally:
            restored.stop()


def test_the_driver_that_is_missing_is_named(tmp_path: Path) -> None:
    hidden = (
        "import sys, runpy, importlib.util as u; real = u.find_spec\n"
        "u.find_spec = lambda name, *rest: None if name == 'psycopg' else real(name, *rest)\n"
        "sys.argv = ['mneme-server', 'serve']\n"
        "runpy.run_module('mneme_server', run_name='__main__')"
    )
    ran = subprocess.run(
        [sys.executable, "-c", hidden],
        env=environment(tmp_path / "data", database_url="postgresql://nowhere/x"),
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert ran.returncode != 0
    assert ".whl[server,postgres]" in ran.stderr
