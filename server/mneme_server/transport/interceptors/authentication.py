"""Who is calling, and whether they may."""

from __future__ import annotations

from collections.abc import Callable

from mneme_server.common import fairness
from mneme_server.common.errors import PermissionDenied, Reason, Unauthenticated
from mneme_server.common.identity import ALL_SCOPES, DEFAULT_TENANT, Caller
from mneme_server.transport.authenticating import Authenticator
from mneme_server.transport.call import Call, bearer
from mneme_server.transport.pipeline import Layer

ANYONE = Caller(DEFAULT_TENANT, key_id="", scopes=ALL_SCOPES, rate_limit=0)
"""Who calls without a key where keys are not asked."""


def authentication(
    authenticator: Authenticator, *, required: bool, is_of: Callable[[str], None]
) -> Layer:
    """Return the layer that sets `call.caller` from the key in `authorization: Bearer mn_…`.

    Where keys are not `required`, a call without one acts as `ANYONE`; a key that is sent counts
    all the same, so that several tenants can be used on a machine without access control. `is_of`
    is told whose call it is.
    """

    def authenticate(call: Call) -> None:
        scope = call.method.scope
        if scope is None:
            return
        if call.authorization is not None:
            secret = bearer(call.authorization)
            if not secret:
                raise Unauthenticated(
                    "the metadata authorization must be: Bearer mn_…",
                    reason=Reason.API_KEY_MISSING,
                )
            call.caller = authenticator.authenticate(secret)
        elif not required:
            call.caller = ANYONE
        else:
            raise Unauthenticated(
                "no API key; send it as authorization: Bearer mn_…",
                reason=Reason.API_KEY_MISSING,
            )
        if scope not in call.caller.scopes:
            raise PermissionDenied(
                f"{call.method.name} needs scope {scope.name.lower()}; the API key has "
                + ", ".join(s.name.lower() for s in sorted(call.caller.scopes)),
                metadata={"required_scope": scope.name.lower()},
            )
        fairness.enter(call.caller.tenant_id)
        is_of(call.caller.tenant_id)

    return authenticate
