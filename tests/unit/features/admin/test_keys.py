from __future__ import annotations

import hashlib
import sqlite3
from pathlib import Path

import pytest
from mneme_server.common.errors import (
    InvalidArgument,
    NotFound,
    Reason,
    Unauthenticated,
    Unavailable,
)
from mneme_server.common.identity import ALL_SCOPES, KeyScope
from mneme_server.features.admin.authentication import KeyAuthenticator
from mneme_server.features.admin.keys import ApiKeys
from mneme_server.features.admin.model import DEFAULT_SCOPES, secret_hash
from mneme_server.features.admin.ports import KeyFilter
from mneme_server.features.admin.store.catalog import Catalog
from mneme_server.features.admin.tenants import Tenants
from unit.features.admin.fakes import Clock, FlakyKeys

CHOSEN = "an operator's own secret"


def test_a_new_secret_opens_its_tenant_with_its_scopes(
    tenants: Tenants, keys: ApiKeys, authenticator: KeyAuthenticator
) -> None:
    tenants.create("acme", "")
    created = keys.create("acme", "ci", frozenset({KeyScope.READ}), 30)
    caller = authenticator.authenticate(created.secret)
    assert (caller.tenant_id, caller.key_id) == ("acme", created.key.id)
    assert (caller.scopes, caller.rate_limit) == (frozenset({KeyScope.READ}), 30)
    assert created.secret.startswith("mn_")
    assert len(created.secret) >= 3 + 43
    assert created.key.prefix == created.secret[:8]


def test_a_key_without_scopes_may_read_and_write(keys: ApiKeys) -> None:
    assert keys.create("default", "a", frozenset(), 0).key.scopes == DEFAULT_SCOPES


def test_the_catalog_holds_a_hash_and_never_the_secret(
    keys: ApiKeys, catalog: Catalog, tmp_path: Path
) -> None:
    secret = keys.create("default", "a", frozenset(), 0).secret
    catalog.close()
    rows = sqlite3.connect(tmp_path / "catalog.db").execute("SELECT * FROM api_keys").fetchall()
    assert any(hashlib.sha256(secret.encode()).digest() in row for row in rows)
    assert all(secret[8:] not in file.read_bytes().decode("latin-1") for file in tmp_path.iterdir())


def test_a_key_of_a_tenant_that_is_not_there_is_not_found(keys: ApiKeys) -> None:
    with pytest.raises(NotFound):
        keys.create("nobody", "a", frozenset(), 0)
    with pytest.raises(NotFound):
        keys.list(KeyFilter("nobody"), None, 10)


def test_an_unknown_secret_is_refused(authenticator: KeyAuthenticator) -> None:
    with pytest.raises(Unauthenticated) as refused:
        authenticator.authenticate("mn_nobody")
    assert refused.value.reason is Reason.API_KEY_INVALID


def test_a_revoked_key_is_refused_at_once_although_it_was_remembered(
    keys: ApiKeys, authenticator: KeyAuthenticator
) -> None:
    created = keys.create("default", "a", frozenset(), 0)
    other = keys.create("default", "b", frozenset(), 0)
    authenticator.authenticate(created.secret)
    revoked = keys.revoke(created.key.id)
    assert revoked.revoked_at_us is not None
    with pytest.raises(Unauthenticated):
        authenticator.authenticate(created.secret)
    assert authenticator.authenticate(other.secret).key_id == other.key.id


def test_a_revocation_during_a_look_up_is_not_undone_by_it(keys: ApiKeys, catalog: Catalog) -> None:
    created = keys.create("default", "a", frozenset(), 0)
    overtaken = FlakyKeys(catalog.keys)
    authenticator = KeyAuthenticator(overtaken)

    def revoke() -> None:
        catalog.keys.revoke(created.key.id, 1)
        authenticator.forget(created.key.id)

    overtaken.overtake = revoke
    authenticator.authenticate(created.secret)
    with pytest.raises(Unauthenticated):
        authenticator.authenticate(created.secret)


