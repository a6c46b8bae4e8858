"""The log of a tenant: its leaves, keys and heads; and certificates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from mneme.proof.notes import VerifierKey


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


@dataclass(frozen=True, slots=True)
class LogKey:
    """A key of a tenant: its number, from 1, and its public half.

    `introduction` is a note in which the key before names this one and this one that one, signed by
    both. Times are microseconds since 1970; `retired_us` is None for the one that signs.
    """

    number: int
    verifier: VerifierKey
    created_us: int
    retired_us: int | None = None
    introduction: str = ""


@dataclass(frozen=True, slots=True)
class SignedHead:
    """The newest head that was signed of a log."""

    origin: str
    size: int
    root: bytes
    note: str


class KnownLog(NamedTuple):
    """What the catalog knows of a tenant's log at one moment: its keys, by number, and the newest
    head of each log that the tenant had, the current log's last."""

    keys: Sequence[LogKey]
    heads: Sequence[SignedHead]
