"""Tenants that are moved between SQLite and PostgreSQL: what they answered they answer there."""

from __future__ import annotations

import json
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from mneme.v1 import admin_service_pb2 as admin_pb
from mneme.v1 import auth_pb2
from mneme.v1 import certificate_pb2 as cert_pb
from mneme.v1 import memory_service_pb2 as memory_pb
from mneme.v1 import proof_service_pb2 as proof_pb
from support.api import Api, refused
from support.making import event, lesson, list_events, recall, record, verify
from support.postgres import PostgresServer
from support.server import LocalServer, environment, local_server, run_command

SCOPES = (auth_pb2.KEY_SCOPE_READ, auth_pb2.KEY_SCOPE_WRITE)
QUESTIONS = ["which heron eats fish", "who digs at night", "retry after a timeout", "otters"]
SQLITE = "sqlite:"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"


def make(server: LocalServer, tenant_id: str) -> str:
    """Make a tenant that keeps some of what questions and proofs are about; return its key."""
    admin = server.keys.admin.admin
    admin.CreateTenant(admin_pb.CreateTenantRequest(tenant_id=tenant_id, display_name="A tenant"))
    key = admin.CreateApiKey(
        admin_pb.CreateApiKeyRequest(tenant_id=tenant_id, name="its own", scopes=SCOPES)
    )
    api = server.keys.api(key.secret)
    lesson(api, "Retry after a timeout", "The second attempt mostly succeeds.")
    api.memory.CreateMemory(memory_pb.CreateMemoryRequest(memory_id="m1", text="otters hold hands"))
    record(
        api,
        *(event(f"the heron number {n} eats fish", id=f"e{n}", agent_id="a") for n in range(20)),
        event("the badger digs at night – 😀", session="t", id="badger"),
        wait=True,
    )
    return str(key.secret)


def answers(api: Api) -> dict[str, Any]:
    """What a tenant says of all that must stay what it is."""
    verified = verify(api)
    checkpoint = api.proof.GetCheckpoint(proof_pb.GetCheckpointRequest())
    return {
        "events": [(one.id, one.hash, one.sequence) for one in list_events(api)],
        "chains": (verified.valid, verified.events_checked, verified.sessions_checked),
        "log": (checkpoint.origin, checkpoint.size, checkpoint.root_hash),
        "keys": api.proof.ListLogKeys(proof_pb.ListLogKeysRequest()).keys[-1].verifier_key,
        "questions": {
            question: [(found.source_id, found.text) for found in recall(api, question).results]
            for question in QUESTIONS
        },
    }


