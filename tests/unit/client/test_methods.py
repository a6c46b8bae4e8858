"""The two clients offer every RPC, the same way."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import mneme.messages
import pytest
from google.protobuf import descriptor_pool
from mneme import AsyncMnemeClient, MnemeClient
from mneme._generated.services import RPCS
from support.descriptors import services
from unit.client.scripted import EitherClient, ScriptedServer


def _public(cls: type) -> dict[str, Any]:
    return {
        name: member
        for name, member in inspect.getmembers(cls, inspect.isfunction)
        if not name.startswith("_")
    }


def test_every_rpc_of_the_schemas_has_a_method_on_both_clients() -> None:
    described = {f"{s.full_name}/{m.name}" for s in services() for m in s.methods}
    assert {f"{rpc.service}/{rpc.method}" for rpc in RPCS} == described
    for cls in (MnemeClient, AsyncMnemeClient):
        assert len(_public(cls)) >= len(described)


def test_both_clients_have_the_same_methods_with_the_same_parameters_and_words() -> None:
    sync, other = _public(MnemeClient), _public(AsyncMnemeClient)
    assert set(sync) - {"close"} == set(other) - {"aclose"}
    for name in set(sync) & set(other):
        assert list(inspect.signature(sync[name]).parameters) == list(
            inspect.signature(other[name]).parameters
        )
        assert sync[name].__doc__ == other[name].__doc__


def test_every_method_says_what_each_parameter_means() -> None:
    for name, method in _public(MnemeClient).items():
        if name == "close":
            continue
        assert method.__doc__, name
        for parameter in list(inspect.signature(method).parameters)[1:]:
            assert f"\n            {parameter}: " in method.__doc__, f"{name}({parameter})"


def _unary() -> Iterator[tuple[str, str]]:
    for rpc in RPCS:
        method = (
            descriptor_pool.Default().FindServiceByName(rpc.service).methods_by_name[rpc.method]
        )
        updates = "update_mask" in method.input_type.fields_by_name
        if not method.client_streaming and not updates:
            yield rpc.path, rpc.method


@pytest.mark.parametrize(("path", "method"), list(_unary()))
def test_a_method_calls_its_own_rpc(
    path: str, method: str, client: EitherClient, served: ScriptedServer
) -> None:
    from clientgen.description import snake_case

    parameters = inspect.signature(getattr(MnemeClient, snake_case(method))).parameters.values()
    required = [p for p in list(parameters)[1:] if p.default is p.empty]
    client.call(snake_case(method), **{p.name: _something(p) for p in required})
    assert [call.method for call in served.seen] == [method]


def _something(parameter: inspect.Parameter) -> Any:
    """Return a value that the parameter takes; an enum's first number is as good as its name."""
    kinds = str(parameter.annotation)
    if "Iterable" in kinds:
        return []
    if "Fields" in kinds:
        return {}
    return 1 if kinds[:1].isupper() else "x"


def test_the_first_required_fields_may_be_given_by_position(
    client: EitherClient, served: ScriptedServer
) -> None:
    client.call("create_lesson", "Run the tests", "They find what eyes miss.", tags=["ci"])
    lesson = served.last("CreateLesson")
    assert (lesson.title, lesson.content, list(lesson.tags)) == (
        "Run the tests",
        "They find what eyes miss.",
        ["ci"],
    )


def test_memories_are_deleted_by_their_ids_given_by_position(
    client: EitherClient, served: ScriptedServer
) -> None:
    client.call("delete_memories", ["m1", "m2"])
    request = served.last("DeleteMemories")
    assert list(request.memory_ids) == ["m1", "m2"]
    assert not request.HasField("filter")
    assert not request.dry_run


def test_a_single_memory_is_deleted_by_its_id_without_a_list(
    client: EitherClient, served: ScriptedServer
) -> None:
    client.call("delete_memories", "m1")
    assert list(served.last("DeleteMemories").memory_ids) == ["m1"]


def test_a_misspelt_argument_is_refused_with_the_one_that_was_meant(
    client: EitherClient, served: ScriptedServer
) -> None:
    words = r"^recall\(\) has no argument 'querry': did you mean 'query'\?$"
    with pytest.raises(TypeError, match=words):
        client.call("recall", querry="why")
    with pytest.raises(TypeError, match=r"^remember\(\) .* 'userid': did you mean 'user_id'\?$"):
        client.call("remember", "tea", userid="ann")
    with pytest.raises(TypeError, match=r"^get_memory\(\) has no argument 'xyz': it has memory_id"):
        client.call("get_memory", xyz=1)
    assert not served.seen


@pytest.mark.parametrize("cls", [MnemeClient, AsyncMnemeClient])
def test_a_misspelt_argument_of_the_client_itself_is_told_likewise(cls: type) -> None:
    with pytest.raises(TypeError, match=rf"^{cls.__name__}\(\) .* did you mean 'address'\?$"):
        cls(adress="localhost")


