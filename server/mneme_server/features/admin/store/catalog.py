"""The catalog: one small database with the tenants and the API keys of the server, and where moved
tenants are.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Connection,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Row,
    String,
    Table,
    bindparam,
    delete,
    false,
    insert,
    select,
    tuple_,
    update,
)
from sqlalchemy.exc import IntegrityError

from mneme_server.common.errors import AlreadyExists, NotFound
from mneme_server.common.identity import Caller, KeyScope
from mneme_server.common.pages import parts
from mneme_server.engine.cluster.placements import HOME, Placement
from mneme_server.engine.store.connections import Database
from mneme_server.engine.store.engine import SqliteDatabase
from mneme_server.engine.store.migrate import migrate
from mneme_server.engine.store.rows import chunks
from mneme_server.engine.store.tenant_states import ACTIVE, ARRIVING, DELETING, GUEST, MOVED
from mneme_server.features.admin.model import ApiKey, Tenant
from mneme_server.features.admin.ports import KeyFilter

_AT_ONCE = 500
"""Names that are asked for at once."""
MIGRATIONS = Path(__file__).parent / "migrations"

metadata = MetaData()

tenants = Table(
    "tenants",
    metadata,
    Column("id", String, primary_key=True),
    Column("display_name", String, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("state", String, nullable=False),
    Column("dirty", Boolean, nullable=False),
)

api_keys = Table(
    "api_keys",
    metadata,
    Column("id", String, primary_key=True),
    Column("tenant_id", String, ForeignKey("tenants.id", ondelete="CASCADE"), nullable=False),
    Column("key_hash", LargeBinary(32), nullable=False, unique=True),
    Column("prefix", String, nullable=False),
    Column("name", String, nullable=False),
    Column("scopes", String, nullable=False),
    Column("rate_limit", Integer, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("last_used_at", BigInteger),
    Column("revoked_at", BigInteger),
    # Whether a start of the server made it, and the next one may replace it.
    Column("bootstrap", Boolean, nullable=False, server_default=false()),
    Index("ix_api_keys_tenant_created", "tenant_id", "created_at", "id"),
    Index("ix_api_keys_created", "created_at", "id"),
)

moves = Table(
    "tenant_moves",
    metadata,
    Column("tenant_id", String, primary_key=True),
    Column("id", String, nullable=False),
    # Where it lives now; empty while it arrives.
    Column("place", String, nullable=False),
    Column("moved_at", BigInteger, nullable=False),
)
places = Table(
    "tenant_places",
    metadata,
    Column("tenant_id", String, primary_key=True),
    # The name of the database that its rows are in; empty: beside the catalog.
    Column("place", String, nullable=False),
    # Where others of it may lie that are not its own; none where there are none.
    Column("other", String),
    # The move that it came by, or goes by.
    Column("move", String, nullable=False),
)

_NOT_HERE = {
    ARRIVING: " yet: it is being moved here, and `mneme-server migrate`, run again, ends that",
    GUEST: " here: another server keeps it in this database",
    MOVED: " any more: it was moved to another place by `mneme-server migrate`",
}
"""Why one that the catalog knows cannot be opened."""
_FIND = select(api_keys).where(api_keys.c.key_hash == bindparam("hash"))


class Catalog:
    """The catalog database. `tenants` and `keys` are its two halves; capabilities may have
    tables of their own in its `database`.

    Args:
        kept: the file, made when missing; or a database that has been migrated.
        branches: folders of revisions of the tables that capabilities have in the file.

    Raises:
        FailedPrecondition: SCHEMA_ERROR, a newer version made it; DATABASE_ERROR, it is damaged.
    """

    def __init__(self, kept: Path | Database, *branches: Path) -> None:
        self.database = _of_file(kept, *branches) if isinstance(kept, Path) else kept
        self.tenants = SqlTenants(self.database)
        self.keys = SqlKeys(self.database)

    def close(self) -> None:
        """Close the file."""
        self.database.close()


def _of_file(path: Path, *branches: Path) -> Database:
    database = SqliteDatabase(path)
    try:
        migrate(database, MIGRATIONS, *branches)
    except BaseException:
        database.close()
        raise
    return database


class SqlTenants:
    """The tenants. One that is being deleted is not there any more for `get` and `list`. Implements
    `engine.runtime.KnownTenants`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, tenant: Tenant) -> None:
        """Add a tenant, or raise AlreadyExists."""
        row = {
            "id": tenant.id,
            "display_name": tenant.display_name,
            "created_at": tenant.created_at_us,
            "state": ACTIVE,
            "dirty": False,
        }
        try:
            with self._database.write() as connection:
                connection.execute(insert(tenants), row)
        except IntegrityError as error:
            raise AlreadyExists(
                f"the tenant {tenant.id} already exists", field="tenant_id"
            ) from error

    def get(self, tenant_id: str) -> Tenant:
        """Return a tenant, or raise NotFound."""
        with self._database.read() as connection:
            return _tenant(connection, tenant_id)

    def list(self, after_id: str, limit: int) -> Sequence[Tenant]:
        """Return up to `limit` tenants whose ids are greater, by id."""
        query = (
            select(tenants)
            .where(tenants.c.id > after_id, tenants.c.state == ACTIVE)
            .order_by(tenants.c.id)
            .limit(limit)
        )
        with self._database.read() as connection:
            return [_to_tenant(row) for row in connection.execute(query)]

    def created_us(self, tenant_id: str) -> int:
        """Return when a tenant was created, also one that is being deleted, or raise NotFound."""
        query = select(tenants.c.created_at).where(tenants.c.id == tenant_id)
        with self._database.read() as connection:
            found = connection.execute(query).scalar()
        if found is None:
            raise _no_tenant(tenant_id)
        return int(found)

    def require_deleting(self, tenant_id: str, created_us: int) -> None:
        """Check that the tenant that was created then is being deleted, or raise NotFound."""
        query = select(tenants.c.created_at).where(
            tenants.c.id == tenant_id, tenants.c.state == DELETING
        )
        with self._database.read() as connection:
            if connection.execute(query).scalar() != created_us:
                raise _no_tenant(tenant_id)

    def mark_deleting(self, tenant_id: str, now_us: int, created_us: int) -> None:
        """Take the tenant that was created then out of service and revoke its keys, or raise
        NotFound."""
        mark = (
            update(tenants)
            .where(tenants.c.id == tenant_id, tenants.c.created_at == created_us)
            .values(state=DELETING)
        )
        revoke = (
            update(api_keys)
            .where(api_keys.c.tenant_id == tenant_id, api_keys.c.revoked_at.is_(None))
            .values(revoked_at=now_us)
        )
        with self._database.write() as connection:
            if connection.execute(mark).rowcount == 0:
                raise _no_tenant(tenant_id)
            connection.execute(revoke)

    def being_deleted(self) -> Mapping[str, int]:
        """Return the tenants whose deletion has begun and not ended, and when they were created."""
        query = (
            select(tenants.c.id, tenants.c.created_at)
            .where(tenants.c.state == DELETING)
            .order_by(tenants.c.id)
        )
        with self._database.read() as connection:
            return {row.id: row.created_at for row in connection.execute(query)}

    def remove(self, tenant_id: str, created_us: int) -> None:
        """Remove the row of the tenant that was created then and, through the foreign key, its
        keys."""
        statement = delete(tenants).where(
            tenants.c.id == tenant_id, tenants.c.created_at == created_us
        )
        with self._database.write() as connection:
            connection.execute(statement)

    def mark_dirty(self, tenant_id: str) -> None:
        """Note that the tenant has work left."""
        self._mark(tenant_id, dirty=True)

    def mark_clean(self, tenant_id: str) -> None:
        """Note that the tenant has no work left."""
        self._mark(tenant_id, dirty=False)

    def served(self, names: Collection[str]) -> Collection[str]:
        """Return those of the names that are tenants'."""
        found: set[str] = set()
        for some in parts(list(names), _AT_ONCE):
            query = select(tenants.c.id).where(tenants.c.id.in_(some), tenants.c.state == ACTIVE)
            with self._database.read() as connection:
                found.update(connection.execute(query).scalars())
        return found

    def dirty_tenants(self) -> Sequence[str]:
        """Return the tenants with work left, by id; those being deleted have none."""
        query = (
            select(tenants.c.id)
            .where(tenants.c.dirty.is_(True), tenants.c.state == ACTIVE)
            .order_by(tenants.c.id)
        )
        with self._database.read() as connection:
            return list(connection.execute(query).scalars())

    def _mark(self, tenant_id: str, *, dirty: bool) -> None:
        statement = update(tenants).where(tenants.c.id == tenant_id).values(dirty=dirty)
        with self._database.write() as connection:
            connection.execute(statement)


