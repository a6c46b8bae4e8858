"""What was asked to be forgotten, kept without a name in it.

A backup that is put back must forget again what was forgotten since it was made. So the server
keeps what it was asked for, by hashes: whoever reads them learns no name, and a name that is found
in a backup gives the same hash.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from mneme_server.common.canonical import JsonObject, canonical_json
from mneme_server.engine.corpus.forgetting import (
    AGENT,
    PROJECT,
    SESSION,
    TAG,
    USER,
    ForgetFilter,
    ForgetSelection,
    Forgetter,
)

_NAMED = {"user_id": USER, "agent_id": AGENT, "session_id": SESSION, "project": PROJECT}
_FILTER = "filter"


def hashed(selection: ForgetSelection, salt: bytes) -> JsonObject:
    """Return what is kept of a selection."""
    asked = _names(selection, salt)
    if selection.items:
        asked["items"] = {
            kind: sorted(_hash(salt, kind, one) for one in ids)
            for kind, ids in sorted(selection.items.items())
        }
    filter_ = selection.filter
    if filter_ is not None:
        asked[_FILTER] = _names(filter_, salt) | {
            "kinds": sorted(filter_.kinds),
            "tags": sorted(_hash(salt, TAG, tag) for tag in filter_.tags),
            "start": filter_.start_us,
            "end": filter_.end_us,
        }
    return asked


def digest_of(asked: JsonObject) -> str:
    """Return what tells one selection from another."""
    return hashlib.sha256(canonical_json(asked).encode()).hexdigest()


def selections(
    asked: Sequence[JsonObject], forgetters: Sequence[Forgetter], salt: bytes
) -> list[ForgetSelection]:
    """Return the selections that a store may have something of, by the names that are in it."""
    known = _Names(forgetters, salt, asked)
    found = (_selection(one, known) for one in asked)
    return [selection for selection in found if selection != ForgetSelection()]


class _Names:
    """The names that a store has, by their hashes."""

    def __init__(
        self, forgetters: Sequence[Forgetter], salt: bytes, asked: Iterable[JsonObject]
    ) -> None:
        wanted = {what for one in asked for what in _whats(one)}
        self._known: dict[str, dict[str, str]] = {
            what: {
                _hash(salt, what, name): name
                for forgetter in forgetters
                for name in forgetter.names(what)
            }
            for what in wanted
        }

    def get(self, what: str, digest: str) -> str:
        """Return a name, or "" where the store has none of this hash."""
        return self._known.get(what, {}).get(digest, "")


def _whats(asked: Mapping[str, Any]) -> set[str]:
    filter_ = asked.get(_FILTER) or {}
    named = {what for field, what in _NAMED.items() if field in asked or field in filter_}
    return named | set(asked.get("items", {})) | ({TAG} if filter_.get("tags") else set())


def _selection(asked: Mapping[str, Any], known: _Names) -> ForgetSelection:
    # What is not named any more may be known all the same, to what was learned of it: a name that
    # nobody has finds that.
    names = {
        field: known.get(what, asked[field]) or asked[field]
        for field, what in _NAMED.items()
        if field in asked
    }
    items = {
        kind: frozenset(known.get(kind, digest) or digest for digest in digests)
        for kind, digests in asked.get("items", {}).items()
    }
    filter_ = asked.get(_FILTER)
    return ForgetSelection(
        **names, items=items, filter=None if filter_ is None else _filter(filter_, known)
    )


def _filter(asked: Mapping[str, Any], known: _Names) -> ForgetFilter | None:
    """Return a filter; None where the store has not what it asks for."""
    names = {
        field: known.get(what, asked[field]) for field, what in _NAMED.items() if field in asked
    }
    tags = frozenset(known.get(TAG, digest) for digest in asked["tags"])
    if "" in {*names.values(), *tags}:
        return None
    return ForgetFilter(
        **names,
        kinds=frozenset(asked["kinds"]),
        tags=tags,
        start_us=asked["start"],
        end_us=asked["end"],
    )


def _names(named: ForgetSelection | ForgetFilter, salt: bytes) -> dict[str, Any]:
    given = {field: getattr(named, field, "") for field in _NAMED}
    return {field: _hash(salt, _NAMED[field], name) for field, name in given.items() if name}


def _hash(salt: bytes, what: str, name: str) -> str:
    return hmac.new(salt, f"{what}\0{name}".encode(), hashlib.sha256).hexdigest()