def migrate(
    data: Path, to: str, *more: str, cut_at: str = "", **settings: Any
) -> subprocess.CompletedProcess[str]:
    """Run the command to its end, or to where it is cut."""
    if not cut_at:
        return run_command("migrate", data, "--to", to, *more, **settings)
    tests = str(Path(__file__).parents[1])
    return subprocess.run(
        [sys.executable, "-m", "support.cutting_a_move", cut_at, "migrate", "--to", to, *more],
        env=environment(data, **settings) | {"PYTHONPATH": tests},
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip


def test_there_and_back_a_tenant_answers_as_before_and_goes_on(data: Path, url: str) -> None:
    with local_server(data) as server:
        secret = make(server, "acme")
        api = server.keys.api(secret)
        before = answers(api)
        certificate = api.recall.RecallWithCertificate(
            cert_pb.RecallWithCertificateRequest(query="who digs at night")
        ).certificate.json
    there = migrate(data, url)
    assert there.returncode == 0, there.stderr
    assert "acme: " in there.stdout
    assert "the same" in there.stdout
    with local_server(data, database_url=url) as server:
        api = server.keys.api(secret)
        assert answers(api) == before
        valid = cert_pb.VerifyCertificateRequest(json=certificate)
        assert api.recall.VerifyCertificate(valid).valid
        record(api, event("the otter sleeps", id="later"), wait=True)
        after = answers(api)
        assert after["log"] != before["log"]
        assert not [*(data / "keys" / "acme").glob("*")], "the catalog has the key of its log"
    back = migrate(data, SQLITE, database_url=url)
    assert back.returncode == 0, back.stderr
    with local_server(data) as server:
        api = server.keys.api(secret)
        assert answers(api) == after
        assert api.recall.VerifyCertificate(valid).valid
        record(api, event("the heron sleeps", id="last"), wait=True)
        assert verify(api).valid
        asked = cert_pb.RecallWithCertificateRequest(query="who sleeps")
        signed = api.recall.RecallWithCertificate(asked).certificate.json
        valid = cert_pb.VerifyCertificateRequest(json=signed)
        assert api.recall.VerifyCertificate(valid).valid


def test_a_tenant_that_is_moved_lives_there_and_the_others_stay(
    data: Path, url: str, tmp_path: Path
) -> None:
    with local_server(data) as server:
        moved, stays = make(server, "moved"), make(server, "stays")
    done = migrate(data, url, "--tenant", "moved", "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert [one["tenant"] for one in told["tenants"]] == ["moved"]
    assert told["tenants"][0]["tables"]["events"]["rows"] == 21
    with local_server(data) as server:
        assert len(list_events(server.keys.api(stays))) == 21
        with refused() as failure:
            list_events(server.keys.api(moved))
        assert failure.code is not None
        with refused() as failure:
            server.keys.key("moved")
        assert "it was moved to another place" in failure.message
    with local_server(tmp_path / "another", database_url=url) as server:
        assert len(list_events(server.keys.api(moved))) == 21


@pytest.mark.parametrize(
    "step", ["arrive", "copy documents", "copy vectors", "compare events", "check: questions"]
)
def test_killed_before_the_tenant_left_it_is_whole_where_it_was(
    step: str, data: Path, url: str
) -> None:
    with local_server(data) as server:
        secret = make(server, "acme")
        before = answers(server.keys.api(secret))
    killed = migrate(data, url, "--tenant", "acme", cut_at=step)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    with local_server(data) as server:
        api = server.keys.api(secret)
        assert answers(api) == before
        record(api, event("the otter sleeps", id="meanwhile"), wait=True)
        before = answers(api)
    again = migrate(data, url)
    assert again.returncode == 0, again.stderr
    with local_server(data, database_url=url) as server:
        assert answers(server.keys.api(secret)) == before


@pytest.mark.parametrize("step", ["leave", "settle", "clear"])
def test_killed_as_the_tenant_leaves_the_next_run_ends_it(step: str, data: Path, url: str) -> None:
    with local_server(data) as server:
        secret = make(server, "acme")
        before = answers(server.keys.api(secret))
    killed = migrate(data, url, cut_at=step)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    again = migrate(data, url)
    assert again.returncode == 0, again.stderr
    with local_server(data, database_url=url) as server:
        assert answers(server.keys.api(secret)) == before


def test_what_is_left_can_be_removed(data: Path, url: str) -> None:
    with local_server(data) as server:
        make(server, "acme")
    assert migrate(data, url, "--tenant", "acme", "--remove").returncode == 0
    assert not (data / "tenants" / "acme" / "mneme.db").exists()


def test_a_dry_run_changes_nothing(data: Path, url: str, postgres: PostgresServer) -> None:
    with local_server(data) as server:
        secret = make(server, "acme")
    told = migrate(data, url, "--dry-run", "--json")
    assert told.returncode == 0, told.stderr
    rows = {one["tenant"]: one["rows"] for one in json.loads(told.stdout)["tenants"]}
    assert rows["acme"]["events"] == 21
    with local_server(data) as server:
        assert len(list_events(server.keys.api(secret))) == 21


def test_a_tenant_that_exists_there_is_not_touched(data: Path, url: str, tmp_path: Path) -> None:
    with local_server(tmp_path / "there", database_url=url) as server:
        there = make(server, "acme")
        record(server.keys.api(there), event("mine", id="mine"))
    with local_server(data) as server:
        here = make(server, "acme")
    failed = migrate(data, url)
    assert failed.returncode == 1
    assert "there is a tenant acme in" in failed.stderr
    with local_server(tmp_path / "there", database_url=url) as server:
        assert len(list_events(server.keys.api(there))) == 22
    with local_server(data) as server:
        assert len(list_events(server.keys.api(here))) == 21


def test_what_postgresql_cannot_keep_stays_and_is_named(data: Path, url: str) -> None:
    """Older versions took U+0000."""
    with local_server(data) as server:
        secret = make(server, "acme")
    with closing(sqlite3.connect(data / "tenants" / "acme" / "mneme.db")) as database:
        database.execute("UPDATE sessions SET project = 'a' || char(0) WHERE id = 't'")
        database.commit()
    failed = migrate(data, url, "--tenant", "acme")
    assert failed.returncode == 1
    assert "project of the row of sessions with id 't' holds U+0000" in failed.stderr
    with local_server(data) as server:
        assert len(list_events(server.keys.api(secret))) == 21


@pytest.mark.parametrize(
    ("to", "said"),
    [
        ("postgresql://nobody@127.0.0.1:1/none", "cannot be reached"),
        ("mysql://somewhere/x", "is no place to move to"),
        ("postgresql://user:hidden@/x?host=/nowhere", "cannot be reached"),
        ("postgresql://user:hidden?@/x?host=/nowhere", "postgresql://user@/x: "),
        ("sqlite:", "are in"),
        ("sqlite:/nowhere/at/all", "there is no folder"),
    ],
)
def test_a_place_that_is_none_is_named_without_its_password(to: str, said: str, data: Path) -> None:
    with local_server(data) as server:
        secret = make(server, "acme")
    failed = migrate(data, to)
    assert failed.returncode == 1
    assert said in failed.stderr
    assert "hidden" not in failed.stderr
    assert "Traceback" not in failed.stderr
    with local_server(data) as server:
        assert len(list_events(server.keys.api(secret))) == 21


def test_a_folder_is_named_whatever_is_in_its_name(tmp_path: Path) -> None:
    data = tmp_path / "me@home?"
    with local_server(data):
        pass
    assert f"the tenants are in sqlite:{data} already" in migrate(data, "sqlite:").stderr


def test_a_tenant_that_is_not_there_is_named(data: Path, url: str) -> None:
    with local_server(data):
        pass
    failed = migrate(data, url, "--tenant", "nobody")
    assert failed.returncode == 1
    assert "there is no tenant nobody" in failed.stderr


def test_a_database_that_a_newer_version_expanded_is_refused(
    data: Path, url: str, postgres: PostgresServer
) -> None:
    with local_server(data) as server:
        secret = make(server, "acme")
        server.keys.tenant("first")
    assert migrate(data, url, "--tenant", "first-1").returncode == 0
    database = url.partition("@/")[2].partition("?")[0]
    postgres.execute("INSERT INTO mneme.revisions VALUES ('notes_9999', false)", database=database)
    failed = migrate(data, url)
    assert failed.returncode == 1
    assert "notes_9999" in failed.stderr
    with local_server(data) as server:
        assert len(list_events(server.keys.api(secret))) == 21


def test_nothing_is_moved_while_a_server_runs(data: Path, url: str) -> None:
    with local_server(data):
        failed = migrate(data, url)
    assert failed.returncode == 1
    assert "another process is using" in failed.stderr


def test_nothing_is_moved_while_a_server_serves_from_the_database(
    data: Path, url: str, tmp_path: Path
) -> None:
    with local_server(data) as server:
        server.keys.tenant("first")
    with local_server(tmp_path / "there", database_url=url):
        for to, settings in ((url, {}), (SQLITE, {"database_url": url})):
            folder = tmp_path / "own" if settings else data
            failed = migrate(folder, to, **settings)
            assert failed.returncode == 1
            assert "a server serves from the database" in failed.stderr


def test_what_was_changed_on_the_way_does_not_arrive(
    data: Path, url: str, postgres: PostgresServer
) -> None:
    """A database that writes something else than it was given is noticed."""
    with local_server(data) as server:
        secret = make(server, "acme")
        server.keys.tenant("first")
    assert migrate(data, url, "--tenant", "first-1").returncode == 0
    database = url.partition("@/")[2].partition("?")[0]
    postgres.execute(
        "CREATE FUNCTION mneme.other() RETURNS trigger LANGUAGE plpgsql AS"
        " $$ BEGIN NEW.text := upper(NEW.text); RETURN NEW; END $$",
        "CREATE TRIGGER other BEFORE INSERT ON mneme.events"
        " FOR EACH ROW EXECUTE FUNCTION mneme.other()",
        database=database,
    )
    failed = migrate(data, url)
    assert failed.returncode == 1
    assert "is not what left: events" in failed.stderr
    left = postgres.execute("SELECT count(*) FROM mneme.events", database=database)
    assert left == [(0,)]
    with local_server(data) as server:
        assert len(list_events(server.keys.api(secret))) == 21


def test_a_name_that_moved_is_not_given_to_another(data: Path, url: str) -> None:
    with local_server(data) as server:
        make(server, "acme")
    assert migrate(data, url, "--tenant", "acme").returncode == 0
    with local_server(data) as server, refused() as failure:
        server.keys.admin.admin.CreateTenant(admin_pb.CreateTenantRequest(tenant_id="acme"))
    assert "already exists" in failure.message
    with closing(sqlite3.connect(data / "catalog.db")) as catalog:
        (place,) = catalog.execute("SELECT place FROM tenant_moves").fetchone()
    assert place.startswith("postgresql://")
