"""What happens to a session while its summary is made."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from mneme_server.capabilities import tenant_schema
from mneme_server.engine.corpus.ports import Matrix
from mneme_server.engine.store.sqlite_store import SqliteTenantStore
from mneme_server.features.context.model import Handover
from mneme_server.features.context.sleep import Sleep
from mneme_server.features.context.store.summaries import SqlSummaries, SqlSummaryQueue
from mneme_server.features.context.summaries import SummarySchedule, SummaryWorker
from mneme_server.features.events.model import Session, SessionStatus
from mneme_server.features.events.store.sessions import SqlSessions

FOREVER = 2**62


class _Embedder:
    """Makes vectors; what is to happen meanwhile happens first."""

    def __init__(self) -> None:
        self.meanwhile: Callable[[], object] = lambda: None

    def embed(self, texts: Sequence[str]) -> Matrix:
        meanwhile, self.meanwhile = self.meanwhile, lambda: None
        meanwhile()
        return np.full((len(texts), 4), 0.5, dtype=np.float32)


class _Tenants:
    """One tenant with a real store, without indexes."""

    tenant_id = "acme"

    def __init__(self, store: SqliteTenantStore) -> None:
        self.read, self.write = store.read, store.write

    @contextmanager
    def open(self, _tenant_id: str) -> Iterator[Any]:
        yield self


@pytest.fixture
def tenants(tmp_path: Path) -> Iterator[_Tenants]:
    store = SqliteTenantStore(tmp_path, "acme", tenant_schema())
    made = _Tenants(store)
    with store.write() as unit:
        for name in ("s", "other"):
            unit.get(SqlSessions).save(
                [Session(name, agent_id="a", started_us=1, status=SessionStatus.COMPLETED)]
            )
        unit.get(SqlSummaryQueue).request({"s": 1, "other": 1})
    yield made
    store.close()


@pytest.fixture
def embedder() -> _Embedder:
    return _Embedder()


def _summarise(tenants: _Tenants, embedder: _Embedder) -> None:
    worker = SummaryWorker(cast(Any, tenants.open), embedder, idle_us=FOREVER)
    worker.step("acme")


def _texts(tenants: _Tenants) -> dict[str, str]:
    with tenants.read() as unit:
        assert not unit.get(SqlSummaryQueue).due(FOREVER, 10)
        found = unit.get(SqlSummaries).get_many(["s", "other"])
    return {name: summary.text for name, summary in found.items()}


def test_the_summary_of_a_handover_is_not_replaced_by_one_that_was_begun_before_it(
    tenants: _Tenants, embedder: _Embedder
) -> None:
    sleep = Sleep(cast(Any, tenants), _Embedder(), SummarySchedule(idle_us=1, wake=lambda *_: None))
    embedder.meanwhile = lambda: sleep.store(
        "acme", Handover("s", progress=("The pump runs again",))
    )
    _summarise(tenants, embedder)
    texts = _texts(tenants)
    assert "The pump runs again" in texts["s"]
    assert "other" in texts, "the others of its batch are summarised"


def test_a_session_that_is_gone_when_its_summary_is_made_holds_up_no_other(
    tenants: _Tenants, embedder: _Embedder
) -> None:
    def forget() -> None:
        with tenants.write() as unit:
            unit.get(SqlSummaryQueue).finish(["s"])

    embedder.meanwhile = forget
    _summarise(tenants, embedder)
    assert set(_texts(tenants)) == {"other"}
