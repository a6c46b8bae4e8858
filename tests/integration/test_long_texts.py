"""Long texts are found by what any of their passages says, and the passage is shown."""

from __future__ import annotations

from typing import Any

import pytest
from mneme.v1 import context_service_pb2 as context_pb
from mneme.v1 import memory_service_pb2 as memory_pb
from mneme.v1 import recall_service_pb2 as recall_pb
from support.api import Api
from support.making import event, ids_of, recall, record
from support.server import LocalServer

TALK = " ".join(
    f"In the meeting number {n} the budget of the remote control was discussed at length, and "
    "everybody agreed that the buttons should be larger than those of the last one."
    for n in range(20)
)
FACT = "Priya can no longer eat anything with peanuts in it."
ASKED = "which food allergy does she have"
OTHERS = ["The shop closes at six.", "Rubber buttons cost more.", "The lift is out of order."]
MODES = pytest.mark.parametrize("mode", [recall_pb.RECALL_MODE_HYBRID, recall_pb.RECALL_MODE_DENSE])


def remember(api: Api, texts: dict[str, str]) -> None:
    for memory_id, text in texts.items():
        api.memory.CreateMemory(
            memory_pb.CreateMemoryRequest(memory_id=memory_id, text=text, wait_indexed=True)
        )


@pytest.fixture(scope="module")
def filled(server: LocalServer) -> Api:
    """Return a tenant with three long texts, one of which ends with a fact."""
    api = server.keys.tenant("long-texts")
    remember(
        api,
        {
            "with": f"# Minutes\n## Any other business\n{TALK} {FACT}",
            "without": f"{TALK} The next meeting is in a month.",
            "german": f"{TALK} Der nächste Termin ist in einem Monat.",
            **{str(n): text for n, text in enumerate(OTHERS)},
        },
    )
    return api


@MODES
def test_a_fact_at_the_end_of_a_long_memory_is_found_in_other_words(filled: Api, mode: Any) -> None:
    (first, *_) = recall(filled, ASKED, mode=mode).results
    assert first.source_id == "with"
    assert first.similarity > 0.3  # Of the beginning alone it is next to nothing.
    assert FACT in first.passage.text


def test_the_passage_says_where_it_stands_and_below_which_headings(filled: Api) -> None:
    (first, *_) = recall(filled, ASKED).results
    assert first.text[first.passage.start : first.passage.end] == first.passage.text
    assert first.passage.headings == "Minutes > Any other business"
    assert first.text.startswith("# Minutes")


def test_a_text_that_is_read_at_once_has_no_passage(filled: Api) -> None:
    found = {one.source_id: one for one in recall(filled, "when does the shop close").results}
    assert not found["0"].HasField("passage")


def test_one_text_is_one_result(filled: Api) -> None:
    answer = recall(filled, "what was said of the budget of the remote control", limit=100)
    assert sorted(ids_of(answer)) == sorted(set(ids_of(answer)))
    assert answer.searched_count == 3 + len(OTHERS)


def test_the_passage_that_names_what_was_asked_for_is_shown(server: LocalServer) -> None:
    api = server.keys.tenant("long-names")
    text = f"{TALK} Ticket QX-4711 was closed without a word. {TALK}"
    remember(api, {"log": text})
    (first,) = recall(api, "QX-4711", mode=recall_pb.RECALL_MODE_LEXICAL).results
    assert "QX-4711" in first.passage.text


def test_a_changed_text_is_found_by_what_it_says_now_alone(server: LocalServer) -> None:
    api = server.keys.tenant("long-changes")
    remember(api, {"minutes": f"{TALK} {FACT}", "other": OTHERS[0]})
    before = recall(api, ASKED).results[0]
    changed = memory_pb.Memory(id="minutes", text=f"{TALK} The lift is out of order.")
    api.memory.UpdateMemory(
        memory_pb.UpdateMemoryRequest(memory=changed, update_mask={"paths": ["text"]})
    )
    remember(api, {"later": OTHERS[1]})
    after = recall(api, ASKED).results
    assert all(one.similarity < before.similarity - 0.1 for one in after)
    assert not any(FACT in one.passage.text for one in after)


def test_passages_outlive_a_restart_of_the_tenant(server: LocalServer) -> None:
    api = server.keys.tenant("long-restarts")
    remember(api, {"with": f"{TALK} {FACT}", "without": TALK})
    before = recall(api, ASKED)
    server.close_tenant(api.tenant_id)
    after = recall(api, ASKED)
    assert [one.passage for one in after.results] == [one.passage for one in before.results]
    assert [one.similarity for one in after.results] == pytest.approx(
        [one.similarity for one in before.results]
    )


def test_a_long_event_is_found_by_its_passages_and_waits_for_them(server: LocalServer) -> None:
    api = server.keys.tenant("long-events")
    record(api, event(f"{TALK} {FACT}", "s", id="long"), event(TALK, "s", id="plain"), wait=True)
    (first, *_) = recall(api, ASKED).results
    assert (first.source_id, recall(api, ASKED).pending_count) == ("long", 0)
    assert FACT in first.passage.text


def test_a_context_holds_of_a_long_text_what_bears_on_the_topic_and_says_so(filled: Api) -> None:
    found = filled.context.GetContext(context_pb.GetContextRequest(topic=ASKED, token_budget=800))
    (item,) = [one for one in found.items if one.source_id == "with"]
    assert item.excerpt
    assert FACT in item.text
    assert len(item.text) <= 800
    assert "part of memory with" in found.text


def test_a_search_of_memories_shows_the_passage_too(filled: Api) -> None:
    found = filled.memory.SearchMemories(memory_pb.SearchMemoriesRequest(query=ASKED)).results
    assert found[0].memory.id == "with"
    assert FACT in found[0].passage.text
    short = [one for one in found if one.memory.text in OTHERS]
    assert not any(one.HasField("passage") for one in short)
