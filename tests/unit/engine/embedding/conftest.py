import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from minilm_export.exporting import ensure_exported
from mneme_server.engine.embedding.local import LocalEmbedder
from unit.engine.embedding.scripted_http import ScriptedServer

REPOSITORY = Path(__file__).parents[4]


@pytest.fixture(scope="session")
def model_dir() -> Path:
    """Where both exported models are; the first run exports them."""
    folder = Path(os.environ.get("MNEME_MODEL_DIR") or REPOSITORY / "model" / "mneme_minilm")
    ensure_exported(folder, "int8")
    ensure_exported(folder, "fp32")
    return folder


@pytest.fixture(scope="session")
def exported_int8(model_dir: Path) -> Path:
    return model_dir / "all-MiniLM-L6-v2-int8"


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
def callers() -> Iterator[ThreadPoolExecutor]:
    """Threads that embed at once."""
    with ThreadPoolExecutor(32, thread_name_prefix="caller") as pool:
        yield pool


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer() as running:
        yield running
