from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mneme_mcp.arguments import Arguments, CamelArguments, Labels, Nested, Time, explain
from mneme_mcp.plain import Reference, reference_of
from mneme_mcp.spelling import to_camel, to_snake
from mneme_mcp.tools.database import NoArguments
from mneme_mcp.tools.knowledge import LogArguments, QueryArguments
from mneme_mcp.tools.learn import LearnArguments
from mneme_mcp.tools.plain_remember import RememberArguments
from mneme_mcp.tools.recall import RecallArguments
from mneme_mcp.tools.remembering import BatchArguments
from mneme_mcp.tools.sessions import SleepArguments
from mneme_mcp.toolsets import TOOLSETS, tools_of
from pydantic import Field, ValidationError

SPECS = tools_of(TOOLSETS)


def refused(model: type[Arguments], **given: Any) -> str:
    with pytest.raises(ValidationError) as caught:
        model.model_validate(given)
    return explain(model, caught.value)


@given(st.from_regex(r"[a-z]{2,8}(_[a-z]{2,8}){0,4}", fullmatch=True))
def test_a_name_survives_both_spellings(name: str) -> None:
    assert to_snake(to_camel(name)) == name


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.name)
def test_every_argument_is_accepted_in_both_spellings(spec: Any) -> None:
    for field in spec.arguments.model_fields:
        shown = spec.arguments.shown_name(field)
        for spelling in (shown, to_snake(shown), to_camel(shown)):
            said = "" if spelling != "from_" else "from"
            with pytest.raises(ValidationError) as caught:
                spec.arguments.model_validate({said or spelling: object()})
            assert "no argument" not in explain(spec.arguments, caught.value)


def test_both_spellings_mean_the_same() -> None:
    camel = RecallArguments.model_validate({"query": "q", "minScore": 0.5, "agentId": "a"})
    snake = RecallArguments.model_validate({"query": "q", "min_score": 0.5, "agent_id": "a"})
    assert camel == snake


def test_many_memories_are_spelled_as_people_do() -> None:
    assert RecallArguments.model_validate({"query": "q", "scope": "memories"}).scope == "memories"
    assert "memorys" not in refused(RecallArguments, query="q", scope="nowhere")


def test_an_argument_that_does_not_exist_is_refused_with_what_may_be_meant() -> None:
    assert "'agntId' (did you mean 'agentId'?)" in refused(RecallArguments, query="q", agntId="a")


def test_what_does_not_exist_inside_an_argument_is_refused_in_the_same_words() -> None:
    said = refused(BatchArguments, items=[{"text": "x"}, {"text": "x", "tag": ["y"]}])
    assert said.startswith("there is no argument 'items[1].tag' (did you mean 'tags'?). Arguments:")
    todos = [{"content": "x", "prio": 2}]
    said = refused(SleepArguments, open_todos=todos, decisions=[{"decision": "x", "foo": 1}])
    assert said.startswith("there is no argument 'open_todos[0].prio' (did you mean 'priority'?)")
    assert "; there is no argument 'decisions[0].foo'. Arguments:" in said
    said = refused(SleepArguments, locked_contexts=[{"label": "x", "versoin": "1"}])
    assert "'locked_contexts[0].versoin' (did you mean 'version'?)" in said


def test_a_refusal_does_not_say_what_kind_of_thing_an_argument_is_nor_lists_none() -> None:
    assert refused(BatchArguments, items=[]).startswith("items: should have at least 1 item")
    assert refused(RecallArguments, query="").startswith("query: should have at least 1 character")
    assert refused(NoArguments, x=1).endswith("'x'. It takes no arguments.")


def test_an_argument_that_is_given_by_two_names_must_be_the_same() -> None:
    assert refused(RecallArguments, query="q", topic="p").startswith("query is given twice")
    same = RecallArguments.model_validate({"query": "q", "topic": "q"})
    assert same == RecallArguments.model_validate({"query": "q"})


