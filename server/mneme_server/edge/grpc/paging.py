"""Page tokens: where the next page begins, opaque to the caller.

A token holds the last row's sort key and a digest of it, of the request's type and of its filters.
So a page stays in place while rows arrive, and a token that was damaged, or made for another call
or other filters, is refused instead of answered wrongly.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import Any, TypeVar, overload

from google.protobuf.message import Message

from mneme_server.common import turns
from mneme_server.common.errors import InvalidArgument, Reason
from mneme_server.common.pages import PAGE_BYTES, parts

_Row = TypeVar("_Row")
_Message = TypeVar("_Message", bound=Message)
_A = TypeVar("_A", int, float, str)
_B = TypeVar("_B", int, float, str)
_C = TypeVar("_C", int, float, str)

_DIGEST_BYTES = 9

_PART = 100
"""Rows of a page that are made into messages in one turn."""


class Pages:
    """The paging of one list request, which has `page_size` and `page_token`.

    Use: ask for `size + 1` rows after the sort key `after(...)`, then `cut` the page from them.

    Args:
        request: the request, its defaults put in; all its other fields are filters.
    """

    def __init__(self, request: Message) -> None:
        self.size: int = getattr(request, "page_size")  # noqa: B009
        self._token: str = getattr(request, "page_token")  # noqa: B009
        self._request = request

    @overload
    def after(self, a: type[_A], /) -> tuple[_A] | None: ...
    @overload
    def after(self, a: type[_A], b: type[_B], /) -> tuple[_A, _B] | None: ...
    @overload
    def after(self, a: type[_A], b: type[_B], c: type[_C], /) -> tuple[_A, _B, _C] | None: ...

    def after(self, *types: type[Any]) -> tuple[Any, ...] | None:
        """Return the sort key of the last row seen, of these types; None for the first page.

        Raises:
            InvalidArgument: INVALID_FILTER, the token is damaged or belongs to other filters.
        """
        if not self._token:
            return None
        if "+" in self._token or "/" in self._token:  # The decoder takes them for - and _, too.
            raise _refused()
        try:
            raw = base64.b64decode(self._token, altchars=b"-_", validate=True)
        except (binascii.Error, ValueError) as error:
            raise _refused() from error
        digest, key_json = raw[:_DIGEST_BYTES], raw[_DIGEST_BYTES:]
        if digest != self._digest(key_json):  # What was not written by `cut` is not even parsed.
            raise _refused()
        key = json.loads(key_json)
        if [type(part) for part in key] != list(types):
            raise _refused()
        return tuple(key)

    def cut(
        self, rows: Sequence[_Row], key: Callable[[_Row], tuple[int | float | str, ...]]
    ) -> tuple[Sequence[_Row], str]:
        """Return the page of up to `size` of the `size + 1` rows, and the next page's token.

        The token is empty on the last page. `key` gives a row's sort key.
        """
        if len(rows) <= self.size:
            return rows, ""
        page = rows[: self.size]
        return page, self._token_after(key(page[-1]))

    def fit(
        self,
        rows: Sequence[_Row],
        convert: Callable[[_Row], _Message],
        key: Callable[[_Row], tuple[int | float | str, ...]],
        *,
        times: int = 1,
    ) -> tuple[list[_Message], str]:
        """Return the messages of a page, as `cut` does, but no more than an answer can carry that
        says so many `times` what they do.

        They are made in the calls' turns, a part at a time.
        """
        page = rows[: self.size]
        made = (turns.each(convert, part) for part in parts(page, _PART))
        messages = fitting(chain.from_iterable(made), times=times)
        more = len(messages) < len(rows)
        return messages, self._token_after(key(rows[len(messages) - 1])) if more else ""

    def _token_after(self, key: tuple[int | float | str, ...]) -> str:
        key_json = json.dumps(key, ensure_ascii=False, separators=(",", ":")).encode()
        # A multiple of three bytes needs no padding by "=", which is clumsy in URLs and shells.
        key_json += b" " * (-(_DIGEST_BYTES + len(key_json)) % 3)
        return base64.urlsafe_b64encode(self._digest(key_json) + key_json).decode()

    def _digest(self, key_json: bytes) -> bytes:
        filters = type(self._request)()
        filters.CopyFrom(self._request)
        filters.ClearField("page_size")
        filters.ClearField("page_token")
        digest = hashlib.sha256(filters.DESCRIPTOR.full_name.encode())
        digest.update(b"\0" + filters.SerializeToString(deterministic=True))
        digest.update(b"\0" + key_json)
        return digest.digest()[:_DIGEST_BYTES]


def fitting(messages: Iterable[_Message], *, times: int = 1) -> list[_Message]:
    """Return as many of the first messages as an answer can carry, at least one if there is one,
    where it says so many `times` what they do."""
    taken: list[_Message] = []
    room = PAGE_BYTES // times
    for message in messages:
        room -= message.ByteSize()
        if taken and room < 0:
            break
        taken.append(message)
    return taken


def _refused() -> InvalidArgument:
    return InvalidArgument(
        "page_token is damaged or was made for other filters; begin again without it",
        reason=Reason.INVALID_FILTER,
        field="page_token",
    )
