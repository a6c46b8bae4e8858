"""Etags: what tells one state of a thing from its others, for who changes what was read."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, Protocol, TypeVar

from mneme_server.common.canonical import canonical_json
from mneme_server.common.errors import Aborted, AlreadyExists, NotFound

_DIGITS = 32


class HasEtag(Protocol):
    """A record that has an id and an etag."""

    @property
    def id(self) -> str:
        """Names the thing."""

    @property
    def etag(self) -> str:
        """Tells this state of it from others."""


T = TypeVar("T", bound=HasEtag)


def etag_of(record: Any, *, without: Collection[str] = ()) -> str:
    """Return the etag of a record of the domain, a dataclass: 32 hexadecimal digits.

    It is made of what the fields hold, so that the same content has the same etag in every process
    and after every restart; fields that change by reading, such as counts of use, go `without`.
    """
    said = [_plain(getattr(record, one.name)) for one in fields(record) if one.name not in without]
    return hashlib.sha256(canonical_json(said).encode()).hexdigest()[:_DIGITS]


def existing(kind: str, found: T | None, asked: str, etag: str = "", *, field: str = "id") -> T:
    """Return what was found under an id, which must still have this etag, if one is given.

    Args:
        kind: what the thing is called, for errors.
        found: the thing; None where there is none.
        asked: the id.
        etag: the etag that the caller read, if any.
        field: the field of the request that has the id.

    Raises:
        NotFound: there is none.
        Aborted: the etag is not the thing's any more.
    """
    if found is None:
        raise NotFound(f"there is no {kind} {asked!r}", field=field)
    require_etag(kind, found, etag)
    return found


def require_unchanged(kind: str, known: HasEtag, differing: Sequence[str]) -> None:
    """Refuse to store again what is there under its id with other content.

    Args:
        kind: what the thing is called, for the error.
        known: the thing as it is.
        differing: the fields in which what is given differs.

    Raises:
        AlreadyExists: there are some; it names them as messages do.
    """
    if differing:
        named = ", ".join(name.removesuffix("_json") for name in differing)
        raise AlreadyExists(f"{kind} {known.id!r} exists with another {named}", field="id")


def require_etag(kind: str, now: HasEtag, given: str) -> None:
    """Refuse to change a thing that is no longer as the caller read it; "" asks for nothing.

    Args:
        kind: what the thing is called, for the error.
        now: the thing as it is.
        given: the etag that the caller read, if any.

    Raises:
        Aborted: the etag is not the thing's any more.
    """
    if given and given != now.etag:
        raise Aborted(
            f"{kind} {now.id!r} has changed: {given!r} is no longer its etag; read the {kind}"
            " again before you change it"
        )


def _plain(value: Any) -> Any:
    """Return a value as JSON has it."""
    if is_dataclass(value):
        return [_plain(getattr(value, one.name)) for one in fields(value)]
    if isinstance(value, tuple | list):
        return [_plain(one) for one in value]
    if isinstance(value, set | frozenset):
        return sorted(map(_plain, value))
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, bytes):
        return value.hex()
    return value
