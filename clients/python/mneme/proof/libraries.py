"""The libraries that proofs are checked with, which come with the extra `verify`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from mneme._extras import from_wheels


class LibraryMissing(ImportError):
    """The extra `verify` is not installed."""


@contextmanager
def from_extra() -> Iterator[None]:
    """Say which extra brings what cannot be imported."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise LibraryMissing(
            f"checking proofs needs the extra `verify` ({error}): install it"
            f" {from_wheels('verify')}"
        ) from error
