"""What tantivy's files hold: their schema, a document's entry, and queries for its fields."""

from __future__ import annotations

from collections.abc import Sequence

import tantivy
from tantivy import FieldType, PreTokenizedString, Query, Token

from mneme_server.engine.index.fields import TEXTS_OF, Field
from mneme_server.engine.index.waiting import WaitingDocument
from mneme_server.engine.index.words import Words

ID = "doc_id"
LANGUAGE = "language"
ANALYZER = "mneme_en"
_SESSION = "session"
_KIND = "kind"
_FIELDS = ",".join([*(field.value for field in Field), _SESSION, _KIND, LANGUAGE])


LAYOUT = f"8:{ANALYZER}:{_FIELDS}"
"""Names the form of the files; what has another one is built again when it is opened. Its number
grows when words are made otherwise."""


def schema() -> tantivy.Schema:
    """Return tantivy's schema."""
    builder = tantivy.SchemaBuilder()
    builder.add_integer_field(ID, indexed=True, fast=True)
    builder.add_text_field(_SESSION, tokenizer_name="raw", index_option="basic")
    builder.add_text_field(_KIND, tokenizer_name="raw", index_option="basic")
    builder.add_text_field(LANGUAGE, tokenizer_name="raw", index_option="basic")
    for field in Field:
        builder.add_text_field(field.value, tokenizer_name=ANALYZER, index_option="freq")
    return builder.build()


def entry(waiting: WaitingDocument, words: Words) -> tantivy.Document:
    """Return what is written of a document."""
    document, language = waiting.document, waiting.language
    # A number of another type than the schema's would kill the writer's thread at the next flush.
    made = tantivy.Document()
    made.add_integer(ID, document.doc_id)
    made.add_text(_KIND, document.kind.name)
    if document.session_id:
        made.add_text(_SESSION, document.session_id)
    if language:
        made.add_text(LANGUAGE, language)
        # The fields' own analyzer is the English one.
        for field in Field:
            made.add_pre_tokenized_text(field.value, _tokens(words.of(document, field, language)))
    else:
        spaced: dict[str, str] = {}  # What two fields have in common is worked off once.
        for field, texts_of in TEXTS_OF.items():
            texts = texts_of(document)
            spaced |= {text: words.spaced(text) for text in texts if text not in spaced}
            made.add_text(field.value, "\n".join([spaced[text] for text in texts]))
    return made


def _tokens(words: Sequence[str]) -> PreTokenizedString:
    return PreTokenizedString("", [Token(word, place, 0, 0) for place, word in enumerate(words)])


def term(schema: tantivy.Schema, field: Field, word: str, weight: float) -> Query:
    """Return what finds a word in a field."""
    query = Query.term_query(schema, field.value, word, "freq")
    return query if weight == 1.0 else Query.boost_query(query, weight)


def these(schema: tantivy.Schema, doc_ids: Sequence[int]) -> Query:
    """Return what finds documents by their ids."""
    return Query.term_set_query(schema, ID, doc_ids)


def between(schema: tantivy.Schema, first: int, last: int) -> Query:
    """Return what finds documents with ids from `first` to `last`."""
    return Query.range_query(schema, ID, FieldType.Integer, first, last)


def in_sessions(schema: tantivy.Schema, session_ids: Sequence[str]) -> Query:
    """Return what finds the documents of sessions."""
    return Query.term_set_query(schema, _SESSION, session_ids)


def of_kinds(schema: tantivy.Schema, names: Sequence[str]) -> Query:
    """Return what finds the documents of kinds of memory."""
    return Query.term_set_query(schema, _KIND, names)
