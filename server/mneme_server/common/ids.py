"""Identifiers that the server makes."""

from __future__ import annotations

from ulid import ULID


def new_id() -> str:
    """Return a new ULID: 26 characters that sort by the time they were made."""
    return str(ULID())
