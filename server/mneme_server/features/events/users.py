"""Whose user a session or an event is, where only its metadata says so."""

from __future__ import annotations

import json

from mneme_server.common.canonical import JsonObject
from mneme_server.common.texts import composed

_KEYS = ("userId", "user_id")
_LONGEST = 200
"""What the API allows for a `user_id`."""


def user_in(metadata: JsonObject) -> str:
    """Return the user that metadata names; empty when it names none that could be a `user_id`."""
    for key in _KEYS:
        value = metadata.get(key)
        if isinstance(value, int | float) and not isinstance(value, bool):
            # Every digit of an id counts: fifteen are those of other users, too.
            value = str(int(value)) if float(value).is_integer() else f"{value:.15g}"
        if isinstance(value, str) and value.isprintable():
            user = composed(value)
            if 0 < len(user) <= _LONGEST:
                return user
    return ""


def is_of_user(metadata_json: str, user_id: str) -> bool:
    """Tell whether an event of a session that serves a user is that user's: whether its metadata,
    as it is stored, names nobody else. All are where `user_id` is empty."""
    return not user_id or user_in_json(metadata_json) in ("", user_id)


def user_in_json(metadata_json: str) -> str:
    """Return the same of metadata as it is stored; reads it only when it may name one."""
    if metadata_json != "{}" and any(f'"{key}"' in metadata_json for key in _KEYS):
        return user_in(json.loads(metadata_json))
    return ""
