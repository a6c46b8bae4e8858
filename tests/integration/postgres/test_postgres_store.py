"""What a store on PostgreSQL promises beyond the contract that both kinds of store pass."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mneme_server.capabilities import tenant_schema
from mneme_server.common import deadline
from mneme_server.common.errors import FailedPrecondition, InvalidArgument, NotFound, Unavailable
from mneme_server.engine.corpus.feed import START
from mneme_server.engine.store.portable import listed
from mneme_server.engine.store.schema import metadata
from mneme_server.engine.store.unit import EmbeddingModel
from mneme_server.features.events.store.sessions import SqlSessions
from sqlalchemy import bindparam, func, select
from sqlalchemy.dialects import postgresql
from store_contract.conftest import document, fill
from store_contract.samples import session
from support.postgres import PostgresServer, emptied

SCHEMA = tenant_schema()


@pytest.fixture
def stores(postgres: PostgresServer) -> Iterator[Any]:
    with emptied(postgres, SCHEMA) as stores:
        yield stores


def _raw(unit: Any, sql: str) -> list[tuple[Any, ...]]:
    """Run SQL in a transaction past the guard that wants every statement to bind its tenant."""
    rows = unit._connection.connection.driver_connection.execute(sql).fetchall()
    return list(rows)


@pytest.fixture
def filled(stores: Any) -> Any:
    fill(stores.open("acme"))
    fill(stores.open("rival"))
    return stores


@pytest.mark.parametrize("table", ["events", "sessions", "documents", "memories", "numbers"])
def test_a_statement_whose_filter_was_forgotten_sees_its_own_tenants_rows_alone(
    filled: Any, table: str
) -> None:
    with filled.open("acme").read() as unit:
        assert _raw(unit, f"SELECT DISTINCT tenant_id FROM {table}") == [("acme",)]


def test_a_statement_whose_filter_was_forgotten_changes_its_own_tenants_rows_alone(
    filled: Any,
) -> None:
    with filled.open("acme").write() as unit:
        assert len(_raw(unit, "DELETE FROM session_tags RETURNING 1")) == 0
        assert len(_raw(unit, "DELETE FROM memories RETURNING 1")) == 2
    with filled.open("rival").read() as unit:
        assert _raw(unit, "SELECT count(*) FROM memories") == [(2,)]


def test_of_a_page_of_vectors_one_that_is_damaged_is_left_out(stores: Any) -> None:
    store = stores.open("acme")
    numbers = fill_vectors(store, 5)
    with store.write() as unit:
        _raw(unit, f"UPDATE vectors SET vector = '\\x00' WHERE doc_id = {numbers[1]} RETURNING 1")
    batch = store.source.vectors_after(0, 10)
    assert batch.doc_ids.tolist() == [numbers[0], *numbers[2:]]
    assert batch.vectors.tolist() == [[1.0, 0.0], [3.0, 0.0], [4.0, 0.0], [5.0, 0.0]]
    rest = store.source.vectors_after(int(batch.seqs[1]), 1)
    assert (rest.doc_ids.tolist(), rest.vectors.tolist()) == ([numbers[3]], [[4.0, 0.0]])


def test_a_vector_that_is_damaged_is_left_out_though_it_is_the_only_one(stores: Any) -> None:
    store = stores.open("acme")
    with store.write() as unit:
        unit.set_embedding_model(EmbeddingModel("m", 2))
    (number,) = fill_vectors(store, 1)
    with store.write() as unit:
        assert unit.queue.known_vectors([document("d0").text])
        _raw(unit, "UPDATE vectors SET vector = '\\x00000000' RETURNING 1")
        assert not unit.queue.known_vectors([document("d0").text])
    assert not store.source.vectors_after(0, 10).doc_ids.size
    assert not store.source.vectors_of([number]).doc_ids.size


def fill_vectors(store: Any, count: int) -> list[int]:
    """Store so many documents with vectors; return their numbers."""
    vectors = np.array([[n + 1, 0] for n in range(count)], np.float32)
    with store.write() as unit:
        added = unit.documents.add([document(f"d{n}") for n in range(count)], vectors)
    return [one.doc_id for one in added]


def test_a_row_cannot_be_given_to_another_tenant(filled: Any) -> None:
    with (
        pytest.raises(FailedPrecondition, match="row-level security"),
        filled.open("acme").write() as unit,
    ):
        _raw(unit, "UPDATE memories SET tenant_id = 'rival' RETURNING 1")


def test_a_transaction_that_does_not_say_whose_it_is_sees_nothing(filled: Any) -> None:
    with filled.open("acme").read() as unit:
        _raw(unit, "SELECT set_config('mneme.tenant', '', true)")
        for table in metadata.tables:
            assert _raw(unit, f"SELECT count(*) FROM {table}") == [(0,)]


def test_every_table_is_locked_for_its_owner_too(filled: Any, postgres: PostgresServer) -> None:
    open_ = postgres.execute(
        "SELECT relname FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace"
        " WHERE nspname = 'mneme' AND relkind = 'r'"
        " AND NOT (relrowsecurity AND relforcerowsecurity)"
    )
    assert sorted(open_) == [
        ("alembic_version",), ("erasures",), ("leases",), ("nodes",), ("places",), ("revisions",),
    ]  # fmt: skip


def test_every_key_and_every_index_begins_with_the_tenant(
    filled: Any, postgres: PostgresServer
) -> None:
    others = postgres.execute(
        "SELECT i.indexrelid::regclass::text FROM pg_index AS i"
        " JOIN pg_class AS c ON c.oid = i.indrelid JOIN pg_namespace AS n ON n.oid = c.relnamespace"
        " JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum = i.indkey[0]"
        " WHERE nspname = 'mneme' AND a.attname <> 'tenant_id'"
    )
    assert sorted(others) == [
        ("mneme.alembic_version_pkey",),
        ("mneme.erasures_of_place",),
        ("mneme.leases_pkey",),
        ("mneme.leases_wanted",),
        ("mneme.nodes_pkey",),
        ("mneme.places_pkey",),
        ("mneme.revisions_pkey",),
    ]


def test_rows_are_numbered_by_their_tenant(stores: Any) -> None:
    for tenant in ("acme", "rival"):
        with stores.open(tenant).write() as unit:
            added = unit.documents.add([document("a"), document("b")])
        assert [one.doc_id for one in added] == [1, 2]


def test_documents_are_read_by_their_numbers_without_reading_all_others(
    stores: Any, postgres: PostgresServer
) -> None:
    store = stores.open("acme")
    fill_vectors(store, 3_000)
    postgres.execute("ANALYZE mneme.documents")
    table = metadata.tables["documents"]
    query = select(table.c.text).where(
        table.c.tenant_id == "acme", table.c.doc_id.in_(listed(bindparam("ids"), numbers=True))
    )
    said = query.compile(dialect=postgresql.psycopg.dialect())
    with store.read() as unit:
        driver = unit._connection.connection.driver_connection
        plan = driver.execute(f"EXPLAIN {said}", said.params | {"ids": "[1, 2]"}).fetchall()
    looked_up = [line for (line,) in plan if "Index Cond" in line]
    assert any("doc_id" in line for line in looked_up), plan


def test_text_is_in_the_order_of_its_bytes_as_on_sqlite(stores: Any) -> None:
    names = ["Z", "a", "b", "ä", "é", "\U0001f600"]
    store = stores.open("acme")
    with store.write() as unit:
        unit.get(SqlSessions).save([session(name) for name in reversed(names)])
    with store.read() as unit:
        assert list(unit.get(SqlSessions).ids()) == sorted(names, key=str.encode)


@pytest.mark.parametrize(
    "use",
    [
        lambda sessions: sessions.save([session("a\0b")]),
        lambda sessions: sessions.get("a\0b"),
        lambda sessions: sessions.get_many(["a\0b", "c"]),
    ],
    ids=["written", "looked for", "looked for among others"],
)
def test_the_character_that_it_cannot_store_is_refused_as_what_the_caller_gave(
    stores: Any, use: Callable[[Any], object]
) -> None:
    with pytest.raises(InvalidArgument, match=r"U\+0000"), stores.open("acme").write() as unit:
        use(unit.get(SqlSessions))


def test_sums_and_averages_are_numbers_as_on_sqlite(filled: Any) -> None:
    """PostgreSQL's own are decimals, which neither floats nor JSON go with."""
    with filled.open("acme").read() as unit:
        asked = "SELECT sum(sequence), avg(sequence), sum(cost_usd), avg(-sequence) FROM events"
        (row,) = _raw(unit, asked)
    assert row == (3, 1.5, 0.0, -1.5)
    assert [type(value) for value in row] == [int, float, float, float]


