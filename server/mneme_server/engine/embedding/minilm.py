"""The exported all-MiniLM-L6-v2: what its exporter and the server agree on, and where it lies.

An exported model is a folder `all-MiniLM-L6-v2-int8` (or `-fp32`) with the graph, the tokenizer and
a manifest of checksums. The package `mneme-minilm` brings the int8 one.
"""

import hashlib
import importlib.util
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from mneme_server.engine.embedding.port import ModelUnavailable

Precision = Literal["int8", "fp32"]

MODEL_NAME = "all-MiniLM-L6-v2"
# Raise it whenever the graph changes: exports of another version are refused.
GRAPH_VERSION = 3
# Of the published weights, which the graph is made from.
WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"

WIDTH = 384
MAX_TOKENS = 256  # the published model's window; longer texts are cut

INPUT_IDS = "input_ids"
ATTENTION_MASK = "attention_mask"
OUTPUT = "embedding"

GRAPH_FILE = "model.onnx"
TOKENIZER_FILE = "tokenizer.json"
MANIFEST_FILE = "manifest.json"

PACKAGE = "mneme_minilm"
_DISTRIBUTION = "mneme-minilm"


@dataclass(frozen=True)
class ExportedModel:
    """A folder whose files match its manifest."""

    folder: Path

    @property
    def graph(self) -> Path:
        """The network, ONNX."""
        return self.folder / GRAPH_FILE

    @property
    def tokenizer(self) -> Path:
        """The tokenizer, JSON."""
        return self.folder / TOKENIZER_FILE


def find_model(model_dir: Path | None, precision: Precision) -> ExportedModel:
    """Return the exported model of `model_dir`; of the installed package where that is None.

    Every file is compared with its checksum, which takes 0.1 s. Raises ModelUnavailable, which says
    what to do.
    """
    folder = (model_dir or _packaged(precision)) / folder_name(precision)
    if not folder.is_dir():
        raise ModelUnavailable(_missing(folder, precision, packaged=model_dir is None))
    problem = problem_with(folder)
    if problem is not None:
        raise ModelUnavailable(
            f"the embedding model in {folder} cannot be used: {problem}; "
            f"{_remedy(precision, packaged=model_dir is None)}"
        )
    return ExportedModel(folder)


def folder_name(precision: Precision) -> str:
    """The name of an exported model's folder."""
    return f"{MODEL_NAME}-{precision}"


def problem_with(folder: Path) -> str | None:
    """Why `folder` cannot be used; None when every file is the one its manifest describes."""
    try:
        manifest = json.loads((folder / MANIFEST_FILE).read_text("utf-8"))
        made_from = manifest["weights_sha256"], manifest["graph_version"]
        if made_from != (WEIGHTS_SHA256, GRAPH_VERSION):
            return "it was exported by another version"
        for name in (GRAPH_FILE, TOKENIZER_FILE):
            if sha256_of(folder / name) != manifest["files"][name]:
                return f"{name} does not match its checksum"
    except FileNotFoundError as error:
        return f"{Path(str(error.filename)).name} is missing"
    except (OSError, ValueError, KeyError, TypeError) as error:
        return f"its {MANIFEST_FILE} cannot be read: {error}"
    return None


def sha256_of(path: Path) -> str:
    """A file's SHA-256 in hexadecimal. Raises OSError."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _packaged(precision: Precision) -> Path:
    """The folder of the package with the model, which is data alone: it is not imported."""
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise ModelUnavailable(
            f"the embedding model {folder_name(precision)} is not installed: there is no package "
            f"{_DISTRIBUTION}; {_remedy(precision, packaged=True)}"
        )
    return Path(spec.submodule_search_locations[0])


def _missing(folder: Path, precision: Precision, *, packaged: bool) -> str:
    place = f"the package {_DISTRIBUTION}" if packaged else f"MNEME_MODEL_DIR={folder.parent}"
    return (
        f"the embedding model {folder.name} is not in {place} ({folder} is missing); "
        f"{_remedy(precision, packaged=packaged)}"
    )


def _remedy(precision: Precision, *, packaged: bool) -> str:
    if precision == "fp32":
        return (
            "`make model PRECISION=fp32 MODEL_DIR=FOLDER` in a checkout of Mneme writes it to "
            "FOLDER; set MNEME_MODEL_DIR to that"
        )
    if packaged:
        return (
            f"install the wheel of {_DISTRIBUTION} that `make dist` builds beside the server's, "
            "or, in a checkout, run `make setup`"
        )
    return f"unset MNEME_MODEL_DIR to use the one of {_DISTRIBUTION}, or write it with `make model`"
