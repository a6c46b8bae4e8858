"""Verifying certificates: what was recalled, and the proof that it was in a tenant's log."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, NoReturn

from mneme.proof.libraries import from_extra
from mneme.proof.merkle import ProofInvalid, commitment_of, leaf_hash, verify_inclusion
from mneme.proof.notes import (
    Checkpoint,
    NoteInvalid,
    VerifierKey,
    decoded,
    open_checkpoint,
)

FORMAT = "mneme.certificate.v1"
_SIGNED = b"mneme.certificate.v1\n"
SALT_BYTES = 16
_LOG_ID = re.compile(r"[0-9a-f]{32}")
_MOST_CHARACTERS = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that is wrong with a certificate: which part, and what."""

    part: str
    message: str

    def __str__(self) -> str:
        return f"{self.part}: {self.message}"


class CertificateInvalid(ValueError):
    """The certificate does not verify; `problems` says which parts."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__("; ".join(map(str, problems)))
        self.problems = tuple(problems)


@dataclass(frozen=True, slots=True)
class CertifiedItem:
    """A result that a certificate proves: a version of an item, and its place in the log.

    `content` is what was committed to, as the canonical JSON that it was hashed as.
    """

    source_type: str
    source_id: str
    leaf_index: int
    content: str
    hash: bytes
    score: float


@dataclass(frozen=True, slots=True)
class VerifiedCertificate:
    """A certificate that holds: what it says, and its parts.

    `id` is the SHA-256 of its text, in hex; `body` what was signed.
    """

    id: str
    body: Mapping[str, Any]
    checkpoint: Checkpoint
    items: tuple[CertifiedItem, ...]
    signed_by: VerifierKey


def verify_certificate(text: str | bytes, *keys: str | VerifierKey) -> VerifiedCertificate:
    """Check a certificate: its spelling, its signature, its head, each result's proof, and that
    they are of one tenant: none of several that are trusted signs for another.

    It shows what was stored and returned when it was made, and not that nothing better or newer
    was left out.

    Args:
        text: the certificate, byte for byte as it was given out.
        keys: the keys that are trusted, as `mneme proof keys` prints them.

    Raises:
        CertificateInvalid: something is wrong; `problems` says which parts.
    """
    found, problems = inspect_certificate(text, *keys)
    if found is None or problems:
        raise CertificateInvalid(problems)
    return found


def inspect_certificate(
    text: str | bytes, *keys: str | VerifierKey
) -> tuple[VerifiedCertificate | None, Sequence[Problem]]:
    """Return what a certificate holds, as far as it can be read, and all that is wrong with it."""
    problems: list[Problem] = []
    trusted = list(_keys(keys, problems))
    try:
        raw = text.encode() if isinstance(text, str) else bytes(text)
        certificate = _canonical(raw)
        body = _field(certificate, "body", dict)
        if body.get("format") != FORMAT:
            _refuse(f"it is no certificate of the format {FORMAT}")
        signature = decoded(_field(certificate, "signature", str), "the signature")
        signed_by = _field(certificate, "key", str)
        if sorted(certificate) != ["body", "key", "signature"]:
            _refuse("it has more parts than a certificate has")
        note = _field(body, "checkpoint", str)
        for name, kind in (("tenant", str), ("query", dict), ("query_id", str)):
            _field(body, name, kind)
        results = _field(body, "results", list)
    except (ValueError, RecursionError) as error:
        return None, [*problems, Problem("format", str(error) or "it nests too deep")]
    key = next((one for one in trusted if f"{one.name}+{one.id.hex()}" == signed_by), None)
    # Its head is signed by the key that signs it: others may be trusted for other tenants.
    checkpoint = _checkpoint(note, trusted if key is None else [key], problems)
    items = [
        item
        for place, result in enumerate(results)
        if (item := _item(result, place, checkpoint, problems)) is not None
    ]
    problems += _untied(body, signed_by, checkpoint)
    if key is None:
        problems.append(Problem("key", f"it is signed by {signed_by!r}, which is not trusted"))
    elif not key.holds(signature, _SIGNED + _dumps(body)):
        problems.append(Problem("signature", "what it says is not what the key signed"))
    if key is None or checkpoint is None or len(items) != len(results):
        return None, problems
    id_ = sha256(raw).hexdigest()
    return VerifiedCertificate(id_, body, checkpoint, tuple(items), key), problems


def signed_bytes(body: str) -> bytes:
    """Return what a certificate's signature covers, from its body in canonical JSON."""
    return _SIGNED + body.encode()


def certificate_text(body: str, key: VerifierKey, signature: str) -> str:
    """Return a certificate's text, canonical JSON, from its body in canonical JSON."""
    name = json.dumps(f"{key.name}+{key.id.hex()}")
    return f'{{"body":{body},"key":{name},"signature":{json.dumps(signature)}}}'


