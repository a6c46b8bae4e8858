"""The searched fields of a document, and how their words are made."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

from tantivy import Filter, TextAnalyzer, TextAnalyzerBuilder, Tokenizer

from mneme_server.corpus.document import Document
from mneme_server.corpus.stopwords import STOP_WORDS

ANALYZER = "mneme_en"
_LONGEST_TOKEN = 80


class Field(Enum):
    """A searched field of a document."""

    TEXT = "text"
    """Its text."""
    CONTEXT = "context"
    """Its text and those just before it in its session."""


WORDS_OF: dict[Field, Callable[[Document], str]] = {
    Field.TEXT: lambda document: document.text,
    Field.CONTEXT: lambda document: (
        f"{document.context}\n{document.text}" if document.context else document.text
    ),
}


def analyzer(*, stop: bool = False) -> TextAnalyzer:
    """Return what makes words: lower case, no accents, English stems; `stop` drops stop words."""
    builder = TextAnalyzerBuilder(Tokenizer.simple())
    builder = builder.filter(Filter.remove_long(_LONGEST_TOKEN)).filter(Filter.lowercase())
    if stop:
        builder = builder.filter(Filter.custom_stopword(list(STOP_WORDS)))
    return builder.filter(Filter.ascii_fold()).filter(Filter.stemmer("english")).build()
