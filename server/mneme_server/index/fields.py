"""The searched fields of a document, and how their words are made."""

from __future__ import annotations

import re
from collections.abc import Callable
from enum import Enum

from tantivy import Filter, TextAnalyzer, TextAnalyzerBuilder, Tokenizer

from mneme_server.corpus.document import Document
from mneme_server.corpus.stopwords import STOP_WORDS

ANALYZER = "mneme_en"
_LONGEST_TOKEN = 80
# Kana, Han and Hangul.
_RUN = re.compile("[\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
                  "\U00020000-\U0003134f]+")  # fmt: skip


class Field(Enum):
    """A searched field of a document."""

    TEXT = "text"
    """Its text."""
    CONTEXT = "context"
    """Its text and those just before it in its session."""


WORDS_OF: dict[Field, Callable[[Document], str]] = {
    Field.TEXT: lambda document: spaced(document.text),
    Field.CONTEXT: lambda document: spaced(
        f"{document.context}\n{document.text}" if document.context else document.text
    ),
}


def spaced(text: str) -> str:
    """Return a text in which every word has spaces around it, as the analyzer needs it.

    What Chinese, Japanese and Korean write in one run comes as all pairs of neighbouring
    characters, as Lucene's CJK analyzer does it.
    """
    return text if text.isascii() else _RUN.sub(_pairs, text)


def _pairs(run: re.Match[str]) -> str:
    characters = run[0]
    pairs = [characters[i : i + 2] for i in range(len(characters) - 1)]
    return f" {' '.join(pairs or [characters])} "


def analyzer(*, stop: bool = False) -> TextAnalyzer:
    """Return what makes words: lower case, no accents, English stems; `stop` drops stop words."""
    builder = TextAnalyzerBuilder(Tokenizer.simple())
    builder = builder.filter(Filter.remove_long(_LONGEST_TOKEN)).filter(Filter.lowercase())
    if stop:
        builder = builder.filter(Filter.custom_stopword(list(STOP_WORDS)))
    return builder.filter(Filter.ascii_fold()).filter(Filter.stemmer("english")).build()
