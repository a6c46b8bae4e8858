from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from unit.edge.grpc.edge import Client, Edge

MakeEdge = Callable[..., Edge]


@pytest.fixture
def make_edge(tmp_path: Path) -> Iterator[MakeEdge]:
    """Starts servers with options of a test's choice."""
    edges: list[Edge] = []

    def make(**options: Any) -> Edge:
        folder = tmp_path / f"server{len(edges)}"
        folder.mkdir()
        edges.append(Edge(folder, **options))
        return edges[-1].start()

    yield make
    for edge in edges:
        edge.close()


@pytest.fixture(scope="module")
def _shared_edge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Edge]:
    edge = Edge(tmp_path_factory.mktemp("shared")).start()
    yield edge
    edge.close()


@pytest.fixture
def shared_edge(_shared_edge: Edge) -> Iterator[Edge]:
    """The server of all tests of a file that choose nothing of it; connections end with a test."""
    yield _shared_edge
    _shared_edge.disconnect()


@pytest.fixture
def edge(make_edge: MakeEdge) -> Edge:
    return make_edge()


@pytest.fixture
def client(edge: Edge) -> Client:
    """Calls with a key that may do everything."""
    return edge.client(edge.key().secret)