def test_commits_have_the_order_of_the_feed_whichever_node_they_come_from(
    stores: Any, postgres: PostgresServer
) -> None:
    """A follower that reads up to the head never finds a row before it later on."""
    with emptied(postgres, SCHEMA) as others:
        nodes = [stores.open("acme"), others.open("acme")]

        def write(store: Any, node: int) -> None:
            for n in range(15):
                with store.write() as unit:
                    unit.documents.add([document(f"{node}-{n}")])

        threads = [threading.Thread(target=write, args=(s, n)) for n, s in enumerate(nodes)]
        for thread in threads:
            thread.start()
        place, seen, ended = START, [], False
        while not ended:
            ended = not any(thread.is_alive() for thread in threads)  # Then it looks once more.
            with nodes[0].read() as unit:
                rows = unit.feed.changes_after(place, 100)
            seen += [row.position.number for row in rows]
            place = rows[-1].position if rows else place
    assert seen == list(range(1, 31))


def test_one_tenants_writer_does_not_wait_for_anothers(stores: Any) -> None:
    with stores.open("acme").write() as unit, stores.open("rival").write() as other:
        unit.get(SqlSessions).save([session("s")])
        other.get(SqlSessions).save([session("s")])


def test_a_statement_ends_with_the_call_that_it_is_for(stores: Any) -> None:
    asleep = select(func.pg_sleep(60))
    store = stores.open("acme")
    with pytest.raises(deadline.Abandoned), deadline.within(0.5), store.read() as unit:
        unit._connection.execute(asleep)


