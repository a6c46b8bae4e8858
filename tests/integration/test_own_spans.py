"""The server tells of its own work by spans, to whom OpenTelemetry's variables say."""

from __future__ import annotations

import secrets
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import mneme
import pytest
from mneme.v1 import event_service_pb2 as events_pb
from mneme.v1 import learn_service_pb2 as learn_pb
from mneme.v1 import memory_service_pb2 as memory_pb
from mneme.v1 import recall_service_pb2 as recall_pb
from mneme_server.common.errors import FailedPrecondition
from mneme_server.engine import tracing as exporting
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status
from structlog.testing import capture_logs
from support.api import Api, refused
from support.collector import Spans, attributes, collecting, collecting_by_grpc
from support.http import Http
from support.making import event, record
from support.server import LocalServer, settings_of
from support.telemetry import Exporter, span

ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"
CAPTURE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
RECALL = "mneme.v1.RecallService/Recall"
EMBEDDING = "embeddings all-MiniLM-L6-v2-int8"
QUESTION = "where do the missing cents go"


@contextmanager
def telling(folder: Path, url: str, **variables: str) -> Iterator[LocalServer]:
    """Run a server that exports its spans."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(ENDPOINT, url)
        patch.setenv("OTEL_BSP_SCHEDULE_DELAY", "20")
        for name, value in variables.items():
            patch.setenv(name, value)
        server = LocalServer(folder, http_listen="127.0.0.1:0")
    try:
        yield server
    finally:
        server.stop()


@pytest.fixture(scope="module")
def spans() -> Iterator[Spans]:
    with collecting() as spans:
        yield spans


@pytest.fixture(scope="module")
def server(spans: Spans, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalServer]:
    with telling(tmp_path_factory.mktemp("telling"), spans.url) as server:
        yield server


@pytest.fixture
def api(server: LocalServer) -> Api:
    return server.keys.tenant()


class Trace:
    """The trace of a caller, and the headers that say so."""

    def __init__(self, sampled: bool = True) -> None:
        self.id = secrets.token_hex(16)
        self.span_id = secrets.token_hex(8)
        self.headers = {"traceparent": f"00-{self.id}-{self.span_id}-{'01' if sampled else '00'}"}
        self.metadata = tuple(self.headers.items())


def asked(api: Api, trace: Trace, question: str = QUESTION) -> recall_pb.RecallResponse:
    request = recall_pb.RecallRequest(query=question)
    answer: recall_pb.RecallResponse = api.recall.Recall(request, metadata=trace.metadata)
    return answer


def test_a_recall_is_told_with_what_it_is_made_of(spans: Spans, api: Api) -> None:
    record(api, event("a cent is lost when bills are split"))
    trace = Trace()
    asked(api, trace)
    told = spans.until(trace.id, RECALL, "search_memory", EMBEDDING)
    call, search, embedding = told[RECALL], told["search_memory"], told[EMBEDDING]
    assert call.parent_span_id.hex() == trace.span_id
    assert call.kind == Span.SPAN_KIND_SERVER
    assert attributes(call)["rpc.system.name"] == "grpc"
    assert attributes(call)["rpc.response.status_code"] == "OK"
    assert attributes(call)["mneme.tenant"] == api.tenant_id
    assert search.parent_span_id == call.span_id
    assert attributes(search) == {
        "gen_ai.operation.name": "search_memory",
        "gen_ai.memory.store.id": api.tenant_id,
        "gen_ai.memory.record.count": 1,
    }
    assert embedding.parent_span_id == search.span_id
    assert attributes(embedding) == {
        "gen_ai.operation.name": "embeddings",
        "gen_ai.provider.name": "mneme",
        "gen_ai.request.model": "all-MiniLM-L6-v2-int8",
        "mneme.tenant": api.tenant_id,
        "mneme.texts": 1,
    }
    assert call.start_time_unix_nano <= search.start_time_unix_nano
    assert search.end_time_unix_nano <= call.end_time_unix_nano


def test_what_is_asked_and_found_is_not_told(spans: Spans, api: Api) -> None:
    record(api, event("a cent is lost when bills are split"))
    trace = Trace()
    asked(api, trace)
    told = spans.until(trace.id, RECALL)
    for one in told.values():
        assert b"cent" not in one.SerializeToString()


def test_calls_over_http_are_part_of_their_callers_trace(
    server: LocalServer, spans: Spans, api: Api
) -> None:
    rest, connect = Trace(), Trace()
    http = Http(server.http_address, api.secret)
    http.get("/api/recall", params={"query": QUESTION}, headers=rest.headers)
    assert http.connect("RecallService/Recall", {"query": QUESTION}, headers=connect.headers)
    http.close()
    for trace in (rest, connect):
        told = spans.until(trace.id, RECALL, "search_memory")
        assert told[RECALL].parent_span_id.hex() == trace.span_id
        assert told["search_memory"].parent_span_id == told[RECALL].span_id
        assert attributes(told[RECALL])["rpc.system.name"] == "http"


def test_what_is_stored_is_told_by_its_id(spans: Spans, api: Api) -> None:
    trace = Trace()
    kept = api.memory.CreateMemory(
        memory_pb.CreateMemoryRequest(text="invoices go by post"), metadata=trace.metadata
    )
    made = api.learn.CreateLesson(
        learn_pb.CreateLessonRequest(title="Round late", content="Round the sum"),
        metadata=trace.metadata,
    )
    told = spans.until(trace.id, "upsert_memory", "create_memory")
    upsert, create = attributes(told["upsert_memory"]), attributes(told["create_memory"])
    assert upsert["gen_ai.memory.record.id"] == kept.memory.id
    assert create["gen_ai.memory.record.id"] == made.lesson.id
    assert upsert["gen_ai.memory.record.count"] == create["gen_ai.memory.record.count"] == 1


def test_a_stream_of_events_is_one_operation_that_counts_them(spans: Spans, api: Api) -> None:
    trace = Trace()
    sent = (events_pb.StreamEventsRequest(event=event(f"step {n}")) for n in range(7))
    list(api.events.StreamEvents(sent, metadata=trace.metadata))
    told = spans.until(trace.id, "create_memory", "mneme.v1.EventService/StreamEvents")
    assert attributes(told["create_memory"])["gen_ai.memory.record.count"] == 7


def test_a_callers_mistake_is_told_and_is_no_failure_of_the_server(spans: Spans, api: Api) -> None:
    trace = Trace()
    with refused():
        api.learn.GetLesson(learn_pb.GetLessonRequest(lesson_id="none"), metadata=trace.metadata)
    told = spans.until(trace.id, "mneme.v1.LearnService/GetLesson")
    (call,) = told.values()
    assert attributes(call)["rpc.response.status_code"] == "NOT_FOUND"
    assert attributes(call)["error.type"] == "NOT_FOUND"
    assert call.status.code == Status.STATUS_CODE_UNSET


def test_a_watch_is_told_when_it_ends(spans: Spans, api: Api) -> None:
    trace = Trace()
    watch = api.events.WatchEvents(events_pb.WatchEventsRequest(), metadata=trace.metadata)
    record(api, event("seen"))
    next(iter(watch))
    watch.cancel()
    (call,) = spans.until(trace.id, "mneme.v1.EventService/WatchEvents").values()
    assert attributes(call)["rpc.response.status_code"] == "CANCELLED"


def test_a_trace_that_its_caller_does_not_sample_is_not_told(spans: Spans, api: Api) -> None:
    silent, loud = Trace(sampled=False), Trace()
    asked(api, silent)
    asked(api, loud)
    spans.until(loud.id, RECALL)
    assert not spans.of(silent.id)


def test_a_call_without_a_trace_begins_one_that_the_log_names(spans: Spans, api: Api) -> None:
    with capture_logs() as logs:
        api.recall.Recall(recall_pb.RecallRequest(query=QUESTION))
        asked(api, last := Trace())
        spans.until(last.id, RECALL)
    calls = [entry for entry in logs if entry["event"] == "call"]
    mine = [entry["trace_id"] for entry in calls if entry["tenant"] == api.tenant_id]
    assert mine[-1] == last.id
    assert spans.until(mine[0], RECALL)[RECALL].parent_span_id == b""


def test_work_in_the_background_is_told_too(spans: Spans, api: Api) -> None:
    record(api, *(event(f"embedded by and by, whoever asks {number}") for number in range(3)))
    embedded = spans.first(
        lambda one: one.name == EMBEDDING and attributes(one)["mneme.tenant"] == api.tenant_id
    )
    assert embedded.parent_span_id == b""


def test_taking_spans_is_not_told_so_that_no_loop_of_exporters_goes_on_for_ever(
    server: LocalServer, spans: Spans, api: Api
) -> None:
    exporter = Exporter(server.address, api.secret)
    exporter.spans(span(1, {"gen_ai.operation.name": "chat"}))
    exporter.close()
    asked(api, after := Trace())
    spans.until(after.id, RECALL)
    assert not [one.name for one in spans.all if "Export" in one.name]


def test_the_resource_says_who_tells(spans: Spans, api: Api) -> None:
    asked(api, trace := Trace())
    spans.until(trace.id, RECALL)
    resource = spans.requests()[0].resource_spans[0].resource
    said = {pair.key: pair.value.string_value for pair in resource.attributes}
    assert (said["service.name"], said["service.version"]) == ("mneme", mneme.__version__)


def test_texts_are_told_where_the_variable_says_so(tmp_path: Path) -> None:
    with collecting() as spans, telling(tmp_path, spans.url, **{CAPTURE: "true"}) as server:
        api = server.keys.tenant()
        record(api, event("a cent is lost when bills are split"))
        asked(api, trace := Trace())
        search = attributes(spans.until(trace.id, "search_memory")["search_memory"])
        assert search["gen_ai.memory.query.text"] == QUESTION
        assert "a cent is lost" in search["gen_ai.memory.records"]


def test_spans_go_over_grpc_where_the_protocol_says_so(tmp_path: Path) -> None:
    with (
        collecting_by_grpc() as spans,
        telling(tmp_path, spans.url, OTEL_EXPORTER_OTLP_PROTOCOL="grpc") as server,
    ):
        asked(server.keys.tenant(), trace := Trace())
        spans.until(trace.id, RECALL, "search_memory")


def test_what_was_not_sent_yet_is_sent_when_the_server_stops(tmp_path: Path) -> None:
    trace = Trace()
    with collecting() as spans:
        with telling(tmp_path, spans.url, OTEL_BSP_SCHEDULE_DELAY="3600000") as server:
            asked(server.keys.tenant(), trace)
            assert not spans.all
        assert {RECALL, "search_memory"} <= set(spans.of(trace.id))


def test_a_collector_that_is_not_there_holds_up_neither_calls_nor_the_end(tmp_path: Path) -> None:
    with collecting() as gone:
        pass
    with telling(tmp_path, gone.url) as server:
        api = server.keys.tenant()
        record(api, event("it is recorded all the same"))
        assert asked(api, Trace(), "recorded all the same").results


def test_a_server_does_not_tell_itself(tmp_path: Path) -> None:
    """The variables were set for an agent, and the server was started in the same shell."""
    for listens in (("127.0.0.1:50051", "127.0.0.1:8080"), ("0.0.0.0:4317", "[::1]:8080")):
        with capture_logs() as logs:
            spans = exporting.spans_from({ENDPOINT: "http://localhost:8080"}, listens, "1")
        assert not spans.root.is_told
        assert [entry["endpoint"] for entry in logs] == ["http://localhost:8080"]


@pytest.mark.parametrize(
    "variables",
    [
        {},
        {ENDPOINT: ""},
        {ENDPOINT: "http://c:4318", "OTEL_SDK_DISABLED": "true"},
        {ENDPOINT: "http://c:4318", "OTEL_TRACES_EXPORTER": "none"},
    ],
)
def test_nothing_is_told_unless_an_endpoint_is_named(variables: dict[str, str]) -> None:
    assert not exporting.spans_from(variables, (), "1").root.is_told


def test_an_endpoint_without_what_exports_is_an_error_that_names_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(exporting, "find_spec", lambda _name: None)
    with pytest.raises(FailedPrecondition, match=r"dist.*\.whl\[server,otel\]"):
        exporting.spans_from({ENDPOINT: "http://collector:4318"}, (), "1")


@pytest.mark.parametrize("endpoint", ["http://c:4318x", "http://c:431888", "http://[::1"])
def test_an_endpoint_that_is_no_address_is_an_error_that_names_it(endpoint: str) -> None:
    with pytest.raises(FailedPrecondition, match="OTEL_EXPORTER_OTLP_ENDPOINT names http://"):
        exporting.spans_from({ENDPOINT: endpoint}, ("127.0.0.1:50051",), "1")


def test_a_protocol_that_is_none_is_an_error_that_names_those_that_are() -> None:
    variables = {ENDPOINT: "http://c:4318", "OTEL_EXPORTER_OTLP_PROTOCOL": "http/json"}
    with pytest.raises(FailedPrecondition, match="grpc or http/protobuf"):
        exporting.spans_from(variables, (), "1")


def test_a_folders_server_leaves_the_variables_to_the_agent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with collecting() as spans:
        monkeypatch.setenv(ENDPOINT, spans.url)
        monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "20")
        with mneme.local(tmp_path / "memory") as memory:
            memory.remember("invoices go by post")
        assert not spans.all


def test_without_the_variable_the_sdk_is_not_even_loaded(tmp_path: Path) -> None:
    settings = settings_of(tmp_path)
    code = (
        "import sys; from pathlib import Path; from mneme_server.app import Application;"
        " from mneme_server.settings import Settings;"
        f" app = Application(Settings(**{settings.model_dump(mode='json', include=_PLAIN)!r}));"
        " app.start(); app.stop(); print('opentelemetry.sdk' in sys.modules)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    )
    assert ran.stdout.splitlines()[-1] == "False"


_PLAIN = {"listen", "http_listen", "metrics_listen", "data_dir", "model_dir"}
