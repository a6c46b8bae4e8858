"""What sessions export when they end: downloaded whole, as long as they keep it."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import signal
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from mneme import MnemeClient, models
from mneme.v1 import admin_service_pb2 as admin_pb
from mneme.v1 import auth_pb2
from mneme.v1 import learning_service_pb2 as pb
from support.api import Api, grpc, refused
from support.forgetting import forget
from support.http import Http
from support.learning import Session, learner, step
from support.operations import finished
from support.server import LocalServer, ServerProcess, local_server, server_process

pytestmark = pytest.mark.slow

ADMIN = (auth_pb2.KEY_SCOPE_LEARN, auth_pb2.KEY_SCOPE_ADMIN)


@pytest.fixture
def api(server: LocalServer) -> Api:
    return learner(server.keys)


def taught(api: Api, session_id: str = "session", rewards: tuple[float, ...] = (1.0,)) -> Session:
    session = Session(api, "linucb", session_id)
    for reward in rewards:
        session.tell({"size": 1}, "a", reward)
    return session


def large(api: Api) -> Session:
    """A session whose model takes many messages."""
    session = Session(api, "linucb", config={"features": 256})
    facts = {f"fact {n}": True for n in range(255)}
    session.record(*(step(facts, f"action {n}", 1.0, terminated=True) for n in range(4)))
    return session


def nothing_exported(session: Session) -> None:
    with refused() as failure:
        session.download()
    assert (failure.code, failure.reason) == (grpc.StatusCode.NOT_FOUND, "NOT_FOUND")
    assert "EndLearningSession exports it" in failure.message
    assert list(failure.fields) == ["session_id"]


def test_what_is_downloaded_is_what_was_exported(api: Api) -> None:
    session = taught(api)
    size = session.end().model_bytes
    model, data = session.download()
    assert model.size_bytes == size == len(data)
    assert model.sha256 == hashlib.sha256(data).hexdigest()
    assert model.name.endswith("-session.npz")
    assert model.exported_at.ToMicroseconds() >= session.stored().ended_at.ToMicroseconds()
    with np.load(io.BytesIO(data)) as arrays:  # Refuses what would run code.
        told = json.loads(arrays["json"].tobytes())
    assert (told["session"], told["algorithm"], told["actions"]) == ("session", "linucb", ["a"])


def test_a_large_model_comes_in_messages_of_bounded_size(api: Api) -> None:
    session = large(api)
    size = session.end().model_bytes
    first, *parts = api.learning.DownloadModel(pb.DownloadModelRequest(session_id=session.id))
    assert not first.data
    assert not any(part.HasField("model") for part in parts)
    assert len(parts) > 2
    assert max(len(part.data) for part in parts) <= 512 * 1024
    data = b"".join(part.data for part in parts)
    assert (len(data), hashlib.sha256(data).hexdigest()) == (size, first.model.sha256)


@pytest.mark.on_sqlite("elsewhere there is no file")
def test_the_file_in_the_data_folder_is_a_copy(server: LocalServer, api: Api) -> None:
    session = taught(api)
    path = server.data_dir / session.end().model_path
    _, data = session.download()
    assert path.read_bytes() == data
    path.unlink()  # It is no more than that.
    assert session.download()[1] == data
    session.end()
    assert path.read_bytes() == data


def test_what_was_never_exported_cannot_be_downloaded(api: Api) -> None:
    session = taught(api)
    nothing_exported(session)
    assert not session.end(skip_export=True).model_bytes
    nothing_exported(session)
    session.end()  # Ending it again exports it.
    assert session.download()[1]


def test_a_session_that_goes_on_keeps_its_model_until_it_ends_again(api: Api) -> None:
    session = taught(api)
    session.end()
    before = session.download()
    session = taught(api)
    assert session.download() == before
    session.end(skip_export=True)
    assert session.download() == before
    session.end()
    model, data = session.download()
    assert model.sha256 != before[0].sha256
    assert b'"transitions":2' in data


def test_a_session_that_ends_again_changes_nothing_of_its_model(api: Api) -> None:
    session = taught(api)
    assert session.end().model_bytes == session.end().model_bytes
    before = session.download()
    session.end()
    assert session.download()[1] == before[1]


def test_a_deleted_session_takes_its_model_with_it(api: Api) -> None:
    session = taught(api)
    session.end()
    api.learning.DeleteLearningSession(pb.DeleteLearningSessionRequest(session_id=session.id))
    with refused() as failure:
        session.download()
    assert failure.reason == "SESSION_NOT_FOUND"
    nothing_exported(taught(api))  # Another one, of the same id.


def test_a_model_that_learned_of_somebody_is_forgotten_with_them(server: LocalServer) -> None:
    api = server.keys.tenant("learning", *ADMIN)
    hers, others = Session(api, "linucb", "hers"), taught(api, "others")
    hers.record(
        step({"who": "ann"}, "call ann", 1.0, actor_id="ann", terminated=True),
        step({"who": "bob"}, "wait", 1.0, terminated=True),
    )
    hers.end(), others.end()
    kept = others.download()
    assert list(forget(api, user_id="ann").policies) == ["hers"]
    nothing_exported(hers)
    assert others.download() == kept
    hers.end()
    assert b"ann" not in hers.download()[1]


def test_a_model_that_is_more_than_the_tenant_may_have_is_not_kept(tmp_path: Path) -> None:
    with local_server(tmp_path / "data", learning_bytes=2**20) as server:
        session = large(learner(server.keys))
        with refused() as failure:
            session.end()
        assert (failure.code, failure.reason) == (
            grpc.StatusCode.RESOURCE_EXHAUSTED, "QUOTA_EXCEEDED",
        )  # fmt: skip
        assert "skip_export" in failure.message
        assert session.predict({"size": 1}).trained  # It goes on.
        nothing_exported(session)
        session.end(skip_export=True)


def test_models_count_to_what_steps_may_take(tmp_path: Path) -> None:
    with local_server(tmp_path / "data", learning_bytes=2**20) as server:
        api = learner(server.keys)
        steps = [step({"text": "x" * 880}, "a", 0.0, terminated=True)] * 900
        filled = Session(api, "q_learning", "filled")
        used = filled.record(*steps).experience_bytes
        other = taught(api, "other")
        size = other.end().model_bytes
        told = filled.record(steps[0])
        assert told.experience_bytes - used >= size
        for _ in range(3):  # What takes the place of another is counted once.
            assert other.end().model_bytes == size
        assert filled.record(steps[0]).experience_bytes - told.experience_bytes < size
        api.learning.DeleteLearningSession(pb.DeleteLearningSessionRequest(session_id="other"))
        assert filled.record(steps[0]).experience_bytes < told.experience_bytes


@pytest.mark.on_sqlite("it looks into a tenant's file")
@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE learning_export_chunks SET data = zeroblob(length(data))",
        "DELETE FROM learning_export_chunks",
    ],
)
def test_a_damaged_model_is_named_and_exported_anew(
    server: LocalServer, api: Api, damage: str
) -> None:
    session = taught(api)
    session.end()
    with server.database(api.tenant_id) as database:
        assert database.execute(damage).rowcount
    with refused() as failure:
        session.download()
    assert (failure.code, failure.reason) == (grpc.StatusCode.DATA_LOSS, "DATA_DAMAGED")
    assert failure.metadata["id"] == "session"
    session.end()
    assert session.download()[1]


@pytest.mark.on_sqlite("it makes or restores a backup")
def test_a_restored_tenant_has_the_models_of_then(server: LocalServer) -> None:
    api = server.keys.tenant("learning", *ADMIN)
    session = taught(api)
    session.end()
    before = session.download()
    backup = Path(finished(api, admin_pb.BackupRequest()).path).name
    taught(api).end()
    assert session.download() != before
    finished(api, admin_pb.RestoreRequest(backup=backup))
    assert session.download() == before


def test_over_http_it_is_lines_of_json(server: LocalServer, api: Api) -> None:
    session = taught(api)
    session.end()
    model, data = session.download()
    with closing(Http(server.http_address, api.secret)) as http:
        first, *parts = http.lines("GET", f"/api/learning/sessions/{session.id}/model")
    assert first["model"]["sha256"] == model.sha256
    assert b"".join(base64.b64decode(part["data"]) for part in parts) == data


def test_a_model_becomes_a_file_that_numpy_loads(
    server: LocalServer, api: Api, tmp_path: Path
) -> None:
    taught(api, "which way").end()
    with MnemeClient(server.address, api_key=api.secret) as client:
        done = models.download(client, "which way", tmp_path)
    assert done.path == tmp_path / done.model.name
    with np.load(done.path) as arrays:
        assert json.loads(arrays["json"].tobytes())["actions"] == ["a"]


@pytest.mark.on_sqlite("it looks for the copy in the data folder")
@pytest.mark.parametrize(
    ("point", "is_kept"), [("row EndLearningSession+", False), ("copy EndLearningSession", True)]
)
def test_a_kill_leaves_a_session_that_ended_with_its_model_or_goes_on_without(
    tmp_path: Path, point: str, is_kept: bool
) -> None:
    with server_process(tmp_path) as first:
        api = learner(first.keys)
        taught(api)
    killed = ServerProcess(tmp_path, cut_at=point)
    with pytest.raises(grpc.RpcError):
        Session.known(killed.keys.api(api.secret)).end()
    assert killed.process.wait(timeout=60) == -signal.SIGKILL, killed.log
    killed._release()
    with server_process(tmp_path) as server:
        session = Session.known(server.keys.api(api.secret))
        assert session.stored().HasField("ended_at") == is_kept
        if is_kept:
            assert session.download()[1]
        else:
            nothing_exported(session)
        path = tmp_path / session.end().model_path  # Asked again, it is as if nothing had been.
        assert path.read_bytes() == session.download()[1]
