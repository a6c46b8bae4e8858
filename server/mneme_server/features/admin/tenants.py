"""Creating, listing and deleting tenants."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial

from mneme_server.common.clock import now_us
from mneme_server.common.errors import (
    AlreadyExists,
    FailedPrecondition,
    NotFound,
    PermissionDenied,
)
from mneme_server.common.fencing import OWN, Fence, Leases
from mneme_server.common.identity import DEFAULT_TENANT, Caller, KeyScope, check_tenant_id
from mneme_server.engine.cluster.servers import NOBODY, OtherServers
from mneme_server.features.admin.authentication import KeyAuthenticator
from mneme_server.features.admin.model import Tenant
from mneme_server.features.admin.ports import TenantFolders
from mneme_server.features.admin.store.catalog import SqlTenants


class Tenants:
    """The tenants of the server.

    Deleting one goes in an order that can be cut short anywhere: first the catalog says that it
    is going (nobody can open it any more), then its folder goes, here and on other servers, then
    its rows. `resume_deletions` ends what a crash interrupted.

    Args:
        catalog: the tenants that there are.
        folders: what they lie in.
        authenticator: knows their keys.
        elsewhere: the other servers that have them.
        leases: says which deletions are those of servers that live.
    """

    def __init__(
        self,
        catalog: SqlTenants,
        folders: TenantFolders,
        authenticator: KeyAuthenticator,
        elsewhere: OtherServers = NOBODY,
        leases: Leases = OWN,
    ) -> None:
        self._catalog = catalog
        self._folders = folders
        self._authenticator = authenticator
        self._elsewhere = elsewhere
        self._leases = leases
        self._begun: set[tuple[str, int]] = set()  # Here, and not ended: who asks tries again.
        self._belongings: list[Callable[[str], None]] = []
        self._made_with: list[Callable[[str], object]] = []

    def also_make(self, belonging: Callable[[str], object]) -> None:
        """Have this called with each tenant that is made, once its row is there. A crash in between
        leaves the tenant without it."""
        self._made_with.append(belonging)

    def also_delete(self, belonging: Callable[[str], None]) -> None:
        """Have this called with each tenant that is deleted, before its rows go."""
        self._belongings.append(belonging)

    def ensure_default(self) -> None:
        """Make the tenant that always exists, if it does not."""
        with suppress(AlreadyExists):
            self._make(Tenant(DEFAULT_TENANT, "", now_us()))

    def create(self, tenant_id: str, display_name: str) -> Tenant:
        """Create a tenant.

        Raises:
            InvalidArgument: the id is none.
            AlreadyExists: the id is taken.
            What belongings raise (`also_make`); there is no tenant then.
        """
        return self._make(Tenant(check_tenant_id(tenant_id), display_name, now_us()))

    def _make(self, tenant: Tenant) -> Tenant:
        self._catalog.add(tenant)
        try:
            for belonging in self._made_with:
                belonging(tenant.id)
        except BaseException:
            self._catalog.remove(tenant.id, tenant.created_at_us)
            raise
        return tenant

    def get(self, tenant_id: str) -> Tenant:
        """Return a tenant.

        Raises:
            NotFound: there is none.
        """
        return self._catalog.get(tenant_id)

    def asked_for(self, caller: Caller, tenant_id: str) -> str:
        """Return the tenant that a request names, or the caller's where it names none.

        Whoever may not ask for another tenant does not learn whether it exists.

        Raises:
            NotFound: there is none.
            PermissionDenied: it is another tenant, and the caller no administrator.
        """
        if not tenant_id or tenant_id == caller.tenant_id:
            return caller.tenant_id
        if KeyScope.ADMIN not in caller.scopes:
            raise PermissionDenied(
                "what concerns another tenant requires scope admin",
                field="tenant_id",
                metadata={"required_scope": "admin"},
            )
        return self.get(tenant_id).id

    def list(self, after_id: str, limit: int) -> Sequence[Tenant]:
        """Return up to `limit` tenants whose ids are greater than `after_id`, by id."""
        return self._catalog.list(after_id, limit)

    def require_deletable(self, caller_tenant: str, tenant_id: str) -> int:
        """Check that the caller may have this tenant deleted, which may have begun before; return
        when it was created.

        Raises:
            NotFound: there is none.
            FailedPrecondition: it is the caller's own, or the one that always exists.
        """
        self._require_other(caller_tenant, tenant_id)
        if tenant_id not in self._catalog.being_deleted():
            self._catalog.get(tenant_id)
        return self._catalog.created_us(tenant_id)

    def delete(self, caller_tenant: str, tenant_id: str, created_us: int) -> Sequence[str]:
        """Delete a tenant with its keys and its folder; return the names of servers that are away,
        and may have an index of it on their disks until they start.

        Args:
            caller_tenant: whose key asks for it.
            tenant_id: its id.
            created_us: when it was created: another may have its id by now.

        Raises:
            NotFound: there is none.
            FailedPrecondition: it is the caller's own, or the one that always exists.
            Unavailable: its calls are still running, or another server still removes its index; it
                takes no more calls, and is gone at the next try.
        """
        self._require_other(caller_tenant, tenant_id)
        self.leave(tenant_id, created_us)
        fence = self._lease(tenant_id, created_us)
        try:
            self._catalog.mark_deleting(tenant_id, now_us(), created_us)
            self._remove(tenant_id, created_us)
            absent = self._elsewhere.removed(tenant_id)
            self._catalog.remove(tenant_id, created_us)
        except NotFound:  # Another server has ended it meanwhile.
            self._ended(tenant_id, created_us, fence)
            raise
        self._ended(tenant_id, created_us, fence)
        return absent

    def leave(self, tenant_id: str, created_us: int) -> None:
        """Have `resume_deletions` leave the deletion of the tenant that was created then to who
        asks for it here."""
        self._begun.add((tenant_id, created_us))

    @staticmethod
    def _require_other(caller_tenant: str, tenant_id: str) -> None:
        if tenant_id == caller_tenant:
            raise FailedPrecondition(
                f"{tenant_id} is the tenant of the calling key; use a key of another tenant",
                field="tenant_id",
            )
        if tenant_id == DEFAULT_TENANT:
            raise FailedPrecondition(
                f"the tenant {DEFAULT_TENANT} always exists and cannot be deleted",
                field="tenant_id",
            )

    def resume_deletions(self) -> Sequence[str]:
        """End the deletions that a crash interrupted; return their tenants. Those that were begun
        here, or on another server that lives, are left."""
        return [
            tenant_id
            for tenant_id, created_us in self._catalog.being_deleted().items()
            if (tenant_id, created_us) not in self._begun and self._resume(tenant_id, created_us)
        ]

    def _resume(self, tenant_id: str, created_us: int) -> bool:
        fence = self._lease(tenant_id, created_us)
        if fence is None:
            return False
        try:
            self._catalog.mark_deleting(tenant_id, now_us(), created_us)
            self._remove(tenant_id, created_us)
            self._elsewhere.have_removed(tenant_id)
            self._catalog.remove(tenant_id, created_us)
        except NotFound:  # Another server has ended it meanwhile.
            return False
        except OSError:  # A folder that cannot be removed is no other in two seconds.
            self.leave(tenant_id, created_us)
            raise
        finally:
            self._give_back(fence)
        return True

    def _lease(self, tenant_id: str, created_us: int) -> Fence | None:
        """Take the lease of a deletion, which stays this server's until it has ended, or this
        server; None where another has it."""
        return self._leases.take(f"deletion/{tenant_id}/{created_us}", tenant_id)

    def _ended(self, tenant_id: str, created_us: int, fence: Fence | None) -> None:
        self._give_back(fence)
        self._begun.discard((tenant_id, created_us))

    def _give_back(self, fence: Fence | None) -> None:
        if fence is not None:
            self._leases.give_back(fence)

    def _remove(self, tenant_id: str, created_us: int) -> None:
        """Remove what a tenant has. Some of it takes long, and another server may end that first:
        then its id may be another's by now."""
        require = partial(self._catalog.require_deleting, tenant_id, created_us)
        self._authenticator.forget_all()
        for belonging in self._belongings:
            require()
            belonging(tenant_id)
        self._folders.remove(check_tenant_id(tenant_id), require)
