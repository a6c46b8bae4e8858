"""Signed notes and heads of logs in C2SP's formats `signed-note` and `tlog-checkpoint`."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Self

from mneme.proof.libraries import from_extra

_ED25519 = b"\x01"
_ID_BYTES = 4
_KEY_BYTES = 32
_MARK = "— "
_MOST_SIGNATURES = 16
_NAME = re.compile(r"[^\s+]+")
_SIZE = re.compile(r"0|[1-9][0-9]{0,18}")


class NoteInvalid(ValueError):
    """A note is none, is signed by no key that was given, or its signature does not hold."""


@dataclass(frozen=True, slots=True)
class VerifierKey:
    """A public key, by its name. As text: `name+id+key`, C2SP's and Go's spelling."""

    name: str
    public: bytes

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a key.

        Raises:
            NoteInvalid: it is none, or its id is not that of its name and key.
        """
        parts = text.strip().split("+", 2)
        if len(parts) != 3 or not _NAME.fullmatch(parts[0]):
            raise NoteInvalid("a key is written NAME+ID+KEY; see `mneme proof keys`")
        encoded = decoded(parts[2], "the key")
        if encoded[:1] != _ED25519 or len(encoded) != 1 + _KEY_BYTES:
            raise NoteInvalid("the key is not of Ed25519")
        made = cls(parts[0], encoded[1:])
        if made.id.hex() != parts[1]:
            raise NoteInvalid("the key's id is not that of its name and its bytes: it was changed")
        return made

    @property
    def id(self) -> bytes:
        """The first bytes of the hash of name and key, by which signatures name it."""
        return sha256(self.name.encode() + b"\n" + _ED25519 + self.public).digest()[:_ID_BYTES]

    def __str__(self) -> str:
        encoded = base64.b64encode(_ED25519 + self.public).decode()
        return f"{self.name}+{self.id.hex()}+{encoded}"

    def holds(self, signature: bytes, data: bytes) -> bool:
        """Return whether the key's owner signed this."""
        with from_extra():
            from cryptography.exceptions import InvalidSignature
            from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
        try:
            Ed25519PublicKey.from_public_bytes(self.public).verify(signature, data)
        except (InvalidSignature, ValueError):
            return False
        return True


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The head of a log, as a signed note states it."""

    origin: str
    size: int
    root: bytes
    note: str

    @property
    def text(self) -> str:
        """What is signed of it."""
        return checkpoint_text(self.origin, self.size, self.root)


def checkpoint_text(origin: str, size: int, root: bytes) -> str:
    """Return what is signed of a head."""
    return f"{origin}\n{size}\n{base64.b64encode(root).decode()}\n"


def signature_line(key: VerifierKey, signature: bytes) -> str:
    """Return the line of a note that holds a key's signature."""
    return f"{_MARK}{key.name} {base64.b64encode(key.id + signature).decode()}\n"


def open_note(note: str, keys: Sequence[VerifierKey]) -> str:
    """Return the text of a note that one of the keys signed.

    Raises:
        NoteInvalid: none of them did, or a signature of one does not hold.
    """
    text, separator, below = note.rpartition("\n\n")
    text += "\n"
    lines = below.splitlines(keepends=True)
    if not separator or not lines or len(lines) > _MOST_SIGNATURES:
        raise NoteInvalid("it is no signed note")
    if any(ord(c) < 0x20 and c != "\n" for c in note) or "".join(lines) != below:
        raise NoteInvalid("it is no signed note")
    signed = False
    for line in lines:
        name, id_, signature = _signature(line)
        for key in keys:
            if (key.name, key.id) == (name, id_):
                if not key.holds(signature, text.encode()):
                    raise NoteInvalid(f"the signature of {name} does not hold")
                signed = True
    if not signed:
        raise NoteInvalid("no key that was given signed it")
    return text


def open_checkpoint(note: str, keys: Sequence[VerifierKey]) -> Checkpoint:
    """Return the head that a note states which one of the keys signed.

    Raises:
        NoteInvalid: none of them did, or it states no head.
    """
    text = open_note(note, keys)
    lines = text.split("\n")
    if len(lines) != 4 or not lines[0] or not _SIZE.fullmatch(lines[1]):
        raise NoteInvalid("it is no head of a log: origin, size and root hash, a line each")
    root = decoded(lines[2], "the root hash")
    if len(root) != 32:
        raise NoteInvalid("the root hash is not of 32 bytes")
    return Checkpoint(lines[0], int(lines[1]), root, note)


def decoded(text: str, what: str) -> bytes:
    """Return what base64 text holds, which must be spelled in the one way that it is encoded in.

    Raises:
        NoteInvalid: it is not base64.
    """
    try:
        found = base64.b64decode(text.encode("ascii"), validate=True)
    except (binascii.Error, ValueError):
        raise NoteInvalid(f"{what} is not base64") from None
    if base64.b64encode(found).decode() != text:
        raise NoteInvalid(f"{what} is base64 in another spelling")
    return found


def _signature(line: str) -> tuple[str, bytes, bytes]:
    parts = line.removeprefix(_MARK).removesuffix("\n").split(" ")
    if not (line.startswith(_MARK) and line.endswith("\n")) or len(parts) != 2:
        raise NoteInvalid("a line of signatures is none")
    raw = decoded(parts[1], "a signature")
    if not _NAME.fullmatch(parts[0]) or len(raw) <= _ID_BYTES:
        raise NoteInvalid("a line of signatures is none")
    return parts[0], raw[:_ID_BYTES], raw[_ID_BYTES:]