def _keys(keys: Sequence[str | VerifierKey], problems: list[Problem]) -> Iterator[VerifierKey]:
    for key in keys:
        try:
            yield key if isinstance(key, VerifierKey) else VerifierKey.parse(key)
        except NoteInvalid as error:
            problems.append(Problem("key", str(error)))


def _checkpoint(
    note: str, keys: Sequence[VerifierKey], problems: list[Problem]
) -> Checkpoint | None:
    try:
        return open_checkpoint(note, keys)
    except NoteInvalid as error:
        problems.append(Problem("checkpoint", str(error)))
        return None


def _untied(
    body: Mapping[str, Any], signed_by: str, checkpoint: Checkpoint | None
) -> Iterator[Problem]:
    """Yield what does not belong together: tenant, key, log, query and the query's id."""
    tenant = body["tenant"]
    if signed_by.partition("+")[0] != f"mneme/{tenant}":
        yield Problem("key", f"it is signed by {signed_by!r}, which is no key of {tenant!r}")
    if checkpoint is not None:
        owner, _, log = checkpoint.origin.rpartition("/")
        if owner != f"mneme/{tenant}" or not _LOG_ID.fullmatch(log):
            yield Problem(
                "checkpoint",
                f"it is the head of {checkpoint.origin!r}, no log of {tenant!r}",
            )
    if sha256(_dumps(body["query"])).hexdigest() != body["query_id"]:
        yield Problem("query_id", "it is not that of the query")


def _item(
    result: Any, place: int, checkpoint: Checkpoint | None, problems: list[Problem]
) -> CertifiedItem | None:
    try:
        if not isinstance(result, dict):
            _refuse("it is no object")
        item = CertifiedItem(
            _field(result, "kind", str),
            _field(result, "id", str),
            _field(result, "leaf", int),
            _field(result, "content", str),
            leaf_hash(
                commitment_of(
                    _salt(_field(result, "salt", str)),
                    _field(result, "content", str),
                )
            ),
            float(_field(result, "score", (int, float))),
        )
        _require_named(item)
        proof = [decoded(one, "a hash") for one in _field(result, "proof", list)]
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        problems.append(Problem(f"results[{place}].content", str(error)))
        return None
    if checkpoint is not None:
        try:
            verify_inclusion(item.hash, item.leaf_index, checkpoint.size, proof, checkpoint.root)
        except ProofInvalid as error:
            problems.append(
                Problem(f"results[{place}].proof", f"{error}: content, salt or proof was changed")
            )
    return item


def _salt(text: str) -> bytes:
    salt = decoded(text, "the salt")
    if len(salt) != SALT_BYTES:
        _refuse(f"the salt has {len(salt)} bytes, and not {SALT_BYTES}")
    return salt


def _require_named(item: CertifiedItem) -> None:
    """Check that the content is that of the item that the result names."""
    content = json.loads(item.content)
    if isinstance(content, dict):
        named = content.get("kind"), content.get("id")
    elif isinstance(content, list) and content:
        named = "event", content[0]
    else:
        _refuse("its content is no item's")
    if named != (item.source_type, item.source_id):
        _refuse("its content is another item's")


def _canonical(raw: bytes) -> dict[str, Any]:
    """Read canonical JSON; another spelling of the same is refused."""
    if len(raw) > _MOST_CHARACTERS:
        _refuse("it is longer than any certificate")
    try:
        read = json.loads(raw.decode(), object_pairs_hook=_object, parse_constant=_refuse_constant)
    except UnicodeDecodeError:
        _refuse("it is not UTF-8")
    except json.JSONDecodeError as error:
        _refuse(f"it is not JSON ({error})")
    if not isinstance(read, dict):
        _refuse("it is no object")
    if _dumps(read) != raw:
        _refuse("it is not canonical JSON (RFC 8785): it was changed, or spelled anew")
    return read


def _dumps(value: Any) -> bytes:
    with from_extra():
        import rfc8785
    try:
        return rfc8785.dumps(value)
    except rfc8785.CanonicalizationError as error:
        raise ValueError(f"it has no canonical JSON ({error})") from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        _refuse("a name stands twice in an object")
    return found


def _refuse_constant(name: str) -> NoReturn:
    _refuse(f"{name} is no number of JSON")


def _field(found: Mapping[str, Any], name: str, kind: Any) -> Any:
    value = found.get(name)
    if not isinstance(value, kind) or isinstance(value, bool):
        _refuse(f"{name!r} is missing, or of another type")
    return value


def _refuse(message: str) -> NoReturn:
    raise ValueError(message)
