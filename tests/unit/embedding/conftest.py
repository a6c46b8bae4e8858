import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from mneme_server.embedding.local import LocalEmbedder
from unit.embedding.scripted_http import ScriptedServer

REPOSITORY = Path(__file__).parents[3]


@pytest.fixture(scope="session")
def model_dir() -> Path:
    """Where exported models are kept between test runs, so that only the first run exports."""
    return Path(os.environ.get("MNEME_MODEL_DIR") or REPOSITORY / ".cache" / "models")


@pytest.fixture(scope="session")
def local(model_dir: Path) -> Iterator[LocalEmbedder]:
    embedder = LocalEmbedder(model_dir)
    yield embedder
    embedder.close()


@pytest.fixture(scope="session")
def local_fp32(model_dir: Path) -> Iterator[LocalEmbedder]:
    embedder = LocalEmbedder(model_dir, precision="fp32")
    yield embedder
    embedder.close()


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer() as running:
        yield running
