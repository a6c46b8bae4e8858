"""What an empty setting means."""

from __future__ import annotations


def none_if_empty(value: object) -> object:
    """Return None for an empty text: a variable that is set to nothing is not set."""
    return None if value == "" else value
