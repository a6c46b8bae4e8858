"""Stored values that cannot be read back: one error for all of them, with the kind and the id.

Files rot, disks lie, and hands change bytes behind the server's back. A value that came out of the
database and is not what was put there is no bug of the call that met it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from mneme_server.common.clock import END_US
from mneme_server.common.errors import DataLoss

T = TypeVar("T")
S = TypeVar("S")

UNREADABLE = (ValueError, TypeError, KeyError, IndexError, AttributeError, OverflowError)
"""What reading a damaged value raises: no UTF-8, no JSON, another type, no number of an enum."""

_SHOWN = 200


def damaged(kind: str, item_id: object, why: object) -> DataLoss:
    """Return the error for an item of that kind whose stored form cannot be read."""
    shown = str(item_id)[:_SHOWN].encode(errors="backslashreplace").decode()
    return DataLoss(
        f"the {kind} {shown} is damaged in storage ({_said(why)}); the rest of the tenant is still"
        " served, but this has to be restored from a backup",
        metadata={"kind": kind, "id": shown},
    )


def reads(kind: str, key: str = "id") -> Callable[[Callable[[S], T]], Callable[[S], T]]:
    """Make a function that decodes a stored item say what is damaged when it cannot.

    Args:
        kind: what is read, in a word: "event".
        key: the attribute of the function's argument that holds the item's id.
    """

    def wrap(decode: Callable[[S], T]) -> Callable[[S], T]:
        def decoded(stored: S) -> T:
            try:
                return decode(stored)
            except UNREADABLE as error:
                raise damaged(kind, getattr(stored, key, ""), error) from error

        decoded.__doc__ = decode.__doc__
        decoded.__name__ = getattr(decode, "__name__", kind)
        return decoded

    return wrap


def _said(why: object) -> str:
    """Return the reason in a line without the content, which may be long or nobody's business."""
    if isinstance(why, UnicodeDecodeError):
        return "a text is not UTF-8"
    if isinstance(why, BaseException):
        return type(why).__name__
    return str(why)


def require_enum(known: Any, number: object, what: str) -> None:
    """Check that a stored number is one of an enum's.

    Raises:
        ValueError: it is not.
    """
    if number not in known:
        raise ValueError(f"{what} {number!r:.40} is unknown")


def require_times(*microseconds: int | None) -> None:
    """Check that stored times are times of a calendar; None is one that was not given.

    Raises:
        ValueError: one is not.
    """
    for us in microseconds:
        if us is not None and not 0 <= us < END_US:
            raise ValueError("a time is out of range")
