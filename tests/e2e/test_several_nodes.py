"""Equal servers on one PostgreSQL: what one wrote, another answers, and no work is done twice."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf.message import Message
from mneme.v1 import admin_service_pb2 as admin_pb
from mneme.v1 import auth_pb2
from mneme.v1 import episode_pb2 as episode_pb
from mneme.v1 import event_service_pb2 as events_pb
from mneme.v1 import forgetting_pb2 as pb
from mneme.v1 import learn_service_pb2 as learn_pb
from mneme.v1 import memory_service_pb2 as memory_pb
from mneme.v1 import recall_service_pb2 as recall_pb
from mneme_server.common.errors import Unavailable
from mneme_server.common.identity import KeyScope
from mneme_server.corpus.freshness import OLDEST_S
from mneme_server.operations.model import State
from mneme_server.storage.postgres.node import Node
from support.api import Api
from support.forgetting import spellings, traces
from support.learning import Session, discrete, plain
from support.making import event, list_events, recall, record, verify
from support.postgres import PostgresServer, running
from support.server import (
    LocalServer,
    ServerProcess,
    local_server,
    run_command,
    server_process,
)

TOKEN, FRESH = "mneme-consistency-token", "mneme-at-least-as-fresh"
PATIENCE_S = 60.0
LEARN = (auth_pb2.KEY_SCOPE_READ, auth_pb2.KEY_SCOPE_WRITE, auth_pb2.KEY_SCOPE_LEARN)


@pytest.fixture
def two(tmp_path: Path, url: str) -> Iterator[tuple[LocalServer, LocalServer]]:
    """Two servers, each with a data folder of its own."""
    with (
        local_server(tmp_path / "one", database_url=url) as one,
        local_server(tmp_path / "other", database_url=url) as other,
    ):
        yield one, other


def eventually(holds: Callable[[], bool], what: str) -> None:
    until = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < until, what
        time.sleep(0.05)


def patiently(call: Callable[[], Any]) -> Any:
    """Call as a client does: again while the server says that it may be tried again."""
    until = time.monotonic() + PATIENCE_S
    while True:
        try:
            return call()
        except grpc.RpcError as error:
            if error.code() != grpc.StatusCode.UNAVAILABLE or time.monotonic() > until:
                raise
            time.sleep(0.05)


def written(api: Api, text: str, id: str) -> str:
    """Record an event; return the token of the answer."""
    request = events_pb.RecordEventsRequest(events=[event(text, id=id)])
    return token_of(api.events.RecordEvents, request)


def token_of(rpc: Any, request: Message) -> str:
    """Call, and return the token of the answer."""
    _, call = rpc.with_call(request)
    return str(dict(call.trailing_metadata())[TOKEN])


def texts(api: Api, query: str, fresh: str = "") -> list[str]:
    """Recall by words alone, which are found as soon as they are recorded."""
    request = recall_pb.RecallRequest(query=query, mode=recall_pb.RECALL_MODE_LEXICAL)
    metadata = ((FRESH, fresh),) if fresh else ()
    answer, call = api.recall.Recall.with_call(request, metadata=metadata)
    assert not dict(call.trailing_metadata())
    return [found.text for found in answer.results]


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
    remembered = memory_pb.InsertMemoryRequest(memory_id="m1", text="a heron")
    first = token_of(here.memory.InsertMemory, remembered)
    assert token_of(there.memory.InsertMemory, remembered) >= first
    tried = episode_pb.StoreEpisodeRequest(task="look for herons", success=True, episode_id="x1")
    first = token_of(here.skill.StoreEpisode, tried)
    assert token_of(there.skill.StoreEpisode, tried) >= first


def test_without_a_token_it_is_answered_soon_though_nobody_is_told_of_commits(
    two: tuple[LocalServer, LocalServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Node, "tell", lambda _self: None)
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
    """Its feed is not looked at each time then: the call does so."""
    one, other = two
    here = one.keys.tenant("acme")
    there = other.keys.key("acme-1")
    assert patiently(partial(texts, there, "heron")) == []
    cluster = other.application.runtime.cluster
    assert cluster is not None
    monkeypatch.setattr(cluster, "_hear", lambda _now: None)
    monkeypatch.setattr("mneme_server.corpus.tenant._ASKED_FOR_S", 0.0)
    for number in range(3):
        record(here, event(f"the heron ate fish{number}", id=f"e{number}"))
        time.sleep(2 * OLDEST_S)  # Else what there was before it may be shown.
        shown = patiently(partial(texts, there, f"fish{number}"))
        assert shown == [f"the heron ate fish{number}"]


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


def test_a_tenant_that_one_deletes_the_other_forgets(
    two: tuple[LocalServer, LocalServer], postgres: PostgresServer, database: str
) -> None:
    one, other = two
    here = one.keys.tenant("acme")
    there = other.keys.key("acme-1")
    record(there, event("remember this", id="e1"), wait=True)
    record(here, event("and this", id="e2"), wait=True)
    one.keys.admin.admin.DeleteTenant(admin_pb.DeleteTenantRequest(tenant_id="acme-1"))

    def refused() -> bool:
        try:
            record(there, event("late", id="late"))
        except grpc.RpcError:
            return True
        return False

    assert refused(), "nothing is written to a tenant that is gone"
    rows = postgres.execute("SELECT count(*) FROM mneme.events", database=database)
    assert rows == [(0,)]
    index = other.data_dir / "tenants" / "acme-1" / "lexical"
    eventually(lambda: not index.exists(), "the other server keeps its index")


def forget(server: LocalServer, agent_id: str, id: str = "f") -> pb.ForgetReceipt:
    request = admin_pb.ForgetRequest(tenant_id="acme-1", agent_id=agent_id, operation_id=id)
    return server.keys.admin.admin.Forget(request, timeout=PATIENCE_S).receipt


def told_twice(here: Api, there: Api) -> None:
    """Have both servers' indexes hold what two agents said."""
    record(here, event("the heron ate", session="s1", id="e1", agent_id="a"), wait=True)
    record(here, event("the crow ate", session="s2", id="e2", agent_id="b"), wait=True)
    eventually(lambda: len(texts(there, "ate")) == 2, "the other server does not find it")