def test_a_wrong_type_is_named_with_what_was_given() -> None:
    said = refused(RecallArguments, query="q", limit="many")
    assert said.startswith("limit: should be a valid integer")
    assert 'got "many"' in said
    assert "query (required)" in said


def test_a_rate_that_is_none_is_named_with_the_beginning_of_what_was_given() -> None:
    entry = {"project": "p", "event_type": "error", "context": "c", "lesson": "l"}
    said = refused(LogArguments, **entry, success_rate="9" * 50_000)
    assert said.startswith('success_rate: should be X/Y, e.g. "9/10", with X at most Y, got "999')
    assert len(said) < 350


def test_numbers_as_text_are_numbers() -> None:
    assert RecallArguments.model_validate({"query": "q", "limit": "5"}).limit == 5


def test_null_is_the_same_as_nothing() -> None:
    given = RecallArguments.model_validate({"query": "q", "agentId": None, "limit": None})
    assert given == RecallArguments.model_validate({"query": "q"})


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("2026-01-01", datetime(2026, 1, 1, tzinfo=UTC)),
        ("2026-01-01T08:30:00Z", datetime(2026, 1, 1, 8, 30, tzinfo=UTC)),
        ("2026-01-01T08:30:00", datetime(2026, 1, 1, 8, 30, tzinfo=UTC)),
        ("2026-01-01T08:30:00+02:00", datetime(2026, 1, 1, 6, 30, tzinfo=UTC)),
    ],
)
def test_times_are_dates_or_times_and_utc_without_a_zone(text: str, meant: datetime) -> None:
    assert RecallArguments.model_validate({"query": "q", "from": text}).from_ == meant


def test_a_choice_is_taken_in_any_case() -> None:
    given = QueryArguments.model_validate({"query": "q", "event_type": " Error "})
    assert given.event_type == "error"


def test_labels_may_be_one_text_with_commas() -> None:
    given = QueryArguments.model_validate({"query": "q", "tags": "npm, permissions"})
    assert given.tags == ["npm", "permissions"]


def test_a_handover_is_taken_flat_and_in_groups() -> None:
    todo = {"content": "Add refresh tokens", "priority": 2}
    flat = SleepArguments.model_validate({"progress": ["done"], "open_todos": [todo]})
    grouped = SleepArguments.model_validate(
        {"work_done": {"progress": ["done"]}, "next_steps": {"todos": [todo]}}
    )
    assert flat == grouped


def test_items_of_a_handover_may_be_texts_or_objects() -> None:
    given = SleepArguments.model_validate(
        {
            "progress": [{"content": "Fixed bug X"}, "Fixed bug Y"],
            "files": [{"path": "src/a.py"}],
            "open_todos": ["Test it"],
            "decisions": ["Use approach Z"],
        }
    )
    assert given.progress == ["Fixed bug X", "Fixed bug Y"]
    assert given.files == ["src/a.py"]
    assert given.open_todos[0].content == "Test it"
    assert given.decisions[0].decision == "Use approach Z"


class Only(Nested):
    tags: Labels = []  # noqa: RUF012
    least: float | None = None


class Odd(CamelArguments):
    tags: Labels = []  # noqa: RUF012
    since: Time | None = None
    limit: Annotated[int, Field(ge=1)] = 10
    score: float = 0.0
    only: Only = Only()
    user_id: str = ""
    query: str


@pytest.mark.parametrize("written", ["['a', 'b']", '["a", "b"]', "a, b", ' ["a","b"] ', ["a", "b"]])
def test_a_list_is_read_as_hosts_and_models_write_one(written: Any) -> None:
    assert Odd.model_validate({"query": "x", "tags": written}).tags == ["a", "b"]


@pytest.mark.parametrize("written", ['["a", "b"', "['a'", "{'a': 1}", "[" * 500])
def test_a_broken_list_is_refused_and_never_stored(written: str) -> None:
    with pytest.raises(ValidationError, match=r"should be a list|valid list"):
        Odd.model_validate({"query": "x", "tags": written})


