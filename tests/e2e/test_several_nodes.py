"""Equal servers on one PostgreSQL: what one wrote, another answers, and no work is done twice."""

from __future__ import annotations

import threading
import time
from functools import partial
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf.message import Message
from mneme.v1 import admin_service_pb2 as admin_pb
from mneme.v1 import alert_service_pb2 as alert_pb
from mneme.v1 import episode_pb2 as episode_pb
from mneme.v1 import event_service_pb2 as events_pb
from mneme.v1 import learn_service_pb2 as learn_pb
from mneme.v1 import memory_service_pb2 as memory_pb
from mneme_server.common.consistency import ConsistencyToken
from mneme_server.common.identity import KeyScope
from mneme_server.engine.corpus.freshness import OLDEST_S
from mneme_server.engine.store.postgres.node import PostgresNode
from mneme_server.features.operations.model import OperationState
from support.api import Api, refused
from support.making import event, list_events, recall, record, verify
from support.nodes import PATIENCE_S, eventually, patiently, texts
from support.operations import Holds, ended, finished
from support.postgres import PostgresServer, running
from support.server import LocalServer, ServerProcess, local_server, server_process

TOKEN = "mneme-consistency-token"


def written(api: Api, text: str, id: str) -> str:
    """Record an event; return the token of the answer."""
    request = events_pb.RecordEventsRequest(events=[event(text, id=id)])
    return token_of(api.events.RecordEvents, request)


def token_number(token: str) -> int:
    """Return the row of the feed that a token names."""
    return ConsistencyToken.parse(token).number


def token_of(rpc: Any, request: Message) -> str:
    """Call, and return the token of the answer."""
    _, call = rpc.with_call(request)
    return str(dict(call.trailing_metadata())[TOKEN])


def test_what_one_wrote_another_answers_under_its_token_each_time(
    two: tuple[LocalServer, LocalServer],
) -> None:
    one, other = two
    here = one.keys.tenant("acme")
    there = other.keys.key("acme-1")
    for number in range(20):
        writes, reads = (here, there) if number % 2 else (there, here)
        token = written(writes, f"the heron ate fish{number}", f"e{number}")
        assert texts(reads, f"fish{number}", token) == [f"the heron ate fish{number}"]
    assert verify(here, "s").valid


def test_what_is_sent_again_to_another_server_is_read_back_under_the_token_of_that(
    two: tuple[LocalServer, LocalServer],
) -> None:
    """As where the first answer was lost: the second is all that the client has."""
    one, other = two
    here = one.keys.tenant("acme")
    there = other.keys.key("acme-1")
    assert texts(there, "heron") == []
    first = written(here, "the heron ate", "e1")
    assert written(there, "the heron ate", "e1") >= first
    taught = learn_pb.CreateLessonRequest(title="herons", content="eat fish", lesson_id="l1")
    first = token_of(here.learn.CreateLesson, taught)
    assert token_of(there.learn.CreateLesson, taught) >= first
    remembered = memory_pb.CreateMemoryRequest(memory_id="m1", text="a heron")
    first = token_of(here.memory.CreateMemory, remembered)
    assert token_of(there.memory.CreateMemory, remembered) >= first
    tried = episode_pb.CreateEpisodeRequest(task="look for herons", success=True, episode_id="x1")
    first = token_of(here.skill.CreateEpisode, tried)
    assert token_of(there.skill.CreateEpisode, tried) >= first


