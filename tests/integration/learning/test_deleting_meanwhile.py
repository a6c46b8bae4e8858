"""A session that is deleted while somebody opens it is gone for both."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from mneme.v1 import learning_service_pb2 as pb
from mneme_server.features.learning.sessions import open_sessions
from support.api import Api, grpc, refused
from support.learning import Session, learner, step
from support.server import LocalServer

PATIENCE_S = 60.0
_OPENING_S = 0.5


@pytest.fixture
def api(server: LocalServer) -> Api:
    return learner(server.keys)


def test_a_session_that_is_deleted_while_it_is_opened_is_asked_no_more(
    server: LocalServer, api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = Session(api, "linucb")
    session.record(step({"who": "ann"}, "call", 1.0), step({"who": "ann"}, "wait", 0.0))
    server.close_tenant(api.tenant_id)  # It is in no memory now.
    read, opened = threading.Event(), open_sessions.opened

    def slowly(*given: Any) -> Any:
        live = opened(*given)
        read.set()
        threading.Event().wait(_OPENING_S)
        return live

    monkeypatch.setattr(open_sessions, "opened", slowly)
    with ThreadPoolExecutor(1) as pool:
        asking = pool.submit(session.predict, {"who": "bob"})
        assert read.wait(PATIENCE_S)
        api.learning.DeleteLearningSession(pb.DeleteLearningSessionRequest(session_id=session.id))
        asking.exception()  # It may have been asked before it was deleted, or after.
    with refused() as failure:
        session.predict({"who": "bob"})
    assert failure.code == grpc.StatusCode.NOT_FOUND
    anew = Session(api, "linucb")
    assert not anew.resumed
    assert anew.tell({"who": "cid"}, "wait", 1.0).transition == 1
    assert anew.stored().transitions == 1
