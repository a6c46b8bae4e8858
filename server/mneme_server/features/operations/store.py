"""Operations in the catalog: they outlive the tenants that they work on."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Connection,
    Index,
    Integer,
    MetaData,
    Row,
    String,
    Table,
    Text,
    delete,
    func,
    insert,
    select,
    update,
)

from mneme_server.common.canonical import JsonObject, canonical_json
from mneme_server.common.errors import NotFound, Reason, ResourceExhausted
from mneme_server.common.identity import KeyScope
from mneme_server.common.progress import Progress
from mneme_server.common.stored import reads
from mneme_server.engine.store.connections import Database
from mneme_server.features.operations.model import (
    UNFINISHED,
    Operation,
    OperationFilter,
    OperationKey,
    OperationState,
)

metadata = MetaData()

operations = Table(
    "operations",
    metadata,
    Column("number", Integer, primary_key=True),
    Column("owner", String, nullable=False),
    Column("id", String, nullable=False),
    Column("kind", String, nullable=False),
    Column("tenant_id", String, nullable=False),
    Column("scope", Integer, nullable=False),
    # The key that started it; "": none did.
    Column("key_id", String, nullable=False, server_default=""),
    Column("request", Text, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("state", Integer, nullable=False),
    Column("cancellable", Boolean, nullable=False),
    Column("cancel_requested", Boolean, nullable=False),
    Column("progress", Text),
    Column("attempts", Integer, nullable=False),
    Column("started_at", BigInteger),
    Column("ended_at", BigInteger),
    Column("expires_at", BigInteger),
    Column("kept", Text, nullable=False),
    Column("result", Text),
    Column("error", Text),
    Index("ix_operations_key", "owner", "id", unique=True),
    Index("ix_operations_tenant", "tenant_id", "number"),
    sqlite_autoincrement=True,
)

_c = operations.c
_RETRY_S = 60.0


class SqlOperations:
    """The operations. Each method is one transaction, durable when it returns."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, operation: Operation, most_unfinished: int) -> Operation:
        """Add an operation that waits, and return it, or the one that has its key already.

        Raises:
            ResourceExhausted: as many of this owner's have not ended.
        """
        with self._database.write() as connection:
            known = _find(connection, operation.key)
            if known is not None:
                return known
            waiting = select(func.count()).where(
                _c.owner == operation.key.owner, _c.state.in_(UNFINISHED)
            )
            if connection.execute(waiting).scalar_one() >= most_unfinished:
                raise ResourceExhausted(
                    f"{most_unfinished} operations have been started and not ended;"
                    " wait for some of them, or cancel them",
                    reason=Reason.QUOTA_EXCEEDED,
                    retry_after_s=_RETRY_S,
                )
            connection.execute(insert(operations), _row(operation))
            return _get(connection, operation.key)

    def get(self, key: OperationKey) -> Operation | None:
        """Return an operation, or None."""
        with self._database.read() as connection:
            return _find(connection, key)

    def list(self, filter_: OperationFilter, before: int | None, limit: int) -> Sequence[Operation]:
        """Return up to `limit` operations with smaller numbers, the newest first."""
        query = select(operations).order_by(_c.number.desc()).limit(limit)
        if filter_.owner is not None:
            query = query.where(_c.owner == filter_.owner)
        if filter_.tenant_id:
            query = query.where(_c.tenant_id == filter_.tenant_id)
        if filter_.kind:
            query = query.where(_c.kind == filter_.kind)
        if filter_.states:
            query = query.where(_c.state.in_(filter_.states))
        if filter_.scopes:
            query = query.where(_c.scope.in_(filter_.scopes))
        if before is not None:
            query = query.where(_c.number < before)
        with self._database.read() as connection:
            return [_operation(row) for row in connection.execute(query)]

    def unfinished(self) -> Sequence[Operation]:
        """Return those that have not ended, the oldest first."""
        query = select(operations).where(_c.state.in_(UNFINISHED)).order_by(_c.number)
        with self._database.read() as connection:
            return [_operation(row) for row in connection.execute(query)]

    def begin(self, key: OperationKey, now_us: int) -> Operation:
        """Note that an operation runs, once more."""
        statement = (
            update(operations)
            .where(*_is(key))
            .values(
                state=OperationState.RUNNING,
                attempts=_c.attempts + 1,
                started_at=func.coalesce(_c.started_at, now_us),
            )
        )
        with self._database.write() as connection:
            connection.execute(statement)
            return _get(connection, key)

    def keep(self, key: OperationKey, facts: dict[str, Any], *, committed: bool) -> bool:
        """Add facts to what is kept, and note that it cannot be cancelled any more if `committed`;
        False, and nothing is changed, if it is to be cancelled."""
        with self._database.write() as connection:
            known = _get(connection, key)
            if known.cancel_requested:
                return False
            connection.execute(
                update(operations)
                .where(*_is(key))
                .values(
                    kept=canonical_json({**known.kept, **facts}),
                    cancellable=known.cancellable and not committed,
                )
            )
        return True

    def request_cancel(self, key: OperationKey) -> Operation | None:
        """Note that it is to be cancelled if it still can be; return it, or None."""
        statement = (
            update(operations)
            .where(*_is(key), _c.cancellable.is_(True), _c.state.in_(UNFINISHED))
            .values(cancel_requested=True)
        )
        with self._database.write() as connection:
            connection.execute(statement)
            return _find(connection, key)

    def finish(
        self,
        key: OperationKey,
        state: OperationState,
        *,
        now_us: int,
        expires_us: int,
        progress: Progress | None = None,
        result: JsonObject | None = None,
        error: JsonObject | None = None,
    ) -> None:
        """Note how it ended, unless it was removed meanwhile."""
        statement = (
            update(operations)
            .where(*_is(key))
            .values(
                state=state,
                cancellable=False,
                ended_at=now_us,
                expires_at=expires_us,
                progress=_progress_text(progress),
                result=None if result is None else canonical_json(result),
                error=None if error is None else canonical_json(error),
            )
        )
        with self._database.write() as connection:
            connection.execute(statement)

    def remove_ended_of(self, owner: str) -> None:
        """Remove the operations of an owner that have ended."""
        ended = (_c.owner == owner, _c.state.not_in(UNFINISHED))
        with self._database.write() as connection:
            connection.execute(delete(operations).where(*ended))

    def remove_of(self, owner: str) -> None:
        """Remove all operations of an owner."""
        with self._database.write() as connection:
            connection.execute(delete(operations).where(_c.owner == owner))

    def remove_expired(self, now_us: int) -> None:
        """Remove those that ended long enough ago."""
        with self._database.write() as connection:
            connection.execute(delete(operations).where(_c.expires_at <= now_us))