def test_without_a_token_it_is_answered_soon_though_nobody_is_told_of_commits(
    two: tuple[LocalServer, LocalServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PostgresNode, "tell", lambda _self: None)
    one, other = two
    here = one.keys.tenant("acme")
    there = other.keys.key("acme-1")
    assert texts(there, "heron") == []
    record(here, event("the heron ate", id="e1"))
    eventually(lambda: texts(there, "heron") == ["the heron ate"], "it was never found")


def test_a_watch_shows_what_another_server_records(two: tuple[LocalServer, LocalServer]) -> None:
    one, other = two
    here = one.keys.tenant("acme")
    there = other.keys.key("acme-1")
    watch = there.events.WatchEvents(events_pb.WatchEventsRequest(), timeout=PATIENCE_S)
    next(watch)
    record(here, event("the heron ate", id="e1"))
    assert next(watch).event.id == "e1"
    watch.cancel()


def test_a_watch_shows_what_another_server_records_though_its_own_has_closed_the_tenant(
    tmp_path: Path, url: str
) -> None:
    with (
        local_server(tmp_path / "one", database_url=url) as one,
        local_server(tmp_path / "other", database_url=url, tenant_idle_seconds=0.2) as other,
    ):
        here = one.keys.tenant("acme")
        there = other.keys.key("acme-1")
        watch = there.events.WatchEvents(events_pb.WatchEventsRequest(), timeout=PATIENCE_S)
        next(watch)
        registry = other.application.runtime.tenants
        for name in ("e1", "e2"):
            eventually(lambda: not registry.open_tenants(), "the tenant stays open")
            record(here, event("the heron ate", id=name))
            assert next(watch).event.id == name
        watch.cancel()


def test_a_tenant_that_was_not_searched_for_long_shows_at_once_what_was_written_meanwhile(
    two: tuple[LocalServer, LocalServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its feed is looked at now and then: the call does so, too."""
    one, other = two
    here = one.keys.tenant("acme")
    there = other.keys.key("acme-1")
    assert patiently(partial(texts, there, "heron")) == []
    cluster = other.application.runtime.servers
    assert cluster is not None
    monkeypatch.setattr(cluster, "_hear", lambda _now: None)
    for number in range(3):
        record(here, event(f"the heron ate fish{number}", id=f"e{number}"))
        time.sleep(2 * OLDEST_S)  # Else what there was before it may be shown.
        shown = patiently(partial(texts, there, f"fish{number}"))
        assert shown == [f"the heron ate fish{number}"]


def test_a_server_that_nobody_asks_reads_nothing_until_somebody_does_and_then_all_at_once(
    two: tuple[LocalServer, LocalServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = two
    here = one.keys.tenant("acme")
    there = other.keys.key("acme-1")
    record(here, event("the heron ate", id="e0"), wait=True)
    assert texts(there, "heron") == ["the heron ate"]
    (tenant,) = other.application.runtime.tenants.open_tenants(["acme-1"])
    eventually(lambda: tenant.index_lag == 0 and not tenant.is_followed_closely, "it is not quiet")
    read: list[int] = []
    changes_after = tenant._index._changes_after
    monkeypatch.setattr(
        tenant._index, "_changes_after",
        lambda place, limit: read.append(place.number) or changes_after(place, limit),
    )  # fmt: skip
    for number in range(20):
        record(here, event(f"the heron ate fish{number}", id=f"f{number}"), wait=True)
    newest = token_number(written(here, "a grebe", "g1"))
    eventually(lambda: tenant.index_lag >= 20, "it does not know where the feed is")
    assert read == []
    time.sleep(2 * OLDEST_S)  # Else what there was before it may be shown.
    assert texts(there, "grebe") == ["a grebe"]
    assert len(read) == 1, "what was behind was read in parts"
    assert tenant._index.current.position.number >= newest
    for number in range(20):
        assert f"the heron ate fish{number}" in texts(there, f"fish{number}")


def test_both_record_and_each_text_is_embedded_once(
    two: tuple[LocalServer, LocalServer], postgres: PostgresServer, database: str
) -> None:
    one, other = two
    apis = (one.keys.tenant("acme"), other.keys.key("acme-1"))

    def send(which: int) -> None:
        for batch in range(5):
            record(
                apis[which],
                *(
                    event(f"bird {which} {batch} {n} sings", session=f"s{which}",
                          id=f"{which}-{batch}-{n}")
                    for n in range(10)
                ),
            )  # fmt: skip

    threads = [threading.Thread(target=send, args=(which,)) for which in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    def counted(what: str) -> int:
        (row,) = postgres.execute(f"SELECT {what}", database=database)
        return int(row[0])

    eventually(
        lambda: counted("count(*) FROM mneme.embedding_queue") == 0, "the queue did not drain"
    )
    documents = counted("count(*) FROM mneme.documents WHERE tenant_id = 'acme-1'")
    assert documents == 100
    assert counted("count(*) FROM mneme.vectors WHERE tenant_id = 'acme-1'") == documents
    taken = "value FROM mneme.numbers WHERE tenant_id = 'acme-1' AND name = 'vectors'"
    assert counted(taken) == documents, "a number was used for each text, and no more"
    for api in apis:
        assert len(list_events(api)) == 100
        assert recall(api, "which bird sings").results


def test_a_revoked_key_is_refused_by_the_other_server_within_a_second(
    two: tuple[LocalServer, LocalServer],
) -> None:
    one, other = two
    one.keys.tenant("acme")
    created = one.keys.admin.admin.CreateApiKey(
        admin_pb.CreateApiKeyRequest(tenant_id="acme-1", name="x", scopes=[1])
    )
    api = other.keys.api(created.secret, "acme-1")
    assert list_events(api) == []
    one.keys.admin.admin.RevokeApiKey(admin_pb.RevokeApiKeyRequest(api_key_id=created.api_key.id))
    time.sleep(1.0)  # What is promised.
    with pytest.raises(grpc.RpcError) as refused:
        list_events(api)
    assert refused.value.code() == grpc.StatusCode.UNAUTHENTICATED


def test_what_a_key_calls_on_one_server_counts_on_the_other_a_moment_later(
    two: tuple[LocalServer, LocalServer],
) -> None:
    limit = 30
    one, other = two
    one.keys.tenant("acme")
    created = one.keys.admin.admin.CreateApiKey(
        admin_pb.CreateApiKeyRequest(tenant_id="acme-1", name="x", scopes=[1], rate_limit=limit)
    )
    began = time.monotonic()

    def let_through(server: LocalServer) -> int:
        """Call until it is refused; return how often it was not."""
        api = server.keys.api(created.secret, "acme-1")
        for done in range(100):
            try:
                list_events(api)
            except grpc.RpcError as error:
                if error.code() != grpc.StatusCode.RESOURCE_EXHAUSTED:
                    raise
                return done
        raise AssertionError("it is never refused")

    known = one.application._server.counts
    eventually(lambda: bool(known._known), "they did not hear of each other")
    assert let_through(other) >= limit
    key = created.api_key.id
    counted, _ = other.application._server.counts._buckets.counted()[key]
    eventually(
        lambda: counted in [calls.get(key) for calls in known._known.values()],
        "the other server did not hear of it",
    )
    passed = let_through(one)
    refill = (time.monotonic() - began) * limit / 60
    assert passed <= 1 + refill


def test_an_operation_of_a_server_that_is_gone_is_done_by_one_of_the_others(
    two: tuple[LocalServer, LocalServer], postgres: PostgresServer, database: str
) -> None:
    """It stands in the catalog as it does where its server was killed before it began; as nobody
    knows its kind, it ends as failed."""
    two[0].keys.tenant("acme")
    postgres.execute(
        "INSERT INTO mneme.leases VALUES ('operation/acme-1/left', 'a server that is gone', 1)",
        "INSERT INTO mneme_catalog.operations (owner, id, kind, tenant_id, scope, request,"
        " created_at, state, cancellable, cancel_requested, attempts, kept)"
        f" VALUES ('acme-1', 'left', 'unknown', 'acme-1', {KeyScope.READ.value}, '{{}}', 1,"
        f" {OperationState.QUEUED.value}, true, false, 0, '{{}}')",
        database=database,
    )
    left = "SELECT state, attempts FROM mneme_catalog.operations WHERE id = 'left'"
    eventually(
        lambda: postgres.execute(left, database=database) == [(OperationState.FAILED.value, 1)],
        "it was not done, or more than once",
    )
    lease = "SELECT * FROM mneme.leases WHERE name = 'operation/acme-1/left'"
    eventually(lambda: postgres.execute(lease, database=database) == [], "its lease stays")


def test_a_server_that_is_killed_under_load_loses_nothing_and_another_does_its_work(
    tmp_path: Path, url: str, postgres: PostgresServer, database: str
) -> None:
    killed = ServerProcess(tmp_path / "killed", database_url=url)
    with server_process(tmp_path / "left", database_url=url) as left:
        api = killed.keys.tenant("acme")
        other = left.keys.key("acme-1")
        acknowledged: list[str] = []
        begun = threading.Event()

        def send() -> None:
            for batch in range(1_000):
                ids = [f"{batch}-{n}" for n in range(10)]
                sent = [event(f"heron {one} eats fish", session="s", id=one) for one in ids]
                try:
                    record(api, *sent)
                except (grpc.RpcError, ValueError):  # It is gone, and so is the channel.
                    return
                acknowledged.extend(ids)
                if batch == 5:
                    begun.set()

        sender = threading.Thread(target=send)
        sender.start()
        assert begun.wait(PATIENCE_S)
        record(other, event("meanwhile", session="o", id="o"))
        owners = postgres.execute(
            "SELECT node FROM mneme.leases WHERE name = 'acme-1'", database=database
        )
        assert len(owners) == 1
        killed.kill()
        sender.join()
        found = [one.id for one in patiently(lambda: list_events(other))]
        assert len(found) == len(set(found)), "nothing twice"
        assert set(acknowledged) <= set(found)
        assert patiently(lambda: verify(other, "s")).valid

        def drained() -> bool:
            rows = postgres.execute("SELECT count(*) FROM mneme.embedding_queue", database=database)
            return rows == [(0,)]

        eventually(drained, "nobody embeds what the killed server left")
        (after,) = postgres.execute(
            "SELECT node FROM mneme.leases WHERE name = 'acme-1'", database=database
        )
        assert after != owners[0], "the lease has moved"
        record(other, event("one more for the crow", session="o", id="c"), wait=True)
        last = acknowledged[-1]
        assert texts(other, f"heron {last}")[0].startswith("heron")


def test_without_the_database_nothing_old_is_answered_and_it_may_be_tried_again(
    tmp_path: Path,
) -> None:
    with running() as own, local_server(tmp_path / "data", database_url=own.url()) as server:
        api = server.keys.tenant("acme")
        record(api, event("the heron ate", id="e1"))
        assert texts(api, "heron") == ["the heron ate"]
        own.stop(kill=True)

        def refused() -> bool:
            try:
                texts(api, "heron")
            except grpc.RpcError as error:
                return error.code() == grpc.StatusCode.UNAVAILABLE
            return False

        try:  # What was there 100 ms ago may be answered that long.
            eventually(refused, "it is answered though it cannot be known to be new enough")
        finally:
            own.start()
        assert patiently(lambda: texts(api, "heron")) == ["the heron ate"]


def test_a_key_that_another_server_revokes_loses_its_streams_and_operations(
    two: tuple[LocalServer, LocalServer],
) -> None:
    one, other = two
    owner = one.keys.tenant("acme")
    admin = one.keys.admin
    created = admin.admin.CreateApiKey(
        admin_pb.CreateApiKeyRequest(tenant_id="acme-1", name="leaked", scopes=list(KeyScope))
    )
    leaked = other.keys.api(created.secret)
    watch = leaked.events.WatchEvents(events_pb.WatchEventsRequest(), timeout=PATIENCE_S)
    next(watch)
    with Holds(other, "reindex") as work:
        started = leaked.admin.Reindex(admin_pb.ReindexRequest()).operation
        assert work.begun.wait(PATIENCE_S)
        admin.admin.RevokeApiKey(admin_pb.RevokeApiKeyRequest(api_key_id=created.api_key.id))
        with refused() as failure:
            for _ in watch:
                pass
        assert failure.code is grpc.StatusCode.UNAUTHENTICATED
        assert ended(admin, started.id).error.code == failure.code.value[0]
    record(owner, event("after", id="e1"))


def test_nothing_is_sent_to_a_webhook_whose_key_another_server_revoked(
    two: tuple[LocalServer, LocalServer],
) -> None:
    one, other = two
    owner = other.keys.tenant("acme")
    created = one.keys.admin.admin.CreateApiKey(
        admin_pb.CreateApiKeyRequest(
            tenant_id=owner.tenant_id, name="leaked", scopes=[KeyScope.READ, KeyScope.WRITE]
        )
    )
    asked = alert_pb.CreateAlertRuleRequest(
        name="busy",
        condition=alert_pb.ALERT_CONDITION_EVENT_COUNT_EXCEEDS,
        notify_channels=["https://alerts.example.invalid/never"],
    )
    made = other.keys.api(created.secret).alert.CreateAlertRule(asked).rule
    one.keys.admin.admin.RevokeApiKey(admin_pb.RevokeApiKeyRequest(api_key_id=created.api_key.id))
    record(owner, event("one", "s"))
    deliveries: list[alert_pb.AlertDelivery] = []

    def over() -> bool:
        entries = owner.alert.ListAlertHistory(alert_pb.ListAlertHistoryRequest()).entries
        deliveries[:] = [one for entry in entries for one in entry.deliveries]
        return bool(deliveries) and deliveries[0].state == alert_pb.DELIVERY_STATE_FAILED

    eventually(over, "it is not given up")
    shown = owner.alert.GetAlertRule(alert_pb.GetAlertRuleRequest(rule_id=made.id)).rule
    assert "was revoked" in shown.notify_held_reason
    assert (deliveries[0].error, deliveries[0].attempts) == (shown.notify_held_reason, 0)


def test_a_tenant_that_another_server_deletes_takes_the_streams_of_its_keys_along(
    two: tuple[LocalServer, LocalServer],
) -> None:
    one, other = two
    one.keys.tenant("acme")
    there = other.keys.key("acme-1")
    watch = there.events.WatchEvents(events_pb.WatchEventsRequest(), timeout=PATIENCE_S)
    next(watch)
    patiently(partial(finished, one.keys.admin, admin_pb.DeleteTenantRequest(tenant_id="acme-1")))
    with refused() as failure:
        for _ in watch:
            pass
    assert failure.code is grpc.StatusCode.UNAUTHENTICATED
