"""Patterns: stored under names, found in memories with their places, judged by who uses them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from google.protobuf.field_mask_pb2 import FieldMask
from mneme.v1 import memory_service_pb2 as memory_pb
from mneme.v1 import memory_stats_pb2 as stats_pb
from mneme.v1 import pattern_pb2 as pb
from support.api import Api, grpc, refused
from support.making import at, struct
from support.server import LocalServer, local_server

TICKET = r"T-(\d+)"


@pytest.fixture
def api(server: LocalServer) -> Api:
    return server.keys.tenant("patterns")


def insert(api: Api, memory_id: str, text: str, **fields: Any) -> None:
    request = memory_pb.CreateMemoryRequest(memory_id=memory_id, text=text, **fields)
    api.memory.CreateMemory(request)


def store(api: Api, name: str, **definition: Any) -> pb.Pattern:
    return api.memory.CreatePattern(pb.CreatePatternRequest(name=name, **definition)).pattern


def regex(expression: str) -> dict[str, Any]:
    return {"regex": pb.RegexPattern(expression=expression)}


def search(api: Api, name: str, **fields: Any) -> memory_pb.MatchPatternResponse:
    return api.memory.MatchPattern(memory_pb.MatchPatternRequest(name=name, **fields))


def ids(answer: memory_pb.MatchPatternResponse) -> list[str]:
    return [one.memory.id for one in answer.results]


def stats(api: Api, name: str) -> pb.PatternStats:
    (one,) = api.memory.ListPatternStats(pb.ListPatternStatsRequest(name=name)).stats
    return one


def judge(api: Api, name: str, **verdicts: bool) -> pb.PatternStats:
    request = pb.RecordPatternMatchesRequest(
        name=name,
        verdicts=[
            pb.MatchVerdict(memory_id=memory_id, right=right)
            for memory_id, right in verdicts.items()
        ],
    )
    return api.memory.RecordPatternMatches(request).stats


def test_an_expression_is_found_with_its_places_the_newest_memory_first(api: Api) -> None:
    insert(api, "old", "é T-1 and T-22", since=at(1))
    insert(api, "new", "first line\nT-333", since=at(3))
    insert(api, "none", "no ticket here", since=at(4))
    insert(api, "middle", "T-4", since=at(2), tags=["shop"])
    store(api, "tickets", **regex(TICKET))
    answer = search(api, "tickets")
    assert ids(answer) == ["new", "middle", "old"]
    assert (answer.total_matches, answer.searched_count) == (3, 4)
    assert not answer.matches_capped
    found = [(one.text, one.start, one.end, list(one.groups)) for one in answer.results[2].matches]
    assert found == [("T-1", 2, 5, ["1"]), ("T-22", 10, 14, ["22"])]
    assert ids(search(api, "tickets", limit=1)) == ["new"]
    assert search(api, "tickets", limit=1).total_matches == 3
    assert not search(api, "tickets", omit_matches=True).results[0].matches
    only = search(api, "tickets", filter=memory_pb.MemoryFilter(tags=["shop"]))
    assert (ids(only), only.searched_count) == (["middle"], 1)


def test_superseded_memories_are_searched_only_when_they_are_asked_for(api: Api) -> None:
    insert(api, "before", "T-1 is open")
    insert(api, "after", "T-1 is closed", supersedes=["before"])
    store(api, "tickets", **regex(TICKET))
    assert ids(search(api, "tickets")) == ["after"]
    assert set(ids(search(api, "tickets", include_superseded=True))) == {"after", "before"}


def test_more_memories_are_searched_than_one_look_takes(api: Api) -> None:
    new = [
        memory_pb.NewMemory(
            id=f"m{n:04}", text="row T-7" if n % 7 == 0 else "a row", keep_copy=True
        )
        for n in range(2_345)
    ]
    requests = (memory_pb.CreateMemoriesRequest(memory=one) for one in new)
    list(api.memory.CreateMemories(requests))
    store(api, "tickets", **regex(TICKET))
    answer = search(api, "tickets", limit=100)
    assert (answer.total_matches, answer.searched_count) == (335, 2_345)
    assert len(answer.results) == 100
    assert all(int(one.memory.id[1:]) % 7 == 0 for one in answer.results)


def test_a_meaning_matches_above_its_threshold_as_a_search_shows_it(api: Api) -> None:
    insert(api, "near", "Ann's favourite food is pizza")
    insert(api, "far", "Bob likes to read")
    words = "what somebody likes to eat"
    near, far = api.memory.SearchMemories(memory_pb.SearchMemoriesRequest(query=words)).results
    between = (near.similarity + far.similarity) / 2
    store(api, "food", semantic=pb.SemanticPattern(text=words, threshold=between))
    answer = search(api, "food")
    assert ids(answer) == ["near"]
    assert answer.results[0].similarity == pytest.approx(near.similarity, abs=1e-6)
    (place,) = answer.results[0].matches
    assert (place.start, place.end) == (0, len(place.text))
    assert store(api, "default", semantic=pb.SemanticPattern(text=words)).semantic.threshold == 0.5


def test_a_structure_matches_metadata_or_texts_that_are_json(api: Api) -> None:
    insert(api, "high", "words", metadata=struct(priority="high", n=1))
    insert(api, "low", "other words", metadata=struct(priority="low"))
    insert(api, "json", '{"priority": "high"}')
    schema = struct(required=["priority"], properties={"priority": {"const": "high"}})
    store(api, "urgent", structural=pb.StructuralPattern(schema=schema))
    text = pb.StructuralPattern(schema=schema, target=pb.STRUCTURE_OF_TEXT)
    store(api, "urgent-text", structural=text)
    of_metadata = search(api, "urgent")
    assert (ids(of_metadata), list(of_metadata.results[0].matches)) == (["high"], [])
    (found,) = search(api, "urgent-text").results
    assert (found.memory.id, found.matches[0].end) == ("json", 20)


def test_a_name_belongs_to_one_pattern_until_it_is_deleted(api: Api) -> None:
    first = store(api, "tickets", description="open ones", **regex(TICKET))
    for pattern_id in ("", "another"):
        again = store(
            api, "tickets", description="open ones", pattern_id=pattern_id, **regex(TICKET)
        )
        assert again == first
    with refused() as failure:
        store(api, "tickets", **regex("other"))
    assert (failure.code, failure.field) == (grpc.StatusCode.ALREADY_EXISTS, "name")
    store(api, "apart", **regex("a"))
    listed = api.memory.ListPatterns(pb.ListPatternsRequest(page_size=1))
    assert ([one.name for one in listed.patterns], listed.total_size) == (["apart"], 2)
    rest = api.memory.ListPatterns(
        pb.ListPatternsRequest(page_size=1, page_token=listed.next_page_token)
    )
    assert (list(rest.patterns), rest.next_page_token) == ([first], "")
    request = pb.DeletePatternRequest(name="tickets")
    assert api.memory.DeletePattern(request).pattern == first
    for call in (
        lambda: api.memory.DeletePattern(request),
        lambda: api.memory.GetPattern(pb.GetPatternRequest(name="tickets")),
        lambda: search(api, "tickets"),
        lambda: stats(api, "tickets"),
        lambda: judge(api, "tickets", x=True),
    ):
        with refused() as failure:
            call()
        assert (failure.code, failure.field) == (grpc.StatusCode.NOT_FOUND, "name")
    assert store(api, "tickets", **regex("other")).id != first.id


def update(api: Api, pattern_id: str, etag: str = "", **changes: Any) -> pb.Pattern:
    given = pb.Pattern(id=pattern_id, etag=etag, **changes)
    request = pb.UpdatePatternRequest(pattern=given, update_mask=FieldMask(paths=list(changes)))
    return api.memory.UpdatePattern(request).pattern


def test_a_pattern_is_renamed_and_described_anew_and_keeps_its_statistics(api: Api) -> None:
    insert(api, "m0", "T-0")
    first = store(api, "tickets", pattern_id="p", **regex(TICKET))
    search(api, "tickets")
    judge(api, "tickets", m0=True)
    changed = update(api, "p", name="cases", description="open ones")
    assert (changed.name, changed.description, changed.regex) == ("cases", "open ones", first.regex)
    assert changed.etag != first.etag
    told = stats(api, "cases")
    assert (told.pattern, told.uses, told.right_count) == (changed, 1, 1)
    with refused() as failure:
        stats(api, "tickets")
    assert failure.code == grpc.StatusCode.NOT_FOUND
    with refused() as failure:
        update(api, "p", etag=first.etag, description="late")
    assert failure.code == grpc.StatusCode.ABORTED


def test_a_pattern_that_looks_for_something_else_has_statistics_anew(api: Api) -> None:
    insert(api, "m0", "T-0")
    store(api, "tickets", pattern_id="p", **regex(TICKET))
    search(api, "tickets")
    judge(api, "tickets", m0=True)
    semantic = pb.SemanticPattern(text="T-0", threshold=0.9)
    changed = update(api, "p", semantic=semantic)
    assert (changed.semantic, changed.HasField("regex")) == (semantic, False)
    told = stats(api, "tickets")
    assert (told.uses, told.match_count, told.right_count) == (0, 0, 0)
    assert ids(search(api, "tickets")) == ["m0"]
    # What was said of the memory before is not said of the pattern as it is.
    assert judge(api, "tickets", m0=False).wrong_count == 1


def test_a_change_of_a_pattern_that_makes_no_sense_changes_nothing(api: Api) -> None:
    store(api, "other", **regex("other"))
    kept = store(api, "tickets", pattern_id="p", **regex(TICKET))
    for changes, field in (
        ({"name": "other"}, "pattern.name"),
        ({"name": " "}, "pattern.name"),
        (regex("("), "pattern.regex.expression"),
        ({"regex": None}, "pattern.regex"),
        ({**regex("a"), "semantic": pb.SemanticPattern(text="b", threshold=1)}, "pattern.semantic"),
        ({"created_at": None}, "update_mask"),
    ):
        with refused() as failure:
            update(api, "p", **changes)
        assert failure.field == field, failure
        assert stats(api, "tickets").pattern == kept
    with refused() as failure:
        store(api, "third", pattern_id="p", **regex("third"))
    assert (failure.code, failure.field) == (grpc.StatusCode.ALREADY_EXISTS, "pattern_id")


def test_the_success_rate_is_what_was_said_of_matches_each_memory_once(api: Api) -> None:
    for number in range(4):
        insert(api, f"m{number}", f"T-{number}")
    store(api, "tickets", **regex(TICKET))
    fresh = stats(api, "tickets")
    assert not fresh.HasField("success_rate")
    assert (fresh.lower_bound, fresh.upper_bound, fresh.uses) == (0, 1, 0)
    told = judge(api, "tickets", m0=True, m1=True, m2=False)
    assert (told.right_count, told.wrong_count) == (2, 1)
    assert told.success_rate == pytest.approx(2 / 3)
    assert told.lower_bound < 2 / 3 < told.upper_bound
    again = judge(api, "tickets", m0=True, m1=False)
    assert (again.right_count, again.wrong_count) == (1, 2)
    with refused() as failure:
        judge(api, "tickets", m3=True, gone=True)
    assert (failure.code, failure.field) == (
        grpc.StatusCode.NOT_FOUND, "verdicts[1].memory_id",
    )  # fmt: skip
    assert stats(api, "tickets").right_count == 1
    # What was said of a memory that is gone by now was said all the same.
    api.memory.DeleteMemories(memory_pb.DeleteMemoriesRequest(memory_ids=["m0"]))
    assert stats(api, "tickets").right_count == 1


def test_one_memory_cannot_be_judged_twice_at_once(api: Api) -> None:
    insert(api, "m0", "T-0")
    store(api, "tickets", **regex(TICKET))
    verdict = pb.MatchVerdict(memory_id="m0", right=True)
    with refused() as failure:
        api.memory.RecordPatternMatches(
            pb.RecordPatternMatchesRequest(name="tickets", verdicts=[verdict, verdict])
        )
    assert (failure.code, failure.field) == (grpc.StatusCode.INVALID_ARGUMENT, "verdicts")


def test_uses_and_patterns_survive_a_restart(tmp_path: Path) -> None:
    with local_server(tmp_path / "data") as first:
        api = first.keys.tenant("patterns")
        insert(api, "m0", "T-0")
        pattern = store(api, "tickets", **regex(TICKET))
        search(api, "tickets")
        search(api, "tickets")
        judge(api, "tickets", m0=True)
        before = stats(api, "tickets")
        secret, tenant_id = api.secret, api.tenant_id
    assert (before.uses, before.match_count) == (2, 2)
    assert before.average_ms > 0
    with local_server(tmp_path / "data") as second:
        api = second.keys.api(secret, tenant_id)
        assert stats(api, "tickets") == before
        assert before.pattern == pattern
        assert search(api, "tickets").results[0].matches[0].text == "T-0"


def test_exactly_one_thing_to_look_for_is_required(api: Api) -> None:
    with refused() as failure:
        store(api, "nothing")
    assert (failure.reason, failure.field) == ("MISSING_REQUIRED_FIELD", "regex")
    with refused() as failure:
        store(api, "both", semantic=pb.SemanticPattern(text="words"), **regex("a"))
    assert (failure.code, failure.field) == (grpc.StatusCode.INVALID_ARGUMENT, "semantic")
    with refused() as failure:
        store(api, "empty", structural=pb.StructuralPattern())
    assert (failure.reason, failure.field) == ("MISSING_REQUIRED_FIELD", "structural.schema")
    with refused() as failure:
        store(api, "outside", structural=pb.StructuralPattern(schema=struct(**{"$ref": "a.json"})))
    assert (failure.code, failure.field) == (
        grpc.StatusCode.INVALID_ARGUMENT, "structural.schema",
    )  # fmt: skip


def test_compiled_patterns_are_cleared_and_work_all_the_same(api: Api) -> None:
    insert(api, "m0", "T-0")
    store(api, "tickets", **regex(TICKET))
    search(api, "tickets")
    cleared = api.memory.ClearCache(
        stats_pb.ClearCacheRequest(caches=[stats_pb.CACHE_KIND_PATTERNS])
    ).cleared
    assert [one.count for one in cleared] == [1]
    assert ids(search(api, "tickets")) == ["m0"]