def _is(key: OperationKey) -> tuple[Any, Any]:
    return _c.owner == key.owner, _c.id == key.id


def _find(connection: Connection, key: OperationKey) -> Operation | None:
    row = connection.execute(select(operations).where(*_is(key))).first()
    return None if row is None else _operation(row)


def _get(connection: Connection, key: OperationKey) -> Operation:
    found = _find(connection, key)
    if found is None:
        raise NotFound(f"there is no operation {key.id}", field="id")
    return found


def _row(operation: Operation) -> dict[str, Any]:
    return {
        "owner": operation.key.owner,
        "id": operation.key.id,
        "kind": operation.kind,
        "tenant_id": operation.tenant_id,
        "scope": operation.scope,
        "key_id": operation.key_id,
        "request": canonical_json(operation.request),
        "created_at": operation.created_us,
        "state": operation.state,
        "cancellable": operation.cancellable,
        "cancel_requested": operation.cancel_requested,
        "attempts": operation.attempts,
        "kept": canonical_json(operation.kept),
    }


def _progress_text(progress: Progress | None) -> str | None:
    if progress is None:
        return None
    return canonical_json([progress.stage, progress.done, progress.total])


def _json(text: str | None) -> Any:
    return None if text is None else json.loads(text)


@reads("operation")
def _operation(row: Row[Any]) -> Operation:
    return Operation(
        key=OperationKey(row.owner, row.id),
        kind=row.kind,
        tenant_id=row.tenant_id,
        scope=KeyScope(row.scope),
        key_id=row.key_id,
        request=_json(row.request),
        created_us=row.created_at,
        state=OperationState(row.state),
        cancellable=row.cancellable,
        cancel_requested=row.cancel_requested,
        progress=None if row.progress is None else Progress(*_json(row.progress)),
        attempts=row.attempts,
        started_us=row.started_at,
        ended_us=row.ended_at,
        expires_us=row.expires_at,
        kept=_json(row.kept),
        result=_json(row.result),
        error=_json(row.error),
        number=row.number,
    )