def test_nothing_begins_for_a_call_whose_time_is_up(stores: Any) -> None:
    with pytest.raises(deadline.Abandoned), deadline.within(0), stores.open("acme").read():
        pass


def test_a_writer_waits_for_the_one_before_it_no_longer_than_its_caller_does(stores: Any) -> None:
    store = stores.open("acme")
    with store.write(), pytest.raises(deadline.Abandoned), deadline.within(0.1), store.write():
        pass


def test_a_server_that_went_away_is_said_to_be_and_found_again(
    stores: Any, postgres: PostgresServer
) -> None:
    store = stores.open("acme")
    with store.write() as unit:
        unit.get(SqlSessions).save([session("before")])
    postgres.stop(kill=True)
    try:
        for transaction in (store.read, store.write):
            with pytest.raises(Unavailable) as refused, transaction():
                pass
            assert refused.value.retry_after_s is not None
    finally:
        postgres.start()
    with store.write() as unit:
        assert unit.get(SqlSessions).get("before") is not None


def test_a_connection_that_is_lost_in_a_transaction_undoes_it(
    stores: Any, postgres: PostgresServer
) -> None:
    store = stores.open("acme")

    def lose(unit: Any) -> None:
        unit.get(SqlSessions).save([session("lost")])
        postgres.execute(
            "SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity"
            " WHERE application_name = 'mneme' AND state = 'idle in transaction'"
        )
        unit.get(SqlSessions).save([session("lost too")])

    with pytest.raises(Unavailable), store.write() as unit:
        lose(unit)
    with store.read() as unit:
        assert unit.get(SqlSessions).total() == 0


