from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mneme.messages import (
    CreateMemoriesResponse,
    CreateMemoryResponse,
    DeleteMemoriesResponse,
    FoundMemory,
    GetMemoryResponse,
    ListMemoriesResponse,
    Memory,
    SearchMemoriesResponse,
    UpdateMemoryResponse,
)
from mneme.plain import from_dict
from unit.cli.command import mneme
from unit.client.scripted import ScriptedServer, failure


def memory(**fields: Any) -> Memory:
    known = {"id": "01NEW", "text": "Ann gets invoices by email", "user_id": "ann"}
    return from_dict({**known, **fields}, Memory())


OLD = memory(id="01OLD", text="Ann gets invoices by post", since="2026-03-01T12:00:00Z")


def test_remember_prints_the_id_and_shows_what_it_may_replace(served: ScriptedServer) -> None:
    close = FoundMemory(memory=OLD, similarity=0.812)
    served.on("CreateMemory", CreateMemoryResponse(memory=memory(), similar=[close]))
    result = mneme(
        "remember", "Ann gets invoices by email", "--user", "ann", "--tag", "billing",
        "--metadata", '{"by": "phone"}', "--importance", "HIGH", "--since", "2026-11-01",
    )  # fmt: skip
    assert result.lines == ["01NEW"]
    assert "--supersedes ID" in result.err
    assert "0.81  01OLD  since 2026-03-01" in result.err
    request = served.last("CreateMemory")
    assert (request.text, request.user_id) == ("Ann gets invoices by email", "ann")
    assert (list(request.tags), request.metadata["by"]) == (["billing"], "phone")
    assert request.memory_id  # So that a retry cannot store it twice.


def test_remember_says_what_is_known_and_what_it_superseded(served: ScriptedServer) -> None:
    answer = CreateMemoryResponse(
        memory=memory(since="2026-11-01T12:00:00Z"), already_known=True, differing=["tags"],
        superseded=[OLD], similar_unknown=True,
    )  # fmt: skip
    served.on("CreateMemory", answer)
    result = mneme("remember", "-", "--supersedes", "01OLD", stdin="from a pipe\n")
    assert result.lines == ["01NEW"]
    for words in (
        "Known already, since 2026-11-01", "other tags", "Supersedes 01OLD: Ann gets invoices by",
        "were not compared",
    ):  # fmt: skip
        assert words in result.err
    request = served.last("CreateMemory")
    assert (request.text, list(request.supersedes)) == ("from a pipe", ["01OLD"])
    assert mneme("remember", "-", stdin=" ").code == 2


def test_remember_as_json_is_the_whole_answer(served: ScriptedServer) -> None:
    served.on("CreateMemory", CreateMemoryResponse(memory=memory()))
    (document,) = mneme("remember", "words", "--json").documents
    assert document["memory"]["id"] == "01NEW"
    assert document["already_known"] is False


def test_a_list_shows_until_when_superseded_ones_held(served: ScriptedServer) -> None:
    old = memory(id="01OLD", superseded_by="01NEW", until="2026-11-01T12:00:00Z", tags=["a", "b"])
    served.on("ListMemories", ListMemoriesResponse(memories=[memory(), old]))
    result = mneme("memories", "list", "--superseded", "--user", "ann", "--any-tag", "a")
    assert result.lines[0].split() == ["MEMORY", "SINCE", "USER", "PROJECT", "TAGS", "TEXT"]
    assert "(until 2026-11-01" in result.lines[2]
    request = served.last("ListMemories")
    assert request.include_superseded
    assert (request.filter.user_id, list(request.filter.any_tags)) == ("ann", ["a"])


def test_one_memory_is_shown_with_all_that_is_known(served: ScriptedServer) -> None:
    served.on("GetMemory", GetMemoryResponse(memory=memory(supersedes=["01OLD"], etag="e")))
    result = mneme("memories", "get", "01NEW")
    assert "Supersedes  01OLD" in result.out
    (document,) = mneme("memories", "get", "01NEW", "--json").documents
    assert document["etag"] == "e"


def test_an_update_sends_the_given_fields_only(served: ScriptedServer) -> None:
    served.on("UpdateMemory", UpdateMemoryResponse(memory=memory()))
    result = mneme("memories", "update", "01NEW", "--tag", "", "--text", "new", "--etag", "e")
    assert result.lines == ["updated 01NEW"]
    request = served.last("UpdateMemory")
    assert sorted(request.update_mask.paths) == ["tags", "text"]
    assert (request.memory.text, list(request.memory.tags)) == ("new", [])
    assert request.memory.etag == "e"


