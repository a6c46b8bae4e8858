"""Loading models with sentence-transformers, whatever they are for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from mneme._extras import from_wheels

from mneme_server.engine.embedding.errors import ModelUnavailable

T = TypeVar("T")


def load_model(build: Callable[[Any], T], name: str, *, what: str, setting: str, threads: int) -> T:
    """Return what `build` makes with the module sentence_transformers.

    Args:
        build: loads the model called `name`.
        name: the model on the Hugging Face hub, or its folder.
        what: how errors call such a model.
        setting: the setting that names it.
        threads: torch's process-wide setting.

    Raises:
        ModelUnavailable: sentence-transformers is not installed, or the model cannot be loaded.
    """
    try:
        import sentence_transformers
        import torch
    except ImportError as error:
        raise ModelUnavailable(
            f"sentence-transformers is not installed ({error}): install it"
            f" {from_wheels('server-without-model,sentence-transformers')}"
        ) from error
    torch.set_num_threads(threads)
    try:
        return build(sentence_transformers)
    except Exception as error:  # OSError, ValueError, and several of its HTTP client's
        raise ModelUnavailable(
            f"cannot load the {what} {name!r}: {first_line(error)}. Check the name; on a machine"
            f" without network access, download it elsewhere with `hf download {name}"
            f" --local-dir FOLDER`, copy the folder here and set {setting}="
            "sentence-transformers:FOLDER"
        ) from error


def first_line(error: Exception) -> str:
    """Return what an error says first; these libraries' messages go on for pages."""
    return (str(error).strip() or type(error).__name__).splitlines()[0]
