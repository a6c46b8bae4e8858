"""What every test may use: one server for all, and a tenant of its own for each."""

from __future__ import annotations

import gc
import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import structlog
from hypothesis import settings as hypothesis_settings
from mneme_server.common.process_limits import limit_arenas, spare_the_collector

if TYPE_CHECKING:
    from support.postgres import PostgresServer

# Settings of whoever runs the tests must not change what they test; where the model lies may stay,
# and so may what is said to the tests themselves: seeds, and how long to go on.
for _name in [name for name in os.environ if name.startswith("MNEME_")]:
    if _name != "MNEME_MODEL_DIR" and not _name.startswith("MNEME_TEST_"):
        del os.environ[_name]
# Nor may whoever watches how the tests run get the spans of the servers that they start.
for _name in [name for name in os.environ if name.startswith("OTEL_")]:
    del os.environ[_name]
# Servers that tests start find it whatever else of the environment they are given.
os.environ.setdefault("MNEME_MODEL_DIR", str(Path(__file__).parents[1] / "model" / "mneme_minilm"))

# As a server does for itself: tenants of hundreds of tests are opened in this process and closed.
# It held 2.9 GB at the end.
limit_arenas()

# The suite tries the same examples in every run: whoever changes nothing breaks nothing. New ones
# are looked for with HYPOTHESIS_PROFILE=explore.
hypothesis_settings.register_profile("mneme", deadline=None, derandomize=True)
hypothesis_settings.register_profile("explore", deadline=None, print_blob=True, max_examples=1_000)
hypothesis_settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "mneme"))

_ALL_SLOW = "\npytestmark = pytest.mark.slow\n"


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Load no file of which nothing is run: what the slow ones import takes seconds and memory, in
    each worker process."""
    if config.getoption("markexpr") != "not slow" or collection_path.suffix != ".py":
        return None
    return True if _ALL_SLOW in collection_path.read_text("utf-8") else None


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Have the garbage collector pass over what is loaded and over fifteen thousand tests, all of
    which stays, as a server has for itself."""
    gc.disable()
    try:
        return (yield)
    finally:
        spare_the_collector()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave out what is true of SQLite alone, where servers keep their tenants in PostgreSQL."""
    if not os.environ.get("MNEME_TEST_POSTGRES"):
        return
    for item in items:
        if mark := item.get_closest_marker("on_sqlite"):
            item.add_marker(pytest.mark.skip(reason=f"of SQLite alone: {mark.args[0]}"))


@pytest.fixture(scope="session", autouse=True)
def _exported_model() -> None:
    """Write the embedding model where `make model` has not; it takes some seconds, once."""
    folder = Path(os.environ["MNEME_MODEL_DIR"])
    if not (folder / "all-MiniLM-L6-v2-int8").is_dir():
        from minilm_export.exporting import ensure_exported

        ensure_exported(folder, "int8")


_TRACEBACK_LINES = 150


@pytest.fixture(scope="session", autouse=True)
def _logs_aside(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep what servers in this process log out of the output that tests look at."""
    from mneme_server.edge.grpc.logging import configure_logging

    with (tmp_path_factory.mktemp("logs") / "log").open("w", buffering=1) as log:
        configure_logging("info", "console", log)
        yield
        structlog.reset_defaults()


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[object]:
    """One server in this process for all tests that do not need their own."""
    from mneme_server.edge.grpc.logging import configure_logging
    from support.server import local_server

    folder = tmp_path_factory.mktemp("mneme")
    before = structlog.get_config()
    with (folder / "log").open("w", buffering=1) as log:
        configure_logging("info", "console", log)
        # A test's tenant is asked for nothing once the test has ended.
        aside = {"http_listen": "127.0.0.1:0", "tenant_idle_seconds": 30.0}
        with local_server(folder / "data", **aside) as running:
            yield running
        structlog.configure(**before)
    lines = (folder / "log").read_text().splitlines()
    # As events of the log, and not as what another service answered.
    bugs = [place for place, line in enumerate(lines) if "] internal error" in line]
    # With their tracebacks: the folder is gone when later runs have made theirs.
    told = "\n".join(line for place in bugs for line in lines[place : place + _TRACEBACK_LINES])
    assert not bugs, f"the server met bugs:\n{told}"


@pytest.fixture
def new_tenant(server: object) -> Iterator[Callable[..., object]]:
    """Makes tenants that nobody else uses; what asks them ends with the test."""
    with ExitStack() as ended:

        def make(*prefix_and_scopes: object) -> object:
            api = server.keys.tenant(*prefix_and_scopes)  # type: ignore[attr-defined]
            ended.callback(api.close)
            return api

        yield make


@pytest.fixture
def api(new_tenant: Callable[[], object]) -> object:
    """The API as called with the key of a tenant that only this test uses."""
    return new_tenant()


@pytest.fixture
def admin(server: object) -> object:
    """The API as called with the administrator's key, of the tenant `default`."""
    return server.keys.admin  # type: ignore[attr-defined]


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgresServer]:
    """A PostgreSQL of the file's own."""
    from support.postgres import running

    with running() as server:
        yield server


@pytest.fixture
def database(postgres: PostgresServer, request: pytest.FixtureRequest) -> str:
    """The name of a database that holds nothing yet."""
    name = "t_" + hashlib.sha256(request.node.name.encode()).hexdigest()[:16]
    postgres.execute(f"CREATE DATABASE {name}")
    return name


@pytest.fixture
def url(postgres: PostgresServer, database: str) -> str:
    """Where that database is."""
    return postgres.url(database)
