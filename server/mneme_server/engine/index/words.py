"""How texts and queries are made into words: lower case, no accents, stems of their language."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from itertools import compress
from typing import NamedTuple

from tantivy import Filter, TextAnalyzer, TextAnalyzerBuilder, Tokenizer

from mneme_server.common.texts import composed
from mneme_server.engine.corpus.document import Document
from mneme_server.engine.corpus.stopwords import STOP_WORDS
from mneme_server.engine.index.fields import TEXTS_OF, Field
from mneme_server.engine.index.languages import (
    ENGLISH,
    HAN,
    HAN_STOPS,
    KANA_STOPS,
    STEMMERS,
    STOPS,
    UNSPACED,
    language_of,
    pairs_of,
    spaced_pairs,
)
from mneme_server.engine.index.names import regrouped, with_names

_LONGEST_TOKEN = 80
_HAN_CHARACTER = re.compile(f"[{HAN}]")
_SEGMENT = re.compile(
    f"(?:(?![{HAN_STOPS}])[{HAN}])+|[\u3040-\u309f]+|[\u30a0-\u30ff\u31f0-\u31ff]+|[\uac00-\ud7af]+"
)


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
    Lucene's CJK analyzer does it, and every Chinese character by itself. A name ends where such a
    run begins: 抛出PaymentTimeout异常 is three.

    Args:
        names: whether names in code, paths and codes are words beside those that they consist of.
    """

    def __init__(self, *, names: bool = True) -> None:
        self._with_names = with_names if names else str
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
        found = language_of(document.text) or (document.context and language_of(document.context))
        return "" if found == ENGLISH else found

    def spaced(self, text: str) -> str:
        """Return a text with spaces around every word, as the analyzers need it."""
        return self._named(text, _pairs_and_characters)

    def of(self, document: Document, field: Field, language: str) -> list[str]:
        """Return the words of a field of a document in this language."""
        texts = "\n".join(map(self.spaced, TEXTS_OF[field](document)))
        return self._stemming.get(language, self._english).analyze(texts)

    def told(self, query: str) -> list[str]:
        """Return the words of a query, where all texts are read as English.

        Stop words are dropped, unless there is nothing else.
        """
        telling = self._telling.analyze(self._asked(query))
        if not query.isascii():
            telling = [word for word in telling if word not in KANA_STOPS]
        return telling or self._english.analyze(self.spaced(query))

    def asked(self, query: str, languages: Collection[str]) -> Asked:
        """Return the words of a query, for texts in English and these `languages`.

        Stop words are dropped, unless there is nothing else.
        """
        language, text = language_of(query), self._asked(query)
        readers = self._readers(language, languages)
        words = _abreast(readers, text)
        telling = list(compress(words, self._tell(text, language)))
        return Asked(telling or _abreast(readers, self.spaced(query)), sure=bool(language))

    def tells(self, query: str, languages: Collection[str]) -> bool:
        """Whether a query has words besides those that only say how it is put."""
        return any(self._tell(self._asked(query), language_of(query) if languages else ENGLISH))

    def of_name(self, name: str, languages: Collection[str]) -> list[list[str]]:
        """Return the distinct words of a name, once for each way in which texts may have them."""
        readers = self._readers("", languages)
        texts = [self.spaced(way) for way in dict.fromkeys((name, regrouped(name)))]
        found = [reader.analyze(text) for text in texts for reader in readers]
        return [list(words) for words in dict.fromkeys(tuple(dict.fromkeys(w)) for w in found)]

    def _readers(self, language: str, languages: Collection[str]) -> list[TextAnalyzer]:
        """Return what reads texts in English and `languages`, first those in `language`."""
        known = [ENGLISH, *sorted(languages)]
        ordered = sorted(known, key=lambda code: code != language)
        return [self._stemming.get(code, self._english) for code in ordered]

    def _tell(self, text: str, language: str) -> list[bool]:
        """Return, for each word of a spaced query, whether it tells what it is about."""
        stops = STOPS.get(language, STOPS[ENGLISH])
        return [word not in stops and word not in KANA_STOPS for word in self._plain.analyze(text)]

    def _asked(self, query: str) -> str:
        """Return a query with spaces around every word, less what only puts the question."""
        return self._named(query, asked_pairs)

    def _named(self, text: str, spaced: Callable[[re.Match[str]], str]) -> str:
        """Return a text whose runs are `spaced` so, with what is to be found of its names."""
        if text.isascii():
            return self._with_names(text)
        return self._with_names(UNSPACED.sub(spaced, composed(text)))


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


def _abreast(readers: Sequence[TextAnalyzer], text: str) -> list[tuple[str, ...]]:
    """Return the words of a text, each as all of these read it, what is alike once."""
    words = zip(*(reader.analyze(text) for reader in readers), strict=True)
    return [tuple(dict.fromkeys(word)) for word in words]


def _pairs_and_characters(run: re.Match[str]) -> str:
    characters = run[0]
    if len(characters) == 1:
        return f" {characters} "
    return f"{spaced_pairs(run)}{' '.join(_HAN_CHARACTER.findall(characters))} "


def asked_pairs(run: re.Match[str]) -> str:
    """Return the pairs of a question's parts, which end where another script begins and at what
    only puts the question. A Chinese character between such is a word, and so is a whole run."""
    parts = _SEGMENT.findall(run[0])
    told = [pair for part in parts if len(part) > 1 or part == run[0] or _HAN_CHARACTER.match(part)
            for pair in pairs_of(part)]  # fmt: skip
    return f" {' '.join(told)} "
