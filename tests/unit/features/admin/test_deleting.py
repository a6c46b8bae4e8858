"""Deletions of tenants that a server's end cuts short, as operations that go on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from mneme_server.common.errors import NotFound, Unavailable
from mneme_server.common.fencing import Fence
from mneme_server.common.identity import DEFAULT_TENANT
from mneme_server.features.admin.authentication import KeyAuthenticator
from mneme_server.features.admin.store.catalog import Catalog
from mneme_server.features.admin.tenant_operations import DeleteTenant
from mneme_server.features.admin.tenants import Tenants
from unit.features.admin.deletions import delete
from unit.features.admin.fakes import Folders


class Kept:
    """The task of a deletion, which knows at each run what it kept."""

    tenant_id = "acme"

    def __init__(self, tenants: Tenants) -> None:
        self.request = {"caller_tenant": DEFAULT_TENANT}
        created_us = tenants.require_deletable(DEFAULT_TENANT, self.tenant_id)
        self.kept: dict[str, Any] = {"created_us": created_us}

    def report(self, stage: str, done: int = 0, total: int = 0) -> None:
        """Do nothing."""

    def apart(self, function: str, /, **arguments: Any) -> Any:
        raise AssertionError(function)

    def commit(self, **facts: Any) -> None:
        self.kept |= facts

    keep = commit


def test_a_deletion_that_goes_on_spares_a_tenant_that_was_made_under_the_same_id_since(
    tenants: Tenants, folders: Folders, catalog: Catalog, authenticator: KeyAuthenticator
) -> None:
    tenants.create("acme", "the first")
    deletion, task = DeleteTenant(tenants), Kept(tenants)
    folders.failure = OSError("killed here")
    with pytest.raises(OSError, match="killed here"):
        deletion.run(task)
    folders.failure = None
    Tenants(catalog.tenants, folders, authenticator).resume_deletions()  # At the next start.
    tenants.create("acme", "the second")
    assert deletion.run(task) == {}
    assert tenants.get("acme").display_name == "the second"


class OtherServer:
    """A server that starts, and ends what it finds, while this one waits for it; then the same id
    is used again."""

    def __init__(self, tenants: Tenants) -> None:
        self._tenants = tenants

    def removed(self, tenant_id: str) -> Sequence[str]:
        self.have_removed(tenant_id)
        return ()

    def have_removed(self, tenant_id: str) -> None:
        self._tenants.resume_deletions()
        self._tenants.create(tenant_id, "the second")


def test_a_deletion_that_another_server_ended_first_spares_who_got_the_id_since(
    tenants: Tenants, catalog: Catalog, folders: Folders, authenticator: KeyAuthenticator
) -> None:
    here = Tenants(catalog.tenants, folders, authenticator, OtherServer(tenants))
    tenants.create("acme", "the first")
    delete(here, "acme")
    assert tenants.get("acme").display_name == "the second"


def test_a_start_spares_who_got_the_id_of_a_deletion_that_another_server_ended_meanwhile(
    tenants: Tenants, catalog: Catalog, folders: Folders, authenticator: KeyAuthenticator
) -> None:
    class Slow(Folders):
        def remove(self, tenant_id: str, require: Callable[[], object]) -> None:
            super().remove(tenant_id, require)
            if tenant_id == "acme":
                other.resume_deletions()
                other.create("bee", "the second")

    folders.failure = OSError("killed here")
    for tenant_id in ("acme", "bee"):
        tenants.create(tenant_id, "the first")
        with pytest.raises(OSError, match="killed here"):
            delete(tenants, tenant_id)
    folders.failure = None
    slow, other = Slow(), Tenants(catalog.tenants, folders, authenticator)
    Tenants(catalog.tenants, slow, authenticator).resume_deletions()
    assert slow.removed == ["acme"]
    assert tenants.get("bee").display_name == "the second"


def test_a_deletion_that_waits_while_another_ends_spares_who_got_the_id_since(
    tenants: Tenants, catalog: Catalog, folders: Folders, authenticator: KeyAuthenticator
) -> None:
    """Its operations are called off, which takes their time; then its calls have to end."""

    class Waits(Folders):
        def remove(self, tenant_id: str, require: Callable[[], object]) -> None:
            made_anew(tenant_id)
            super().remove(tenant_id, require)

    def made_anew(tenant_id: str) -> None:
        tenants.resume_deletions()
        tenants.create(tenant_id, "the second")

    waits, dropped = Waits(), list[str]()
    while_closing = Tenants(catalog.tenants, waits, authenticator)
    before_dropping = Tenants(catalog.tenants, waits, authenticator)
    before_dropping.also_delete(made_anew)
    before_dropping.also_delete(dropped.append)
    for slow in (while_closing, before_dropping):
        tenants.create("acme", "the first")
        with pytest.raises(NotFound):
            delete(slow, "acme")
        assert tenants.get("acme").display_name == "the second"
        delete(tenants, "acme")
    assert (waits.removed, dropped) == ([], [])


class Leases:
    """Those of one of the servers that share what is `held`, by who holds it."""

    def __init__(self, node: str, held: dict[str, str]) -> None:
        self._node = node
        self._held = held

    def take(self, name: str, tenant_id: str) -> Fence | None:
        if self._held.setdefault(name, self._node) != self._node:
            return None
        return Fence(name, tenant_id, self._node, 1)

    def give_back(self, fence: Fence) -> None:
        del self._held[fence.name]


def test_a_deletion_that_failed_is_left_to_who_asked_for_it_while_its_server_lives(
    tenants: Tenants, catalog: Catalog, folders: Folders, authenticator: KeyAuthenticator
) -> None:
    held = dict[str, str]()
    here, other = (
        Tenants(catalog.tenants, folders, authenticator, leases=Leases(name, held))
        for name in ("here", "other")
    )
    tenants.create("acme", "")
    folders.failure = Unavailable("its calls are still running")
    with pytest.raises(Unavailable):
        delete(here, "acme")
    folders.failure = None
    assert (here.resume_deletions(), other.resume_deletions()) == ([], [])
    held.clear()  # It is gone.
    assert other.resume_deletions() == ["acme"]
    assert not held


def test_a_deletion_that_another_server_ended_first_leaves_no_lease_and_nothing_to_try_again(
    tenants: Tenants, catalog: Catalog, folders: Folders, authenticator: KeyAuthenticator
) -> None:
    class Waits(Folders):
        def remove(self, tenant_id: str, require: Callable[[], object]) -> None:
            tenants.resume_deletions()
            super().remove(tenant_id, require)

    held = dict[str, str]()
    here = Tenants(catalog.tenants, Waits(), authenticator, leases=Leases("here", held))
    tenants.create("acme", "")
    with pytest.raises(NotFound):
        delete(here, "acme")
    assert (held, here._begun) == ({}, set())


def test_a_folder_that_cannot_be_removed_holds_up_no_other_deletion_and_is_tried_once(
    tenants: Tenants, catalog: Catalog, folders: Folders, authenticator: KeyAuthenticator
) -> None:
    for name in ("acme", "zenith"):
        tenants.create(name, "")
        # By one that is gone.
        catalog.tenants.mark_deleting(name, 1, catalog.tenants.created_us(name))
    here = Tenants(catalog.tenants, folders, authenticator, leases=Leases("here", {}))
    folders.failure = OSError("it is read-only")
    with pytest.raises(OSError, match="read-only"):
        here.resume_deletions()
    folders.failure = None
    [ended] = here.resume_deletions()
    assert here.resume_deletions() == []
    assert [*catalog.tenants.being_deleted()] == [{"acme": "zenith", "zenith": "acme"}[ended]]


def test_what_another_server_deletes_this_one_can_be_asked_to_delete(
    tenants: Tenants, catalog: Catalog, folders: Folders, authenticator: KeyAuthenticator
) -> None:
    tenants.create("acme", "")
    held = {f"deletion/acme/{catalog.tenants.created_us('acme')}": "other"}
    here = Tenants(catalog.tenants, folders, authenticator, leases=Leases("here", held))
    delete(here, "acme")
    with pytest.raises(NotFound):
        here.get("acme")


def test_a_deletion_as_an_operation_that_is_taken_over_tells_itself_what_came_of_it(
    tenants: Tenants, catalog: Catalog, folders: Folders, authenticator: KeyAuthenticator
) -> None:
    tenants.create("acme", "")
    task, folders.failure = Kept(tenants), OSError("killed here")
    with pytest.raises(OSError, match="killed here"):
        DeleteTenant(tenants).run(task)
    folders.failure = None
    left = Tenants(catalog.tenants, folders, authenticator, leases=Leases("left", {}))
    deletion = DeleteTenant(left)
    deletion.recover("acme", task.kept)
    assert left.resume_deletions() == []
    deletion.run(task)
    with pytest.raises(NotFound):
        catalog.tenants.created_us("acme")


@pytest.mark.parametrize("resumed", [True, False])
def test_a_deletion_that_was_cut_short_goes_on_to_its_end(
    tenants: Tenants, folders: Folders, resumed: bool
) -> None:
    tenants.create("acme", "")
    deletion, task = DeleteTenant(tenants), Kept(tenants)
    folders.failure = OSError("killed here")
    with pytest.raises(OSError, match="killed here"):
        deletion.run(task)
    folders.failure = None
    if resumed:
        tenants.resume_deletions()
    assert deletion.run(task) == {}
    with pytest.raises(NotFound):
        tenants.get("acme")
    assert folders.removed == ["acme"]


def test_what_is_not_there_cannot_be_deleted(tenants: Tenants) -> None:
    with pytest.raises(NotFound):
        DeleteTenant(tenants).run(Kept(tenants))
