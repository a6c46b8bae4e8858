"""What was just written is found at once, however much waits to be embedded."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from mneme_server.engine.corpus.ports import VectorBatch
from mneme_server.engine.corpus.tenant import OpenTenant
from mneme_server.engine.index.tenant_index import TenantIndex
from mneme_server.features.recall import search
from support.api import Api
from support.contexts import eventually
from support.making import event, ids_of, recall, record
from support.server import LocalServer, local_server

_WAITING = 4_000
_AT_ONCE = 1_000


@pytest.fixture(scope="module")
def behind(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    """A tenant with embedded memories about orders, and thousands more that wait."""
    folder: Path = tmp_path_factory.mktemp("behind")
    with local_server(folder / "data") as server:
        api = server.keys.tenant()
        known = [
            event(
                f"The customer asked when order {n} will be sent.", f"old-{n // 10}", id=f"old-{n}"
            )
            for n in range(100)
        ]
        record(api, *known, wait=True)
        server.application.runtime.pipeline.stop()
        waiting = [
            event(
                f"Order {n} was packed and will be sent by noon.", f"new-{n // 20}", id=f"new-{n}"
            )
            for n in range(_WAITING)
        ]
        waiting[2_345] = event("Order 2345 holds a zeppelin.", "new-117", id="rare")
        for start in range(0, _WAITING, _AT_ONCE):
            record(api, *waiting[start : start + _AT_ONCE])
        yield api


@pytest.mark.parametrize(
    "query",
    [
        "When was the order with the zeppelin sent?",
        "zeppelin",
        "Will the order that holds a zeppelin be sent by noon?",
    ],
)
def test_among_thousands_that_wait_the_one_with_the_only_rare_word_comes_first(
    behind: Api, query: str
) -> None:
    found = recall(behind, query)
    assert found.pending_count == _WAITING
    assert ids_of(found)[0] == "rare"
    assert not found.results[0].HasField("similarity")


def test_what_is_embedded_is_still_found_by_its_meaning(behind: Api) -> None:
    found = recall(behind, "somebody wants to know about the delivery", limit=5)
    assert all(found_id.startswith("old-") for found_id in ids_of(found))


@pytest.mark.parametrize("min_confidence", [0.0, 1.0])
def test_what_is_embedded_during_a_search_counts_as_waiting(
    server: LocalServer, monkeypatch: pytest.MonkeyPatch, min_confidence: float
) -> None:
    """The search may have missed it; nobody would know if it were counted afterwards."""
    api = server.keys.tenant()
    record(api, event("Order 7 was packed."), wait=True)
    searched: list[bool] = []
    find = search._search

    def searching(*arguments: Any, **named: Any) -> Any:
        found = find(*arguments, **named)
        searched.append(True)
        return found

    monkeypatch.setattr(search, "_search", searching)
    monkeypatch.setattr(OpenTenant, "pending", property(lambda _: 0 if searched else 1))
    found = recall(api, "order", min_confidence=min_confidence)
    assert searched
    assert (len(found.results), found.pending_count) == (0 if min_confidence else 1, 1)


def test_what_waits_for_its_vector_is_counted_until_it_is_found_by_it(server: LocalServer) -> None:
    api = server.keys.tenant()
    add, counted = TenantIndex.add_vectors, []
    with server.application.runtime.tenants.open(api.tenant_id) as tenant:

        def added(index: TenantIndex, batch: VectorBatch) -> None:
            counted.append(tenant.pending)
            add(index, batch)

        with mock.patch.object(TenantIndex, "add_vectors", added):
            record(api, *(event(f"Order {number} was packed.", "s") for number in (7, 8, 9)))
            eventually(lambda: recall(api, "packed"), lambda seen: not seen.pending_count)
    assert counted == [3]


@pytest.mark.parametrize("wait", [True, False], ids=["embedded at once", "embedded soon"])
@pytest.mark.parametrize(("known", "new"), [(0, 1), (8, 1), (60, 20), (60, 100)], ids=str)
def test_what_is_recalled_once_nothing_waits_is_recalled_so_afterwards(
    server: LocalServer, known: int, new: int, wait: bool
) -> None:
    api = server.keys.tenant()

    def events(count: int, name: str) -> list[Any]:
        said = [f"Parcel {name} {n}: {' '.join(_THINGS[n % 7 :: n % 5 + 1])}" for n in range(count)]
        return [event(text, f"{name}-{n // 20}", id=f"{name}-{n}") for n, text in enumerate(said)]

    with server.application.runtime.tenants.open(api.tenant_id) as tenant:
        index = tenant.index
        assert isinstance(index, TenantIndex)
        if known:
            record(api, *events(known, "old"), wait=True)
            index.write()
        record(api, *events(new, "new"), wait=wait)
        at_once = eventually(lambda: recall(api, _ASKED), lambda seen: not seen.pending_count)
        index.write()
        assert not index.stats().lexical_waiting
    assert scores_of(recall(api, _ASKED)) == scores_of(at_once)


_THINGS = ["lamp", "table", "chair", "delayed", "customer", "a broken lamp", "Berlin", "delayed"]
_ASKED = "Which customer waits for the delayed parcel with the lamp?"


def scores_of(found: Any) -> list[tuple[str, float]]:
    return [(result.source_id, pytest.approx(result.score, abs=1e-6)) for result in found.results]
