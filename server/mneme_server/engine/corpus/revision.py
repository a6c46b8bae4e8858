"""Revisions: a stored thing changed together with the text by which it is found."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from mneme_server.common.etags import HasEtag
from mneme_server.engine.corpus.ports import Matrix, TextEmbedder
from mneme_server.engine.corpus.tenant import OpenTenant
from mneme_server.engine.corpus.tenant_store import CorpusUnit

T = TypeVar("T", bound=HasEtag)


def revised(
    tenant: OpenTenant,
    embedder: TextEmbedder,
    *,
    read: Callable[[CorpusUnit], T],
    change: Callable[[T], T],
    texts: Callable[[T], Sequence[str]],
    save: Callable[[CorpusUnit, T, T, Matrix | None], T],
) -> T:
    """Change a stored thing, and return it as it is then.

    Embedding may take long, so no lock is held meanwhile. Whatever others change in that time is
    kept: then all of it begins anew, with what they left.

    Args:
        tenant: whose it is.
        embedder: embeds its texts.
        read: reads it in a transaction, and refuses it if it must not be changed any more.
        change: what it becomes; itself where nothing changes, and then nothing is written.
        texts: what is to be embedded of what it becomes, n texts.
        save: writes in a transaction what it becomes, given what is there now, which differs from
            what was read in nothing that its etag tells, and the vectors (n, d); None while there
            are none. Returns what it wrote.

    Raises:
        ResourceExhausted: it cannot be embedded soon, and too much waits; nothing is changed.
    """
    while True:
        with tenant.read() as unit:
            before = read(unit)
        after = change(before)
        if after == before:
            return before
        vectors = embedder.embed(texts(after))
        if vectors is None:
            tenant.require_room(1)
        with tenant.write() as unit:
            now = read(unit)
            if now.etag == before.etag:
                return save(unit, after, now, vectors)
