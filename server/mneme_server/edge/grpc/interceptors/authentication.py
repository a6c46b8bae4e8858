"""Who is calling, and whether they may."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mneme_server.common import fairness
from mneme_server.common.errors import PermissionDenied, Reason, Unauthenticated
from mneme_server.common.identity import ALL_SCOPES, DEFAULT_TENANT, Caller, KeyScope
from mneme_server.edge.grpc.authenticating import Authenticator
from mneme_server.edge.grpc.call import Call, bearer
from mneme_server.edge.grpc.methods import Method
from mneme_server.edge.grpc.pipeline import Layer

ANYONE = Caller(DEFAULT_TENANT, key_id="", scopes=ALL_SCOPES, rate_limit=0)
"""Who calls without a key where keys are not asked."""


class Identification:
    """Tells who is calling by the key in `authorization: Bearer mn_…`.

    Where keys are not `required`, a call without one acts as `ANYONE`; a key that is sent counts
    all the same, so that several tenants can be used on a machine without access control.
    """

    def __init__(self, authenticator: Authenticator, *, required: bool) -> None:
        self._authenticator = authenticator
        self._required = required

    def caller(self, method: Method, authorizations: Sequence[str]) -> Caller | None:
        """Return who is calling; None where the method is open to everyone.

        Args:
            method: what is called.
            authorizations: the call's headers of that name.

        Raises:
            Unauthenticated: nobody who is known.
            PermissionDenied: the key may not call it.
        """
        if method.scope is None:
            return None
        secret = self._secret(authorizations)
        caller = ANYONE if secret is None else self._authenticator.authenticate(secret)
        missing = missing_scope(method, caller)
        if missing is not None:
            raise missing
        return caller

    def takes_no_time(self, authorizations: Sequence[str]) -> bool:
        """Tell whether `caller` answers from memory: keys that were used before, and what is none
        at all."""
        try:
            secret = self._secret(authorizations)
        except Unauthenticated:
            return True
        return secret is None or self._authenticator.known(secret) is not None

    def _secret(self, authorizations: Sequence[str]) -> str | None:
        """Return the key; None where none was sent, and none is needed."""
        if len(authorizations) > 1:
            # Whatever stands between may have looked at another of them than the server would.
            raise Unauthenticated(
                "there is more than one authorization; send one API key, once",
                reason=Reason.API_KEY_INVALID,
            )
        if authorizations:
            secret = bearer(authorizations[0])
            if not secret:
                raise Unauthenticated(
                    "the metadata authorization must be: Bearer mn_…",
                    reason=Reason.API_KEY_MISSING,
                )
            return secret
        if self._required:
            raise Unauthenticated(
                "no API key; send it as authorization: Bearer mn_…",
                reason=Reason.API_KEY_MISSING,
            )
        return None


def authentication(identification: Identification, *, is_of: Callable[[str], None]) -> Layer:
    """Return the layer that sets `call.caller`. `is_of` is told whose call it is."""

    def authenticate(call: Call) -> None:
        caller = identification.caller(call.method, call.authorizations)
        if caller is not None:
            call.caller = caller
            fairness.enter(caller.tenant_id)
            is_of(caller.tenant_id)

    return authenticate


def missing_scope(method: Method, caller: Caller) -> PermissionDenied | None:
    """Return why a caller may not call a method; None where it may."""
    needed = [method.scope] if isinstance(method.scope, KeyScope) else []
    if method.also_reads:
        needed.append(KeyScope.READ)
    for scope in needed:
        if scope not in caller.scopes:
            return PermissionDenied(
                f"{method.name} needs scope {scope.name.lower()}; the API key has "
                + ", ".join(s.name.lower() for s in sorted(caller.scopes)),
                metadata={"required_scope": scope.name.lower()},
            )
    return None
