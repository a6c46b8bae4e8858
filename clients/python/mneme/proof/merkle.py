"""Verifying proofs of Merkle trees, as RFC 9162 says (sections 2.1.3.2 and 2.1.4.2)."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256

HASH_BYTES = 32
_EMPTY_ROOT = sha256().digest()


class ProofInvalid(ValueError):
    """The proof does not lead where it should."""


def leaf_hash(commitment: bytes) -> bytes:
    """Return the hash of a leaf."""
    return sha256(b"\x00" + commitment).digest()


def commitment_of(salt: bytes, content: str) -> bytes:
    """Return the SHA-256 of the salt and the content in UTF-8: what a leaf holds."""
    return sha256(salt + content.encode()).digest()


def verify_inclusion(
    hash_: bytes, index: int, size: int, proof: Sequence[bytes], root: bytes
) -> None:
    """Check that the leaf with that hash is at `index` in the tree of `size` leaves.

    Args:
        hash_: the leaf's hash.
        index: its place, from 0.
        size: how many leaves the tree has.
        proof: the hashes from the leaf up.
        root: the tree's hash.

    Raises:
        ProofInvalid: it is not, or the proof is not one.
    """
    _require_hashes([hash_, root, *proof])
    if not 0 <= index < size:
        raise ProofInvalid(f"there is no leaf {index} in a tree of {size}")
    first, last = index, size - 1
    found = hash_
    for sibling in proof:
        if last == 0:
            raise ProofInvalid("the proof is too long")
        if first & 1 or first == last:
            found = _node(sibling, found)
            while not first & 1 and first:
                first, last = first >> 1, last >> 1
        else:
            found = _node(found, sibling)
        first, last = first >> 1, last >> 1
    if last:
        raise ProofInvalid("the proof is too short")
    if found != root:
        raise ProofInvalid("the proof does not lead to the head")


def verify_consistency(
    old_size: int, old_root: bytes, size: int, root: bytes, proof: Sequence[bytes]
) -> None:
    """Check that the newer tree begins with all leaves of the older one.

    Raises:
        ProofInvalid: it does not, or the proof is not one.
    """
    _require_hashes([old_root, root, *proof])
    if not 0 <= old_size <= size:
        raise ProofInvalid(f"a tree of {size} leaves cannot come after one of {old_size}")
    if old_size in (0, size):
        _verify_nothing_between(old_size, old_root, size, root, proof)
        return
    path = [old_root, *proof] if old_size & (old_size - 1) == 0 else list(proof)
    if not path:
        raise ProofInvalid("the proof is too short")
    older, newer = _walked(old_size - 1, size - 1, path)
    if older != old_root:
        raise ProofInvalid("the proof does not lead to the older head")
    if newer != root:
        raise ProofInvalid("the proof does not lead to the newer head")


def _verify_nothing_between(
    old_size: int, old_root: bytes, size: int, root: bytes, proof: Sequence[bytes]
) -> None:
    if proof:
        raise ProofInvalid("the proof is too long")
    if old_size == size and old_root != root:
        raise ProofInvalid("two heads of one size differ")
    if old_size == 0 and old_root != _EMPTY_ROOT:
        raise ProofInvalid("the older head is that of no empty tree")


def _walked(first: int, last: int, path: Sequence[bytes]) -> tuple[bytes, bytes]:
    """Return the older and the newer root that a path leads to."""
    while first & 1:
        first, last = first >> 1, last >> 1
    older = newer = path[0]
    for sibling in path[1:]:
        if last == 0:
            raise ProofInvalid("the proof is too long")
        if first & 1 or first == last:
            older, newer = _node(sibling, older), _node(sibling, newer)
            while not first & 1 and first:
                first, last = first >> 1, last >> 1
        else:
            newer = _node(newer, sibling)
        first, last = first >> 1, last >> 1
    if last:
        raise ProofInvalid("the proof is too short")
    return older, newer


def _node(left: bytes, right: bytes) -> bytes:
    return sha256(b"\x01" + left + right).digest()


def _require_hashes(hashes: Sequence[bytes]) -> None:
    if any(len(one) != HASH_BYTES for one in hashes):
        raise ProofInvalid("a hash is not of 32 bytes")
