"""Ports to what the use cases of proof need from storage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from mneme_server.common.canonical import Json


@dataclass(frozen=True, slots=True)
class StoredCertificate:
    """A certificate: the SHA-256 of its text, in hex, and the text. Holds salts."""

    id: str
    text: str
    created_us: int


class CertificateLimits(NamedTuple):
    """What is kept of a tenant's certificates at most: how many, of how many bytes together."""

    certificates: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Leaf:
    """A leaf of the tenant's log: a version of an item.

    `index` counts from 0, `hash` is the leaf's in the tree. `salt` and `content` are kept of an
    item's newest version only, and not of what keeps them itself (an event, whose `commitment` may
    be empty here, too). `forgotten_us` is when they were erased for good; None when they were not.
    `source_id` is empty then.
    """

    index: int
    hash: bytes
    kind: str
    source_id: str
    commitment: bytes = b""
    salt: bytes = b""
    content: str = ""
    forgotten_us: int | None = None


class LogName(NamedTuple):
    """What names a log, and the store's generation that it was begun in."""

    id: str
    generation: int


class Forgotten(Protocol):
    """A forgetting: what it marks as forgotten, and who signed that; see
    `features.admin.forgetting.model.Forgetting`."""

    @property
    def leaves(self) -> Sequence[tuple[int, int]]:
        """Leaves of the log, as runs of the first and the last."""
        ...

    @property
    def places(self) -> Mapping[str, Sequence[tuple[int, int]]]:
        """Places in chains of events, likewise, by the digests of their sessions."""
        ...

    @property
    def mark(self) -> Mapping[str, Json] | None:
        """`public_key` and `signature`, in Base64; None of what nobody signed."""
        ...

    def marked(self, tenant_id: str) -> str:
        """Return what is signed."""
        ...