def test_a_key_that_another_server_revoked_is_refused_once_it_was_known_for_long_enough(
    keys: ApiKeys, catalog: Catalog
) -> None:
    passed = 0.0
    created = keys.create("default", "a", frozenset(), 0)
    authenticator = KeyAuthenticator(catalog.keys, known_for_s=0.5, monotonic=lambda: passed)
    authenticator.authenticate(created.secret)
    catalog.keys.revoke(created.key.id, 1)
    passed = 0.4
    assert authenticator.authenticate(created.secret).key_id == created.key.id
    passed = 0.5
    with pytest.raises(Unauthenticated):
        authenticator.authenticate(created.secret)
    assert authenticator.known(created.secret) is None


def test_nothing_is_kept_of_a_key_that_was_revoked(keys: ApiKeys, catalog: Catalog) -> None:
    authenticator = KeyAuthenticator(catalog.keys, known_for_s=60)
    created = keys.create("default", "a", frozenset(), 0)
    authenticator.authenticate(created.secret)
    authenticator.forget(created.key.id)
    kept = [held for held in vars(authenticator).values() if isinstance(held, dict)]
    assert not any(secret_hash(created.secret) in held for held in kept)


def test_revoking_again_keeps_the_first_time(keys: ApiKeys) -> None:
    key = keys.create("default", "a", frozenset(), 0).key
    assert keys.revoke(key.id) == keys.revoke(key.id)
    with pytest.raises(NotFound):
        keys.revoke("nobody")


def test_keys_are_listed_oldest_first_by_tenant_without_revoked_ones(
    tenants: Tenants, keys: ApiKeys
) -> None:
    tenants.create("acme", "")
    first = keys.create("default", "first", frozenset(), 0).key
    theirs = keys.create("acme", "theirs", frozenset(), 0).key
    gone = keys.create("default", "gone", frozenset(), 0).key
    last = keys.create("default", "last", frozenset(), 0).key
    keys.revoke(gone.id)

    def names(filter_: KeyFilter, after: tuple[int, str] | None = None) -> list[str]:
        return [key.name for key in keys.list(filter_, after, 10)]

    assert names(KeyFilter()) == ["first", "theirs", "last"]
    assert names(KeyFilter("default")) == ["first", "last"]
    assert names(KeyFilter("default", include_revoked=True)) == ["first", "gone", "last"]
    assert names(KeyFilter(), (theirs.created_at_us, theirs.id)) == ["last"]
    assert names(KeyFilter("default"), (first.created_at_us, first.id)) == ["last"]
    assert names(KeyFilter(), (last.created_at_us, last.id)) == []


def test_the_first_start_makes_one_admin_key_and_later_ones_none(
    keys: ApiKeys, authenticator: KeyAuthenticator
) -> None:
    secret = keys.ensure_admin(None)
    assert secret is not None
    assert authenticator.authenticate(secret).scopes == ALL_SCOPES
    assert keys.ensure_admin(None) is None
    keys.revoke(authenticator.authenticate(secret).key_id)
    assert keys.ensure_admin(None) not in (None, secret)


def test_a_chosen_admin_key_is_registered_once_and_not_told(
    keys: ApiKeys, authenticator: KeyAuthenticator
) -> None:
    for _ in range(2):
        assert keys.ensure_admin(CHOSEN) is None
    caller = authenticator.authenticate(CHOSEN)
    assert (caller.tenant_id, caller.scopes) == ("default", ALL_SCOPES)
    (key,) = keys.list(KeyFilter(), None, 10)
    assert len(key.prefix) < len(CHOSEN) / 4


