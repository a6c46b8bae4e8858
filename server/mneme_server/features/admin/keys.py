"""API keys: created, listed, revoked, and an end to what goes on in their names."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple, Protocol

import structlog

from mneme_server.common.clock import now_us
from mneme_server.common.errors import AlreadyExists, InvalidArgument, MnemeError
from mneme_server.common.identity import (
    ALL_SCOPES,
    DEFAULT_TENANT,
    Caller,
    KeyScope,
    check_tenant_id,
    new_id,
)
from mneme_server.engine.background.periodic import Repeating
from mneme_server.features.admin.authentication import KeyAuthenticator
from mneme_server.features.admin.model import (
    DEFAULT_SCOPES,
    ApiKey,
    check_chosen_secret,
    new_secret,
    secret_hash,
    secret_prefix,
)
from mneme_server.features.admin.ports import KeyCatalog, KeyFilter
from mneme_server.features.admin.store.catalog import SqlTenants

LOOKED_EVERY_S = 0.25
"""How long a key that was revoked by way of another server is believed at most. Whatever it let in
is told then, and what does not end by itself is cut off `GRACE_S` after that: within a second."""
_log = structlog.get_logger(__name__)


class NewKey(NamedTuple):
    """A key and its secret, which is known only now."""

    key: ApiKey
    secret: str


class ApiKeys:
    """The API keys of the server."""

    def __init__(
        self, catalog: KeyCatalog, tenants: SqlTenants, authenticator: KeyAuthenticator
    ) -> None:
        self._catalog = catalog
        self._tenants = tenants
        self._authenticator = authenticator

    def create(
        self, tenant_id: str, name: str, scopes: frozenset[KeyScope], rate_limit: int
    ) -> NewKey:
        """Create a key; without scopes it may read and write.

        Raises:
            NotFound: there is no such tenant.
        """
        return self._add(tenant_id, name, scopes or DEFAULT_SCOPES, rate_limit, new_secret())

    def list(
        self, filter_: KeyFilter, after: tuple[int, str] | None, limit: int
    ) -> Sequence[ApiKey]:
        """Return up to `limit` keys after (creation time, id), the oldest first.

        Raises:
            NotFound: there is no such tenant.
        """
        if filter_.tenant_id:
            self._tenants.get(check_tenant_id(filter_.tenant_id))
        return self._catalog.list(filter_, after, limit)

    def name_of(self, key_id: str) -> str:
        """Return a key's name for people.

        Raises:
            NotFound: there is no such key.
        """
        return self._catalog.get(key_id).name

    def revoke(self, key_id: str) -> ApiKey:
        """Revoke a key: no call that begins after this returns is let in with it.

        Raises:
            NotFound: there is no such key.
        """
        key = self._catalog.revoke(key_id, now_us())
        self._authenticator.forget(key_id)
        return key

    def ensure_admin(self, chosen_secret: str | None) -> str | None:
        """Make sure that somebody can administer the server.

        A secret that the operator chose is registered, also when it was revoked before: the
        operator of the machine decides. It takes the place of the one that was chosen, or made, at
        a start before, which is revoked; keys that administrators made stay. Without a chosen one,
        a key is made when there is none.

        Returns:
            The secret of a key that was made; None when none was. It cannot be had again.

        Raises:
            InvalidArgument: the chosen secret is too short, or that of a key without scope admin.
        """
        if chosen_secret is None:
            if self._catalog.has_admin():
                return None
            return self._add_bootstrap("bootstrap", new_secret()).secret
        known = self._catalog.find(secret_hash(check_chosen_secret(chosen_secret)))
        if known is None:
            with suppress(AlreadyExists):  # Another server that starts with it may be faster.
                self._add_bootstrap("MNEME_ADMIN_KEY", chosen_secret)
            return None
        if KeyScope.ADMIN not in known.scopes:
            raise InvalidArgument(
                f"MNEME_ADMIN_KEY is the secret of the key {known.id} ({known.name}), which has no"
                " scope admin; choose another secret"
            )
        self._catalog.restore_admin(known.id, now_us())
        self._authenticator.forget_all()
        return None

    def _add_bootstrap(self, name: str, secret: str) -> NewKey:
        return self._add(DEFAULT_TENANT, name, ALL_SCOPES, 0, secret, bootstrap=True)

    def _add(
        self,
        tenant_id: str,
        name: str,
        scopes: frozenset[KeyScope],
        rate_limit: int,
        secret: str,
        *,
        bootstrap: bool = False,
    ) -> NewKey:
        key = ApiKey(
            id=new_id(),
            tenant_id=check_tenant_id(tenant_id),
            name=name,
            scopes=scopes,
            rate_limit=rate_limit,
            prefix=secret_prefix(secret),
            created_at_us=now_us(),
        )
        self._catalog.add(key, secret_hash(secret), bootstrap=bootstrap)
        if bootstrap:
            self._authenticator.forget_all()  # Those that it takes the place of.
        return NewKey(key, secret)


class OnBehalf(Protocol):
    """Something that goes on after a key let it in."""

    def keys_in_use(self) -> Collection[str]:
        """Return the ids of the keys that let in what goes on now."""
        ...

    def judge(self, keys: Mapping[str, Caller | None]) -> None:
        """End what keys let in that are good no longer.

        Args:
            keys: by id, whom they let in now; None: nobody. Of others nothing is known.
        """
        ...


class KeyWatch:
    """Looks again and again whether the keys are still good that let in what goes on, which ends
    soon after its key is good no longer: one look in the catalog for all of it, and none while
    nothing does.

    Args:
        keys: the catalog's.
    """

    def __init__(self, keys: KeyCatalog) -> None:
        self._keys = keys
        self._over: list[OnBehalf] = []
        self._failing = False
        self._looking = Repeating(self.look, LOOKED_EVERY_S, "key-watching")

    def add(self, *over: OnBehalf) -> None:
        """Watch over these, too, once it is started."""
        self._over += over

    def start(self) -> None:
        """Watch from now on."""
        self._looking.start()

    def soon(self) -> None:
        """Look at once: a key was revoked here."""
        self._looking.soon()

    def stop(self) -> None:
        """Stop watching."""
        self._looking.stop()

    def callers(self, key_ids: Collection[str]) -> Mapping[str, Caller]:
        """Look at keys now; return whom they let in, by their ids: those that are revoked, or gone,
        let in nobody.

        Raises:
            Unavailable: the catalog cannot be read now.
        """
        return self._keys.callers(key_ids) if key_ids else {}

    def look(self) -> None:
        """Look once."""
        in_use = {key_id for one in self._over for key_id in one.keys_in_use()}
        if not in_use:
            return
        try:
            found = self._keys.callers(in_use)
        except MnemeError as error:  # New calls are not let in meanwhile, either.
            if not self._failing:
                _log.warning("keys cannot be looked at now", error=error.message)
            self._failing = True
            return
        self._failing = False
        keys = {key_id: found.get(key_id) for key_id in in_use}
        for one in self._over:
            one.judge(keys)