def test_an_update_changes_exactly_what_is_given(
    client: EitherClient, served: ScriptedServer
) -> None:
    client.call("update_lesson", "l1", content="new", tags=[], category="")
    request = served.last("UpdateLesson")
    assert request.lesson.id == "l1"
    assert request.lesson.content == "new"
    assert list(request.update_mask.paths) == ["content", "category", "tags"]
    assert not request.lesson.etag


def test_an_update_with_an_etag_sends_it_and_does_not_name_it_as_changed(
    client: EitherClient, served: ScriptedServer
) -> None:
    client.call("update_lesson", "l1", content="new", etag="e1")
    request = served.last("UpdateLesson")
    assert request.lesson.etag == "e1"
    assert list(request.update_mask.paths) == ["content"]


def test_an_update_empties_the_fields_that_clear_names(
    client: EitherClient, served: ScriptedServer
) -> None:
    client.call("update_alert_rule", "r1", threshold=2, clear=["resolve_threshold", "trend"])
    request = served.last("UpdateAlertRule")
    assert list(request.update_mask.paths) == ["threshold", "resolve_threshold", "trend"]
    assert request.rule == mneme.messages.AlertRule(id="r1", threshold=2)
    client.call("update_lesson", "l1", clear=["context"], etag="e1")
    request = served.last("UpdateLesson")
    assert list(request.update_mask.paths) == ["context"]
    assert request.lesson == mneme.messages.Lesson(id="l1", etag="e1")


def test_an_update_that_empties_what_it_also_gives_or_does_not_know_is_refused_before_it_is_sent(
    client: EitherClient, served: ScriptedServer
) -> None:
    with pytest.raises(ValueError, match="clear: tags is given a value, too"):
        client.call("update_lesson", "l1", tags=[], clear=["tags"])
    with pytest.raises(ValueError, match="clear: 't' is none of title, content"):
        client.call("update_lesson", "l1", clear="tags")
    assert served.seen == []


def test_an_update_of_nothing_is_refused_before_it_is_sent(
    client: EitherClient, served: ScriptedServer
) -> None:
    with pytest.raises(ValueError, match="at least one field to change: title, content"):
        client.call("update_lesson", "l1")
    with pytest.raises(ValueError, match="at least one field"):
        client.call("update_lesson", "l1", etag="e1")
    assert served.seen == []


def test_a_walk_fetches_page_after_page_until_the_last(
    client: EitherClient, served: ScriptedServer
) -> None:
    def page(request: Any, context: Any) -> Any:
        number = int(request.page_token or 0)
        return mneme.messages.ListSessionsResponse(
            sessions=[mneme.messages.Session(id=f"s{number}{i}") for i in range(2)],
            next_page_token=str(number + 1) if number < 2 else "",
        )

    served.on("ListSessions", page)
    sessions = client.call("iter_sessions", project="p", page_size=2)
    assert [s.id for s in sessions] == ["s00", "s01", "s10", "s11", "s20", "s21"]
    requests = [call.request for call in served.calls("ListSessions")]
    assert [r.page_token for r in requests] == ["", "1", "2"]
    assert {(r.project, r.page_size) for r in requests} == {("p", 2)}


def test_a_walk_fetches_no_page_that_nobody_reaches(
    client: EitherClient, served: ScriptedServer
) -> None:
    served.on(
        "ListSessions",
        mneme.messages.ListSessionsResponse(
            sessions=[mneme.messages.Session(id="a")], next_page_token="more"
        ),
    )
    assert len(client.call("iter_sessions", take=1)) == 1
    assert len(served.calls("ListSessions")) == 1


def test_the_stubs_stay_reachable_for_what_the_methods_do_not_offer(served: ScriptedServer) -> None:
    with MnemeClient(served.address, api_key="mn_k") as client:
        request = mneme.messages.RecallRequest(query="q")
        client.raw.recall.Recall(request, metadata=client.metadata)
    assert served.calls("Recall")[0].metadata["authorization"] == "Bearer mn_k"


def test_every_message_and_enum_can_be_imported_by_its_plain_name() -> None:
    from mneme.messages import NewEvent, RecallMode

    assert NewEvent(event_type="message").event_type == "message"
    assert RecallMode.RECALL_MODE_HYBRID == 1


def test_a_method_with_an_everyday_name_has_it_beside_its_own() -> None:
    for cls in (MnemeClient, AsyncMnemeClient):
        assert inspect.unwrap(cls.remember) is inspect.unwrap(cls.create_memory)


def test_a_stream_of_memories_is_called_memories() -> None:
    for client in (MnemeClient, AsyncMnemeClient):
        assert "memories" in inspect.signature(client.create_memories).parameters