class SqlKeys:
    """The API keys; implements `features.admin.ports.KeyCatalog`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, key: ApiKey, key_hash: bytes, *, bootstrap: bool = False) -> None:
        """Add a key, or raise NotFound without its tenant and AlreadyExists with its hash. With
        `bootstrap` it takes the place of those that were added so before: they are revoked."""
        row = {
            "id": key.id,
            "tenant_id": key.tenant_id,
            "key_hash": key_hash,
            "prefix": key.prefix,
            "name": key.name,
            "scopes": ",".join(scope.name.lower() for scope in sorted(key.scopes)),
            "rate_limit": key.rate_limit,
            "created_at": key.created_at_us,
            "bootstrap": bootstrap,
        }
        with self._database.write() as connection:
            _tenant(connection, key.tenant_id)
            if bootstrap:
                _revoke_bootstrap(connection, key.created_at_us, but=key.id)
            try:
                connection.execute(insert(api_keys), row)
            except IntegrityError as error:
                raise AlreadyExists("an API key with this secret already exists") from error

    def get(self, key_id: str) -> ApiKey:
        """Return a key, revoked or not, or raise NotFound."""
        with self._database.read() as connection:
            return _key(connection, key_id)

    def find(self, key_hash: bytes) -> ApiKey | None:
        """Return the key with this hash, revoked or not."""
        with self._database.read() as connection:
            row = connection.execute(_FIND, {"hash": key_hash}).first()
        return None if row is None else _to_key(row)

    def list(
        self, filter_: KeyFilter, after: tuple[int, str] | None, limit: int
    ) -> Sequence[ApiKey]:
        """Return up to `limit` keys after (creation time, id), in that order."""
        place = tuple_(api_keys.c.created_at, api_keys.c.id)
        query = select(api_keys).order_by(api_keys.c.created_at, api_keys.c.id).limit(limit)
        if filter_.tenant_id:
            query = query.where(api_keys.c.tenant_id == filter_.tenant_id)
        if not filter_.include_revoked:
            query = query.where(api_keys.c.revoked_at.is_(None))
        if after is not None:
            query = query.where(place > after)
        with self._database.read() as connection:
            return [_to_key(row) for row in connection.execute(query)]

    def callers(self, key_ids: Collection[str]) -> Mapping[str, Caller]:
        """Return whom keys let in, by their ids, as far as they are not revoked."""
        found: dict[str, Caller] = {}
        for some in parts(list(key_ids), _AT_ONCE):
            query = select(api_keys).where(api_keys.c.id.in_(some), api_keys.c.revoked_at.is_(None))
            with self._database.read() as connection:
                found |= {row.id: _to_key(row).caller() for row in connection.execute(query)}
        return found

    def revoke(self, key_id: str, now_us: int) -> ApiKey:
        """Revoke a key, or raise NotFound; one that is revoked keeps its time."""
        statement = (
            update(api_keys)
            .where(api_keys.c.id == key_id, api_keys.c.revoked_at.is_(None))
            .values(revoked_at=now_us)
        )
        with self._database.write() as connection:
            connection.execute(statement)
            return _key(connection, key_id)

    def restore_admin(self, key_id: str, now_us: int) -> None:
        """Have a key be the one that lets the operator in: undo its revocation, and revoke those
        that were made by a start before."""
        statement = update(api_keys).where(api_keys.c.id == key_id).values(revoked_at=None)
        with self._database.write() as connection:
            _revoke_bootstrap(connection, now_us, but=key_id)
            connection.execute(statement)

    def has_admin(self) -> bool:
        """Tell whether a key with scope admin exists that is not revoked."""
        query = select(api_keys.c.scopes).where(
            api_keys.c.revoked_at.is_(None), api_keys.c.scopes.contains("admin")
        )
        with self._database.read() as connection:
            return connection.execute(query).first() is not None

    def touch(self, used_at_us: Mapping[str, int]) -> None:
        """Note when keys, by id, were last used."""
        statement = (
            update(api_keys)
            .where(api_keys.c.id == bindparam("key"))
            .values(last_used_at=bindparam("used"))
        )
        rows = [{"key": key_id, "used": used} for key_id, used in used_at_us.items()]
        if rows:
            with self._database.write() as connection:
                connection.execute(statement, rows)


class SqlPlacements:
    """Where the rows of tenants are that were moved while they were served, in the catalog.

    Implements `engine.cluster.placements.Placements`.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def of(self, tenant_id: str) -> Placement:
        query = select(places).where(places.c.tenant_id == tenant_id)
        with self._database.read() as connection:
            row = connection.execute(query).first()
        return Placement() if row is None else Placement(row.place, row.other, row.move)

    def places_of(self, tenant_ids: Collection[str]) -> Mapping[str, str]:
        found: dict[str, str] = {}
        with self._database.read() as connection:
            for some in chunks(tenant_ids):
                query = select(places.c.tenant_id, places.c.place).where(
                    places.c.tenant_id.in_(some), places.c.place != HOME
                )
                found |= {row.tenant_id: row.place for row in connection.execute(query)}
        return found

    def put(self, tenant_id: str, placement: Placement) -> None:
        """See `Placements`; what it says of who is at home, and nowhere else, needs no row."""
        row = {"place": placement.place, "other": placement.other, "move": placement.move}
        with self._database.write() as connection:
            connection.execute(delete(places).where(places.c.tenant_id == tenant_id))
            if placement.place != HOME or placement.other is not None:
                connection.execute(insert(places), row | {"tenant_id": tenant_id})

    def unsettled(self) -> Sequence[str]:
        query = select(places.c.tenant_id).where(places.c.other.is_not(None))
        with self._database.read() as connection:
            return connection.execute(query.order_by(places.c.tenant_id)).scalars().all()


