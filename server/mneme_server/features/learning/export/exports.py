"""Exported models: what sessions had learned when they ended, kept with the tenant, and copied into
the folders of tenants that have one of their own.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from mneme_server.common.clock import now_us
from mneme_server.common.errors import NotFound, Reason, ResourceExhausted, Unavailable
from mneme_server.common.stored import damaged
from mneme_server.engine.corpus.tenant import OpenTenants
from mneme_server.engine.corpus.tenant_store import CorpusUnit
from mneme_server.features.learning.model import Export, LearningSession
from mneme_server.features.learning.ports import ModelFiles
from mneme_server.features.learning.sessions.live_session import unknown
from mneme_server.features.learning.store.exports import SqlLearningExports
from mneme_server.features.learning.store.sessions import SqlLearningSessions

_AT_ONCE = 8
"""Chunks that are read and sent together."""
_KIND = "exported model of the learning session"
_RETRY_S = 60.0
_OTHERS = re.compile(r"[^A-Za-z0-9_-]+")
_FOLDER = "models"


@dataclass(frozen=True, slots=True)
class LearnedModel:
    """A session's exported model. `parts` reads it, some of its bytes at a time."""

    session: LearningSession
    export: Export
    parts: Iterator[bytes]


class DownloadModel:
    """The use case: read what a session exported.

    Args:
        tenants: where tenants are.
    """

    def __init__(self, tenants: OpenTenants) -> None:
        self._tenants = tenants

    def download(self, tenant_id: str, session_id: str) -> LearnedModel:
        """Return the model of a session.

        The tenant is not held while the caller makes something of a part, which may take long: each
        is read in a transaction of its own, in which the model still has to be the same.

        Raises:
            NotFound: there is no such session, or it has exported nothing; by the parts, too, where
                that came meanwhile.
            Unavailable: by the parts: it exported another model meanwhile.
            DataLoss: by the parts: they are not what was exported.
        """
        with self._tenants.open(tenant_id) as tenant, tenant.read() as unit:
            session, export = _found(unit, session_id)
        return LearnedModel(session, export, self._parts(tenant_id, session, export))

    def _parts(self, tenant_id: str, session: LearningSession, export: Export) -> Iterator[bytes]:
        digest, size, place = hashlib.sha256(), 0, 0
        while size < export.size:
            part = b"".join(self._chunks(tenant_id, session, export, place))
            if not part:
                break
            digest.update(part)
            size += len(part)
            place += _AT_ONCE
            yield part
        if digest.digest() != export.digest:
            raise damaged(_KIND, session.id, "its digest differs")

    def _chunks(
        self, tenant_id: str, session: LearningSession, export: Export, first: int
    ) -> Sequence[bytes]:
        with self._tenants.open(tenant_id) as tenant, tenant.read() as unit:
            current, now = _found(unit, session.id)
            if (current.number, now.digest) != (session.number, export.digest):
                raise Unavailable(
                    f"the learning session {session.id!r} exported another model meanwhile; begin"
                    " anew",
                    reason=Reason.TRANSACTION_FAILED,
                    retry_after_s=0.1,
                )
            return unit.get(SqlLearningExports).chunks(session.number, first, _AT_ONCE)


class KeepModel:
    """Keeps what sessions export.

    Args:
        files: where it is copied to.
        most_bytes: that a tenant's recorded steps and exported models may take.
    """

    def __init__(self, files: ModelFiles, most_bytes: int) -> None:
        self._files = files
        self._most_bytes = most_bytes

    def keep(self, unit: CorpusUnit, session: LearningSession, data: bytes) -> None:
        """Store a session's model, in place of the one before, in a transaction that writes.

        Raises:
            ResourceExhausted: the tenant's steps and models would take more than they may.
        """
        before = unit.get(SqlLearningExports).get(session.number)
        taken = unit.get(SqlLearningSessions).taken_bytes() - (before.size if before else 0)
        if taken + len(data) > self._most_bytes:
            raise ResourceExhausted(
                f"with this model of {len(data):,} bytes the tenant's recorded steps and exported"
                f" models would take more than {self._most_bytes:,} bytes (MNEME_LEARNING_BYTES);"
                " the session goes on: end it with skip_export, or delete sessions that are not"
                " needed",
                reason=Reason.QUOTA_EXCEEDED,
                retry_after_s=_RETRY_S,
            )
        export = Export(hashlib.sha256(data).digest(), len(data), now_us())
        unit.get(SqlLearningExports).put(session.number, export, data)

    def copy(self, tenant_id: str, session: LearningSession, data: bytes) -> str:
        """Write a copy of what was stored; see `ModelFiles`."""
        return self._files.write(tenant_id, session, data)


class TenantModelFiles:
    """Implements `ModelFiles`: each is a file `tenants/TENANT/models/NUMBER-SESSION.npz`.

    Args:
        data_dir: the server's data folder.
        is_shared: tells whether a tenant is in a database that tenants share. Its servers have
            disks of their own: a copy on one of them would outlive what others delete.
    """

    def __init__(self, data_dir: Path, is_shared: Callable[[str], bool]) -> None:
        self._data_dir = data_dir
        self._is_shared = is_shared

    def write(self, tenant_id: str, session: LearningSession, data: bytes) -> str:
        """See `ModelFiles`."""
        if self._is_shared(tenant_id):
            return ""
        path = self._path(tenant_id, session)
        path.parent.mkdir(exist_ok=True)
        beside = path.with_suffix(".part")
        with beside.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
        return str(path.relative_to(self._data_dir))

    def remove(self, tenant_id: str, session: LearningSession) -> None:
        """See `ModelFiles`."""
        self._path(tenant_id, session).unlink(missing_ok=True)

    def remove_of(self, tenant_id: str, session_id: str) -> None:
        """Remove the models of every session that is, or was, called so."""
        folder = self._data_dir / "tenants" / tenant_id / _FOLDER
        name = f"{plain_id(session_id)}.npz"
        for path in folder.glob(f"*-{name}"):
            if path.name.partition("-")[2] == name:  # Not those of "other-SESSION".
                path.unlink(missing_ok=True)

    def _path(self, tenant_id: str, session: LearningSession) -> Path:
        return self._data_dir / "tenants" / tenant_id / _FOLDER / file_name(session)


def file_name(session: LearningSession) -> str:
    """Return what a file of a session's model is called."""
    return f"{session.number}-{plain_id(session.id)}.npz"


def plain_id(session_id: str) -> str:
    """Return what a file's name tells of a session's id."""
    return _OTHERS.sub("-", session_id)[:80].strip("-")


def _found(unit: CorpusUnit, session_id: str) -> tuple[LearningSession, Export]:
    session = unit.get(SqlLearningSessions).get(session_id)
    if session is None:
        raise unknown(session_id)
    export = unit.get(SqlLearningExports).get(session.number)
    if export is None:
        raise NotFound(
            f"the learning session {session_id!r} has exported no model, or what it had learned was"
            " forgotten; EndLearningSession exports it, also of a session that has ended",
            field="session_id",
        )
    return session, export
