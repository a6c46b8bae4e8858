"""What the transport needs to know who is calling."""

from __future__ import annotations

from typing import Protocol

from mneme_server.common.identity import Caller


class Authenticator(Protocol):
    """Tells callers by their secrets."""

    def authenticate(self, secret: str) -> Caller:
        """Return whom the secret lets in.

        Raises:
            Unauthenticated: nobody.
        """
        ...

    def known(self, secret: str) -> Caller | None:
        """Return whom the secret lets in, if it did before, without taking time."""
        ...