def test_a_commit_that_the_standby_may_not_have_is_not_acknowledged(
    stores: Any, postgres: PostgresServer
) -> None:
    """PostgreSQL itself only warns of it, when somebody has it wait no longer."""
    store = stores.open("acme")
    fill(store)
    standby = "ALTER SYSTEM SET synchronous_standby_names = '{}'"
    waits = "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"

    def cancel() -> None:
        while not postgres.execute(waits):
            pass

    def write() -> None:
        for number in range(10_000):  # PostgreSQL heeds the setting some moments later.
            with store.write() as unit:
                unit.get(SqlSessions).save([session(f"who knows {number}")])

    postgres.execute(standby.format("away"), "SELECT pg_reload_conf()")
    canceller = threading.Thread(target=cancel, daemon=True)
    canceller.start()
    try:
        with pytest.raises(Unavailable):
            write()
    finally:
        postgres.execute(standby.format(""), "SELECT pg_reload_conf()")
    canceller.join()
    with store.write() as unit:
        unit.get(SqlSessions).save([session("later")])


def test_a_connection_that_is_lost_under_any_statement_is_the_callers_to_try_again(
    stores: Any, postgres: PostgresServer
) -> None:
    """Numbers are taken without SQLAlchemy, which would say what is meant."""
    from mneme_server.engine.store.postgres.database import take_numbers

    store = stores.open("acme")
    fill(store)

    def lose(unit: Any) -> None:
        postgres.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE application_name = 'mneme' AND state = 'idle in transaction'"
        )
        take_numbers(unit._connection, "acme", "vectors", 1)

    with pytest.raises(Unavailable), store.write() as unit:
        lose(unit)


def test_a_writer_that_stands_still_is_cut_off(
    stores: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mneme_server.engine.store.postgres import database

    still, another = stores.open("acme"), stores.open("acme")
    fill(still)

    def stand_still(unit: Any) -> None:
        monkeypatch.undo()
        with another.write() as other:  # It waits for the lock.
            other.get(SqlSessions).save([session("goes on")])
        unit.get(SqlSessions).save([session("too late")])

    monkeypatch.setattr(database, "SILENT_S", 0.1)
    with pytest.raises(Unavailable), still.write() as unit:
        stand_still(unit)
    with still.read() as unit:
        assert unit.get(SqlSessions).get("goes on") is not None
        assert unit.get(SqlSessions).get("too late") is None


def test_many_tenants_share_a_few_connections(stores: Any, postgres: PostgresServer) -> None:
    from mneme_server.engine.store.postgres.database import READERS, WRITERS

    for n in range(40):
        with stores.open(f"tenant-{n}").write() as unit:
            unit.get(SqlSessions).save([session("s")])
    (count,) = postgres.execute(
        "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'mneme'"
    )
    assert count[0] <= READERS + WRITERS


def test_a_user_who_owns_the_database_and_no_more_is_enough(
    postgres: PostgresServer, stores: Any
) -> None:
    """As the guide has it: the role is there, and the user may take it."""
    from mneme_server.engine.store.postgres.store import PostgresStores

    postgres.execute(
        "CREATE USER plain",
        "GRANT mneme_tenant TO plain",
        "CREATE DATABASE plain OWNER plain ENCODING 'UTF8' TEMPLATE template0",
    )
    plain = PostgresStores(postgres.url("plain").replace("postgres@", "plain@"), SCHEMA)
    try:
        fill(plain.open("acme"))
        with plain.open("rival").read() as unit:
            assert _raw(unit, "SELECT count(*) FROM memories") == [(0,)]
    finally:
        plain.close()


def test_a_user_who_may_not_take_the_role_is_told(postgres: PostgresServer, stores: Any) -> None:
    from mneme_server.engine.store.postgres.store import PostgresStores

    postgres.execute("CREATE USER stranger", "CREATE DATABASE strange OWNER stranger")
    with pytest.raises(FailedPrecondition, match="mneme_tenant"):
        PostgresStores(postgres.url("strange").replace("postgres@", "stranger@"), SCHEMA)


def _at_once(start: Callable[[], Any]) -> list[BaseException]:
    """Open something that is closed again, several times at once; return what failed."""
    failures: list[BaseException] = []
    ready = threading.Barrier(4)

    def run() -> None:
        ready.wait()
        try:
            start().close()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run) for _ in range(ready.parties)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return failures


