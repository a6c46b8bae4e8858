from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mneme_server.common.errors import (
    AlreadyExists,
    FailedPrecondition,
    InvalidArgument,
    NotFound,
    Unauthenticated,
)
from mneme_server.common.identity import DEFAULT_TENANT, check_tenant_id
from mneme_server.features.admin.authentication import KeyAuthenticator
from mneme_server.features.admin.keys import ApiKeys
from mneme_server.features.admin.store.catalog import Catalog
from mneme_server.features.admin.tenants import Tenants
from unit.features.admin.deletions import delete
from unit.features.admin.fakes import Folders


def test_the_default_tenant_exists_and_stays_when_ensured_again(tenants: Tenants) -> None:
    before = tenants.get(DEFAULT_TENANT)
    tenants.ensure_default()
    assert tenants.get(DEFAULT_TENANT) == before


def test_a_tenant_that_was_created_can_be_had_and_listed_by_id(tenants: Tenants) -> None:
    for tenant_id in ("zebra", "ant", "bee"):
        tenants.create(tenant_id, f"The {tenant_id}")
    assert tenants.get("bee").display_name == "The bee"
    assert [t.id for t in tenants.list("", 10)] == ["ant", "bee", "default", "zebra"]
    assert [t.id for t in tenants.list("ant", 2)] == ["bee", "default"]


def test_an_id_that_is_taken_is_refused(tenants: Tenants) -> None:
    tenants.create("acme", "")
    with pytest.raises(AlreadyExists):
        tenants.create("acme", "another")
    assert tenants.get("acme").display_name == ""


def test_a_tenant_is_made_with_what_belongs_to_it_and_not_without(tenants: Tenants) -> None:
    made: list[str] = []
    tenants.also_make(made.append)
    tenants.ensure_default()
    assert made == [], "it is there already"
    tenants.create("acme", "")
    assert made == ["acme"]

    def fails(tenant_id: str) -> None:
        raise OSError(f"no key for {tenant_id}")

    tenants.also_make(fails)
    with pytest.raises(OSError, match="no key for bee"):
        tenants.create("bee", "")
    with pytest.raises(NotFound):
        tenants.get("bee")


@pytest.mark.parametrize(
    "bad", ["", "..", "a/b", "/etc", "A", "a\n", "-a", "a" * 64, "ä", "a.b", "a\0", "."]
)
def test_an_id_that_could_leave_its_folder_is_refused(tenants: Tenants, bad: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        tenants.create(bad, "")
    assert refused.value.field == "tenant_id"


@given(st.text(max_size=70))
def test_every_id_that_passes_is_one_plain_path_part(tenant_id: str) -> None:
    try:
        check_tenant_id(tenant_id)
    except InvalidArgument:
        return
    assert tenant_id.isascii()
    assert not set(tenant_id) & set("/\\.\0\n:")
    assert 1 <= len(tenant_id) <= 63


def test_deleting_a_tenant_removes_its_folder_its_keys_and_its_id(
    tenants: Tenants,
    keys: ApiKeys,
    authenticator: KeyAuthenticator,
    folders: Folders,
    catalog: Catalog,
) -> None:
    tenants.create("acme", "")
    secret = keys.create("acme", "a", frozenset(), 0).secret
    assert authenticator.authenticate(secret).tenant_id == "acme"
    delete(tenants, "acme")
    assert folders.removed == ["acme"]
    with pytest.raises(NotFound):
        tenants.get("acme")
    with pytest.raises(Unauthenticated):
        authenticator.authenticate(secret)
    assert catalog.tenants.being_deleted() == {}
    assert tenants.create("acme", "again").display_name == "again"


def test_a_deletion_that_was_cut_short_ends_at_the_next_start(
    tenants: Tenants,
    keys: ApiKeys,
    authenticator: KeyAuthenticator,
    folders: Folders,
    catalog: Catalog,
) -> None:
    tenants.create("acme", "")
    secret = keys.create("acme", "a", frozenset(), 0).secret
    authenticator.authenticate(secret)
    folders.failure = OSError("killed here")
    with pytest.raises(OSError, match="killed here"):
        delete(tenants, "acme")
    with pytest.raises(NotFound):
        tenants.get("acme")
    with pytest.raises(Unauthenticated):
        authenticator.authenticate(secret)
    with pytest.raises(AlreadyExists):
        tenants.create("acme", "its folder is still there")
    folders.failure = None
    started = Tenants(catalog.tenants, folders, authenticator)
    assert started.resume_deletions() == ["acme"]
    assert folders.removed == ["acme"]
    assert started.resume_deletions() == []
    started.create("acme", "")


def test_a_deletion_that_failed_can_be_tried_again(tenants: Tenants, folders: Folders) -> None:
    tenants.create("acme", "")
    folders.failure = OSError("busy")
    with pytest.raises(OSError, match="busy"):
        delete(tenants, "acme")
    folders.failure = None
    delete(tenants, "acme")
    assert folders.removed == ["acme"]


@pytest.mark.parametrize(("caller", "target"), [("acme", "acme"), ("acme", DEFAULT_TENANT)])
def test_the_callers_own_tenant_and_the_default_one_cannot_be_deleted(
    tenants: Tenants, folders: Folders, caller: str, target: str
) -> None:
    tenants.create("acme", "")
    with pytest.raises(FailedPrecondition):
        delete(tenants, target, caller)
    assert folders.removed == []
    assert tenants.get(target).id == target


def test_deleting_a_tenant_that_is_not_there_is_not_found(
    tenants: Tenants, folders: Folders
) -> None:
    with pytest.raises(NotFound):
        delete(tenants, "nobody")
    assert folders.removed == []


def test_tenants_with_work_left_are_remembered_until_they_are_clean(
    tenants: Tenants, catalog: Catalog
) -> None:
    for tenant_id in ("b", "a", "c"):
        tenants.create(tenant_id, "")
        catalog.tenants.mark_dirty(tenant_id)
    catalog.tenants.mark_dirty("nobody")
    catalog.tenants.mark_clean("b")
    delete(tenants, "c")
    assert catalog.tenants.dirty_tenants() == ["a"]
