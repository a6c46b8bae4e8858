"""Memories: kept once, replaced without being lost, found, changed, deleted as was told before."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from typing import Any

import pytest
from google.protobuf.field_mask_pb2 import FieldMask
from mneme.v1 import memory_service_pb2 as pb
from mneme.v1 import recall_service_pb2 as recall_pb
from support.api import Api, grpc, refused
from support.contexts import eventually
from support.making import at, event, ids_of, recall, record, struct
from support.server import LocalServer, local_server

POST = "The buyer prefers invoices by post"
EMAIL = "Ann gets all invoices by email now"


def insert(api: Api, text: str, **fields: Any) -> pb.CreateMemoryResponse:
    if isinstance(fields.get("metadata"), Mapping):
        fields["metadata"] = struct(**fields["metadata"])
    return api.memory.CreateMemory(pb.CreateMemoryRequest(text=text, **fields))


def get(api: Api, memory_id: str) -> pb.Memory:
    return api.memory.GetMemory(pb.GetMemoryRequest(memory_id=memory_id)).memory


def updated(api: Api, memory_id: str, etag: str = "", **changes: Any) -> pb.UpdateMemoryResponse:
    request = pb.UpdateMemoryRequest(
        memory=pb.Memory(id=memory_id, etag=etag, **changes), update_mask=FieldMask(paths=changes)
    )
    return api.memory.UpdateMemory(request)


def update(api: Api, memory_id: str, etag: str = "", **changes: Any) -> pb.Memory:
    return updated(api, memory_id, etag, **changes).memory


def listed(api: Api, superseded: bool = True, **filter_: Any) -> list[str]:
    request = pb.ListMemoriesRequest(
        filter=pb.MemoryFilter(**filter_), include_superseded=superseded, page_size=1000
    )
    answer = api.memory.ListMemories(request)
    assert answer.total_size == len(answer.memories)
    return [memory.id for memory in answer.memories]


def found(api: Api, query: str, **fields: Any) -> list[str]:
    answer = api.memory.SearchMemories(pb.SearchMemoriesRequest(query=query, **fields))
    return [one.memory.id for one in answer.results]


def delete(api: Api, *memory_ids: str, dry_run: bool = False, **filter_: Any) -> Any:
    return api.memory.DeleteMemories(
        pb.DeleteMemoriesRequest(
            memory_ids=memory_ids, filter=pb.MemoryFilter(**filter_), dry_run=dry_run
        )
    )


def stream(api: Api, memories: Iterable[pb.NewMemory]) -> list[pb.CreateMemoriesResponse]:
    return list(api.memory.CreateMemories(pb.CreateMemoriesRequest(memory=m) for m in memories))


def test_a_memory_comes_back_as_it_was_stored_and_is_found_by_its_meaning(api: Api) -> None:
    stored = insert(
        api, POST, memory_id="m", user_id="ann", agent_id="clerk", project="shop",
        tags=["billing", "a", "billing"], metadata={"priority": 2, "from": {"page": 3}},
        importance=3, since=at(0),
    )  # fmt: skip
    assert not stored.already_known
    # The server's cache is everybody's: another test may have had this text embedded.
    assert stored.figures.cache_hits + stored.figures.cache_misses == 1
    assert stored.figures.embedding_dimension == 384
    memory = get(api, "m")
    assert memory == stored.memory
    assert (memory.text, memory.user_id, memory.project) == (POST, "ann", "shop")
    assert (list(memory.tags), memory.since, memory.importance) == (["a", "billing"], at(0), 3)
    assert memory.metadata == struct(priority=2, **{"from": {"page": 3}})
    assert found(api, "how should bills be sent?") == ["m"]
    answer = recall(api, "how should bills be sent?", scopes=["MEMORY"], user_id="ann")
    assert ids_of(answer) == ["m"]
    assert answer.results[0].source_type == "memory"
    assert answer.results[0].metadata["tags"] == ["a", "billing"]
    assert answer.results[0].metadata["metadata"]["from"]["page"] == 3
    assert answer.results[0].metadata["since"] == "2026-05-28T20:26:40Z"
    assert not ids_of(recall(api, "how should bills be sent?", user_id="bo"))


def test_what_says_the_same_again_is_not_stored_twice_and_the_caller_is_told(api: Api) -> None:
    first = insert(api, POST, user_id="ann").memory
    for again in (POST, f"  {POST}. ", POST[0].lower() + POST[1:].replace(" ", "\n")):
        answer = insert(api, again, user_id="ann")
        assert (answer.already_known, answer.memory) == (True, first)
    # What differs is told, and changed by nobody.
    answer = insert(api, POST, user_id="ann", tags=["x"], importance=4, since=at(0))
    assert set(answer.differing) == {"tags", "importance", "since"}
    now = get(api, first.id)
    assert (now.confirmed_count, now.etag != first.etag) == (1, True)
    for field in ("confirmed_count", "last_said", "etag"):
        now.ClearField(field), first.ClearField(field)
    assert now == first
    others = [
        insert(api, POST, user_id="bo"), insert(api, POST),
        insert(api, POST, user_id="ann", project="p"),
        insert(api, POST, user_id="ann", agent_id="a"),
        insert(api, POST.upper(), user_id="ann"), insert(api, f"{POST}!", user_id="ann"),
        insert(api, POST, user_id="ann", keep_copy=True),
    ]  # fmt: skip
    assert not any(other.already_known for other in others)
    assert len(listed(api)) == 8


def test_an_id_again_is_the_same_memory_or_a_conflict(api: Api) -> None:
    first = insert(api, POST, memory_id="m", user_id="ann", tags=["x"])
    again = insert(api, POST, memory_id="m", user_id="ann", tags=["x"], keep_copy=True)
    assert (again.already_known, again.memory) == (True, first.memory)
    for changed in ({"tags": ["y"]}, {"user_id": "bo"}, {"since": at(0)}, {"importance": 1}):
        with refused() as failure:
            insert(api, POST, memory_id="m", **{"user_id": "ann", "tags": ["x"], **changed})
        assert (failure.code, failure.field) == (grpc.StatusCode.ALREADY_EXISTS, "memory_id")
    assert get(api, "m") == first.memory


def test_beside_a_new_one_come_the_closest_older_ones_of_the_same_user(api: Api) -> None:
    insert(api, POST, memory_id="post", user_id="ann", since=at(0))
    insert(api, "Ann plays the violin", memory_id="violin", user_id="ann")
    insert(api, POST, memory_id="bo", user_id="bo")
    insert(api, POST, memory_id="nobody")
    answer = insert(api, "The buyer wants invoices by email", user_id="ann")
    assert [one.memory.id for one in answer.similar] == ["post"]
    assert 0.5 < answer.similar[0].similarity < 1
    assert answer.similar[0].memory.since == at(0)
    answer = insert(api, "The buyer wants invoices by fax")
    assert [one.memory.id for one in answer.similar] == ["nobody"]
    answer = insert(api, "The buyer wants invoices by courier", user_id="ann", similar_limit=0)
    assert (list(answer.similar), answer.similar_unknown) == ([], False)
    answer = insert(api, "The buyer wants invoices by fax", user_id="ann", similar_limit=1)
    assert len(answer.similar) == 1


def test_what_is_superseded_stays_and_recall_puts_what_holds_before_it(api: Api) -> None:
    old = insert(api, POST, memory_id="old", user_id="ann", since=at(0)).memory
    insert(api, EMAIL, memory_id="new", user_id="ann", since=at(100))
    # The caller has seen the older one beside it, and says that it is replaced.
    answer = insert(api, EMAIL, user_id="ann", supersedes=["old"])
    assert (answer.already_known, answer.memory.id) == (True, "new")
    assert list(answer.memory.supersedes) == ["old"]
    (marked,) = answer.superseded
    assert (marked.superseded_by, marked.until, marked.text) == ("new", at(100), old.text)
    assert marked.etag != old.etag
    assert get(api, "old") == marked
    for query in (POST, EMAIL, "invoices"):
        (only,) = recall(api, query, user_id="ann").results
        assert (only.source_id, only.older.source_id) == ("new", "old"), query
        assert recall(api, query, user_id="ann").total_results == 1
        results = recall(api, query, user_id="ann", include_superseded=True).results
        assert [result.source_id for result in results] == ["new", "old"], query
        new, was = results
        assert (new.text, was.text) == (EMAIL, f"[superseded] {POST}")
        assert (new.older.source_id, was.newer.source_id) == ("old", "new")
        assert new.timestamp == at(100)
        assert new.score >= was.score
        assert was.metadata["superseded_by"] == "new"
        assert was.metadata["until"] == "2026-05-28T20:28:20Z"
        assert "until" not in new.metadata
    assert found(api, POST) == ["new"]
    assert found(api, POST, include_superseded=True) == ["old", "new"]
    assert listed(api, superseded=False) == ["new"]
    # What was true once may become true again.
    back = insert(api, POST, memory_id="back", user_id="ann", supersedes=["new"])
    assert not back.already_known
    assert ids_of(recall(api, EMAIL, user_id="ann", limit=1)) == ["back"]


def test_what_holds_is_brought_in_where_only_what_it_superseded_was_found(api: Api) -> None:
    insert(api, "The code word for the gate is heliotrope", memory_id="old", user_id="ann")
    insert(api, "From now on: amaranth", memory_id="new", user_id="ann", supersedes=["old"])
    for number in range(30):
        insert(api, f"The code word for gate {number} is heliotrope, too", keep_copy=True)
    answer = recall(api, "what is the code word for the gate, heliotrope?", limit=5, explain=True)
    ids = ids_of(answer)
    assert len(ids) == 5
    assert "old" not in ids
    asked: dict[str, Any] = {"limit": 2, "user_id": "ann"}
    answer = recall(api, "The code word for the gate is heliotrope", **asked)
    assert ids_of(answer)[0] == "new"
    assert "old" not in ids_of(answer)
    query = "The code word for the gate is heliotrope"
    assert ids_of(recall(api, query, include_superseded=True, **asked)) == ["new", "old"]
    # One that the filters do not let through stays away, and so does what it superseded.
    then: dict[str, Any] = {"user_id": "ann", "end_time": get(api, "new").since, "only_own": True}
    assert ids_of(recall(api, "heliotrope", **then)) == []
    assert ids_of(recall(api, "heliotrope", include_superseded=True, **then)) == ["old"]


def test_a_question_about_the_past_is_answered_by_what_held_then(api: Api) -> None:
    insert(api, "Ann lives in Lindau by the lake", memory_id="old", user_id="ann")
    insert(api, "Ann lives in Bergen", memory_id="new", user_id="ann", supersedes=["old"])
    asked: dict[str, Any] = {"user_id": "ann", "include_superseded": True}
    assert ids_of(recall(api, "does Ann live by the lake", **asked)) == ["new", "old"]
    assert ids_of(recall(api, "did Ann live by the lake before?", **asked)) == ["old", "new"]
    assert ids_of(recall(api, "did Ann live by the lake before?", user_id="ann")) == ["new"]


def test_many_replaced_ones_leave_room_for_the_rest(api: Api) -> None:
    last: list[str] = []
    for version in range(40):
        text = f"The release is planned for day {version} of the quarter"
        insert(api, text, memory_id=f"v{version}", supersedes=last)
        last = [f"v{version}"]
    for number in range(9):
        insert(api, f"The release of module {number} needs a review", memory_id=f"m{number}")
    ids = ids_of(recall(api, "when is the release planned in the quarter", limit=10))
    assert ids[0] == "v39"
    assert len(ids) == 10


def test_what_was_found_stays_behind_what_was_brought_in(api: Api) -> None:
    insert(api, "heliotrope", memory_id="old", user_id="ann")
    insert(api, "amaranth", memory_id="new", user_id="ann", supersedes=["old"])
    mode = recall_pb.RECALL_MODE_LEXICAL
    answer = recall(api, "heliotrope", mode=mode, limit=10, include_superseded=True)
    assert ids_of(answer) == ["new", "old"]
    assert answer.total_results == 2
    assert ids_of(recall(api, "heliotrope", mode=mode, limit=1)) == ["new"]
    assert ids_of(recall(api, "heliotrope", mode=mode, limit=10)) == ["new"]


def test_a_memory_cannot_supersede_what_it_must_not(api: Api) -> None:
    insert(api, "one", memory_id="1", user_id="ann")
    insert(api, "two", memory_id="2", user_id="ann", supersedes=["1"])
    insert(api, "three", memory_id="3", user_id="bo")
    for supersedes, user, code, words in (
        ("nothing", "ann", grpc.StatusCode.NOT_FOUND, "no memory 'nothing'"),
        ("1", "ann", grpc.StatusCode.FAILED_PRECONDITION, "superseded by '2' already"),
        ("3", "ann", grpc.StatusCode.FAILED_PRECONDITION, "not of the same user"),
    ):
        with refused() as failure:
            insert(api, "four", user_id=user, supersedes=[supersedes])
        assert (failure.code, failure.field) == (code, "supersedes"), supersedes
        assert words in failure.message
    for memory_id, supersedes, words in (("2", "2", "itself"), ("1", "2", "supersedes '1' itself")):
        with refused() as failure:
            update(api, memory_id, supersedes=[supersedes])
        assert failure.code == grpc.StatusCode.FAILED_PRECONDITION
        assert failure.field == "memory.supersedes"
        assert words in failure.message
    with refused() as failure:
        update(api, "2", user_id="bo")
    assert (failure.code, failure.field) == (
        grpc.StatusCode.FAILED_PRECONDITION, "memory.user_id",
    )  # fmt: skip
    assert sorted(listed(api)) == ["1", "2", "3"]


def test_an_update_changes_what_it_names_and_nothing_else(api: Api) -> None:
    before = insert(api, POST, memory_id="m", user_id="ann", tags=["x"], metadata={"a": 1}).memory
    after = update(api, "m", text="Deliver before noon", tags=["y", "z"], etag=before.etag)
    assert (after.text, list(after.tags), after.user_id) == (
        "Deliver before noon",
        ["y", "z"],
        "ann",
    )
    assert after.metadata == before.metadata
    assert after.created_at == before.created_at
    assert after.updated_at.ToNanoseconds() > before.updated_at.ToNanoseconds()
    assert get(api, "m") == after
    assert (listed(api, tags=["x"]), listed(api, tags=["y", "z"])) == ([], ["m"])
    assert found(api, "at what time of day may the parcel come?") == ["m"]
    assert ids_of(recall(api, "noon", mode=3)) == ["m"]
    assert not ids_of(recall(api, "invoices", mode=3))
    with refused() as failure:
        update(api, "m", text="lost", etag=before.etag)
    assert failure.code == grpc.StatusCode.ABORTED
    assert update(api, "m", text="Deliver before noon") == after
    # The old text is free again, and what it says now is known.
    assert not insert(api, POST, user_id="ann").already_known
    assert insert(api, "deliver before noon.", user_id="ann").already_known


def test_an_update_to_what_another_memory_says_is_made_and_names_it(api: Api) -> None:
    insert(api, POST, user_id="ann", memory_id="first")
    insert(api, EMAIL, user_id="ann", memory_id="changed")

    for _ in range(2):  # A call that is repeated since its answer was lost is told, too.
        answer = updated(api, "changed", text=f"  {POST}.")
        assert (answer.already_known, answer.known_memory_id) == (True, "first")
        assert answer.memory == get(api, "changed")
    assert get(api, "changed").text == f"  {POST}."

    # The other one is named, also where the changed memory is the older.
    answer = updated(api, "first", text=POST.upper()), updated(api, "first", text=POST)
    assert [(one.already_known, one.known_memory_id) for one in answer] == [
        (False, ""), (True, "changed"),
    ]  # fmt: skip
    # What was not said is no repetition.
    assert not updated(api, "first", tags=["a"]).already_known


@pytest.mark.parametrize("field", ["user_id", "agent_id", "project"])
def test_a_memory_that_moves_to_where_the_same_is_known_is_told(api: Api, field: str) -> None:
    insert(api, POST, memory_id="first", **{field: "here"})
    insert(api, POST, memory_id="moves", **{field: "there"})
    assert not updated(api, "moves", text=POST).already_known
    answer = updated(api, "moves", **{field: "here"})
    assert (answer.already_known, answer.known_memory_id) == (True, "first")
    assert not updated(api, "moves", **{field: "there"}).already_known


def test_an_update_is_not_told_of_what_holds_no_more(api: Api) -> None:
    insert(api, POST, memory_id="old")
    insert(api, EMAIL, memory_id="new", supersedes=["old"])
    assert not updated(api, "new", text=POST).already_known
    assert not updated(api, "old", text=f"{POST}.").already_known  # It is the one that is past.
    insert(api, "Bills are paid by card", memory_id="other")
    superseding = {"text": "Bills are paid by card", "supersedes": ["other", "old"]}
    assert not updated(api, "new", **superseding).already_known
    # And is told of what holds again by the same change.
    answer = updated(api, "new", text="Bills are paid by card", supersedes=["old"])
    assert (answer.already_known, answer.known_memory_id) == (True, "other")


def test_an_update_takes_back_that_one_supersedes_another(api: Api) -> None:
    insert(api, POST, memory_id="old")
    insert(api, EMAIL, memory_id="new", supersedes=["old"], since=at(50))
    update(api, "new", since=at(80))
    assert get(api, "old").until == at(80)
    assert list(update(api, "new", supersedes=[]).supersedes) == []
    old = get(api, "old")
    assert (old.superseded_by, old.HasField("until")) == ("", False)
    assert sorted(found(api, POST)) == ["new", "old"]


@pytest.mark.parametrize(
    ("filter_", "expected"),
    [
        ({"user_id": "ann"}, "ab"),
        ({"tags": ["red", "green"]}, "b"),
        ({"any_tags": ["blue", "green"]}, "bc"),
        ({"any_tags": ["blue", "green"], "tags": ["red"]}, "b"),
        ({"any_tags": ["none"]}, ""),
        ({"metadata": struct(kind="note")}, "ac"),
        ({"metadata": struct(kind="note", rank=2)}, "c"),
        ({"metadata": struct(src={"page": 7})}, "b"),
        ({"metadata": struct(list=[1, "x"])}, "a"),
        ({"metadata": struct(open=True)}, "a"),
        ({"metadata": struct(open=None)}, "b"),
        ({"where": [{"key": "rank", "comparison": 2, "number": 2}]}, "ad"),
        ({"where": [{"key": "rank", "comparison": 3, "number": 2}]}, "acd"),
        ({"where": [{"key": "rank", "comparison": 4, "number": -10.5}]}, "abc"),
        ({"where": [{"key": "rank", "comparison": 5, "number": 2}]}, "bc"),
        ({"where": [{"key": "day", "comparison": 5, "text": "2026-02-01"}]}, "bd"),
        ({"where": [{"key": "day", "comparison": 2, "text": "2026-02-01"}]}, "a"),
        ({"where": [{"key": "src.page", "number": 7}]}, "b"),
        ({"where": [{"key": "open", "truth": False}]}, "c"),
        ({"where": [{"key": "rank", "text": "2"}]}, ""),
        ({"start_time": at(2)}, "cd"),
        ({"end_time": at(2)}, "ab"),
        ({"start_time": at(1), "end_time": at(3), "user_id": "bo"}, "c"),
        ({"min_age_days": 1.0}, "abcd"),
        ({"min_age_days": 36500.0}, ""),
    ],
)
def test_a_filter_picks_the_same_for_listing_searching_and_deleting(
    filter_: dict[str, Any], expected: str, filled: Api
) -> None:
    assert "".join(sorted(listed(filled, **filter_))) == expected
    message = pb.MemoryFilter(**filter_)
    exactly = found(filled, "something", filter=message, only_own=True)
    assert "".join(sorted(exactly)) == expected
    answer = delete(filled, dry_run=True, **filter_)
    assert "".join(answer.memory_ids) == expected
    assert (answer.deleted_count, answer.vector_count) == (len(expected), len(expected))


@pytest.fixture(scope="module")
def filled(server: LocalServer) -> Api:
    api = server.keys.tenant("filters")
    insert(api, "something alpha", memory_id="a", user_id="ann", tags=["red"], since=at(0),
           metadata={"kind": "note", "rank": 1, "day": "2026-01-31", "open": True,
                     "list": [1, "x"]})  # fmt: skip
    insert(api, "something beta", memory_id="b", user_id="ann", tags=["red", "green"], since=at(1),
           metadata={"rank": 10, "day": "2026-02-01", "src": {"page": 7},
                     "open": None})  # fmt: skip
    insert(api, "something gamma", memory_id="c", user_id="bo", tags=["blue"], since=at(2),
           metadata={"kind": "note", "rank": 2, "open": False})  # fmt: skip
    insert(api, "something delta", memory_id="d", since=at(3),
           metadata={"rank": -10.5, "day": "2026-11-22"})  # fmt: skip
    return api


def test_a_condition_that_compares_with_nothing_or_too_much_is_refused(filled: Api) -> None:
    for condition, field in (
        ({"key": "a"}, "filter.where[0]"),
        ({"key": "a", "number": 1, "text": "x"}, "filter.where[0]"),
        ({"key": "a", "truth": True, "comparison": 2}, "filter.where[0].comparison"),
    ):
        with refused() as failure:
            listed(filled, where=[condition])
        assert (failure.code, failure.field) == (grpc.StatusCode.INVALID_ARGUMENT, field)
    with refused() as failure:
        listed(filled, metadata=struct(**{f"k{n}": n for n in range(65)}))
    assert (failure.reason, failure.field) == ("OUT_OF_RANGE", "filter.metadata")


def test_a_search_tells_how_close_each_is_and_counts_what_it_searched(filled: Api) -> None:
    request = pb.SearchMemoriesRequest(query="something alpha", limit=2)
    answer = filled.memory.SearchMemories(request)
    assert answer.results[0].memory.id == "a"
    assert answer.results[0].similarity == pytest.approx(1, abs=0.01)
    assert len(answer.results) == 2
    assert (answer.searched_count, answer.total_matches, answer.matches_capped) == (4, 4, False)
    assert answer.index_kind == pb.VECTOR_INDEX_KIND_EXACT
    request.min_similarity = 0.95
    answer = filled.memory.SearchMemories(request)
    assert [one.memory.id for one in answer.results] == ["a"]
    assert answer.total_matches == 1


def test_pages_of_a_list_are_whole_while_memories_come(api: Api) -> None:
    for number in range(5):
        insert(api, f"memory {number}", memory_id=f"m{number}", since=at(number // 2))
    request = pb.ListMemoriesRequest(page_size=2)
    seen = []
    while True:
        answer = api.memory.ListMemories(request)
        seen += [memory.id for memory in answer.memories]
        insert(api, f"newer {len(seen)}")
        if not answer.next_page_token:
            break
        request.page_token = answer.next_page_token
    assert seen == ["m4", "m3", "m2", "m1", "m0"]


def test_what_a_dry_run_tells_is_what_is_deleted_then(api: Api) -> None:
    chain(api, "1", "2", "3", "4")
    insert(api, "apart", memory_id="apart", tags=["keep"])
    told = delete(api, "2", "4", "gone", dry_run=True)
    assert len(listed(api)) == 5
    done = delete(api, "2", "4", "gone")
    for answer in (told, done):
        assert (answer.deleted_count, answer.vector_count) == (2, 2)
        assert (list(answer.memory_ids), list(answer.restored_ids)) == (["2", "4"], ["3"])
    assert (told.dry_run, done.dry_run) == (True, False)
    # What the second superseded is superseded by what superseded that; the third holds again.
    assert get(api, "1").superseded_by == "3"
    assert get(api, "1").until == get(api, "3").since
    assert get(api, "3").superseded_by == ""
    assert sorted(found(api, "link")) == ["3", "apart"]
    assert "2" not in ids_of(recall(api, "link number 2"))
    assert delete(api, "2", "4").deleted_count == 0
    with refused() as failure:
        get(api, "2")
    assert failure.code == grpc.StatusCode.NOT_FOUND


def chain(api: Api, *ids: str) -> None:
    for place, memory_id in enumerate(ids):
        insert(
            api, f"link number {memory_id}", memory_id=memory_id, since=at(place),
            supersedes=ids[max(0, place - 1) : place],
        )  # fmt: skip


def test_more_are_deleted_than_fit_into_a_step(api: Api) -> None:
    ids = [f"m{number:04}" for number in range(1_200)]
    new = [
        pb.NewMemory(id=one, text=f"row {one}", keep_copy=True, tags=["bulk"],
                     supersedes=ids[place - 1 : place] if place else [])
        for place, one in enumerate(ids)
    ]  # fmt: skip
    assert stream(api, new)[-1].inserted_count == 1_200
    # What is embedded in between would be counted by the one and not by the other.
    eventually(lambda: recall(api, "row").pending_count, lambda pending: pending == 0)
    told = delete(api, any_tags=["bulk"], end_time=get(api, ids[-1]).since, dry_run=True)
    assert told.deleted_count > 400
    done = delete(api, any_tags=["bulk"], end_time=get(api, ids[-1]).since)
    told.ClearField("took_ms")
    done.ClearField("took_ms")
    told.dry_run = False
    assert told == done
    assert len(listed(api)) == 1_200 - done.deleted_count


def test_nothing_is_deleted_without_an_id_or_a_condition(api: Api) -> None:
    insert(api, POST)
    with refused() as failure:
        delete(api)
    assert (failure.code, failure.reason) == (
        grpc.StatusCode.INVALID_ARGUMENT, "MISSING_REQUIRED_FIELD",
    )  # fmt: skip
    assert len(listed(api)) == 1


def test_a_stream_is_acknowledged_with_receipts_and_measured_figures(api: Api) -> None:
    insert(api, "row 7", memory_id="known")
    answers = stream(api, [pb.NewMemory(text=f"row {n % 600}") for n in range(700)])
    last = answers[-1]
    assert (last.acknowledged_count, last.inserted_count, last.known_count) == (700, 599, 101)
    receipts = [receipt for answer in answers for receipt in answer.receipts]
    assert len(receipts) == 700
    assert (receipts[7].memory_id, receipts[7].already_known) == ("known", True)
    assert receipts[601].memory_id == receipts[1].memory_id
    figures = last.figures
    assert figures.cache_hits + figures.cache_misses == 599
    assert figures.embedding_ms > 0
    assert figures.writing_ms > 0
    seconds = (figures.embedding_ms + figures.writing_ms) / 1000
    assert figures.vectors_per_second == pytest.approx(599 / seconds)
    assert len(listed(api)) == 600
    assert len(stream(api, [])) == 1


def test_a_stream_that_fails_says_what_is_stored_and_which_message_was_wrong(api: Api) -> None:
    new = [pb.NewMemory(id=f"m{n}", text=f"row {n}") for n in range(3)]
    new.append(pb.NewMemory(id="m0", text="another"))
    with refused() as failure:
        stream(api, new)
    assert failure.code == grpc.StatusCode.ALREADY_EXISTS
    assert (failure.metadata["recorded"], failure.metadata["message_index"]) == ("0", "3")
    assert failure.field == "memory.id"
    assert listed(api) == []
    with refused() as failure:
        stream(api, [*new[:2], pb.NewMemory(text="x", supersedes=["no such memory"])])
    assert (failure.code, failure.metadata["message_index"]) == (grpc.StatusCode.NOT_FOUND, "2")


def test_a_memory_of_a_stream_may_supersede_an_earlier_one(api: Api) -> None:
    new = [
        pb.NewMemory(id="a", text="Ann lives in Berlin"),
        pb.NewMemory(id="b", text="Ann lives in Paris", supersedes=["a"]),
        pb.NewMemory(id="c", text="Ann lives in Berlin", supersedes=["b"]),
    ]
    assert stream(api, new)[-1].inserted_count == 3
    assert [get(api, one).superseded_by for one in "abc"] == ["b", "c", ""]
    assert found(api, "where does Ann live?") == ["c"]
    # Sent again, as after a break, all are known.
    assert stream(api, new)[-1].known_count == 3


def test_many_who_say_the_same_at_once_store_it_once(api: Api) -> None:
    answers = []

    def say() -> None:
        answers.append(insert(api, POST, user_id="ann"))

    threads = [threading.Thread(target=say) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({answer.memory.id for answer in answers}) == 1
    assert sum(not answer.already_known for answer in answers) == 1


def test_memories_survive_a_restart_marked_as_they_were(tmp_path: Any) -> None:
    with local_server(tmp_path / "data") as first:
        api = first.keys.tenant("memories")
        insert(api, POST, memory_id="old", user_id="ann", metadata={"n": 1})
        insert(api, EMAIL, memory_id="new", user_id="ann", supersedes=["old"])
        before = [get(api, "old"), get(api, "new")]
        secret, tenant_id = api.secret, api.tenant_id
    with local_server(tmp_path / "data") as second:
        api = second.keys.api(secret, tenant_id)
        assert [get(api, "old"), get(api, "new")] == before
        assert ids_of(recall(api, POST)) == ["new"]
        assert ids_of(recall(api, POST, include_superseded=True)) == ["new", "old"]
        assert found(api, POST) == ["new"]
        assert listed(api, metadata=struct(n=1)) == ["old"]
        assert insert(api, EMAIL, user_id="ann").already_known


def test_recall_finds_memories_beside_events(api: Api) -> None:
    record(api, event("the invoice was sent by post", "s", id="e"), wait=True)
    insert(api, POST, memory_id="m")
    assert set(ids_of(recall(api, "invoice by post"))) == {"e", "m"}
    assert ids_of(recall(api, "invoice by post", scopes=["memory"])) == ["m"]
