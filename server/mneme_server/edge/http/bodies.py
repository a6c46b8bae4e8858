"""Bodies of known callers' requests: taken in as there is room, and unpacked while they come."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Callable, Iterator

from starlette.exceptions import HTTPException

from mneme_server.common.errors import InvalidArgument, Reason, ResourceExhausted
from mneme_server.edge.http.call import HttpCall
from mneme_server.edge.http.exchange import Rpc
from mneme_server.edge.http.fair_shares import Shares
from mneme_server.edge.http.request import Request

_BODY_S = 60.0
"""A body that has not come in so long is not waited for any longer."""
_PACE_S = 10.0
"""After so long a body must have grown, by as much as would have it come in time."""
_SMALL_BYTES = 64 * 1024
"""What is no larger takes no room that anybody would miss."""
_CLOSE = {"connection": "close"}

PIECE = 64 * 1024
"""The most that is unpacked at a time, in bytes: a thousandth of that may be all that travelled."""
_SLICE = 8 * 1024
"""The most that is looked at at a time. What follows the end of a packed part is copied, and a
body may consist of empty ones, of twenty bytes each."""
_GZIP = 16 + zlib.MAX_WBITS


class TooLarge(HTTPException):
    """A body is larger than the server takes."""

    def __init__(self, largest: int) -> None:
        super().__init__(413, f"the body is larger than {largest} bytes", _CLOSE)


class TooSlow(HTTPException):
    """A body did not come in time."""

    def __init__(self) -> None:
        super().__init__(408, "the body did not come in time", _CLOSE)


async def identify(rpc: Rpc, call: HttpCall, request: Request) -> bool:
    """Have a call know of which tenant it is, by its head; tell whether it may be made. One that
    may not is refused whatever is in its body, which nobody needs to wait for."""
    asked = rpc.entrance.whose(rpc.behaviour, call)
    tenant_id = asked.result() if asked.done() else await asyncio.wrap_future(asked)
    call.sender = tenant_id or ""
    call.has_read = request.connection.has_read
    request.connection.is_of(call.sender)
    return tenant_id is not None


class Bodies:
    """Takes bodies in: of each tenant no more than it leaves to others.

    Args:
        largest: the largest body, in bytes.
        room: of all that are being taken in or served, in bytes.
    """

    def __init__(self, largest: int, room: int) -> None:
        self.largest = largest
        self._room = Shares(room)

    async def of(self, rpc: Rpc, call: HttpCall, request: Request) -> bytes:
        """Return the body of a call that may be made, as `take` does; of any other, nothing."""
        if not await identify(rpc, call, request):
            return b""
        return await self.take(request, call.sender)

    async def take(self, request: Request, tenant_id: str) -> bytes:
        """Return the body, unpacked; `release` it when the call is over.

        Raises:
            TooLarge: it is too large, packed or unpacked.
            HTTPException: it is packed by something else than gzip.
            InvalidArgument: it is packed by nothing, though it says so.
            TooSlow: it does not come.
            ClientDisconnect: the peer has left.
            ResourceExhausted: there is no room for it now.
        """
        said = request.body_bytes
        if said is not None and said > self.largest:
            raise TooLarge(self.largest)
        inflater = Inflater() if request.is_packed else None
        packed = 0
        taken = bytearray()
        pace = _Pace(asyncio.get_running_loop().time)
        try:
            async with asyncio.timeout_at(pace.until) as limit:
                async for part in request.stream():
                    packed += len(part)
                    if packed > self.largest:
                        raise TooLarge(self.largest)
                    for piece in _pieces(part, inflater):
                        self.hold(tenant_id, len(piece))
                        taken += piece
                        if len(taken) > self.largest:
                            raise TooLarge(self.largest)
                        if inflater:  # What becomes large must not hold up the others.
                            await asyncio.sleep(0)
                    pace.grew_to(len(taken))
                    if limit.when() != pace.until:
                        limit.reschedule(pace.until)
            if inflater:
                inflater.end()
            return bytes(taken)
        except BaseException as error:
            self.hold(tenant_id, -len(taken))
            if isinstance(error, TimeoutError):
                raise TooSlow from None
            raise

    def hold(self, tenant_id: str, more: int) -> None:
        """Count so much more, or less.

        Raises:
            ResourceExhausted: there is no room for more.
        """
        if more <= 0:
            self._room.change(tenant_id, more)
        elif not self._room.take(tenant_id, more):
            raise ResourceExhausted(
                "too much is being sent to the server at once; try again in a moment",
                retry_after_s=1.0,
            )

    def release(self, body: bytes, tenant_id: str) -> None:
        """Give the room of a body back."""
        self.hold(tenant_id, -len(body))


class _Pace:
    """Until when a body must be there, or have grown."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._end = self.until = self._clock() + _BODY_S
        self._had = 0

    def grew_to(self, size: int) -> None:
        """Take note of how much there is. A large one must grow, so that it would come in time."""
        if size > _SMALL_BYTES and size - self._had >= size * _PACE_S / _BODY_S:
            self._had = size
            self.until = min(self._end, self._clock() + _PACE_S)


def _pieces(part: bytes, inflater: Inflater | None) -> Iterator[bytes]:
    return inflater.pieces(part) if inflater else iter((part,))


class Inflater:
    """Unpacks one body."""

    def __init__(self) -> None:
        self._unpacking = zlib.decompressobj(_GZIP)
        self._begun = False

    def pieces(self, part: bytes) -> Iterator[bytes]:
        """Yield what a part of the body holds, `PIECE` at a time, or nothing for a slice of it that
        holds nothing; whoever has enough stops asking.

        Raises:
            InvalidArgument: it is not packed by gzip.
        """
        for at in range(0, len(part), _SLICE):
            yield from self._unpacked(part[at : at + _SLICE])
            yield b""

    def _unpacked(self, part: bytes) -> Iterator[bytes]:
        left, piece = part, b""
        # A full piece may not be all that the unpacking has of what it was given.
        while left or len(piece) == PIECE:
            if self._unpacking.eof:  # Packed parts may follow one another.
                if not left:
                    return
                self._unpacking = zlib.decompressobj(_GZIP)
            self._begun = True
            try:
                piece = self._unpacking.decompress(left, PIECE)
            except zlib.error as error:
                raise _broken(str(error)) from None
            left = self._unpacking.unconsumed_tail or self._unpacking.unused_data
            if piece:
                yield piece

    def end(self) -> None:
        """Check that nothing is missing.

        Raises:
            InvalidArgument: something is.
        """
        if self._begun and not self._unpacking.eof:
            raise _broken("its end is missing")


def _broken(why: str) -> InvalidArgument:
    return InvalidArgument(f"the body is not packed by gzip: {why}", reason=Reason.INVALID_TYPE)
