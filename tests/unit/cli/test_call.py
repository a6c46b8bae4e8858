"""`mneme call`: any RPC, from what the schemas say of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.json_format import MessageToDict, ParseDict
from mneme._core.rpc import Rpc
from mneme._generated.services import RPCS
from mneme.cli.call.rpcs import find, title
from mneme.messages import (
    ListSessionsResponse,
    RecallResponse,
    Session,
    StreamEventsResponse,
    WatchEventsResponse,
)
from mneme.plain import to_dict
from support.examples import EXAMPLES
from unit.cli.command import mneme
from unit.client.scripted import ScriptedServer, failure

every_rpc = pytest.mark.parametrize("rpc", RPCS, ids=title)


@every_rpc
def test_every_rpc_is_called_with_its_example(rpc: Rpc[Any, Any], served: ScriptedServer) -> None:
    streams = rpc.descriptor.server_streaming
    answer = rpc.response()
    served.on(rpc.method, (lambda request, context: iter([answer, answer])) if streams else answer)
    example = EXAMPLES[title(rpc)]
    requests = example if isinstance(example, list) else [example]
    lines = "\n".join(map(json.dumps, requests))
    given = () if rpc.descriptor.client_streaming else ("-",)
    result = mneme("call", title(rpc), *given, stdin=lines)
    assert result.err == ""
    assert result.documents == [to_dict(answer)] * (2 if streams else 1)
    sent = served.last(rpc.method)
    for message, wanted in zip(sent if isinstance(sent, list) else [sent], requests, strict=True):
        assert contained(MessageToDict(ParseDict(wanted, rpc.request())), MessageToDict(message))


def contained(wanted: Any, arrived: Any) -> bool:
    """Whether all that was asked for arrived; the client adds the ids that were left out."""
    if isinstance(wanted, dict):
        return all(contained(value, arrived.get(name)) for name, value in wanted.items())
    if isinstance(wanted, list):
        return len(wanted) == len(arrived) and all(map(contained, wanted, arrived))
    return bool(wanted == arrived)


@every_rpc
def test_every_rpc_is_listed_with_a_sentence_and_explained_field_by_field(
    rpc: Rpc[Any, Any],
) -> None:
    listed = {one["rpc"]: one["summary"] for one in mneme("call", "--json").documents}
    assert len(listed[title(rpc)]) > 10
    told = mneme("call", title(rpc), "--help")
    assert told.code == 0
    for field in rpc.request.DESCRIPTOR.fields:
        assert any(line.startswith(f"  {field.name}: ") for line in told.lines), field.name


def test_an_rpc_is_known_by_any_name_that_only_it_has() -> None:
    names = (
        *("CreateLesson", "create_lesson", "create-lesson", "LearnService.CreateLesson"),
        *(
            "learn.create_lesson",
            "LearnService/CreateLesson",
            "/mneme.v1.LearnService/CreateLesson",
        ),
    )
    assert {title(find(name)) for name in names} == {"LearnService.CreateLesson"}
    assert title(find("recall")) == "RecallService.Recall"


def test_an_unknown_rpc_is_refused_with_the_near_ones() -> None:
    result = mneme("call", "CreateLeson")
    assert result.code == 2
    assert result.err.startswith(
        "mneme: there is no RPC CreateLeson; did you mean LearnService.CreateLesson"
    )


def test_a_service_s_name_lists_its_rpcs() -> None:
    listed = mneme("call", "LearnService", "--json").documents
    assert {one["rpc"].partition(".")[0] for one in listed} == {"LearnService"}
    assert mneme("call", "learn", "--json").documents == listed
    assert "  CreateLesson " in mneme("call").out


def test_values_take_the_types_of_their_fields(served: ScriptedServer) -> None:
    served.on("Recall", RecallResponse(outcome=1))
    result = mneme(
        *("call", "recall", "query=a=b", "scopes=lessons", "scopes=EVENT", "limit=3"),
        *("min_score=0", "explain=true", "start_time=2026-01-31T12:00:00Z", 'tags:=["x", "y"]'),
        *("tags=z", "weights.recency=0.5"),
    )
    assert result.code == 0, result.err
    sent = served.last("Recall")
    assert (sent.query, sent.limit, sent.explain) == ("a=b", 3, True)
    assert list(sent.scopes) == ["lesson", "event"]
    assert sent.start_time.ToJsonString() == "2026-01-31T12:00:00Z"
    assert list(sent.tags) == ["x", "y", "z"]
    assert sent.weights.recency == 0.5


def test_nested_fields_free_json_and_durations_are_set_by_their_paths(
    served: ScriptedServer,
) -> None:
    result = mneme(
        *("call", "StreamEvents", "event.session_id=s", "event.payload.path=a.py"),
        *("event.payload.lines:=[1, 2]", "event.duration=1.5m"),
        stdin='{"event_type": "tool_call"}\n\n{"event": {"eventType": "message"}}\n',
    )
    assert result.code == 0, result.err
    first, second = (request.event for request in served.last("StreamEvents"))
    assert first.event_type == "tool_call"
    assert second.event_type == "message"
    for event in (first, second):
        assert event.id
        assert event.session_id == "s"
        assert to_dict(event.payload) == {"lines": [1, 2], "path": "a.py"}
        assert event.duration.ToJsonString() == "90s"


def test_an_update_changes_what_is_given_unless_a_mask_says_so(served: ScriptedServer) -> None:
    mneme("call", "UpdateLesson", "lesson.id=l", "lesson.title=t", "lesson.agent_id=")
    sent = served.last("UpdateLesson")
    assert list(sent.update_mask.paths) == ["title", "agent_id"]
    mneme("call", "UpdateLesson", "lesson.id=l", "lesson.title=t", "update_mask=source_event_id")
    assert list(served.last("UpdateLesson").update_mask.paths) == ["source_event_id"]


def test_a_file_is_a_request_and_what_stands_after_it_counts(
    served: ScriptedServer, tmp_path: Path
) -> None:
    served.on("ListSessions", ListSessionsResponse(sessions=[Session(id="s")]))
    file = tmp_path / "request.json"
    file.write_text('{"pageSize": 5, "agent_id": "a",\n "tags": ["x"]}')
    result = mneme("call", "ListSessions", f"@{file}", "agent_id=", "tags=y")
    assert result.documents[0]["sessions"][0]["id"] == "s"
    sent = served.last("ListSessions")
    assert (sent.page_size, sent.agent_id, list(sent.tags)) == (5, "", ["x", "y"])


def test_a_stream_is_shown_as_it_comes_and_its_error_after_it(served: ScriptedServer) -> None:
    def watch(request: Any, context: Any) -> Any:
        yield WatchEventsResponse(cursor="1")
        failure(context, "UNAVAILABLE", "shutting down", reason="INITIALIZATION_FAILED")

    served.on("WatchEvents", watch)
    result = mneme("call", "WatchEvents")
    assert [one["cursor"] for one in result.documents] == ["1"]
    assert result.code == 3
    assert "shutting down" in result.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["Recall", "limit=many"], "limit: 'many' is not a whole number"),
        (["Recall", "limit=99999999999"], "limit"),
        (["Recall", "explain=perhaps"], "explain: 'perhaps' is neither true nor false"),
        (["Recall", "min_score=nan"], "min_score: 'nan' is not a number"),
        (["Recall", "mode=fast"], "mode: 'fast' is none of hybrid, dense, lexical"),
        (["Recall", "start_time=soon"], "start_time: 'soon' is not a time"),
        (["Recall", "querry=x"], "querry: RecallRequest has no field querry; did you mean query?"),
        (["Recall", "weights=1"], "weights: holds RankingWeights, not text"),
        (["Recall", "weights.speed=1"], "weights.speed: RankingWeights has no field speed"),
        (["Recall", "query.x=1"], "query.x: query holds a value, and no fields"),
        (["Recall", "tags:=[1"], "tags is not JSON"),
        (["Recall", "why"], "'why' is neither KEY=VALUE nor KEY:=JSON, @FILE or -"),
        (["RecordEvents", "events.name=x"], "events.name: events is a list of NewEvent"),
        (["RecordEvents", 'events:={"nam": 1}'], "NewEvent has no field nam; did you mean name"),
        (["RecordEvents", "@/nowhere/at/all"], "/nowhere/at/all: no such file"),
        (["Recall", "-"], "standard input is not a JSON object"),
        (["StreamEvents"], "line 1 is not a JSON object"),
        (["StreamEvents", "-", "@x"], "give one source of requests"),
    ],
)
def test_what_does_not_fit_is_refused_before_anything_is_sent(
    served: ScriptedServer, arguments: list[str], words: str
) -> None:
    result = mneme("call", *arguments, stdin="[]")
    assert words in result.err
    assert result.code in (1, 2)
    assert result.out == ""
    assert not any(seen.request for seen in served.seen if not isinstance(seen.request, list))


def test_the_shell_completes_rpcs_and_fields(monkeypatch: pytest.MonkeyPatch) -> None:
    def complete(*words: str) -> str:
        monkeypatch.setenv("_MNEME_COMPLETE", "complete_bash")
        monkeypatch.setenv("COMP_WORDS", " ".join(("mneme", *words)))
        monkeypatch.setenv("COMP_CWORD", str(len(words)))
        return mneme().out

    assert "CreateLesson" in complete("call", "CreateL").split()
    assert complete("call", "Recall", "min_s").split() == ["min_score=", "min_severity="]


def test_each_acknowledgement_of_a_stream_of_requests_is_a_document(served: ScriptedServer) -> None:
    acknowledged = [StreamEventsResponse(acknowledged_count=n) for n in (1, 2)]
    served.on("StreamEvents", lambda _requests, _context: iter(acknowledged))
    result = mneme("call", "StreamEvents", stdin='{"session_id": "s"}\n' * 2)
    assert [one["acknowledged_count"] for one in result.documents] == [1, 2]


@pytest.mark.parametrize("end", ["\u2028", "\u2029", "\x85"])
def test_what_ends_lines_elsewhere_ends_none_in_a_file_of_json(
    served: ScriptedServer, tmp_path: Path, end: str
) -> None:
    file = tmp_path / "request.json"
    request = json.dumps({"query": f"before{end}after"}, ensure_ascii=False)
    file.write_bytes(request.encode() + b"\r\n")
    assert mneme("call", "Recall", f"@{file}").err == ""
    assert served.last("Recall").query == f"before{end}after"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b'{"query": "\xff"}', "is not UTF-8: byte 11 is none of it"),
        (b'{"query": ' + b"[" * 100_000, "is nested too deep"),
    ],
)
def test_a_file_that_cannot_be_read_is_named_with_what_is_wrong_with_it(
    served: ScriptedServer, tmp_path: Path, content: bytes, said: str
) -> None:
    file = tmp_path / "request.json"
    file.write_bytes(content)
    result = mneme("call", "Recall", f"@{file}")
    assert (result.code, served.seen) == (2, [])
    assert result.err.startswith(f"mneme: {file} {said}")