def left_of_heron(server: LocalServer) -> list[str]:
    return traces(server.data_dir / "tenants" / "acme-1", spellings("heron"), ["heron"])


def test_what_one_server_forgets_is_in_no_file_of_the_other_when_it_answers(
    tmp_path: Path, url: str
) -> None:
    with (
        local_server(tmp_path / "one", database_url=url, database_kept_days=1) as one,
        local_server(tmp_path / "other", database_url=url, database_kept_days=1) as other,
    ):
        here = one.keys.tenant("acme")
        there = other.keys.key("acme-1")
        told_twice(here, there)
        other.close_tenant("acme-1")
        assert left_of_heron(other), "its index is on the disk"
        assert texts(there, "heron") == ["the heron ate"]
        receipt = forget(one, "a")
        assert receipt.statement
        assert not receipt.nodes
        for server, api in ((one, here), (other, there)):
            assert texts(api, "heron") == []
            assert texts(api, "crow") == ["the crow ate"]
            assert left_of_heron(server) == []
        receipt = forget(other, "b", "g")
        assert receipt.statement
        assert not receipt.nodes
        assert texts(here, "crow") == []


def test_a_closed_tenants_index_goes_from_the_other_servers_disk(tmp_path: Path, url: str) -> None:
    with (
        local_server(tmp_path / "one", database_url=url, database_kept_days=1) as one,
        local_server(tmp_path / "other", database_url=url, database_kept_days=1) as other,
    ):
        told_twice(one.keys.tenant("acme"), there := other.keys.key("acme-1"))
        other.close_tenant("acme-1")
        assert left_of_heron(other)
        assert not forget(one, "a").nodes
        assert left_of_heron(other) == []
        assert texts(there, "ate") == ["the crow ate"]