def test_a_chosen_admin_key_that_another_server_registers_meanwhile_is_that_key(
    keys: ApiKeys, catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys.ensure_admin(CHOSEN)
    monkeypatch.setattr(catalog.keys, "find", lambda _hash: None)  # As it was before.
    assert keys.ensure_admin(CHOSEN) is None
    assert len(keys.list(KeyFilter(), None, 10)) == 1


def test_a_chosen_admin_key_that_was_revoked_works_again_after_the_next_start(
    keys: ApiKeys, authenticator: KeyAuthenticator
) -> None:
    keys.ensure_admin(CHOSEN)
    keys.revoke(authenticator.authenticate(CHOSEN).key_id)
    keys.ensure_admin(CHOSEN)
    assert KeyScope.ADMIN in authenticator.authenticate(CHOSEN).scopes


def test_a_new_chosen_admin_key_takes_the_place_of_the_one_before(
    keys: ApiKeys, authenticator: KeyAuthenticator
) -> None:
    made = keys.ensure_admin(None)
    assert made is not None
    # Those that administrators made stay, whatever they are called.
    others = [
        keys.create("default", name, ALL_SCOPES, 0) for name in ("MNEME_ADMIN_KEY", "bootstrap")
    ]
    before = [made]
    for chosen in (CHOSEN, f"another: {CHOSEN}", CHOSEN):
        keys.ensure_admin(chosen)
        assert KeyScope.ADMIN in authenticator.authenticate(chosen).scopes
        for old in before:
            if old != chosen:
                with pytest.raises(Unauthenticated):
                    authenticator.authenticate(old)
        for other in others:
            assert authenticator.authenticate(other.secret).key_id == other.key.id
        before.append(chosen)


def test_a_key_that_an_administrator_made_may_be_chosen_and_stays_when_another_is(
    keys: ApiKeys, authenticator: KeyAuthenticator
) -> None:
    keys.ensure_admin(CHOSEN)
    made = keys.create("default", "mine", ALL_SCOPES, 0)
    keys.ensure_admin(made.secret)
    with pytest.raises(Unauthenticated):
        authenticator.authenticate(CHOSEN)
    keys.ensure_admin(CHOSEN)
    assert authenticator.authenticate(made.secret).key_id == made.key.id


@pytest.mark.parametrize(
    "bad", ["short", "x" * 15, "long enough but ünïcödé", "with\ncontrol\nchars"]
)
def test_a_chosen_admin_key_that_is_weak_or_cannot_travel_is_refused(
    keys: ApiKeys, bad: str
) -> None:
    with pytest.raises(InvalidArgument, match="MNEME_ADMIN_KEY"):
        keys.ensure_admin(bad)


def test_the_secret_of_an_ordinary_key_does_not_become_an_admin_key(keys: ApiKeys) -> None:
    ordinary = keys.create("default", "ordinary", frozenset({KeyScope.READ}), 0).secret
    with pytest.raises(InvalidArgument, match="no scope admin"):
        keys.ensure_admin(ordinary)


def test_last_use_is_written_by_flush_at_most_once_a_minute(
    keys: ApiKeys, authenticator: KeyAuthenticator, catalog: Catalog, clock: Clock
) -> None:
    created = keys.create("default", "a", frozenset(), 0)

    def last_used() -> int | None:
        authenticator.flush()
        return catalog.keys.get(created.key.id).last_used_at_us

    assert last_used() is None
    first = clock.now_us
    authenticator.authenticate(created.secret)
    assert last_used() == first
    clock.pass_seconds(59)
    authenticator.authenticate(created.secret)
    assert last_used() == first
    clock.pass_seconds(1)
    authenticator.authenticate(created.secret)
    assert last_used() == first + 60_000_000


def test_last_use_is_kept_for_the_next_flush_when_the_catalog_cannot_be_written(
    keys: ApiKeys, catalog: Catalog, clock: Clock
) -> None:
    created = keys.create("default", "a", frozenset(), 0)
    flaky = FlakyKeys(catalog.keys)
    authenticator = KeyAuthenticator(flaky, clock)
    authenticator.authenticate(created.secret)
    flaky.broken = True
    with pytest.raises(Unavailable):
        authenticator.flush()
    flaky.broken = False
    authenticator.flush()
    assert catalog.keys.get(created.key.id).last_used_at_us == clock.now_us
