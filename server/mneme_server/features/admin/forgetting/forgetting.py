"""Forgetting: told before, hidden at once, erased for good by an operation."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from mneme_server.common.canonical import JsonObject, canonical_json
from mneme_server.common.clock import now_us
from mneme_server.common.errors import (
    AlreadyExists,
    DataLoss,
    FailedPrecondition,
    InvalidArgument,
    NotFound,
)
from mneme_server.engine.corpus.feed import ranges
from mneme_server.engine.corpus.forgetting import (
    AGENT,
    PROJECT,
    SESSION,
    TAG,
    USER,
    ForgetFilter,
    ForgetSelection,
    Forgetter,
    Items,
    Places,
    WhileForgetting,
    beyond,
    merged,
    named_of,
    only_named,
    things,
)
from mneme_server.engine.corpus.tenant import OpenTenant, OpenTenants
from mneme_server.features.admin.forgetting.model import Forgetting, ForgettingOutcome
from mneme_server.features.admin.forgetting.ports import (
    ForgettableLog,
    ForgettingStore,
    ForgettingUnit,
    Signer,
)
from mneme_server.features.admin.forgetting.store import SqlForgettingCatalog, SqlForgettings

POLICY = "policy"
"""The kind of things that are named, not only counted."""
_NAMED = {"user_id": USER, "agent_id": AGENT, "session_id": SESSION, "project": PROJECT}
_FILTER = "filter"


@dataclass(slots=True)
class Forget:
    """Finds and erases what is kept of somebody.

    Args:
        tenants: where tenants are lent.
        catalog: what tenants were asked to forget.
        signer: signs what is marked as forgotten.
        held: what each capability does about what it keeps outside of the database.
        kept_elsewhere: returns for how long copies hold what is deleted that cannot be rewritten,
            in microseconds; raises FailedPrecondition where nobody has said.
    """

    tenants: OpenTenants[ForgettingUnit]
    catalog: SqlForgettingCatalog
    signer: Signer
    held: Sequence[WhileForgetting] = ()
    kept_elsewhere: Callable[[], int] = int
    _found: dict[tuple[str, str], Items] = field(default_factory=dict)

    def preview(self, tenant_id: str, selection: ForgetSelection) -> ForgettingOutcome:
        """Return what forgetting this would come to now.

        Raises:
            InvalidArgument: it names a kind of things that there is not.
        """
        with self.tenants.open(tenant_id) as tenant, tenant.read() as unit:
            return outcome_of(find(unit.forgetters, selection))

    def asked(self, tenant_id: str, selection: ForgetSelection) -> JsonObject:
        """Return what is kept of a selection: hashes, no names."""
        return hashed(selection, self.catalog.salt(tenant_id))

    def hide(self, tenant_id: str, forgetting_id: str, selection: ForgetSelection) -> None:
        """Delete all that a selection names and what follows from it, in one transaction: from then
        on nobody finds it. What the files still hold of it `erasure.Erase` erases.

        Raises:
            AlreadyExists: the id is that of another forgetting.
            InvalidArgument: it names a kind of things that there is not.
        """
        self.kept_elsewhere()
        asked = self.asked(tenant_id, selection)
        known = self.catalog.get(tenant_id, forgetting_id)
        if known is not None and digest_of(known) != digest_of(asked):
            raise AlreadyExists(
                f"{forgetting_id} is the id of another forgetting", field="operation_id"
            )
        with self.tenants.open(tenant_id) as tenant:
            with tenant.read() as unit:  # Before anything is written that a bad request leaves.
                unit.require_overwriting()
                find(unit.forgetters, selection)
                if unit.get(SqlForgettings).get(forgetting_id) is not None:
                    return
            self.catalog.add(tenant_id, forgetting_id, asked, now_us())
            self._delete(tenant, forgetting_id, [selection])

    def hide_again(self, tenant_id: str, forgetting_id: str) -> Forgetting:
        """Do what `hide` did not come to, because the server stopped, and find what was written
        since by calls that had read before it; return what was forgotten.

        Raises:
            NotFound: the tenant was deleted meanwhile, and all that was to be forgotten with it.
        """
        asked = self.catalog.get(tenant_id, forgetting_id)
        if asked is None:
            raise NotFound(f"there is no tenant {tenant_id}: it was deleted meanwhile")
        with self.tenants.open(tenant_id) as tenant:
            found = self._found.pop((tenant_id, forgetting_id), None)
            with tenant.read() as unit:
                known = unit.get(SqlForgettings).get(forgetting_id)
            if known is not None and known.erased_us is not None:
                return known
            if known is None:
                with tenant.read() as unit:
                    salt = self.catalog.salt(tenant_id)
                    wanted = selections([asked], unit.forgetters, salt)
                return self._delete(tenant, forgetting_id, wanted)
            if found:
                return self._delete(tenant, forgetting_id, [], found)
            return known

    def get(self, tenant_id: str, forgetting_id: str) -> Forgetting:
        """Return a forgetting that was hidden.

        Raises:
            NotFound: there is none.
        """
        with self.tenants.open(tenant_id) as tenant, tenant.read() as unit:
            found = unit.get(SqlForgettings).get(forgetting_id)
        if found is None:
            raise NotFound(f"nothing was forgotten as {forgetting_id}", field="operation_id")
        return found

    def is_erased(self, tenant_id: str, forgetting_id: str) -> bool:
        """Tell whether a forgetting has its receipt."""
        with self.tenants.open(tenant_id) as tenant, tenant.read() as unit:
            known = unit.get(SqlForgettings).get(forgetting_id)
        return known is not None and known.receipt is not None

    def newest_row(self, tenant_id: str) -> int:
        """Return the number of the newest row of a tenant's feed."""
        with self.tenants.open(tenant_id) as tenant, tenant.read() as unit:
            return unit.feed.head().number

    def save(self, tenant_id: str, forgetting: Forgetting) -> None:
        """Keep what became of a forgetting."""
        with self.tenants.open(tenant_id) as tenant, tenant.write() as unit:
            unit.get(SqlForgettings).save(forgetting)

    def apply(self, tenant_id: str, store: ForgettingStore) -> int:
        """Forget in a backup, before it takes a tenant's place, what was forgotten since it was
        made; return how many forgettings that were."""
        with store.read() as unit:
            done = unit.get(SqlForgettings).ids()
            missing = {
                one: asked
                for one, asked in self.catalog.all_of(tenant_id).items()
                if one not in done
            }
            salt = self.catalog.salt(tenant_id)
        for forgetting_id, asked in missing.items():
            with store.write() as unit:
                wanted = selections([asked], unit.forgetters, salt)
                _delete(unit, forgetting_id, wanted, {}, partial(self.marked, tenant_id))
        if missing:
            store.scrub()
        return len(missing)

    def marked(self, tenant_id: str, forgetting: Forgetting) -> Forgetting:
        """Return it with a signature of what it marks as forgotten. Where nothing can be signed
        now, it is forgotten all the same; its receipt needs a key, and has it signed, too."""
        if forgetting.mark is not None:
            return forgetting
        try:
            mark = self.signer.sign(tenant_id, forgetting.marked(tenant_id))
        except (DataLoss, FailedPrecondition):
            return forgetting
        return replace(forgetting, mark=mark)

    def _delete(
        self,
        tenant: OpenTenant[ForgettingUnit],
        forgetting_id: str,
        wanted: Sequence[ForgetSelection],
        before: Items | None = None,
    ) -> Forgetting:
        with ExitStack() as holding:
            tell = [holding.enter_context(hold(tenant)) for hold in self.held]
            with tenant.write() as unit:
                found, forgetting = _delete(
                    unit,
                    forgetting_id,
                    wanted,
                    before or {},
                    partial(self.marked, tenant.tenant_id),
                )
            for told in tell:
                told(found)
        if before is None:
            self._found[tenant.tenant_id, forgetting_id] = found
        return forgetting