@pytest.mark.parametrize("written", ['{"tags": ["a"]}', "{'tags': ['a']}", {"tags": "['a']"}])
def test_an_object_may_come_as_its_text(written: Any) -> None:
    assert Odd.model_validate({"query": "x", "only": written}).only.tags == ["a"]


@pytest.mark.parametrize("field", ["tags", "since", "limit", "score", "only"])
@pytest.mark.parametrize("blank", ["", "  ", None])
def test_a_blank_where_no_text_belongs_means_not_given(field: str, blank: Any) -> None:
    assert Odd.model_validate({"query": "x", field: blank}) == Odd(query="x")


def test_a_blank_in_an_object_means_not_given_too() -> None:
    assert Odd.model_validate({"query": "x", "only": {"tags": "", "least": " "}}).only == Only()


@pytest.mark.parametrize("given", [{"score": float("nan")}, {"only": {"least": float("inf")}}])
def test_a_number_that_is_none_is_told_as_such(given: Any) -> None:
    with pytest.raises(ValidationError, match="finite number"):
        Odd.model_validate({"query": "x"} | given)


OWN = {"own": {"user_id": "dora", "project": "zoo"}}


@pytest.mark.parametrize("given", [{}, {"user_id": ""}, {"user_id": None}, {"user": " "}])
def test_whom_the_settings_name_is_meant_where_a_call_names_nobody(given: Any) -> None:
    assert Odd.model_validate({"query": "x"} | given, context=OWN).user_id == "dora"
    assert Odd.model_validate({"query": "x", "user_id": "emil"}, context=OWN).user_id == "emil"
    batch = {"items": [{"text": "x"} | ({"user_id": ""} if given else {})]}
    (item,) = BatchArguments.model_validate(batch, context=OWN).items
    assert (item.user_id, item.project) == ("dora", "zoo")


def test_where_an_empty_name_lifts_something_the_settings_say_nothing() -> None:
    given = LearnArguments.model_validate({"action": "update", "id": "x", "project": ""})
    told = LearnArguments.model_validate({"action": "update", "id": "x"}, context=OWN)
    assert (given.project, told.project) == ("", None)


def test_an_empty_name_that_nobody_fills_is_refused_by_a_plain_tool_and_a_missing_one_is_not() -> (
    None
):
    said = refused(RememberArguments, text="x", project="")
    assert said.startswith("project is empty, and mneme-mcp was started without --project")
    assert RememberArguments.model_validate({"text": "x"}).request() == {"text": "x"}


def test_what_a_tool_takes_and_does_not_show_is_taken_and_not_named() -> None:
    given = RememberArguments.model_validate({"text": "x", "agentId": "helper"})
    assert given.request() == {"text": "x", "agent_id": "helper"}
    assert "agent_id" not in RememberArguments.schema_for_hosts()["properties"]
    assert "agent_id" not in refused(RememberArguments, colour="red")


def test_an_id_that_is_a_number_is_its_text() -> None:
    given = RememberArguments.model_validate({"text": 4711, "user_id": 42, "tags": [7]})
    assert (given.text, given.user_id, given.tags) == ("4711", "42", ["7"])


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("memory 01M8", Reference("01M8", "memory")),
        ("Memory: 01M8", Reference("01M8", "memory")),
        ("(id lesson 01M8)", Reference("01M8", "lesson")),
        ("01M8", Reference("01M8")),
        ("event e-17 of session s-3, by user", Reference("e-17", "event", "s-3")),
        ("event e 17 of session a b", Reference("e 17", "event", "a b")),
        ("memory", Reference("memory")),
        ("memories of spring", Reference("memories of spring")),
    ],
)
def test_an_item_is_known_by_what_answers_call_it(text: str, meant: Reference) -> None:
    assert reference_of(text) == meant
    assert reference_of(str(meant)) == meant
