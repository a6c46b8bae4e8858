"""Forgetting what an index keeps in files of its own: vectors, their codes in graphs, names."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from mneme.v1 import admin_service_pb2 as admin_pb
from mneme.v1 import auth_pb2
from mneme.v1 import memory_service_pb2 as memory_pb
from support.api import Api
from support.contexts import eventually
from support.forgetting import counts, forget, traces, vectors_of
from support.making import event, ids_of, recall, record
from support.server import LocalServer, local_server

OTHERS, PLANTED = 150, 5
SAID = "the violins of the string section are tuned in the attic, number"


@pytest.fixture
def own(tmp_path: Path) -> Iterator[LocalServer]:
    """A server that builds a graph from a hundred vectors on."""
    with local_server(tmp_path / "data", exact_search_limit=100) as running:
        yield running


def graphed(api: Api) -> bool:
    return api.admin.GetStats(admin_pb.GetStatsRequest()).tenant.dense_index == "hnsw"


def codes_of(server: LocalServer, tenant_id: str, vectors: list[bytes]) -> list[bytes]:
    """Return how the graphs hold these vectors: each in its codes, a byte for a dimension."""
    wanted = np.stack([np.frombuffer(one, np.float32) for one in vectors])
    with server.application.runtime.tenants.open(tenant_id) as tenant:
        graphs, _, _ = tenant.index._dense.export()  # type: ignore[attr-defined]
    found = []
    for graph in graphs:
        held = graph.vectors(np.arange(graph.size))
        nearest = (held @ wanted.T).argmax(axis=0)
        close = np.abs(held[nearest] - wanted).max(axis=1) < 0.01
        found += [graph._codes[place].tobytes() for place in nearest[close]]
    return found


def test_the_codes_of_forgotten_vectors_are_in_no_graph(own: LocalServer) -> None:
    api = own.keys.tenant("graphs", *auth_pb2.KeyScope.values()[1:])
    folder = Path(own.data_dir) / "tenants" / api.tenant_id
    for number in range(PLANTED):
        api.memory.CreateMemory(
            memory_pb.CreateMemoryRequest(
                memory_id=f"anns-{number}", text=f"{SAID} {number}", user_id="ann"
            )
        )
    others = (event(f"the harbour opens at {n} in berth {n * 7}", "s") for n in range(OTHERS))
    record(api, *others, wait=True)
    eventually(lambda: graphed(api), bool)
    vectors = [one for n in range(PLANTED) for one in vectors_of(folder, "memory", f"anns-{n}")]
    codes = codes_of(own, api.tenant_id, vectors)
    assert len(vectors) == len(codes) == PLANTED
    own.close_tenant(api.tenant_id)  # Then the graph is in a file.
    before = "\n".join(traces(folder, codes))
    assert before.count("index/graph") >= PLANTED

    assert counts(forget(api, user_id="ann")) == {"memory": PLANTED}
    assert not traces(folder, [*codes, *vectors]), "in use"
    assert not codes_of(own, api.tenant_id, vectors), "in memory"
    own.close_tenant(api.tenant_id)
    assert not traces(folder, [*codes, *vectors]), "closed"
    assert graphed(api)
    assert not {f"anns-{n}" for n in range(PLANTED)}.intersection(ids_of(recall(api, SAID)))
    assert recall(api, "when does the harbour open").results


def test_the_last_memory_of_a_tenant_leaves_nothing_either(own: LocalServer) -> None:
    api = own.keys.tenant("emptied", *auth_pb2.KeyScope.values()[1:])
    folder = Path(own.data_dir) / "tenants" / api.tenant_id
    api.memory.CreateMemory(
        memory_pb.CreateMemoryRequest(memory_id="anns", text=SAID, user_id="ann", tags=["zyxquorl"])
    )
    eventually(lambda: vectors_of(folder, "memory", "anns"), bool)
    vectors = vectors_of(folder, "memory", "anns")
    own.close_tenant(api.tenant_id)
    before = "\n".join(traces(folder, [*vectors, b"zyxquorl"]))
    assert "index/tail" in before
    assert "index/names" in before

    assert counts(forget(api, user_id="ann")) == {"memory": 1}
    assert not traces(folder, [*vectors, b"zyxquorl"]), "in use"
    own.close_tenant(api.tenant_id)
    assert not traces(folder, [*vectors, b"zyxquorl"]), "closed"
    assert not recall(api, SAID).results