def test_a_server_that_was_away_erases_before_it_serves_and_is_named_until_then(
    tmp_path: Path, url: str
) -> None:
    with local_server(tmp_path / "one", database_url=url, database_kept_days=1) as one:
        here = one.keys.tenant("acme")
        with local_server(tmp_path / "other", database_url=url, database_kept_days=1) as other:
            told_twice(here, other.keys.key("acme-1"))
        assert left_of_heron(other)
        receipt = forget(one, "a")
        (name,) = receipt.nodes
        assert name in receipt.statement
        assert forget(one, "a").nodes == [name], "it is still away"
        with local_server(tmp_path / "other", database_url=url, database_kept_days=1) as other:
            assert left_of_heron(other) == [], "it caught up before it served"
            assert texts(other.keys.key("acme-1"), "ate") == ["the crow ate"]
            renewed = forget(other, "a")
            assert not renewed.nodes
            assert name not in renewed.statement
            assert renewed.kept_until == receipt.kept_until
            assert renewed.erased_at.ToNanoseconds() > receipt.erased_at.ToNanoseconds()
            assert forget(one, "a") == renewed


def test_what_a_call_had_read_before_it_was_forgotten_is_not_written_by_a_server_taken_for_dead(
    tmp_path: Path, url: str, database: str, postgres: PostgresServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    with (
        local_server(tmp_path / "one", database_url=url, database_kept_days=1) as one,
        local_server(tmp_path / "other", database_url=url, database_kept_days=1) as other,
    ):
        here = one.keys.tenant("acme")
        there = other.keys.key("acme-1")
        told_twice(here, there)
        cluster = other.application.runtime.cluster
        assert cluster is not None
        still, goes_on, tick = threading.Event(), threading.Event(), cluster._tick

        def stand_still() -> None:
            still.set()
            goes_on.wait(PATIENCE_S)
            tick()

        with other.application.runtime.tenants.open("acme-1") as tenant:
            with tenant.read() as unit:
                assert unit.events.by_ids(["e1"])["e1"].text == "the heron ate"
            monkeypatch.setattr(cluster, "_tick", stand_still)
            assert still.wait(PATIENCE_S)
            postgres.execute(
                f"UPDATE mneme.nodes SET alive_until = now() WHERE id = '{cluster._node.id}'",
                database=database,
            )
            receipt = forget(one, "a")
            assert len(receipt.nodes) == 1, "it is taken for dead"
            goes_on.set()
            monkeypatch.undo()
            with pytest.raises(Unavailable, match="taken for dead"), tenant.write():
                raise AssertionError("it may write what it has read")
        patiently(lambda: record(there, event("the egret ate", session="s3", id="e3")))
        eventually(lambda: not forget(one, "a").nodes, "it still owes what was forgotten")
        assert left_of_heron(other) == []


def test_a_server_whose_disk_is_gone_is_named_no_more_once_that_is_said(
    tmp_path: Path, url: str
) -> None:
    with local_server(tmp_path / "one", database_url=url, database_kept_days=1) as one:
        here = one.keys.tenant("acme")
        with local_server(tmp_path / "other", database_url=url, database_kept_days=1) as other:
            told_twice(here, other.keys.key("acme-1"))
        (name,) = forget(one, "a").nodes
        listed = run_command("nodes", tmp_path / "none", database_url=url).stdout.splitlines()
        (away,) = [line.split() for line in listed if "away" in line]
        assert away[1:4] == [name, "away", "1"]
        (runs,) = [line.split()[0] for line in listed if "runs" in line]
        refused = run_command("nodes", tmp_path / "none", "--gone", runs, database_url=url)
        assert refused.returncode == 1
        said = run_command("nodes", tmp_path / "none", "--gone", away[0], database_url=url)
        assert said.returncode == 0, said.stderr
        assert name not in said.stdout
        assert not forget(one, "a").nodes


def test_a_data_folder_that_was_put_back_from_a_copy_brings_back_nothing(
    tmp_path: Path, url: str
) -> None:
    with local_server(tmp_path / "one", database_url=url, database_kept_days=1) as one:
        here = one.keys.tenant("acme")
        with local_server(tmp_path / "other", database_url=url, database_kept_days=1) as other:
            told_twice(here, other.keys.key("acme-1"))
        shutil.copytree(tmp_path / "other", tmp_path / "copy")
        with local_server(tmp_path / "other", database_url=url, database_kept_days=1) as other:
            assert not forget(one, "a").nodes
        shutil.rmtree(tmp_path / "other")
        shutil.copytree(tmp_path / "copy", tmp_path / "other")
        assert left_of_heron(other)
        with local_server(tmp_path / "other", database_url=url, database_kept_days=1) as other:
            assert left_of_heron(other) == []


def test_a_tenant_that_is_deleted_is_on_no_servers_disk_when_the_call_answers(
    tmp_path: Path, url: str
) -> None:
    with local_server(tmp_path / "one", database_url=url) as one:
        here = one.keys.tenant("acme")
        delete = admin_pb.DeleteTenantRequest(tenant_id="acme-1")
        with local_server(tmp_path / "other", database_url=url) as other:
            told_twice(here, other.keys.key("acme-1"))
            with local_server(tmp_path / "away", database_url=url) as away:
                assert texts(away.keys.key("acme-1"), "ate")
            answer = one.keys.admin.admin.DeleteTenant(delete, timeout=PATIENCE_S)
            assert len(answer.nodes) == 1
            for server in (one, other):
                assert not (server.data_dir / "tenants" / "acme-1").exists()
        assert left_of_heron(away)
        one.keys.admin.admin.CreateTenant(admin_pb.CreateTenantRequest(tenant_id="acme-1"))
        with local_server(tmp_path / "away", database_url=url) as away:
            # It may have made a folder for the new tenant by now.
            assert left_of_heron(away) == []
            assert texts(away.keys.key("acme-1"), "ate") == []


def best(session: Session) -> str:
    """What a session does, as it has learned, where left is right."""
    return str(plain(patiently(lambda: session.predict("left")).action))


def taught(session: Session, right: str, times: int = 20) -> None:
    for _ in range(times):
        for done in ("go", "stay"):
            patiently(partial(session.tell, "left", done, 1.0 if done == right else 0.0))


def test_a_session_predicts_on_each_server_what_it_was_told_by_way_of_any(
    two: tuple[LocalServer, LocalServer],
) -> None:
    one, other = two
    here = Session(
        one.keys.tenant("acme", *LEARN),
        "q_learning",
        action_space=discrete(labels=["go", "stay"]),
        state_space=discrete(labels=["left"]),
    )
    taught(here, "go")
    there = Session.known(other.keys.key("acme-1", *LEARN))
    eventually(lambda: best(there) == "go", "the other server has not learned it")
    assert patiently(there.metrics).transitions == 40
    prediction = there.predict("left")
    taught(there, "stay", times=100)
    patiently(partial(there.reward, prediction.prediction_id, 0.0))
    assert best(there) == "stay"
    eventually(lambda: best(here) == "stay", "the first server has not learned it")
    patiently(partial(here.tell, "left", "stay", 1.0))
    assert patiently(here.stored).transitions == 242, "nothing was lost, or recorded twice"


def test_two_servers_that_are_told_at_once_record_each_step_once(
    two: tuple[LocalServer, LocalServer],
) -> None:
    one, other = two
    here = Session(one.keys.tenant("acme", *LEARN), "q_learning", action_space=discrete(2))
    there = Session.known(other.keys.key("acme-1", *LEARN))

    def tell(session: Session, name: str) -> None:
        for number in range(8):
            told = partial(session.tell, {"at": name}, 0, 1.0, feedback_id=f"{name}{number}")
            patiently(told)

    threads = [threading.Thread(target=tell, args=one_of) for one_of in ((here, "a"), (there, "b"))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert patiently(here.stored).transitions == 16
    assert patiently(there.stored).transitions == 16


def test_the_sessions_of_a_server_that_died_another_goes_on_with(tmp_path: Path, url: str) -> None:
    killed = ServerProcess(tmp_path / "killed", database_url=url)
    with server_process(tmp_path / "left", database_url=url) as left:
        here = Session(killed.keys.tenant("acme", *LEARN), "q_learning", action_space=discrete(2))
        there = Session.known(left.keys.key("acme-1", *LEARN))
        for number in range(5):
            here.tell({"at": "a"}, 0, 1.0, feedback_id=f"a{number}")
        killed.kill()
        patiently(partial(there.tell, {"at": "a"}, 0, 1.0, feedback_id="b"))
        assert patiently(there.stored).transitions == 6
        assert patiently(there.metrics).updates == 6


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
        f" {State.QUEUED.value}, true, false, 0, '{{}}')",
        database=database,
    )
    left = "SELECT state, attempts FROM mneme_catalog.operations WHERE id = 'left'"
    eventually(
        lambda: postgres.execute(left, database=database) == [(State.FAILED.value, 1)],
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
