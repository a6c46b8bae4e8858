"""Bodies that come packed by gzip, unpacked piece by piece while they come."""

from __future__ import annotations

import zlib
from collections.abc import Iterator

from mneme_server.common.errors import InvalidArgument, Reason

PIECE = 64 * 1024
"""The most that is unpacked at a time, in bytes: a thousandth of that may be all that travelled."""
_SLICE = 8 * 1024
"""The most that is looked at at a time. What follows the end of a packed part is copied, and a
body may consist of empty ones, of twenty bytes each."""
_GZIP = 16 + zlib.MAX_WBITS


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
