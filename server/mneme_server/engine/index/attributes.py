"""What is computed of a document for its columns, and the copy of them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from numpy.typing import NDArray

from mneme_server.common.texts import composed
from mneme_server.engine.corpus.document import Document

# A name: one to three words, "Here are the details: ..." is none.
_LABEL = re.compile(r"([^\W\d_][\w.'\-]{0,40}(?: [^\W\d_][\w.'\-]{0,40}){0,2}):\s")


def fingerprint(text: str) -> int:
    """Return 64 bits that are the same for equal texts, whichever of Unicode's forms they are in,
    in every process."""
    data = composed(text).encode(errors="surrogatepass")
    return int.from_bytes(blake2b(data, digest_size=8).digest(), "little", signed=True)


def author_of(document: Document) -> str:
    """Return the document's agent, else the leading label ("Ann: ...") of what is said, else ""."""
    if document.agent_id or not document.spoken:
        return document.agent_id
    label = _LABEL.match(composed(document.text))
    return label[1] if label and not label[1][0].islower() else ""


@dataclass(frozen=True, slots=True)
class CopiedColumns:
    """Columns for a copy: how many `rows` there are, the columns of each of the `chunks` that
    changed, and the names that their numbers stand for, by the columns' names."""

    rows: int
    chunks: Mapping[int, Sequence[NDArray[Any]]]
    names: Mapping[str, list[Any]]