def _revoke_bootstrap(connection: Connection, now_us: int, but: str) -> None:
    others = (api_keys.c.bootstrap.is_(True), api_keys.c.revoked_at.is_(None), api_keys.c.id != but)
    connection.execute(update(api_keys).where(*others).values(revoked_at=now_us))


def _tenant(connection: Connection, tenant_id: str) -> Tenant:
    row = connection.execute(select(tenants).where(tenants.c.id == tenant_id)).first()
    if row is None or row.state != ACTIVE:
        raise _no_tenant(tenant_id, "" if row is None else _NOT_HERE.get(row.state, ""))
    return _to_tenant(row)


def _key(connection: Connection, key_id: str) -> ApiKey:
    row = connection.execute(select(api_keys).where(api_keys.c.id == key_id)).first()
    if row is None:
        raise NotFound(f"there is no API key {key_id}", field="api_key_id")
    return _to_key(row)


def _no_tenant(tenant_id: str, why: str = "") -> NotFound:
    return NotFound(f"there is no tenant {tenant_id}{why}", field="tenant_id")


def _to_tenant(row: Row[tuple[object, ...]]) -> Tenant:
    return Tenant(row.id, row.display_name, row.created_at)


def _to_key(row: Row[tuple[object, ...]]) -> ApiKey:
    return ApiKey(
        id=row.id,
        tenant_id=row.tenant_id,
        name=row.name,
        scopes=frozenset(KeyScope[name.upper()] for name in row.scopes.split(",")),
        rate_limit=row.rate_limit,
        prefix=row.prefix,
        created_at_us=row.created_at,
        last_used_at_us=row.last_used_at,
        revoked_at_us=row.revoked_at,
    )
