"""Memories that are pinned, and those that are confirmed by being said again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.field_mask_pb2 import FieldMask
from mneme import MnemeClient
from mneme.importing.memories import import_memories
from mneme.plain import to_json
from mneme.v1 import memory_service_pb2 as pb
from support.api import Api
from support.making import at
from support.server import LocalServer, local_server

DAY = 86_400
TEA = "Ann drinks her tea without milk"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalServer]:
    with local_server(tmp_path_factory.mktemp("pinned")) as running:
        yield running


@pytest.fixture
def api(server: LocalServer) -> Api:
    return server.keys.tenant()


def insert(api: Api, text: str, **fields: Any) -> pb.CreateMemoryResponse:
    return api.memory.CreateMemory(pb.CreateMemoryRequest(text=text, **fields))


def get(api: Api, memory_id: str) -> pb.Memory:
    return api.memory.GetMemory(pb.GetMemoryRequest(memory_id=memory_id)).memory


def update(api: Api, memory_id: str, **changes: Any) -> pb.Memory:
    memory = pb.Memory(id=memory_id, **changes)
    request = pb.UpdateMemoryRequest(memory=memory, update_mask=FieldMask(paths=changes))
    return api.memory.UpdateMemory(request).memory


def pinned(api: Api) -> list[str]:
    request = pb.ListMemoriesRequest(only_pinned=True)
    answer = api.memory.ListMemories(request)
    assert answer.total_size == len(answer.memories)
    return [memory.id for memory in answer.memories]


def test_a_memory_is_pinned_only_where_somebody_asks_for_it(api: Api) -> None:
    insert(api, TEA, memory_id="tea", user_id="ann", importance=4)
    insert(api, "Ann is allergic to nuts", memory_id="nuts", user_id="ann", pinned=True)
    assert (get(api, "tea").pinned, get(api, "nuts").pinned) == (False, True)
    assert pinned(api) == ["nuts"]
    assert update(api, "tea", pinned=True).pinned
    assert update(api, "nuts", pinned=False).pinned is False
    assert pinned(api) == ["tea"]


def test_a_retry_finds_its_memory_whether_or_not_it_was_pinned_since(api: Api) -> None:
    insert(api, TEA, memory_id="tea")
    update(api, "tea", pinned=True)
    again = insert(api, TEA, memory_id="tea")
    assert (again.already_known, again.memory.pinned, list(again.differing)) == (True, True, [])


def test_saying_again_with_a_pin_what_is_known_tells_that_it_is_not_pinned(api: Api) -> None:
    insert(api, TEA, memory_id="tea")
    again = insert(api, TEA, pinned=True)
    assert (list(again.differing), get(api, "tea").pinned) == (["pinned"], False)


@pytest.mark.parametrize("known", [False, True])
def test_what_supersedes_a_pinned_memory_is_pinned(api: Api, known: bool) -> None:
    insert(api, TEA, memory_id="old", user_id="ann", pinned=True)
    if known:
        insert(api, "Ann takes milk in her tea", memory_id="new", user_id="ann")
    answer = insert(
        api, "Ann takes milk in her tea", user_id="ann", supersedes=["old"],
        **({} if known else {"memory_id": "new"}),
    )  # fmt: skip
    assert (answer.memory.id, answer.memory.pinned) == ("new", True)
    assert get(api, "new") == answer.memory
    assert pinned(api) == ["new"]  # The old one does not hold.


def test_a_pin_taken_off_the_newer_memory_stays_off_when_the_call_is_repeated(api: Api) -> None:
    insert(api, TEA, memory_id="old", pinned=True)
    insert(api, "Ann takes milk", memory_id="new", supersedes=["old"])
    update(api, "new", pinned=False)
    insert(api, "Ann takes milk", memory_id="new", supersedes=["old"])
    assert pinned(api) == []


def test_an_update_that_supersedes_a_pinned_memory_keeps_the_pin_unless_it_says_so(
    api: Api,
) -> None:
    for name, more in (("kept", {}), ("dropped", {"pinned": False})):
        insert(api, f"{TEA} {name}", memory_id=f"old-{name}", pinned=True)
        insert(api, f"Ann takes milk, {name}", memory_id=name)
        update(api, name, supersedes=[f"old-{name}"], **more)
    assert pinned(api) == ["kept"]
    # What holds again is as it was.
    update(api, "dropped", supersedes=[])
    assert set(pinned(api)) == {"kept", "old-dropped"}


def test_what_is_said_again_on_other_days_is_confirmed_by_each_day_once(api: Api) -> None:
    insert(api, TEA, memory_id="tea", since=at(0))
    for later in (60, DAY, DAY + 60, 3 * DAY, DAY):
        assert insert(api, f"{TEA}.", since=at(later)).memory.id == "tea"
    memory = get(api, "tea")
    assert (memory.confirmed_count, memory.since) == (2, at(0))
    assert memory.last_said.seconds == at(3 * DAY).seconds // DAY * DAY
    # A call that is sent once more under its id is no confirmation.
    insert(api, TEA, memory_id="tea", since=at(0))
    insert(api, TEA, memory_id="other", since=at(4 * DAY), keep_copy=True)
    assert get(api, "tea") == memory


def test_days_count_alike_in_whatever_order_and_grouping_they_come(api: Api) -> None:
    days = [0, 5 * DAY, 2 * DAY]
    counted = []
    for user, order in {"ann": days, "bo": days[::-1]}.items():
        news = [pb.NewMemory(text=TEA, user_id=user, since=at(day)) for day in order]
        list(api.memory.CreateMemories(pb.CreateMemoriesRequest(memory=one) for one in news))
        request = pb.ListMemoriesRequest(filter=pb.MemoryFilter(user_id=user))
        (memory,) = api.memory.ListMemories(request).memories
        counted.append((memory.confirmed_count, memory.last_said))
    assert counted[0] == counted[1]
    assert counted[0][0] == 2


def test_nothing_confirms_what_says_something_else_now(api: Api) -> None:
    insert(api, TEA, memory_id="tea", since=at(0))
    insert(api, TEA, since=at(DAY))
    assert update(api, "tea", tags=["drinks"]).confirmed_count == 1
    changed = update(api, "tea", text="Ann drinks coffee")
    assert (changed.confirmed_count, changed.last_said) == (0, at(0))
    assert insert(api, "Ann drinks coffee", since=at(DAY)).memory.confirmed_count == 1


def test_an_export_keeps_pins(server: LocalServer, api: Api, tmp_path: Path) -> None:
    insert(api, TEA, memory_id="tea", pinned=True)
    insert(api, "Ann likes rye", memory_id="rye")
    file = tmp_path / "memories.jsonl"
    whole = api.memory.ListMemories(pb.ListMemoriesRequest()).memories
    file.write_text("".join(f"{to_json(one)}\n" for one in whole))
    other = server.keys.tenant()
    with MnemeClient(server.address, api_key=other.secret) as client:
        import_memories(client, file)
    assert pinned(other) == ["tea"]
