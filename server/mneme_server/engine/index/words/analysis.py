"""The analysis of texts and queries into words: lower case, no accents, stems of their language.

A text is split into words at everything but letters and digits. Of `generate_relationships` only
two common words would be left, which many texts have, and of `PaymentTimeout` one that nobody asks
for who writes "payment timeout". So names in code, paths, codes and numbers are one word, too,
beside the words that they consist of.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from enum import Enum
from itertools import compress
from typing import NamedTuple

from tantivy import Filter, TextAnalyzer, TextAnalyzerBuilder, Tokenizer

from mneme_server.common.texts import composed
from mneme_server.engine.corpus.document import Document
from mneme_server.engine.corpus.words import STOP_WORDS
from mneme_server.engine.index.words.languages import (
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

_LONGEST_TOKEN = 80
_HAN_CHARACTER = re.compile(f"[{HAN}]")
_SEGMENT = re.compile(
    f"(?:(?![{HAN_STOPS}])[{HAN}])+|[\u3040-\u309f]+|[\u30a0-\u30ff\u31f0-\u31ff]+|[\uac00-\ud7af]+"
)
# A place inside a name, where two parts meet or a hump begins, is found by its first character,
# which takes a tenth of the time of looking for names; most texts have none.
_INSIDE = re.compile(r"[._/\\@:A-Z-](?:(?<=[^\W_][._/\\@:-]):?\w|(?<=[a-z][A-Z]))")
_NAME = re.compile(r"[^\W_]++(?:(?:::|[._/\\@-])[^\W_]++)*")  # a, a.b, a_b, a-b, a/b, a::b, a@b
_PART = re.compile(r"[^\W_]+")
_HUMP = re.compile(r"[A-Z]*[a-z]+|[A-Z]+")
# 15000, 15,000
_NUMBER = re.compile(r"(?<![\w.,/-])[1-9](?:\d{3,14}|\d{0,2}(?:,\d{3}){1,4})(?!\w|[.,]\d)")
_GROUP = re.compile(r"(?<=\d)(?=(?:\d{3})+$)")
_LONGEST_PART = 80
_JOINER = "\ua78f"
"""A letter, so that it splits no word, that no name has."""


class WordField(Enum):
    """A searched field of a document."""

    TEXT = "text"
    """Its text."""
    CONTEXT = "context"
    """Its text and those just before it in its session."""


TEXTS_OF: Mapping[WordField, Callable[[Document], tuple[str, ...]]] = {
    WordField.TEXT: lambda document: (document.text,),
    WordField.CONTEXT: lambda document: (
        (document.context, document.text) if document.context else (document.text,)
    ),
}
"""What is searched in each of them, one after the other."""


class QueryWords(NamedTuple):
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

    def of(self, document: Document, field: WordField, language: str) -> list[str]:
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

    def asked(self, query: str, languages: Collection[str]) -> QueryWords:
        """Return the words of a query, for texts in English and these `languages`.

        Stop words are dropped, unless there is nothing else.
        """
        language, text = language_of(query), self._asked(query)
        readers = self._readers(language, languages)
        words = _abreast(readers, text)
        telling = list(compress(words, self._tell(text, language)))
        return QueryWords(telling or _abreast(readers, self.spaced(query)), sure=bool(language))

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


def with_names(text: str) -> str:
    """Return a text and, behind it, what is to be found of its names beside their words.

    The parts of a name stand together there, so that `get_user`, `get-user` and `getUser` are the
    same word; what has digits alone keeps its parts apart: 1.23 is not 12.3. The words in a name
    like `getUser` stand there one by one.
    """
    found: list[str] = []
    for name in _names_in(text):
        parts = _PART.findall(name)
        if len(parts) > 1:
            digits = all(map(str.isdigit, parts))
            found.append((_JOINER if digits else "").join(parts))
        for part in parts:
            humps = _HUMP.findall(part)
            if len(humps) > 1 and "".join(humps) == part:
                found += humps
    return f"{text} {' '.join(found)}" if found else text


def regrouped(text: str) -> str:
    """Return a text with its large numbers as others write them: 15000 as 15,000 and back."""
    return _NUMBER.sub(_regrouped, text)


def _regrouped(match: re.Match[str]) -> str:
    number = match[0]
    return number.replace(",", "") if "," in number else _GROUP.sub(",", number)


def _names_in(text: str) -> Iterator[str]:
    end = 0
    for inside in _INSIDE.finditer(text):
        start = place = inside.start()
        if place < end:
            continue
        while start > max(end, place - _LONGEST_PART) and text[start - 1].isalnum():
            start -= 1
        match = _NAME.match(text, start)
        if match is not None:
            yield match[0]
            end = match.end()
