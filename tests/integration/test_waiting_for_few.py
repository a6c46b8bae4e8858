"""Few events that their caller waits for are recorded with their vectors, in one transaction."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from unittest import mock

import pytest
from mneme.v1 import recall_service_pb2 as recall_pb
from support.api import Api
from support.making import event, ids_of, recall, record
from support.server import LocalServer, local_server

DENSE = recall_pb.RECALL_MODE_DENSE


@pytest.fixture
def server(tmp_path: Path) -> Iterator[LocalServer]:
    with local_server(tmp_path / "data") as server:
        # However busy the machine is, the vectors come soon enough.
        server.application.runtime.writing._patience_s = 60.0
        yield server


@pytest.fixture
def api(server: LocalServer) -> Api:
    return server.keys.tenant()


def _commits(server: LocalServer, api: Api) -> int:
    with server.application.runtime.tenants.open(api.tenant_id) as tenant:
        assert not tenant.pending
        return tenant.commits


def test_an_event_that_is_waited_for_takes_one_commit(server: LocalServer, api: Api) -> None:
    before = _commits(server, api)
    record(api, event("a heron stood in the reeds", id="heron"), wait=True)
    assert _commits(server, api) == before + 1
    found = recall(api, "which bird stood there?", mode=DENSE)
    assert ids_of(found) == ["heron"]
    assert found.results[0].HasField("similarity")


def test_what_is_sent_again_among_what_is_new_keeps_each_event_its_own_vector(api: Api) -> None:
    texts = {"heron": "a heron stood in the reeds", "invoice": "the invoice was paid late"}
    record(api, event(texts["heron"], id="heron"), wait=True)
    batch = [event(text, id=name) for name, text in texts.items()]
    quiet = event("nobody is to find this", id="quiet", searchable=False)
    record(api, quiet, *batch, *batch, event("the ferry was late", id="ferry"), wait=True)
    texts["ferry"] = "the ferry was late"
    for name, text in texts.items():
        best = recall(api, text, mode=DENSE).results[0]
        assert best.source_id == name
        assert best.similarity > 0.99


def test_an_event_whose_vector_is_not_to_be_had_soon_is_recorded_and_waited_for(
    server: LocalServer, api: Api
) -> None:
    writing = server.application.runtime.writing
    with mock.patch.object(type(writing), "embed", return_value=None):
        record(api, event("a heron stood in the reeds", id="heron"), wait=True)
    assert ids_of(recall(api, "which bird stood there?", mode=DENSE)) == ["heron"]


@pytest.fixture
def unhurried(server: LocalServer) -> LocalServer:
    at_once = server.application.runtime.at_once
    assert at_once is not None
    at_once._patience_s = 60.0
    return server


def test_a_short_event_takes_one_commit_though_nobody_waits_for_it(
    unhurried: LocalServer, api: Api
) -> None:
    before = _commits(unhurried, api)
    record(api, event("a heron stood in the reeds", id="heron"))
    assert _commits(unhurried, api) == before + 1
    assert ids_of(recall(api, "which bird stood there?", mode=DENSE)) == ["heron"]


@pytest.mark.parametrize("why", ["many", "long", "others are at work"])
def test_what_would_hold_up_its_caller_or_others_is_embedded_later(
    unhurried: LocalServer, api: Api, why: str
) -> None:
    texts = ["a heron stood in the reeds"] * (3 if why == "many" else 1)
    if why == "long":
        texts = [" ".join(texts * 50)]
    runtime = unhurried.application.runtime
    others = runtime.foreground.active() if why == "others are at work" else nullcontext()
    with mock.patch.object(runtime.at_once, "embed", side_effect=AssertionError), others:
        record(api, *(event(text, id=f"e{number}") for number, text in enumerate(texts)))
    assert recall(api, "heron").results
