"""What a start waits for and what it does not, and that a server that says it serves can."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
from pathlib import Path

from support.server import environment, model_dir

NOT_AWAITED = {
    "alembic": "new databases are made of SQL",
    "faiss": "no tenant is open",
    "tantivy": "no tenant is open",
    "onnxruntime": "nothing is embedded",
    "tokenizers": "nothing is embedded",
    "protovalidate": "nobody has called",
    "rich": "the log shows tracebacks plain",
    "psycopg": "no PostgreSQL is used",
    "opentelemetry.sdk": "no spans are exported",
    "torch": "nothing is trained",
}
"""Libraries, and why they are not there when the server says that it serves."""

_MODULES_AT_SERVING = """
import builtins, os, sys
from mneme_server.commands.entry import main
say = builtins.print
def watched(line, **how):
    say(line, **how)
    if line.startswith("serving on"):
        say(*sys.modules, flush=True)
        os._exit(0)
builtins.print = watched
sys.argv = ["mneme-server", "serve"]
main()
"""


def test_a_start_does_not_wait_for_libraries_that_only_calls_need(tmp_path: Path) -> None:
    started = subprocess.run(
        [sys.executable, "-c", _MODULES_AT_SERVING],
        env=environment(tmp_path), capture_output=True, text=True, check=True,
    )  # fmt: skip
    loaded = set(started.stdout.splitlines()[-1].split())
    assert loaded > {"grpc", "sqlalchemy", "mneme_server.app"}
    assert {name: why for name, why in NOT_AWAITED.items() if name in loaded} == {}


def test_a_model_that_cannot_be_loaded_ends_the_server_with_a_message_that_says_so(
    tmp_path: Path,
) -> None:
    models = _model_with_graph(tmp_path, b"no graph")
    ended = subprocess.run(
        [sys.executable, "-m", "mneme_server", "serve"],
        env=environment(tmp_path / "data", model_dir=models),
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert ended.returncode == 1
    (message,) = ended.stderr.splitlines()
    assert message.startswith(f"mneme-server: cannot load the embedding model in {models}/")


def test_a_model_whose_files_are_not_whole_keeps_the_server_from_serving(tmp_path: Path) -> None:
    models = _model_with_graph(tmp_path, None)
    ended = subprocess.run(
        [sys.executable, "-m", "mneme_server", "serve"],
        env=environment(tmp_path / "data", model_dir=models),
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert ended.returncode == 1
    assert "serving" not in ended.stdout
    assert "model.onnx does not match its checksum" in ended.stderr


def _model_with_graph(folder: Path, graph: bytes | None) -> Path:
    """Copy the model with another graph, which its manifest names; None: with half of its own."""
    models = folder / "models"
    model = models / "all-MiniLM-L6-v2-int8"
    shutil.copytree(model_dir() / model.name, model)
    file, manifest = model / "model.onnx", model / "manifest.json"
    if graph is None:
        whole = file.read_bytes()
        file.write_bytes(whole[: len(whole) // 2])
        return models
    file.write_bytes(graph)
    told = json.loads(manifest.read_text())
    told["files"][file.name] = hashlib.sha256(graph).hexdigest()
    manifest.write_text(json.dumps(told))
    return models
