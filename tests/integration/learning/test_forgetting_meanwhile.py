"""What is just being forgotten comes back by nobody who had read it before."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from mneme.v1 import auth_pb2
from mneme_server.features.learning.forgetting import LearningForgetter
from support.api import Api, grpc
from support.forgetting import forget
from support.learning import Session, step
from support.server import LocalServer

SCOPES = (auth_pb2.KEY_SCOPE_LEARN, auth_pb2.KEY_SCOPE_ADMIN)
PATIENCE_S = 60.0
_ERASING_S = 1.0


@pytest.fixture
def api(server: LocalServer) -> Api:
    return server.keys.tenant("learning", *SCOPES)


def again(call: Callable[[], Any]) -> Any:
    """Call as clients do: again while the server says that it may be tried again."""
    for _ in range(100):
        try:
            return call()
        except grpc.RpcError as error:
            if error.code() != grpc.StatusCode.UNAVAILABLE:
                raise
    raise AssertionError("it cannot be called")


@pytest.mark.parametrize("call", ["end", "tell"])
def test_a_session_that_is_opened_while_its_steps_are_forgotten_knows_nothing_of_them(
    server: LocalServer, api: Api, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    session = Session(api, "linucb")
    session.record(
        step({"who": "ann"}, "call ann", 1.0, actor_id="ann", terminated=True),
        step({"who": "bob"}, "wait", 1.0, terminated=True),
    )
    server.close_tenant(api.tenant_id)  # It is in no memory now.
    erasing, erase = threading.Event(), LearningForgetter.erase

    def slowly(self: LearningForgetter, *arguments: Any) -> None:
        erase(self, *arguments)
        erasing.set()
        threading.Event().wait(_ERASING_S)

    monkeypatch.setattr(LearningForgetter, "erase", slowly)
    calls = {"end": session.end, "tell": lambda: session.tell({"who": "bob"}, "wait", 1.0)}
    with ThreadPoolExecutor(2) as pool:
        forgetting = pool.submit(forget, api, user_id="ann")
        assert erasing.wait(PATIENCE_S)
        called = pool.submit(again, calls[call])
        assert list(forgetting.result().policies) == ["session"]
        called.result()
    for _ in range(2):
        again(session.end)
        assert b"ann" not in session.download()[1]
        server.close_tenant(api.tenant_id)  # So that it is read from what was saved.
    assert session.stored().transitions == (1 if call == "end" else 2)
