"""Versions of what can be recalled: what of them is committed to, and how."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from hashlib import sha256

from mneme_server.common.canonical import Json, canonical_json
from mneme_server.engine.corpus.attributes import ATTRIBUTES
from mneme_server.engine.corpus.document import NORMAL_IMPORTANCE, Document, MemoryView

SALT_BYTES = 16


@dataclass(frozen=True, slots=True)
class ItemVersion:
    """What becomes a leaf, besides events: one version of an item, or that it was removed."""

    kind: str
    source_id: str
    commitment: bytes
    salt: bytes
    content: str


def version_of(memory: MemoryView) -> ItemVersion:
    """Return a version of an item as it is now, with a new salt."""
    document = memory.document
    return salted_version(document.kind.name, document.source_id, content_of(memory))


def removal_of(kind: str, source_id: str, now_us: int) -> ItemVersion:
    """Return the version that says that an item was removed."""
    content = {"id": source_id, "kind": kind, "removed_at": str(now_us)}
    return salted_version(kind, source_id, canonical_json(content))


def commitment_of(salt: bytes, content: str) -> bytes:
    """Return the SHA-256 of the salt and the content in UTF-8."""
    return sha256(salt + content.encode()).digest()


def content_of(memory: MemoryView) -> str:
    """Return what is committed to of an item: canonical JSON of its document and of what is shown
    beside it. Empty fields are left out; times are texts, as in the hash chain."""
    return canonical_json(_fields(memory.document) | _given({"details": memory.details}))


def tells_of(content: str, memory: MemoryView, *, follows: bool) -> bool:
    """Return whether a content is that of an item as it is now.

    What is shown beside its document is compared where it `follows` the document: whoever changes
    how that is made of rows has to log it anew.
    """
    document, told = memory.document, json.loads(content)
    if isinstance(told, list):  # An event's; what its session gives it is no part of it.
        return tuple(told[:8]) == (
            document.source_id,
            document.session_id,
            document.agent_id,
            document.type,
            document.severity,
            str(document.timestamp_us),
            document.text,
            document.name,
        )
    details = told.pop("details", {})
    if follows and details != json.loads(canonical_json(memory.details)):
        return False
    return bool(told == _fields(document) | _given({"tags": list(document.tags)}))


_COMMITTED = [attribute.name for attribute in ATTRIBUTES if attribute.committed]


def _fields(document: Document) -> dict[str, Json]:
    always: dict[str, Json] = {
        "id": document.source_id,
        "kind": document.kind.name,
        "text": document.text,
        "timestamp": str(document.timestamp_us),
    }
    sometimes: dict[str, Json] = {name: getattr(document, name) for name in _COMMITTED}
    if document.importance != NORMAL_IMPORTANCE:
        always["importance"] = document.importance
    return always | _given(sometimes)


def _given(fields: dict[str, Json]) -> dict[str, Json]:
    return {name: value for name, value in fields.items() if value}


def salted_version(kind: str, source_id: str, content: str) -> ItemVersion:
    """Return a version with this content, with a new salt."""
    salt = os.urandom(SALT_BYTES)
    return ItemVersion(kind, source_id, commitment_of(salt, content), salt, content)
