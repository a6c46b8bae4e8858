"""A statement that does not say whose rows it means is refused before it runs."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mneme_server.capabilities import tenant_schema
from mneme_server.engine.store import guard
from mneme_server.engine.store.guard import Prepared, TenantNotBound, tenant_parameters
from mneme_server.engine.store.portable import unindexed
from mneme_server.engine.store.rows import insert_rows
from mneme_server.engine.store.schema import metadata
from mneme_server.engine.store.sqlite_store import SqliteTenantStore
from sqlalchemy import (
    Connection,
    Table,
    and_,
    bindparam,
    column,
    delete,
    exists,
    func,
    insert,
    literal,
    literal_column,
    not_,
    or_,
    select,
    text,
    true,
    tuple_,
    union_all,
    update,
)
from sqlalchemy import table as alone
from sqlalchemy.dialects.sqlite import insert as upserting
from sqlalchemy.exc import IntegrityError
from sqlalchemy.sql.compiler import SQLCompiler

SCHEMA = tenant_schema()  # Every capability has added its tables by now.
TABLES = sorted(metadata.tables.values(), key=lambda table: table.name)
every_table = pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)

agents, settings_ = metadata.tables["agents"], metadata.tables["settings"]
lessons, tags = metadata.tables["lessons"], metadata.tables["lesson_tags"]
A, L, T = agents.c, lessons.c, tags.c
MINE = A.tenant_id == "acme"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SqliteTenantStore]:
    """A store of two tenants, as where they share a database."""
    folder = tmp_path_factory.mktemp("store")
    with closing(SqliteTenantStore(folder, "acme", SCHEMA)) as acme:
        for tenant, store in (("acme", acme), ("rival", _of("rival", folder))):
            with store.write() as unit:
                rows = [_agent(tenant, name) for name in ("a", "b")]
                insert_rows(unit._connection, agents, rows)
                pairs = [{"tenant_id": tenant, "key": k, "value": k} for k in ("a", "b")]
                unit._connection.execute(insert(settings_), pairs)
            if store is not acme:
                store.close()
        yield acme


def _of(tenant: str, folder: Path) -> SqliteTenantStore:
    return SqliteTenantStore(folder, tenant, SCHEMA)


def _agent(tenant: str, name: str) -> dict[str, Any]:
    zeros = {c.name: 0 for c in agents.columns}
    return zeros | {"tenant_id": tenant, "id": name, "name": name, "total_cost_usd": 0.0}


@pytest.fixture
def connection(store: SqliteTenantStore) -> Iterator[Connection]:
    with store._database.writer.connect() as connection:
        yield connection
        connection.rollback()


@every_table
def test_every_table_says_whose_its_rows_are(table: Table) -> None:
    assert "tenant_id" in table.columns
    for index in table.indexes:
        assert next(iter(index.columns)).name == "tenant_id", index.name


@every_table
def test_reading_without_a_tenant_is_refused(table: Table, connection: Connection) -> None:
    with pytest.raises(TenantNotBound, match=table.name):
        connection.execute(select(table))
    with pytest.raises(TenantNotBound):
        connection.execute(text(f"SELECT count(*) FROM {table.name}"))
    with pytest.raises(TenantNotBound):
        connection.execute(select(table).where(table.c.tenant_id == "rival"))
    connection.execute(select(table).where(table.c.tenant_id == "acme"))


@pytest.mark.filterwarnings("ignore:Column .* is marked as a member of the primary key")
@every_table
def test_writing_without_a_tenant_is_refused(table: Table, connection: Connection) -> None:
    column = next(c for c in table.columns if c.name != "tenant_id")
    for statement in (
        delete(table),
        update(table).values({column.name: 1}),
        insert(table).values({column.name: 1}),
        delete(table).where(table.c.tenant_id == "rival"),
    ):
        with pytest.raises(TenantNotBound):
            connection.execute(statement)
    connection.execute(delete(table).where(table.c.tenant_id == "acme"))


_other = agents.alias("other")
_all_agents = select(A.id).cte("all_agents")

GETS_BY = {
    "a condition that another one sets aside": select(A.id).where(or_(MINE, A.id == "b")),
    "a condition that need not hold": select(A.id).where(or_(and_(MINE, A.id == "a"), true())),
    "a condition that is denied": select(A.id).where(not_(MINE)),
    "another comparison": select(A.id).where(A.tenant_id >= "acme"),
    "a list of tenants": select(A.id).where(A.tenant_id.in_(["acme"])),
    "a tuple": select(A.id).where(tuple_(A.tenant_id, A.id) > tuple_("acme", "a")),
    "a tenant computed from a column": select(A.id).where(A.tenant_id == func.lower(A.tenant_id)),
    "the column itself": select(A.id).where(A.tenant_id == A.tenant_id),
    "a parameter that is compared with itself": select(A.id).where(literal("acme") == "acme"),
    "a condition on groups": select(A.id).group_by(A.id).having(func.max(A.tenant_id) == "acme"),
    "a condition among the columns": select(A.id, MINE),
    "an order": select(A.id).order_by(MINE),
    "a condition that is text": select(A.id).where(text("tenant_id = 'acme' OR 1 = 1")),
    "a column that is text": select(A.id).where(literal_column("agents.tenant_id") == "acme"),
    "a text among the columns": select(literal_column("(SELECT max(id) FROM agents)")),
    "an operator that is text": select(A.id).where(MINE, A.id.op("OR 1 = 1 OR")("x")),
    "a prefix that is text": select(A.id).where(MINE).prefix_with("x"),
    "an alias": select(_other.c.id).where(MINE),
    "an alias beside its table": select(A.id).where(MINE, _other.c.id == A.id),
    "a table by name alone": select(alone("agents", column("id"))),
    "a table of another schema": select(alone("agents", column("id"), schema="main")),
    "a table nobody declared": select(alone("sqlite_master", column("name"))),
    "a join of one bound table": select(A.id).join(lessons, L.agent_id == A.id).where(MINE),
    "a join that binds only what it adds": select(A.id).outerjoin(
        lessons, and_(L.tenant_id == "acme", MINE)
    ),
    "a join that keeps both sides": select(A.id)
    .join(lessons, and_(L.tenant_id == A.tenant_id, MINE), full=True)
    .where(MINE),
    "two tables bound to each other alone": select(A.id).join(lessons, L.tenant_id == A.tenant_id),
    "a subquery": select(A.id).where(MINE, A.id.in_(select(T.lesson_id))),
    "a subquery bound outside": select(A.id).where(MINE, A.id.in_(select(_other.c.id))),
    "a subquery among the columns": select(A.id, select(func.max(L.id)).scalar_subquery()).where(
        MINE
    ),
    "EXISTS": select(A.id).where(MINE, exists().where(L.agent_id == A.id)),
    "a derived table": select(select(A.id).subquery().c.id),
    "a derived table that is filtered later": select(
        (every := select(A.id, A.tenant_id).subquery()).c.id
    ).where(every.c.tenant_id == "acme"),
    "WITH": select(_all_agents.c.id),
    "WITH, and a bound table beside": select(A.id).join(_all_agents, true()).where(MINE),
    "WITH that nobody reads": select(A.id).where(MINE).add_cte(_all_agents),
    "a hint": select(A.id).where(MINE).with_statement_hint("x"),
    "a UNION": union_all(select(A.id).where(MINE), select(A.id)),
    "a UNION inside": select(union_all(select(A.id).where(MINE), select(A.id)).subquery().c.id),
    "a second tenant": select(A.id).where(or_(MINE, A.tenant_id == "rival")),
    "an UPDATE by a subquery": update(agents)
    .where(MINE)
    .values(name=select(func.max(L.id)).scalar_subquery()),
    "an UPDATE that gives rows away": update(agents).where(MINE).values(tenant_id="rival"),
    "an UPDATE with OR": update(agents).where(or_(MINE, A.id == "b")).values(name="x"),
    "an UPDATE of two tables": update(agents).where(MINE, L.agent_id == A.id).values(name=L.id),
    "a DELETE with OR": delete(agents).where(or_(MINE, A.id == "b")),
    "a DELETE by a subquery": delete(agents).where(MINE, A.id.in_(select(T.lesson_id))),
    "an INSERT for another tenant": insert(settings_).values(tenant_id="rival", key="k", value="v"),
    "an INSERT of several rows": insert(settings_).values(
        [{"tenant_id": tenant, "key": "k", "value": "v"} for tenant in ("acme", "rival")]
    ),
    "an INSERT with a tenant from elsewhere": insert(settings_).values(
        tenant_id=select(func.max(L.tenant_id)).scalar_subquery(), key="k", value="v"
    ),
    "an INSERT of what is anybody's": insert(settings_).from_select(
        ["tenant_id", "key", "value"], select(A.tenant_id, A.id, A.name)
    ),
    "an INSERT that moves rows": insert(settings_).from_select(
        ["tenant_id", "key", "value"], select(literal("rival"), A.id, A.name).where(MINE)
    ),
    "an INSERT with a name as its tenant": insert(settings_).from_select(
        ["tenant_id", "key", "value"], select(A.name, A.id, A.tenant_id).where(MINE)
    ),
    "an upsert by another key": upserting(metadata.tables["events"])
    .values(tenant_id="acme", cursor=1)
    .on_conflict_do_update(index_elements=["cursor"], set_={"text": "x"}),
    "an upsert that gives rows away": upserting(settings_)
    .values(tenant_id="acme", key="a", value="v")
    .on_conflict_do_update(index_elements=["tenant_id", "key"], set_={"tenant_id": "rival"}),
    "an upsert with a subquery": upserting(settings_)
    .values(tenant_id="acme", key="a", value="v")
    .on_conflict_do_update(
        index_elements=["tenant_id", "key"],
        set_={"value": select(func.max(A.id)).scalar_subquery()},
    ),
    "REPLACE": insert(settings_)
    .prefix_with("OR REPLACE")
    .values(tenant_id="acme", key="a", value="v"),
}


@pytest.mark.filterwarnings("ignore:SELECT statement has a cartesian product")
@pytest.mark.filterwarnings("ignore:Column .* is marked as a member of the primary key")
@pytest.mark.parametrize("statement", GETS_BY.values(), ids=GETS_BY.keys())
def test_a_tenant_that_is_only_mentioned_is_not_bound(
    statement: Any, connection: Connection
) -> None:
    with pytest.raises(TenantNotBound):
        connection.execute(statement)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT id FROM agents WHERE tenant_id = ?",
        "INSERT INTO settings (tenant_id, key, value) VALUES (?, 'k', 'v')",
        "ATTACH DATABASE ? AS other",
        "PRAGMA writable_schema = ON -- ?",
    ],
)
def test_sql_that_is_text_is_refused_whatever_it_says(sql: str, connection: Connection) -> None:
    with pytest.raises(TenantNotBound):
        connection.exec_driver_sql(sql, ("acme",))


_mine = select(A.id, A.tenant_id).where(MINE)
_later = select(A.id).where(A.tenant_id == bindparam("whose"))

BOUND = {
    "a comparison": select(A.id).where(MINE),
    "the other way round": select(A.id).where(literal("acme") == A.tenant_id),
    "one condition of several": select(A.id).where(or_(A.id == "a", A.id == "b"), MINE),
    "conditions in conditions": select(A.id).where(and_(A.id == "a", and_(MINE, A.name == "a"))),
    "without an index": select(A.id).where(unindexed(A.tenant_id) == "acme"),
    "a count": select(func.count()).select_from(agents).where(MINE),
    "a join by the tenant": select(A.id).join(lessons, L.tenant_id == A.tenant_id).where(MINE),
    "a chain of joins": select(A.id)
    .join(lessons, L.tenant_id == A.tenant_id)
    .join(tags, T.tenant_id == L.tenant_id)
    .where(MINE),
    "an outer join": select(A.id).outerjoin(lessons, L.tenant_id == A.tenant_id).where(MINE),
    "a subquery": select(A.id).where(
        MINE, A.id.in_(select(T.lesson_id).where(T.tenant_id == "acme"))
    ),
    "WITH": select(_mine.cte("mine").c.id),
    "a UNION": union_all(_mine, _mine),
    "a list from JSON": select(A.id).where(
        MINE, A.id.in_(select(func.json_each("[]").table_valued("value").c.value))
    ),
    "UPDATE": update(agents).where(MINE).values(name=A.name),
    "DELETE": delete(agents).where(MINE),
    "INSERT": insert(settings_).values(tenant_id="acme", key="k", value="v"),
    "INSERT of what is read": insert(settings_).from_select(
        ["tenant_id", "key", "value"], select(A.tenant_id, A.name + "!", A.name).where(MINE)
    ),
    "an upsert": (
        said := upserting(settings_).values(tenant_id="acme", key="a", value="v")
    ).on_conflict_do_update(
        index_elements=["tenant_id", "key"], set_={"value": said.excluded.value}
    ),
    "no tenant's table": select(literal(1)),
}


@pytest.mark.parametrize("statement", BOUND.values(), ids=BOUND.keys())
def test_a_statement_that_binds_its_tenant_runs(statement: Any, connection: Connection) -> None:
    connection.execute(statement)


def test_the_tenant_that_a_call_gives_is_compared_each_time(connection: Connection) -> None:
    assert connection.execute(_later, {"whose": "acme"}).scalars().all() == ["a", "b"]
    with pytest.raises(TenantNotBound):
        connection.execute(_later, {"whose": "rival"})
    rows = [{"tenant_id": tenant, "key": "k", "value": ""} for tenant in ("acme", "rival")]
    with pytest.raises(TenantNotBound):
        connection.execute(insert(settings_), rows)
    with pytest.raises(TenantNotBound):
        insert_rows(connection, settings_, rows)
    insert_rows(connection, settings_, rows[:1])


@pytest.mark.filterwarnings("ignore:Column .* is marked as a member of the primary key")
def test_a_prepared_insert_must_name_the_tenant() -> None:
    with pytest.raises(TenantNotBound):
        Prepared(insert(settings_), ["key", "value"])


def test_a_statement_is_read_once_and_not_for_each_tenant(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []

    def counted(compiled: SQLCompiler, guarded: Collection[str]) -> frozenset[str]:
        read.append(str(compiled))
        return tenant_parameters(compiled, guarded)

    monkeypatch.setattr(guard, "tenant_parameters", counted)
    monkeypatch.setattr(guard, "_read", {})
    for tenant in ("one", "two"):
        (tmp_path / tenant).mkdir()
        with closing(_of(tenant, tmp_path / tenant)) as store, store.read() as unit:
            for _ in range(3):
                unit._connection.execute(select(A.id).where(A.tenant_id == tenant))
    assert len(read) == 1


def _conditions(*tenants: Any) -> st.SearchStrategy[Any]:
    columns = st.sampled_from(tenants)
    equal = st.builds(
        lambda one, other: one == other, columns, st.one_of(columns, st.just(literal("acme")))
    )
    plain = st.sampled_from([A.id == _other.c.id, _other.c.id != "b", A.name != "z"])
    return (
        st.just(true())
        | st.builds(and_, equal, equal)
        | st.recursive(
            st.one_of(equal, equal, plain),
            lambda inner: st.one_of(
                st.builds(and_, inner, inner), st.builds(or_, inner, inner), st.builds(not_, inner)
            ),
            max_leaves=4,
        )
    )


@pytest.mark.filterwarnings("ignore:SELECT statement has a cartesian product")
@settings(
    max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    where=_conditions(A.tenant_id, _other.c.tenant_id, settings_.c.tenant_id),
    on=_conditions(A.tenant_id, _other.c.tenant_id),
    kind=st.sampled_from(["inner", "left", "full"]),
)
def test_what_runs_reads_rows_of_one_tenant_alone(
    store: SqliteTenantStore, where: Any, on: Any, kind: str
) -> None:
    """Whatever conditions are put together: what is not refused shows nothing of the other."""
    joined = agents.join(_other, on, isouter=kind == "left", full=kind == "full")
    query = select(A.tenant_id, _other.c.tenant_id).select_from(joined).where(where)
    with store.read() as unit:
        try:
            rows = unit._connection.execute(query).all()
        except TenantNotBound:
            return
    assert {tenant for row in rows for tenant in row} <= {"acme", None}


def test_a_prepared_statement_reads_rows_with_names_and_values_as_they_were_written(
    connection: Connection,
) -> None:
    columns = metadata.tables["documents"].c
    row = {column.name: "" for column in columns} | {
        "doc_id": 7_000, "tenant_id": "acme", "kind": "memory", "timestamp": 5, "position": 0,
        "importance": 2, "archived": True, "severity": 0, "shape": 0, "tags": "[]",
    }  # fmt: skip
    insert_rows(connection, metadata.tables["documents"], [row])
    read = Prepared(
        select(columns.doc_id, columns.archived, columns.kind).where(
            columns.tenant_id == bindparam("tenant"), columns.timestamp == 5
        )
    )
    (found,) = read.all(connection, {"tenant": "acme"})
    assert (found.doc_id, found.archived, found.kind) == tuple(found) == (7_000, True, "memory")
    assert type(found.archived) is bool
    assert read.first(connection, {"tenant": "acme"}) == found
    with pytest.raises(TenantNotBound):
        read.all(connection, {"tenant": "rival"})


def test_an_error_of_a_prepared_statement_is_that_of_one_that_is_not(
    connection: Connection,
) -> None:
    row = {"tenant_id": "acme", "key": "twice", "value": ""}
    insert_rows(connection, settings_, [row])
    for again in (
        lambda: insert_rows(connection, settings_, [row]),
        lambda: connection.execute(insert(settings_), [row]),
    ):
        with pytest.raises(IntegrityError, match="UNIQUE constraint failed"):
            again()
