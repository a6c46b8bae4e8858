"""Forgetting: told before, hidden at once, erased for good by an operation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial

from mneme_server.common.canonical import JsonObject
from mneme_server.common.clock import now_us
from mneme_server.common.errors import AlreadyExists, DataLoss, FailedPrecondition, NotFound
from mneme_server.engine.corpus.feed import ranges
from mneme_server.engine.corpus.forgetting import (
    ForgetSelection,
    Items,
    WhileForgetting,
    beyond,
    merged,
)
from mneme_server.engine.corpus.tenant import OpenTenant, OpenTenants
from mneme_server.features.admin.forgetting.asking import digest_of, hashed, selections
from mneme_server.features.admin.forgetting.finding import erase, find, following, outcome_of
from mneme_server.features.admin.forgetting.model import Forgetting, Outcome
from mneme_server.features.admin.forgetting.ports import (
    ForgettingCatalog,
    ForgettingStore,
    ForgettingUnit,
    Signer,
)


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
    catalog: ForgettingCatalog
    signer: Signer
    held: Sequence[WhileForgetting] = ()
    kept_elsewhere: Callable[[], int] = int
    _found: dict[tuple[str, str], Items] = field(default_factory=dict)

    def preview(self, tenant_id: str, selection: ForgetSelection) -> Outcome:
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
        on nobody finds it. What the files still hold of it `erasing.Erase` erases.

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
                if unit.forgettings.get(forgetting_id) is not None:
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
                known = unit.forgettings.get(forgetting_id)
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
            found = unit.forgettings.get(forgetting_id)
        if found is None:
            raise NotFound(f"nothing was forgotten as {forgetting_id}", field="operation_id")
        return found

    def is_erased(self, tenant_id: str, forgetting_id: str) -> bool:
        """Tell whether a forgetting has its receipt."""
        with self.tenants.open(tenant_id) as tenant, tenant.read() as unit:
            known = unit.forgettings.get(forgetting_id)
        return known is not None and known.receipt is not None

    def newest_row(self, tenant_id: str) -> int:
        """Return the number of the newest row of a tenant's feed."""
        with self.tenants.open(tenant_id) as tenant, tenant.read() as unit:
            return unit.feed.head().number

    def save(self, tenant_id: str, forgetting: Forgetting) -> None:
        """Keep what became of a forgetting."""
        with self.tenants.open(tenant_id) as tenant, tenant.write() as unit:
            unit.forgettings.save(forgetting)

    def apply(self, tenant_id: str, store: ForgettingStore) -> int:
        """Forget in a backup, before it takes a tenant's place, what was forgotten since it was
        made; return how many forgettings that were."""
        with store.read() as unit:
            done = unit.forgettings.ids()
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
    known = unit.forgettings.get(forgetting_id)
    if known is None:
        forgetting = Forgetting(
            forgetting_id, outcome_of(found), ranges(leaves), now_us(), places=places
        )
    else:
        forgetting = known.with_more(outcome_of(beyond(found, stable)), leaves, places)
    forgetting = mark(forgetting)
    unit.forgettings.save(forgetting)
    return found, forgetting
