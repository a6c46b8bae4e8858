"""Consistency tokens: a reader sees what was written before its token, or is told why not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mneme.v1 import admin_service_pb2 as admin_pb
from mneme.v1 import event_service_pb2 as events_pb
from mneme.v1 import recall_service_pb2 as recall_pb
from mneme_server.common.consistency import ConsistencyToken
from support.api import Api, grpc
from support.making import event, record
from support.operations import finished
from support.server import LocalServer, local_server

TOKEN, FRESH = "mneme-consistency-token", "mneme-at-least-as-fresh"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[LocalServer]:
    with local_server(tmp_path / "data") as server:
        yield server


@pytest.fixture
def api(server: LocalServer) -> Api:
    return server.keys.tenant()


def called(method: Any, request: Any, fresh: str | None = None) -> tuple[Any, dict[str, str]]:
    """Call, with a token when given; return the answer and its trailers."""
    answer, call = method.with_call(request, metadata=((FRESH, fresh),) if fresh else ())
    return answer, dict(call.trailing_metadata())


def written(api: Api, text: str) -> str:
    request = events_pb.RecordEventsRequest(events=[event(text)])
    return called(api.events.RecordEvents, request)[1][TOKEN]


def recalled(api: Api, fresh: str) -> dict[str, str]:
    request = recall_pb.RecallRequest(query="heron", mode=recall_pb.RECALL_MODE_LEXICAL)
    return called(api.recall.Recall, request, fresh)[1]


def test_a_write_is_answered_with_a_token_that_reads_take(api: Api) -> None:
    first, second = written(api, "the heron stood"), written(api, "and flew away")
    assert first[:16] == second[:16]
    assert first < second
    for token in (first, second):
        assert recalled(api, token) == {}, "nothing to tell: it is as fresh as was asked for"


def test_a_stream_of_writes_ends_with_a_token(api: Api) -> None:
    call = api.events.StreamEvents(
        iter([events_pb.StreamEventsRequest(event=event("the heron stood"))])
    )
    assert [*call]
    assert recalled(api, dict(call.trailing_metadata())[TOKEN]) == {}


def test_a_read_that_writes_nothing_gives_no_token(api: Api) -> None:
    record(api, event("the heron stood"))
    assert called(api.events.ListEvents, events_pb.ListEventsRequest())[1] == {}


def test_what_is_no_token_is_refused(api: Api) -> None:
    with pytest.raises(grpc.RpcError) as refused:
        recalled(api, "yesterday")
    assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert "no consistency token" in refused.value.details()


def test_a_token_of_a_state_that_is_lost_is_answered_from_the_newest(
    server: LocalServer, api: Api
) -> None:
    kept = written(api, "the heron stood")
    token = ConsistencyToken.parse(kept)
    for lost in (
        token._replace(number=token.number + 1_000),
        token._replace(mark=token.mark ^ 1),
        token._replace(generation=token.generation ^ 1),
        ConsistencyToken.parse(written(server.keys.tenant("another"), "elsewhere")),
    ):
        assert recalled(api, str(lost)) == {FRESH: "newest"}
    assert recalled(api, kept) == {}


def test_a_token_from_before_a_restore_is_answered_from_the_newest(
    server: LocalServer, api: Api
) -> None:
    before = written(api, "the heron stood")
    admin = server.keys.admin
    backup = finished(admin, admin_pb.BackupRequest(tenant_id=api.tenant_id))
    name = Path(backup.path).name
    lost = written(api, "and flew away")
    finished(admin, admin_pb.RestoreRequest(tenant_id=api.tenant_id, backup=name))
    for token in (before, lost):
        assert recalled(api, token) == {FRESH: "newest"}
    assert recalled(api, written(api, "another heron")) == {}


def test_a_token_stays_good_when_the_server_starts_again(tmp_path: Path) -> None:
    with local_server(tmp_path / "data") as server:
        api = server.keys.tenant()
        token, secret = written(api, "the heron stood"), api.secret
        written(api, "and flew away")
    with local_server(tmp_path / "data") as server:
        assert recalled(server.keys.api(secret), token) == {}


def test_a_reader_waits_for_what_an_index_has_missed(server: LocalServer, api: Api) -> None:
    """A commit that nobody passed on, as of another process: who knows of it is shown it."""
    written(api, "the first")
    with server.application.runtime.tenants.open(api.tenant_id) as tenant:
        apply, tenant._index.apply = tenant._index.apply, lambda _change: None
        token = written(api, "the heron stood")
        tenant._index.apply = apply
    request = recall_pb.RecallRequest(query="heron", mode=recall_pb.RECALL_MODE_LEXICAL)
    assert not called(api.recall.Recall, request)[0].results
    answer, trailers = called(api.recall.Recall, request, token)
    assert [result.text for result in answer.results] == ["the heron stood"]
    assert trailers == {}
