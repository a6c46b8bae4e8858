"""How texts and queries are made into words: lower case, no accents, stems of their language."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from itertools import compress
from typing import NamedTuple

from tantivy import Filter, TextAnalyzer, TextAnalyzerBuilder, Tokenizer

from mneme_server.corpus.document import Document
from mneme_server.corpus.stopwords import STOP_WORDS
from mneme_server.index.fields import TEXT_OF, Field
from mneme_server.index.languages import ENGLISH, STEMMERS, STOPS, UNSPACED_STOPS, language_of

_LONGEST_TOKEN = 80
_HAN = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003134f"
# Kana, Han and Hangul.
_RUN = re.compile(f"[\u3040-\u30ff\u31f0-\u31ff\uac00-\ud7af{_HAN}]+")
_HAN_CHARACTER = re.compile(f"[{_HAN}]")


class Asked(NamedTuple):
    """The words of a query, each in the forms that it has in a language's texts.

    The first form is that of the query's own language, if it is `sure` which that is.
    """

    words: Sequence[Sequence[str]]
    sure: bool


class Words:
    """Makes words, of a text in the language that it is in.

    A text whose language cannot be told is read as its context is, or else as English. What
    Chinese, Japanese and Korean write in one run comes as all pairs of neighbouring characters, as
    Lucene's CJK analyzer does it, and every Chinese character by itself.

    Args:
        languages: without, all is read as English, and characters come in pairs alone, as the
            version before did it.
    """

    def __init__(self, *, languages: bool = True) -> None:
        self._languages = languages
        self._english = analyzer()
        self._telling = analyzer(stop=True)
        self._plain = _plain().build()
        self._stemming = {code: _stemming(name) for code, name in STEMMERS.items()}

    @property
    def english(self) -> TextAnalyzer:
        """What makes the words of a text that is read as English, once it is `spaced`."""
        return self._english

    def language_of(self, document: Document) -> str:
        """Return the language of a document, "" for what is read as English."""
        if not self._languages:
            return ""
        found = language_of(document.text) or (document.context and language_of(document.context))
        return "" if found == ENGLISH else found

    def spaced(self, document: Document, field: Field) -> str:
        """Return a field with spaces around every word, as the analyzers need it."""
        return self._spaced(TEXT_OF[field](document))

    def of(self, document: Document, field: Field, language: str) -> list[str]:
        """Return the words of a field of a document in this language."""
        return self._stemming.get(language, self._english).analyze(self.spaced(document, field))

    def asked(self, query: str, languages: Collection[str]) -> Asked:
        """Return the words of a query, for texts in English and these `languages`.

        Stop words are dropped, unless there is nothing else.
        """
        text = self._spaced(query)
        if not languages:
            told = self._told(self._telling.analyze(text)) or self._english.analyze(text)
            return Asked([(word,) for word in told], sure=True)
        language = language_of(query)
        readers = self._readers(language, languages)
        words = list(zip(*(reader.analyze(text) for reader in readers), strict=True))
        telling = list(compress(words, self._tell(text, language)))
        forms = [tuple(dict.fromkeys(word)) for word in telling or words]
        return Asked(forms, sure=bool(language))

    def tells(self, query: str, languages: Collection[str]) -> bool:
        """Whether a query has words besides those that only say how it is put."""
        text = self._spaced(query)
        if not languages:
            return bool(self._told(self._telling.analyze(text)))
        return any(self._tell(text, language_of(query)))

    def of_name(self, name: str, languages: Collection[str]) -> list[list[str]]:
        """Return the distinct words of a name, once for each way in which texts may have them."""
        text = self._spaced(name)
        found = [reader.analyze(text) for reader in self._readers("", languages)]
        return [list(words) for words in dict.fromkeys(tuple(dict.fromkeys(w)) for w in found)]

    def _readers(self, language: str, languages: Collection[str]) -> list[TextAnalyzer]:
        """Return what reads texts in English and `languages`, first those in `language`."""
        known = [ENGLISH, *sorted(languages)]
        ordered = sorted(known, key=lambda code: code != language)
        return [self._stemming.get(code, self._english) for code in ordered]

    def _tell(self, text: str, language: str) -> list[bool]:
        """Return, for each word of a spaced query, whether it tells what it is about."""
        stops = STOPS.get(language, STOPS[ENGLISH])
        return [
            word not in stops and word not in UNSPACED_STOPS for word in self._plain.analyze(text)
        ]

    def _told(self, words: list[str]) -> list[str]:
        return [word for word in words if word not in UNSPACED_STOPS] if self._languages else words

    def _spaced(self, text: str) -> str:
        if text.isascii():
            return text
        return _RUN.sub(_pairs_and_characters if self._languages else _pairs, text)


def analyzer(*, stop: bool = False) -> TextAnalyzer:
    """Return what makes English words: lower case, no accents, stems; `stop` drops stop words."""
    builder = _plain()
    if stop:
        builder = builder.filter(Filter.custom_stopword(list(STOP_WORDS)))
    return builder.filter(Filter.ascii_fold()).filter(Filter.stemmer("english")).build()


def _stemming(stemmer: str) -> TextAnalyzer:
    # These stemmers know the accents of their language; afterwards they are of no more use.
    return _plain().filter(Filter.stemmer(stemmer)).filter(Filter.ascii_fold()).build()


def _plain() -> TextAnalyzerBuilder:
    builder = TextAnalyzerBuilder(Tokenizer.simple())
    return builder.filter(Filter.remove_long(_LONGEST_TOKEN)).filter(Filter.lowercase())


def _pairs(run: re.Match[str]) -> str:
    characters = run[0]
    pairs = [characters[i : i + 2] for i in range(len(characters) - 1)]
    return f" {' '.join(pairs or [characters])} "


def _pairs_and_characters(run: re.Match[str]) -> str:
    characters = run[0]
    if len(characters) == 1:
        return f" {characters} "
    return f"{_pairs(run)}{' '.join(_HAN_CHARACTER.findall(characters))} "
