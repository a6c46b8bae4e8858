"""What tests of several servers share: two that are equal."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.server import LocalServer, local_server


@pytest.fixture
def two(tmp_path: Path, url: str) -> Iterator[tuple[LocalServer, LocalServer]]:
    """Two servers, each with a data folder of its own."""
    with (
        local_server(tmp_path / "one", database_url=url) as one,
        local_server(tmp_path / "other", database_url=url) as other,
    ):
        yield one, other