def _delete(
    unit: ForgettingUnit,
    forgetting_id: str,
    wanted: Sequence[ForgetSelection],
    before: Items,
    mark: Callable[[Forgetting], Forgetting],
) -> tuple[Items, Forgetting]:
    """Delete what is wanted in a transaction, and what follows from what was found `before`."""
    forgetters = unit.forgetters
    moved = frozenset[str]().union(*(one.renumbered for one in forgetters))
    stable = {kind: ids for kind, ids in before.items() if kind not in moved}
    found = merged([*(find(forgetters, one) for one in wanted), following(forgetters, stable)])
    leaves, places = erase(unit, found)
    known = unit.get(SqlForgettings).get(forgetting_id)
    if known is None:
        forgetting = Forgetting(
            forgetting_id, outcome_of(found), ranges(leaves), now_us(), places=places
        )
    else:
        forgetting = known.with_more(outcome_of(beyond(found, stable)), leaves, places)
    forgetting = mark(forgetting)
    unit.get(SqlForgettings).save(forgetting)
    return found, forgetting


def find(forgetters: Sequence[Forgetter], selection: ForgetSelection) -> Items:
    """Return what a selection names, and all that follows from it.

    Raises:
        InvalidArgument: it names a kind of things that there is not.
    """
    known = {kind for forgetter in forgetters for kind in forgetter.kinds}
    wanted = {*selection.items, *(selection.filter.kinds if selection.filter else ())}
    if unknown := sorted(wanted - known):
        raise InvalidArgument(
            f"there is nothing of the kind {unknown[0]!r} to forget; kinds are"
            f" {', '.join(sorted(known))}",
            field="kind",
        )
    found = [one.named(selection) for one in forgetters]
    if selection.session_id:  # It may be named by things, though nothing of it was recorded.
        found += [one.derived({SESSION: {selection.session_id}}) for one in forgetters]
    gone = beyond({kind: set(ids) for kind, ids in selection.items.items()}, merged(found))
    # Deleted before, some may be named still: by what is about them, and by the log.
    found += [only_named(gone), *(one.derived(gone) for one in forgetters)]
    return following(forgetters, merged(found))


