"""Changing the embedding model: refused with what to do, done by a command that may be stopped."""

from __future__ import annotations

import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from minilm_export.exporting import ensure_exported
from mneme.v1 import admin_service_pb2 as admin_pb
from mneme.v1 import recall_service_pb2 as recall_pb
from support.api import Api, grpc, refused
from support.making import event, ids_of, lesson, list_events, recall, record, search_lessons
from support.server import environment, model_dir, run_command, server_process

FORMER, LATTER = "local", "local:fp32"
TEXTS = 600
DENSE = recall_pb.RECALL_MODE_DENSE


@pytest.fixture(scope="module", autouse=True)
def _both_models(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Have the exact model beside the one that every test finds."""
    folder = tmp_path_factory.mktemp("models")
    shutil.copytree(model_dir() / "all-MiniLM-L6-v2-int8", folder / "all-MiniLM-L6-v2-int8")
    ensure_exported(folder, "fp32")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MNEME_MODEL_DIR", str(folder))
        yield


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """Fill a data folder with the former model."""
    folder = tmp_path_factory.mktemp("reindex") / "data"
    with server_process(folder, embedder=FORMER) as server:
        api = server.keys.tenant("model")
        record(api, event("the ferry leaves at noon", id="ferry"), wait=True)
        record(api, *[event(f"cargo item {n} was loaded", f"s{n % 7}") for n in range(TEXTS)])
        lesson(api, "Harvest", "olives are picked in autumn", lesson_id="olives")
        _when_embedded(api)
        return folder, str(api.secret)


@pytest.fixture
def data(filled: tuple[Path, str], tmp_path: Path) -> tuple[Path, str]:
    """Return a data folder filled with the former model, and a key."""
    folder, secret = filled
    shutil.copytree(folder, tmp_path / "data")
    return tmp_path / "data", secret


def _when_embedded(api: Api) -> None:
    record(api, event("the last one", id="last"), wait=True)
    assert api.admin.GetStats(admin_pb.GetStatsRequest()).tenant.pending_count == 0


def _everything_is_found(api: Api) -> None:
    assert ids_of(recall(api, "departure of the ship", mode=DENSE))[0] == "ferry"
    assert search_lessons(api, "fruit season", limit=1) == ["olives"]
    stats = api.admin.GetStats(admin_pb.GetStatsRequest()).tenant
    assert (stats.pending_count, stats.vector_count) == (0, TEXTS + 3)


def test_another_model_is_refused_with_the_command_that_helps(data: tuple[Path, str]) -> None:
    folder, secret = data
    with server_process(folder, embedder=LATTER) as server:
        api = server.keys.api(secret)
        calls: list[Callable[[], object]] = [
            lambda: recall(api, "words"),
            lambda: record(api, event("words")),
            lambda: list_events(api),
        ]
        for call in calls:
            with refused() as failure:
                call()
            assert (failure.code, failure.reason) == (
                grpc.StatusCode.FAILED_PRECONDITION, "DIMENSION_MISMATCH",
            )  # fmt: skip
            assert "mneme-server reindex --tenant model-1" in failure.message
        # A tenant that is new takes the model that runs.
        fresh = server.keys.tenant("fresh")
        record(fresh, event("words", id="e"), wait=True)
        assert ids_of(recall(fresh, "words")) == ["e"]
    with server_process(folder, embedder=FORMER) as server:
        _everything_is_found(server.keys.api(secret))


def test_reindexing_makes_all_vectors_anew_and_shows_how_far_it_is(
    data: tuple[Path, str],
) -> None:
    folder, secret = data
    before = _vectors(folder)
    done = run_command("reindex", folder, embedder=LATTER, embed_batch=32)
    assert done.returncode == 0, done.stderr
    assert re.search(rf"model-1: \d+/{TEXTS + 3} \(\d+ %\)", done.stdout), done.stdout
    assert f"model-1: {TEXTS + 3} memories embedded" in done.stdout
    after = _vectors(folder)
    assert after.keys() == before.keys()
    assert all(after[doc_id] != before[doc_id] for doc_id in before)
    with server_process(folder, embedder=LATTER) as server:
        _everything_is_found(server.keys.api(secret))


def _vectors(folder: Path) -> dict[int, bytes]:
    path = folder / "tenants" / "model-1" / "mneme.db"
    with closing(sqlite3.connect(path)) as connection:
        return dict(connection.execute("SELECT doc_id, vector FROM vectors"))


# A shell that runs the tests in the background has all that they start ignore interrupts.
_INTERRUPTIBLE = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)
os.execv(sys.argv[1], sys.argv[1:])
"""


def test_reindexing_that_was_interrupted_goes_on_where_it_stopped(data: tuple[Path, str]) -> None:
    folder, secret = data
    running = subprocess.Popen(
        [sys.executable, "-c", _INTERRUPTIBLE, sys.executable, "-m", "mneme_server", "reindex"],
        env=environment(folder, embedder=LATTER, embed_batch=4),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert running.stdout is not None
    # As soon as it has begun; on a fast machine all is done a moment later.
    for line in running.stdout:
        if re.search(r"\d+/\d+", line):
            running.send_signal(signal.SIGINT)
            break
    rest, errors = running.communicate(timeout=60)
    assert running.returncode == 130, errors
    assert "interrupted; run it again to go on" in rest
    assert "Traceback" not in errors
    left = TEXTS + 3 - len(_vectors(folder))
    assert 0 < left < TEXTS + 3
    done = run_command("reindex", folder, embedder=LATTER)
    assert done.returncode == 0, done.stderr
    assert f"model-1: {left} memories embedded" in done.stdout
    with server_process(folder, embedder=LATTER) as server:
        _everything_is_found(server.keys.api(secret))


def test_a_server_finishes_a_reindexing_that_was_interrupted(data: tuple[Path, str]) -> None:
    folder, secret = data
    path = folder / "tenants" / "model-1" / "mneme.db"
    done = run_command("reindex", folder, embedder=LATTER)
    assert done.returncode == 0
    with closing(sqlite3.connect(path)) as connection:  # As if it had stopped half-way.
        connection.execute(
            "INSERT INTO embedding_queue (tenant_id, doc_id, attempts, due_at, last_error)"
            " SELECT tenant_id, doc_id, 0, 0, '' FROM vectors WHERE doc_id % 2"
        )
        connection.execute("DELETE FROM vectors WHERE doc_id % 2")
        connection.commit()
    with server_process(folder, embedder=LATTER) as server:
        api = server.keys.api(secret)
        for _ in range(600):
            if not api.admin.GetStats(admin_pb.GetStatsRequest()).tenant.pending_count:
                break
            time.sleep(0.05)
        _everything_is_found(api)


def test_reindexing_beside_a_running_server_is_refused(tmp_path: Path) -> None:
    with server_process(tmp_path / "data"):
        done = run_command("reindex", tmp_path / "data", embedder=LATTER)
    assert done.returncode == 1
    assert "another process is using MNEME_DATA_DIR" in done.stderr


def test_reindexing_a_tenant_that_does_not_exist_says_so(tmp_path: Path) -> None:
    with server_process(tmp_path / "data") as server:
        assert server.stop() == 0
    done = run_command("reindex", tmp_path / "data", "--tenant", "nobody")
    assert done.returncode == 1
    assert "there is no tenant nobody" in done.stderr
    assert "Traceback" not in done.stderr
