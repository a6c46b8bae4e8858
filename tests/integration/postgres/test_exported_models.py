"""What a session exported on one server, each server of the database sends, byte for byte."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest
from mneme.v1 import admin_service_pb2 as admin_pb
from mneme.v1 import auth_pb2
from mneme.v1 import learning_service_pb2 as pb
from support.api import grpc, refused
from support.forgetting import forget
from support.learning import Session, step
from support.nodes import patiently
from support.operations import finished
from support.postgres import PostgresServer
from support.server import LocalServer, local_server, server_process

PATIENCE_S = 60.0
SCOPES = (
    auth_pb2.KEY_SCOPE_READ, auth_pb2.KEY_SCOPE_WRITE, auth_pb2.KEY_SCOPE_LEARN,
    auth_pb2.KEY_SCOPE_ADMIN,
)  # fmt: skip


@pytest.fixture
def two(tmp_path: Path, url: str) -> Iterator[tuple[LocalServer, LocalServer]]:
    """Two servers, each with a data folder of its own."""
    with ExitStack() as opened:
        one, other = (
            opened.enter_context(
                local_server(tmp_path / name, database_url=url, database_kept_days=1)
            )
            for name in ("one", "other")
        )
        yield one, other


def _wide(number: int) -> dict[str, float]:
    """A state of so many facts that what is kept of each pair of them takes room."""
    return {f"fact {n}": math.sin(number + n) for n in range(250)}


@pytest.fixture
def here(two: tuple[LocalServer, LocalServer]) -> Session:
    """A session that the first server knows, whose model takes many chunks."""
    session = Session(two[0].keys.tenant("acme", *SCOPES), "linucb", config={"features": 256})
    session.record(
        *(step(_wide(n), f"action {n % 6}", 1.0, terminated=True) for n in range(24)),
        step({"who": "ann"}, "call ann", 1.0, actor_id="ann", terminated=True),
    )
    return session


@pytest.fixture
def there(two: tuple[LocalServer, LocalServer], here: Session) -> Session:
    """The same by way of the second."""
    return Session.known(two[1].keys.key("acme-1", *SCOPES))


def test_another_server_sends_what_one_exported(
    here: Session, there: Session, tmp_path: Path
) -> None:
    ended = here.end()
    model, data = there.download()
    assert model.size_bytes == ended.model_bytes == len(data) > 2**20
    assert model.sha256 == hashlib.sha256(data).hexdigest()
    assert here.download() == (model, data)
    # Nothing of it lies on a disk, where what others delete would stay.
    assert not ended.model_path
    assert not [*tmp_path.rglob("*.npz")]


def test_what_ends_on_another_server_takes_the_place_of_the_model(
    here: Session, there: Session
) -> None:
    here.end()
    before, _ = there.download()
    again = Session(there.api, "linucb", config={"features": 256})  # It goes on there.
    patiently(partial(again.tell, {"size": 9}, "action 9", 1.0))
    patiently(again.end)
    after, data = here.download()
    assert after.sha256 != before.sha256
    assert b"action 9" in data


def test_what_one_server_deletes_or_forgets_no_server_sends(here: Session, there: Session) -> None:
    here.end()
    assert list(forget(there.api, user_id="ann").policies) == ["session"]
    for session in (here, there):
        with refused() as failure:
            session.download()
        assert (failure.code, failure.reason) == (grpc.StatusCode.NOT_FOUND, "NOT_FOUND")
    patiently(here.end)
    assert b"ann" not in there.download()[1]
    patiently(
        lambda: there.api.learning.DeleteLearningSession(
            pb.DeleteLearningSessionRequest(session_id="session")
        )
    )
    with refused() as failure:
        here.download()
    assert failure.reason == "SESSION_NOT_FOUND"


def test_a_tenant_that_is_deleted_leaves_nothing_of_its_models(
    two: tuple[LocalServer, LocalServer], here: Session, postgres: PostgresServer, database: str
) -> None:
    here.end()
    other = Session(two[0].keys.tenant("other", *SCOPES), "linucb")
    other.tell({"size": 1}, "a", 1.0)
    other.end()
    finished(
        two[1].keys.admin,
        admin_pb.DeleteTenantRequest(tenant_id="acme-1"),
    )
    for table in ("learning_exports", "learning_export_chunks"):
        asked = f"SELECT DISTINCT tenant_id FROM mneme.{table}"
        assert postgres.execute(asked, database=database) == [(other.api.tenant_id,)]
    assert other.download()[1]


def test_a_model_outlives_the_server_that_exported_it(tmp_path: Path, url: str) -> None:
    with server_process(tmp_path / "left", database_url=url) as left:
        with server_process(tmp_path / "killed", database_url=url) as killed:
            session = Session(killed.keys.tenant("acme", *SCOPES), "linucb")
            session.tell({"size": 1}, "a", 1.0)
            session.end()
            before = session.download()
            killed.kill()
        assert Session.known(left.keys.key("acme-1", *SCOPES)).download() == before
