"""The searched fields of a document."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum

from mneme_server.engine.corpus.document import Document


class Field(Enum):
    """A searched field of a document."""

    TEXT = "text"
    """Its text."""
    CONTEXT = "context"
    """Its text and those just before it in its session."""


TEXTS_OF: Mapping[Field, Callable[[Document], tuple[str, ...]]] = {
    Field.TEXT: lambda document: (document.text,),
    Field.CONTEXT: lambda document: (
        (document.context, document.text) if document.context else (document.text,)
    ),
}
"""What is searched in each of them, one after the other."""