def test_nodes_that_start_together_make_the_schema_once(postgres: PostgresServer) -> None:
    from mneme_server.engine.store.postgres.store import PostgresStores

    postgres.execute("DROP SCHEMA IF EXISTS mneme CASCADE")
    assert _at_once(lambda: PostgresStores(postgres.url(), SCHEMA)) == []


def test_nodes_that_start_together_make_the_catalog_once(postgres: PostgresServer) -> None:
    from mneme_server.engine.store.postgres.catalog import PostgresCatalog
    from mneme_server.features.admin.store.catalog import MIGRATIONS

    postgres.execute("DROP SCHEMA IF EXISTS mneme_catalog CASCADE")
    assert _at_once(lambda: PostgresCatalog(postgres.url(), [MIGRATIONS])) == []


def test_the_bytes_of_a_tenant_are_those_of_its_own_rows(
    stores: Any, postgres: PostgresServer
) -> None:
    for tenant, documents in (("acme", 3000), ("rival", 50)):
        with stores.open(tenant).write() as unit:
            unit.documents.add([document(f"d{n}") for n in range(documents)])
    postgres.execute("ANALYZE mneme.documents")
    ((taken,),) = postgres.execute(
        "SELECT sum(pg_column_size(t.*))::bigint FROM mneme.documents AS t WHERE tenant_id = 'acme'"
    )
    assert 0.5 * taken < stores.shared_bytes("acme") < 3 * taken
    assert 0 < stores.shared_bytes("rival") < stores.shared_bytes("acme") / 10
    assert stores.shared_bytes("nobody") == 0


def test_what_is_deleted_is_taken_out_of_its_pages(stores: Any, postgres: PostgresServer) -> None:
    store = stores.open("acme")
    with store.write() as unit:
        unit.documents.add([document(f"d{n}") for n in range(200)])
    with store.write() as unit:
        unit.require_overwriting()
        unit.overwrite()
        _raw(unit, "DELETE FROM documents RETURNING 1")
    before = postgres.execute("SELECT pg_relation_size('mneme.documents')")
    store.scrub()
    assert before > [(0,)]
    assert postgres.execute("SELECT pg_relation_size('mneme.documents')") == [(0,)]


@pytest.mark.parametrize("known", [True, False])
def test_removing_a_tenant_spares_who_got_the_id_meanwhile(stores: Any, known: bool) -> None:
    """Another server ends the deletion first, and the id is used again."""
    store = stores.open("acme")
    if known:
        with store.write() as unit:
            unit.feed.renew_generation()
    checks = iter([another_is_made, is_another])
    with pytest.raises(NotFound):
        stores.remove("acme", lambda: next(checks)(stores))
    with stores.open("acme").read() as unit:
        assert list(unit.get(SqlSessions).ids()) == ["of the second"]


def another_is_made(stores: Any) -> None:
    stores.remove("acme")
    with stores.open("acme").write() as unit:
        unit.feed.renew_generation()
        unit.get(SqlSessions).save([session("of the second")])


def is_another(_stores: Any) -> None:
    raise NotFound("there is no tenant acme")


def test_a_server_on_sqlite_imports_nothing_of_it(tmp_path: Path) -> None:
    """Whoever keeps to the default pays nothing, and needs no driver."""
    said = (
        "import sys, mneme_server.app, mneme_server.engine.store.sqlite_store as s\n"
        "from pathlib import Path\n"
        "from mneme_server.capabilities import tenant_schema\n"
        "s.SqliteStores(Path(sys.argv[1]), tenant_schema()).open('acme').close()\n"
        "print([m for m in sys.modules if 'psycopg' in m and not m.startswith('sqlalchemy.')"
        " or 'storage.postgres' in m])"
    )
    ran = subprocess.run(
        [sys.executable, "-c", said, str(tmp_path)], capture_output=True, text=True, check=True
    )
    assert ran.stdout.strip() == "[]"


def test_every_table_has_the_columns_that_it_has_on_sqlite() -> None:
    pytest.importorskip("psycopg")
    from mneme_server.engine.store.postgres.schema import tables

    made = tables().tables
    assert {name: {*made[name].columns.keys()} for name in made if name != "numbers"} == {
        name: {*table.columns.keys()} for name, table in metadata.tables.items()
    }
