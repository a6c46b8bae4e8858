from __future__ import annotations

from dataclasses import replace

import pytest
from mneme_server.features.memory.model import Figures, Importance, Memory, NewMemory, said_as
from mneme_server.features.memory.supersession import passed_on

MEMORY = Memory("m", "Ann likes tea.", user_id="ann", since_us=5, created_us=5, updated_us=5)


@pytest.mark.parametrize(
    "again", ["Ann likes tea", "  Ann likes\n tea . ", "ann likes tea.", "Ann likes tea."]
)
def test_what_differs_in_white_space_and_a_full_stop_says_the_same(again: str) -> None:
    assert replace(MEMORY, text=again).digest == MEMORY.digest


@pytest.mark.parametrize(
    "other",
    [
        "Ann likes Tea.", "Ann likes tea!", "Ann likes tea...", "Ann likes tea?", "Ann likes te a.",
        "Ann likes -tea.", "ANN likes tea.",
    ],
)  # fmt: skip
def test_what_may_say_something_else_is_another(other: str) -> None:
    assert replace(MEMORY, text=other).digest != MEMORY.digest


@pytest.mark.parametrize("text", [".", " ", "..", "\u3000", "İ", "a"])
def test_a_text_of_nothing_but_a_stop_is_still_a_text(text: str) -> None:
    assert said_as(text)


def test_owners_do_not_run_into_each_other() -> None:
    one = replace(MEMORY, user_id="a", agent_id="b", project="")
    other = replace(MEMORY, user_id="a", agent_id="", project="b")
    assert one.digest != other.digest


def test_every_change_of_a_memory_changes_its_etag() -> None:
    changes = {
        "text": "x", "user_id": "bo", "agent_id": "a", "project": "p", "tags": ("t",),
        "metadata_json": "{}x", "importance": Importance.HIGH, "since_us": 6, "supersedes": ("o",),
        "superseded_by": "n", "until_us": 7, "created_us": 8, "updated_us": 9, "id": "other",
        "pinned": True, "confirmed_count": 1, "last_said_us": 10,
    }  # fmt: skip
    assert changes.keys() == set(Memory.__slots__)
    etags = {replace(MEMORY, **{name: value}).etag for name, value in changes.items()}  # type: ignore[arg-type]
    assert len(etags | {MEMORY.etag}) == len(changes) + 1


def test_what_was_not_said_contradicts_nothing() -> None:
    stored = replace(MEMORY, tags=("t",), importance=Importance.HIGH, metadata_json='{"a":1}')
    said = NewMemory(replace(MEMORY, since_us=0)).completed("made", now=9)
    assert said.memory.since_us == 9
    assert said.contradicted(stored) == []
    assert set(said.differing(stored)) == {"tags", "importance", "metadata_json"}
    dated = NewMemory(replace(MEMORY, tags=("u",)), since_us=1).completed("made", now=9)
    assert set(dated.contradicted(stored)) == {"tags", "since_us"}


def test_figures_add_up_and_tell_the_rate_of_all_of_them() -> None:
    figures = Figures()
    assert figures.vectors_per_second == 0
    for _ in range(2):
        figures += Figures(cache_hits=1, cache_misses=2, embedded=3, embedding_s=1, writing_s=0.5)
    assert (figures.cache_hits, figures.cache_misses) == (2, 4)
    assert figures.vectors_per_second == 2


@pytest.mark.parametrize(
    ("gone", "expected"),
    [
        ({"a": ""}, {"a": ""}),
        ({"a": "b"}, {"a": "b"}),
        ({"a": "b", "b": "c"}, {"a": "c", "b": "c"}),
        ({"b": "c", "a": "b", "c": ""}, {"a": "", "b": "", "c": ""}),
        # Which no call can bring about; a damaged database may hold it.
        ({"a": "b", "b": "a"}, {"a": "", "b": ""}),
    ],
)
def test_what_a_deleted_memory_superseded_goes_to_the_next_that_stays(
    gone: dict[str, str], expected: dict[str, str]
) -> None:
    assert passed_on(gone) == expected