def test_an_update_to_what_another_memory_says_names_it(served: ScriptedServer) -> None:
    known = UpdateMemoryResponse(memory=memory(), already_known=True, known_memory_id="01OLD")
    served.on("UpdateMemory", known)
    result = mneme("memories", "update", "01NEW", "--text", "old")
    assert (result.lines, "01OLD" in result.err) == (["updated 01NEW"], True)
    result = mneme("memories", "update", "01NEW", "--text", "old", "--json")
    assert ([one["id"] for one in result.documents], "01OLD" in result.err) == (["01NEW"], True)


def test_a_search_shows_how_close_each_is_or_that_none_fits(served: ScriptedServer) -> None:
    found = SearchMemoriesResponse(results=[FoundMemory(memory=memory(), similarity=0.5)])
    served.on("SearchMemories", found)
    result = mneme("memories", "search", "invoices", "--min-similarity", "0.3")
    assert result.lines[1].startswith("0.50")
    assert served.last("SearchMemories").min_similarity == 0.3
    served.on("SearchMemories", SearchMemoriesResponse(searched_count=3))
    assert "None of 3 memories fits." in mneme("memories", "search", "invoices").err


def test_deleting_asks_first_and_a_dry_run_lists_what_would_go(served: ScriptedServer) -> None:
    answer = DeleteMemoriesResponse(deleted_count=2, memory_ids=["a", "b"], restored_ids=["c"])
    served.on("DeleteMemories", answer)
    result = mneme("memories", "delete", "--user", "ann", "--dry-run")
    assert result.lines == ["a", "b"]
    assert "2 memories would be deleted; 1 hold again" in result.err
    assert mneme("memories", "delete", "--user", "ann", stdin="n\n").code != 0
    assert served.last("DeleteMemories").dry_run
    result = mneme("memories", "delete", "a", "b", "--yes")
    assert result.lines == ["2 memories deleted; 1 hold again"]
    assert not served.last("DeleteMemories").dry_run
    assert "give the memories' ids" in mneme("memories", "delete").err


def test_an_export_is_what_an_import_reads(served: ScriptedServer, tmp_path: Path) -> None:
    given: list[Any] = []

    def take(requests: Iterator[Any], _context: Any) -> Iterator[CreateMemoriesResponse]:
        given.append([request.memory for request in requests])
        yield CreateMemoriesResponse(
            inserted_count=len(given[-1]), acknowledged_count=len(given[-1])
        )

    old = memory(id="01OLD", superseded_by="01NEW", tags=["a"], metadata={"n": 1})
    served.on("ListMemories", ListMemoriesResponse(memories=[memory(supersedes=["01OLD"]), old]))
    served.on("CreateMemories", take)
    file = tmp_path / "memories.jsonl"
    assert mneme("memories", "export", str(file)).code == 0
    assert [json.loads(line)["id"] for line in file.read_text().splitlines()] == ["01NEW", "01OLD"]
    result = mneme("memories", "import", str(file))
    assert result.lines == ["2 memories stored, 0 known already"]
    first, second = given
    assert [(m.id, list(m.supersedes), m.keep_copy) for m in first] == [
        ("01NEW", [], True), ("01OLD", [], True),
    ]  # fmt: skip
    # What supersedes what is told when all are there.
    assert [(m.id, list(m.supersedes)) for m in second] == [("01NEW", ["01OLD"])]
    assert first[1].metadata["n"] == 1


def test_an_import_of_a_broken_file_brings_nothing_in(
    served: ScriptedServer, tmp_path: Path
) -> None:
    served.on("CreateMemories", lambda _requests, context: failure(context, "INTERNAL", "called"))
    for text, told in (
        ('{"text": "fine"}\n{"txt": 1}', "record 2, line 2: no memory"),
        ('{"user_id": "ann"}', "no memory: it has no text"),
        ('{"text": "x"', "line 1"),
    ):
        file = tmp_path / "broken.jsonl"
        file.write_text(text)
        result = mneme("memories", "import", str(file))
        assert result.code != 0
        assert told in result.err
    assert mneme("memories", "import", str(tmp_path / "none")).code == 2
