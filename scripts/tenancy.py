"""What the isolation of tenants means for each RPC, as its schema tells it."""

from __future__ import annotations

from clientgen.description import Rpc

_NAMED = (
    "the call is about the tenant that it names, or the key's own where it may name none. Only a"
    " key with the scope `admin` may name another's: the others do not learn whether it exists."
)
_OWN = "the call sees and changes only what belongs to the tenant of its key."
_ID = "An id of another tenant's is NOT_FOUND, exactly as one that nobody has."
_TAKEN = "Ids are each tenant's own: one that another tenant uses is free here."
_FOUND = "What other tenants store is neither in the answer nor in what it is worked out from."
_ERRORS = {"NOT_FOUND": _ID, "ALREADY_EXISTS": _TAKEN}


def isolation_of(rpc: Rpc) -> str:
    """Return what a caller has to know of other tenants."""
    method = rpc.descriptor
    if "tenant_id" in method.input_type.fields_by_name:
        return _NAMED
    said = [
        text for code, text in _ERRORS.items() if any(error.code == code for error in rpc.errors)
    ]
    answered = [field for field in method.output_type.fields if field.is_repeated]
    if answered and rpc.scope == "read":
        said.append(_FOUND)
    return " ".join([_OWN, *said])
