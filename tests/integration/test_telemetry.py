"""Instrumented agents export their spans, and what they did is remembered."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import grpc
import pytest
from mneme.v1 import admin_service_pb2 as admin_pb
from mneme.v1 import auth_pb2
from mneme_server.common.clock import MICROSECONDS, now_us
from mneme_server.engine.background.tenant_worker import MOST_ATTEMPTS
from mneme_server.features.otlp import ingest_worker
from mneme_server.features.otlp.model import Received
from mneme_server.features.otlp.store import SqlInbox, SqlKnownSpans
from opentelemetry.proto.collector.logs.v1 import logs_service_pb2 as logs_pb
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord, ResourceLogs, ScopeLogs
from support.api import Api, refused
from support.making import ids_of, list_events, recall, session_of, verify
from support.operations import finished
from support.server import LocalServer, local_server
from support.telemetry import START_NS, Exporter, any_value, pairs, span, with_bytes_for_spans

TRACE = f"{1:032x}"
AGENT = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "helper"}
_PATIENCE_S = 60.0


def chat(told: str, answer: str, **more: Any) -> dict[str, Any]:
    return {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": "gpt-x",
        "gen_ai.usage.input_tokens": 12,
        "gen_ai.input.messages": [{"role": "user", "parts": [{"type": "text", "content": told}]}],
        "gen_ai.output.messages": [
            {"role": "assistant", "parts": [{"type": "text", "content": answer}]}
        ],
    } | more


def until(holds: Callable[[], bool]) -> None:
    """Wait until something holds that happens in the background."""
    given_up = time.monotonic() + _PATIENCE_S
    while not holds():
        assert time.monotonic() < given_up, "it did not happen"
        time.sleep(0.02)


def told(api: Api, **filter_: Any) -> list[tuple[str, str]]:
    return [(e.session_id, e.text or e.event_type) for e in list_events(api, **filter_)]


def until_told(api: Api, count: int) -> list[tuple[str, str]]:
    until(lambda: len(list_events(api)) >= count)
    return told(api)


@pytest.fixture(scope="module")
def patient(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalServer]:
    """A server that waits for roots for as long as it may."""
    with local_server(tmp_path_factory.mktemp("patient"), otlp_wait_seconds=3600) as server:
        yield server


@pytest.fixture(scope="module")
def hasty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalServer]:
    """A server that hardly waits for roots."""
    with local_server(tmp_path_factory.mktemp("hasty"), otlp_wait_seconds=0.1) as server:
        yield server


@pytest.fixture
def exporting() -> Iterator[Callable[[Api], Exporter]]:
    made: list[Exporter] = []

    def make(api: Api) -> Exporter:
        made.append(Exporter(api.address, api.secret))
        return made[-1]

    yield make
    for one in made:
        one.close()


def test_children_that_come_before_their_parents_are_of_the_roots_session(
    patient: LocalServer, exporting: Callable[[Api], Exporter]
) -> None:
    api = patient.keys.tenant()
    exporter = exporting(api)
    exporter.spans(span(3, chat("Where is my order?", "It was sent."), parent=2))
    exporter.spans(span(2, AGENT, parent=1))
    assert list_events(api) == []
    exporter.spans(span(1, {"session.id": "support-7", "user.id": "ann"}))
    assert until_told(api, 3) == [
        ("support-7", "Where is my order?"),
        ("support-7", "llm_call"),
        ("support-7", "It was sent."),
    ]
    session = session_of(api, "support-7")
    assert (session.user_id, session.agent_id) == ("ann", "helper")
    assert (session.llm_call_count, session.total_input_tokens) == (1, 12)
    assert verify(api).valid
    found = recall(api, "what was asked about an order", session_id="support-7")
    assert set(ids_of(found)) <= {e.id for e in list_events(api)}
    assert ids_of(found)


def test_exporting_twice_changes_nothing(
    patient: LocalServer, exporting: Callable[[Api], Exporter]
) -> None:
    api = patient.keys.tenant()
    exporter = exporting(api)
    spans = [
        span(1, AGENT | {"gen_ai.conversation.id": "c"}),
        span(2, chat("One", "Two"), parent=1),
    ]
    exporter.spans(*spans)
    until_told(api, 3)
    before = list_events(api)
    for _ in range(2):
        exporter.spans(*spans)
    exporter.spans(span(3, chat("Last", "Done"), parent=1))
    until_told(api, 5)
    assert list_events(api)[:3] == before
    assert len(list_events(api)) == 6


def test_a_root_that_comes_late_moves_nothing_and_joins_what_is_there(
    hasty: LocalServer, exporting: Callable[[Api], Exporter]
) -> None:
    api = hasty.keys.tenant()
    exporter = exporting(api)
    exporter.spans(span(2, chat("One", "Two"), parent=1))
    assert {session for session, _ in until_told(api, 3)} == {TRACE}
    tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "late"}
    exporter.spans(span(1, tool | {"gen_ai.conversation.id": "late"}))
    assert {session for session, _ in until_told(api, 5)} == {TRACE}


def test_log_records_bring_the_texts_that_spans_lack(
    hasty: LocalServer, exporting: Callable[[Api], Exporter]
) -> None:
    api = hasty.keys.tenant()
    exporter = exporting(api)

    def record(name: str, body: Mapping[str, Any], at: int) -> LogRecord:
        made = LogRecord(
            event_name=name, time_unix_nano=START_NS + at,
            trace_id=(1).to_bytes(16, "big"), span_id=(1).to_bytes(8, "big"),
        )  # fmt: skip
        made.body.kvlist_value.values.extend(pairs(body))
        return made

    records = [
        record("gen_ai.user.message", {"content": "Where is it?"}, 1_000_000),
        record("gen_ai.choice", {"index": 0, "message": {"content": "There."}}, 2_000_000),
        LogRecord(body=any_value("an ordinary line"), time_unix_nano=START_NS),
    ]
    request = logs_pb.ExportLogsServiceRequest(
        resource_logs=[ResourceLogs(scope_logs=[ScopeLogs(log_records=records)])]
    )
    assert not exporter.logs(request).HasField("partial_success")
    exporter.spans(span(1, {"gen_ai.operation.name": "chat", "gen_ai.conversation.id": "c"}))
    until(lambda: "llm_call" in {e.event_type for e in list_events(api)})
    until(lambda: len([e for e in list_events(api) if e.event_type == "message"]) == 2)
    exporter.logs(request)
    exporter.spans(span(2, chat("Last", "Done", **{"gen_ai.conversation.id": "d"}), trace=2))
    until(lambda: "Done" in {e.text for e in list_events(api)})
    messages = [e.text for e in list_events(api) if e.event_type == "message"]
    assert sorted(messages) == ["Done", "Last", "There.", "Where is it?"]


def test_a_call_without_texts_is_there_at_once_and_gets_the_texts_that_come_later(
    patient: LocalServer, exporting: Callable[[Api], Exporter], monkeypatch: pytest.MonkeyPatch
) -> None:
    api = patient.keys.tenant()
    exporter = exporting(api)
    call = span(
        1, {
            "gen_ai.operation.name": "chat", "gen_ai.conversation.id": "c",
            "gen_ai.agent.name": "helper", "gen_ai.usage.input_tokens": 12,
        },
    )  # fmt: skip
    exporter.spans(call)
    assert until_told(api, 1) == [("c", "llm_call")]
    (before,) = list_events(api)
    assert before.input_tokens == 12
    texts = chat("Where is it?", "There.")
    record = LogRecord(
        event_name="gen_ai.client.inference.operation.details", time_unix_nano=START_NS + 10**9,
        trace_id=(1).to_bytes(16, "big"), span_id=(1).to_bytes(8, "big"), attributes=pairs(texts),
    )  # fmt: skip
    exporter.logs(
        logs_pb.ExportLogsServiceRequest(
            resource_logs=[ResourceLogs(scope_logs=[ScopeLogs(log_records=[record])])]
        )
    )
    exporter.spans(call)  # The same again, while its texts are waited for.
    until(lambda: waiting(patient, api) == 2)
    runtime = patient.application.runtime
    due = now_us() + int(3601 * MICROSECONDS)
    monkeypatch.setattr(ingest_worker, "now_us", lambda: due)
    runtime.wake(ingest_worker.JOB, api.tenant_id)
    until(lambda: waiting(patient, api) == 0)
    exporter.spans(call)  # And once more: it does not say that no texts came.
    until(lambda: waiting(patient, api) == 0)
    found = list_events(api)
    assert found[0] == before
    assert sorted((e.text or e.event_type, e.agent_id) for e in found) == [
        ("There.", "helper"), ("Where is it?", "helper"), ("llm_call", "helper"),
    ]  # fmt: skip
    assert verify(api).valid


def test_what_was_taken_outlasts_a_restart(tmp_path: Path) -> None:
    with local_server(tmp_path, otlp_wait_seconds=3600) as server:
        api = server.keys.tenant()
        secret = api.secret
        exporter = Exporter(server.address, secret)
        exporter.spans(span(2, chat("One", "Two"), parent=1))
        exporter.close()
    with local_server(tmp_path, otlp_wait_seconds=3600) as server:
        api = server.keys.api(secret)
        exporter = Exporter(server.address, secret)
        exporter.spans(span(1, AGENT | {"gen_ai.conversation.id": "c"}))
        exporter.close()
        assert [session for session, _ in until_told(api, 3)] == ["c"] * 3


def test_tenants_do_not_see_each_others_spans(
    patient: LocalServer, exporting: Callable[[Api], Exporter]
) -> None:
    one, other = patient.keys.tenant(), patient.keys.tenant()
    exporting(one).spans(span(2, chat("A secret", "Kept"), parent=1))
    exporting(other).spans(span(1, AGENT | {"gen_ai.conversation.id": "theirs"}))
    exporting(other).spans(span(2, chat("Mine", "Too"), parent=1))
    assert {text for _, text in until_told(other, 3)} == {"Mine", "llm_call", "Too"}
    exporting(one).spans(span(1, AGENT | {"gen_ai.conversation.id": "ours"}))
    assert {session for session, _ in until_told(one, 3)} == {"ours"}
    assert {session for session, _ in told(other)} == {"theirs"}


def test_a_key_must_be_there_be_known_and_may_write(
    server: LocalServer, api: Api, exporting: Callable[[Api], Exporter]
) -> None:
    reader = server.keys.key(api.tenant_id, auth_pb2.KEY_SCOPE_READ)
    for secret, code in (
        (None, grpc.StatusCode.UNAUTHENTICATED),
        ("mn_nobody", grpc.StatusCode.UNAUTHENTICATED),
        (reader.secret, grpc.StatusCode.PERMISSION_DENIED),
    ):
        exporter = Exporter(server.address, secret)
        for call in (
            lambda e=exporter: e.spans(span(1, AGENT)),
            lambda e=exporter: e.logs(logs_pb.ExportLogsServiceRequest()),
            lambda e=exporter: e.metrics(),
        ):
            with refused() as failure:
                call()
            assert failure.code is code
        exporter.close()


def test_what_cannot_be_taken_is_counted_and_the_rest_is_taken(
    api: Api, exporting: Callable[[Api], Exporter]
) -> None:
    good = span(1, chat("One", "Two", **{"gen_ai.conversation.id": "c"}))
    no_trace, short, no_time = (span(n, AGENT) for n in (2, 3, 4))
    no_trace.trace_id = bytes(16)
    short.span_id = b"1234"
    no_time.end_time_unix_nano = 0
    answer = exporting(api).spans(good, no_trace, short, no_time, short)
    assert answer.partial_success.rejected_spans == 4
    assert answer.partial_success.error_message == (
        "1: a trace_id must be 16 bytes (32 hexadecimal digits in JSON) and not all zero; "
        "2: a span_id must be 8 bytes (16 hexadecimal digits in JSON) and not all zero; "
        "1: a time must be set, and not beyond the year 9999"
    )
    assert len(until_told(api, 3)) == 3


def test_bytes_that_are_no_request_are_refused(api: Api) -> None:
    with grpc.insecure_channel(api.address) as channel, refused() as failure:
        channel.unary_unary("/opentelemetry.proto.collector.trace.v1.TraceService/Export")(
            b"\x0a\xff\xff", metadata=[("authorization", f"Bearer {api.secret}")], timeout=60
        )
    assert (failure.code, failure.reason) == (grpc.StatusCode.INVALID_ARGUMENT, "INVALID_TYPE")


def test_a_text_that_is_no_utf_8_costs_its_bytes_and_a_broken_span_itself(api: Api) -> None:
    spans = [
        span(n, chat(f"One {n}", "XYZ", **{"gen_ai.conversation.id": "c"})).SerializeToString()
        for n in (1, 2)
    ]
    spans[1] = spans[1].replace(b"XYZ", b"\xf0\x9f\x98")
    with grpc.insecure_channel(api.address) as channel:
        answer = channel.unary_unary("/opentelemetry.proto.collector.trace.v1.TraceService/Export")(
            with_bytes_for_spans([*spans, b"\x0a\xff", b"\xff" * 9]),
            metadata=[("authorization", f"Bearer {api.secret}")],
            timeout=60,
        )
    taken = ExportTraceServiceResponse.FromString(answer)
    assert taken.partial_success.rejected_spans == 2
    said = {text.rstrip("\ufffd") for _, text in until_told(api, 6)}
    assert said == {"One 1", "XYZ", "One 2", "", "llm_call"}


def test_metrics_are_taken_and_dropped(api: Api, exporting: Callable[[Api], Exporter]) -> None:
    assert not exporting(api).metrics().HasField("partial_success")


@pytest.mark.on_sqlite("it looks into a tenant's file, or the catalog's")
def test_a_damaged_row_holds_up_nothing(tmp_path: Path) -> None:
    with local_server(tmp_path, otlp_wait_seconds=3600) as server:
        api = server.keys.tenant()
        exporter = Exporter(server.address, api.secret)
        exporter.spans(span(2, chat("Lost", "Gone"), parent=1))
        with server.database(api.tenant_id) as database:
            database.execute("UPDATE otlp_inbox SET span = '{\"trace'")
        exporter.spans(span(1, chat("One", "Two", **{"gen_ai.conversation.id": "c"})))
        assert {text for _, text in until_told(api, 3)} == {"One", "llm_call", "Two"}
        exporter.close()


@pytest.mark.on_sqlite("it looks into a tenant's file, or the catalog's")
@pytest.mark.parametrize("broken", ["unread", "unrecorded"])
def test_what_cannot_become_events_is_not_tried_for_ever(
    tmp_path: Path, broken: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with local_server(tmp_path, otlp_wait_seconds=3600) as server:
        api = server.keys.tenant()
        exporter = Exporter(server.address, api.secret)
        exporter.spans(span(2, chat("Lost", "Gone"), parent=1, trace=7))

        def failed_before(times: int) -> None:
            damage = ", span = '{\"trace'" if broken == "unread" else ""
            with server.database(api.tenant_id) as database:
                database.execute(f"UPDATE otlp_inbox SET attempts = {times}, due_at = 0{damage}")
            # Another trace's root has the inbox looked at.
            exporter.spans(span(1, chat("One", "Two"), trace=100 + times))

        with server.database(api.tenant_id) as database:
            ((row,),) = database.execute("SELECT id FROM otlp_inbox").fetchall()

        def attempts() -> int | None:
            with (
                server.application.runtime.tenants.open(api.tenant_id) as tenant,
                tenant.read() as unit,
            ):
                return unit.get(SqlInbox).attempts([row]).get(row)

        if broken == "unrecorded":
            own = ingest_worker.mapped

            def breaks(rows: Sequence[Received], *others: Any) -> Any:
                if any("Lost" in str(row.span) for row in rows):
                    raise ValueError("nobody thought of this one")
                return own(rows, *others)

            monkeypatch.setattr(ingest_worker, "mapped", breaks)
        failed_before(MOST_ATTEMPTS - 2)
        until(lambda: attempts() == MOST_ATTEMPTS - 1)
        failed_before(MOST_ATTEMPTS - 1)
        until(lambda: attempts() == MOST_ATTEMPTS)
        with server.database(api.tenant_id) as database:
            ((due_us,),) = database.execute("SELECT max(due_at) FROM otlp_inbox").fetchall()
        assert due_us > (time.time() + 29 * 24 * 3600) * 1_000_000  # It is kept for a month.
        failed_before(MOST_ATTEMPTS)
        until(lambda: attempts() is None)
        exporter.close()


def test_a_session_that_is_forgotten_takes_what_is_known_of_its_spans_with_it(
    patient: LocalServer, exporting: Callable[[Api], Exporter]
) -> None:
    api = patient.keys.tenant()
    spans = [span(1, chat("One", "Two", **{"gen_ai.conversation.id": "c", "user.id": "ann"}))]
    exporting(api).spans(*spans)
    until_told(api, 3)
    finished(
        patient.keys.admin,
        admin_pb.ForgetRequest(tenant_id=api.tenant_id, user_id="ann"),
    )
    with patient.application.runtime.tenants.open(api.tenant_id) as tenant, tenant.read() as unit:
        assert unit.get(SqlKnownSpans).of_traces([TRACE], 10) == []
    exporting(api).spans(*spans)
    exporting(api).spans(span(9, chat("New", "Day", **{"gen_ai.conversation.id": "d"}), trace=9))
    until(lambda: "Day" in {e.text for e in list_events(api)})
    assert {e.session_id for e in list_events(api)} == {"d"}


def waiting(server: LocalServer, api: Api) -> int:
    with server.application.runtime.tenants.open(api.tenant_id) as tenant, tenant.read() as unit:
        return int(unit.get(SqlInbox).waiting(100))


def test_spans_that_wait_go_with_the_user_that_their_trace_names(
    patient: LocalServer, exporting: Callable[[Api], Exporter]
) -> None:
    api = patient.keys.tenant()
    exporter = exporting(api)
    exporter.spans(
        span(3, AGENT | {"user.id": "ann"}, parent=1), span(4, chat("One", "Two"), parent=3)
    )
    exporter.spans(
        span(3, AGENT | {"user.id": "bob"}, parent=1, trace=2),
        span(4, chat("Three", "Four"), parent=3, trace=2),
    )
    assert waiting(patient, api) == 4
    finished(
        patient.keys.admin,
        admin_pb.ForgetRequest(tenant_id=api.tenant_id, user_id="ann"),
    )
    assert waiting(patient, api) == 2
    exporter.spans(span(1, AGENT), span(1, AGENT, trace=2))
    assert {text for _, text in until_told(api, 3)} == {"Three", "llm_call", "Four"}


def test_spans_that_wait_go_with_the_session_that_their_trace_has(
    patient: LocalServer, exporting: Callable[[Api], Exporter]
) -> None:
    api = patient.keys.tenant()
    exporter = exporting(api)
    without_texts = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "gpt-x"}
    named = {"gen_ai.conversation.id": "c"}
    exporter.spans(span(1, chat("One", "Two", **named)))
    until_told(api, 3)
    until(lambda: not waiting(patient, api))  # What comes before that is told at once, too.
    exporter.spans(span(2, without_texts, parent=1))  # Waits for its texts.
    exporter.spans(
        span(3, without_texts | named, parent=9, trace=3), span(4, AGENT, parent=3, trace=3)
    )
    exporter.spans(span(5, without_texts, parent=9, trace=5))
    assert waiting(patient, api) == 4
    admin = patient.keys.admin
    finished(admin, admin_pb.ForgetRequest(tenant_id=api.tenant_id, session_id="c"))
    assert waiting(patient, api) == 1
    finished(admin, admin_pb.ForgetRequest(tenant_id=api.tenant_id, session_id=f"{5:032x}"))
    assert waiting(patient, api) == 0


@pytest.mark.on_sqlite("it makes or restores a backup")
def test_a_restored_backup_forgets_spans_that_waited_of_a_trace_that_is_a_session_itself(
    patient: LocalServer, exporting: Callable[[Api], Exporter]
) -> None:
    api, admin = patient.keys.tenant(), patient.keys.admin
    exporting(api).spans(span(5, chat("One", "Two"), parent=9, trace=5))
    backup = Path(finished(admin, admin_pb.BackupRequest(tenant_id=api.tenant_id)).path)
    finished(admin, admin_pb.ForgetRequest(tenant_id=api.tenant_id, session_id=f"{5:032x}"))
    finished(admin, admin_pb.RestoreRequest(tenant_id=api.tenant_id, backup=backup.name))
    assert waiting(patient, api) == 0


def test_a_tenant_that_is_deleted_takes_its_spans_with_it(
    patient: LocalServer, exporting: Callable[[Api], Exporter]
) -> None:
    api = patient.keys.tenant()
    exporting(api).spans(span(2, chat("One", "Two"), parent=1))
    admin = patient.keys.admin.admin
    admin.DeleteTenant(admin_pb.DeleteTenantRequest(tenant_id=api.tenant_id))
    admin.CreateTenant(admin_pb.CreateTenantRequest(tenant_id=api.tenant_id))
    again = patient.keys.key(api.tenant_id)
    assert waiting(patient, again) == 0