def following(forgetters: Sequence[Forgetter], new: Items) -> Items:
    """Return these and all that follows from them."""
    found: Items = {}
    while new:
        found = merged([found, new])
        new = beyond(merged(forgetter.derived(new) for forgetter in forgetters), found)
    return found


def outcome_of(found: Items) -> ForgettingOutcome:
    """Return what forgetting these comes to."""
    counted = {kind: len(ids) for kind, ids in sorted(things(found).items())}
    return ForgettingOutcome(counted, sorted(found.get(POLICY, ())))


def erase(unit: ForgettingUnit, found: Items) -> tuple[list[int], Places]:
    """Erase all of these in a transaction; return their leaves in the tenant's log, and the places
    in chains that stay."""
    forgetters = unit.forgetters
    unit.overwrite()
    leaves: set[int] = set()
    now = now_us()
    everything = named_of(found)
    for kind, ids in merged(one.recallable(everything) for one in forgetters).items():
        forgotten = unit.get(ForgettableLog).forget(kind, sorted(ids), now)
        leaves |= {leaf.index for each in forgotten.values() for leaf in each}
    for forgetter in reversed(forgetters):
        forgetter.erase(found, unit)
    places: Places = {}
    for forgetter in forgetters:
        places |= forgetter.places
    return sorted(leaves), places


def hashed(selection: ForgetSelection, salt: bytes) -> JsonObject:
    """Return what is kept of a selection."""
    asked = _names(selection, salt)
    if selection.items:
        asked["items"] = {
            kind: sorted(_hash(salt, kind, one) for one in ids)
            for kind, ids in sorted(selection.items.items())
        }
    filter_ = selection.filter
    if filter_ is not None:
        asked[_FILTER] = _names(filter_, salt) | {
            "kinds": sorted(filter_.kinds),
            "tags": sorted(_hash(salt, TAG, tag) for tag in filter_.tags),
            "start": filter_.start_us,
            "end": filter_.end_us,
        }
    return asked


def digest_of(asked: JsonObject) -> str:
    """Return what tells one selection from another, without a name in it.

    A backup that is put back must forget again what was forgotten since it was made. So the server
    keeps what it was asked for, by hashes: whoever reads them learns no name, and a name that is
    found in a backup gives the same hash.
    """
    return hashlib.sha256(canonical_json(asked).encode()).hexdigest()


def selections(
    asked: Sequence[JsonObject], forgetters: Sequence[Forgetter], salt: bytes
) -> list[ForgetSelection]:
    """Return the selections that a store may have something of, by the names that are in it."""
    known = _Names(forgetters, salt, asked)
    found = (_selection(one, known) for one in asked)
    return [selection for selection in found if selection != ForgetSelection()]


class _Names:
    """The names that a store has, by their hashes."""

    def __init__(
        self, forgetters: Sequence[Forgetter], salt: bytes, asked: Iterable[JsonObject]
    ) -> None:
        wanted = {what for one in asked for what in _whats(one)}
        self._known: dict[str, dict[str, str]] = {
            what: {
                _hash(salt, what, name): name
                for forgetter in forgetters
                for name in forgetter.names(what)
            }
            for what in wanted
        }

    def get(self, what: str, digest: str) -> str:
        """Return a name, or "" where the store has none of this hash."""
        return self._known.get(what, {}).get(digest, "")


def _whats(asked: Mapping[str, Any]) -> set[str]:
    filter_ = asked.get(_FILTER) or {}
    named = {what for field, what in _NAMED.items() if field in asked or field in filter_}
    return named | set(asked.get("items", {})) | ({TAG} if filter_.get("tags") else set())


def _selection(asked: Mapping[str, Any], known: _Names) -> ForgetSelection:
    # What is not named any more may be known all the same, to what was learned of it: a name that
    # nobody has finds that.
    names = {
        field: known.get(what, asked[field]) or asked[field]
        for field, what in _NAMED.items()
        if field in asked
    }
    items = {
        kind: frozenset(known.get(kind, digest) or digest for digest in digests)
        for kind, digests in asked.get("items", {}).items()
    }
    filter_ = asked.get(_FILTER)
    return ForgetSelection(
        **names, items=items, filter=None if filter_ is None else _filter(filter_, known)
    )


def _filter(asked: Mapping[str, Any], known: _Names) -> ForgetFilter | None:
    """Return a filter; None where the store has not what it asks for."""
    names = {
        field: known.get(what, asked[field]) for field, what in _NAMED.items() if field in asked
    }
    tags = frozenset(known.get(TAG, digest) for digest in asked["tags"])
    if "" in {*names.values(), *tags}:
        return None
    return ForgetFilter(
        **names,
        kinds=frozenset(asked["kinds"]),
        tags=tags,
        start_us=asked["start"],
        end_us=asked["end"],
    )


def _names(named: ForgetSelection | ForgetFilter, salt: bytes) -> dict[str, Any]:
    given = {field: getattr(named, field, "") for field in _NAMED}
    return {field: _hash(salt, _NAMED[field], name) for field, name in given.items() if name}


def _hash(salt: bytes, what: str, name: str) -> str:
    return hmac.new(salt, f"{what}\0{name}".encode(), hashlib.sha256).hexdigest()
