"""Documents as the values of columns, where names stand as numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from mneme_server.engine.corpus.document import Document
from mneme_server.engine.index.attributes import author_of, fingerprint
from mneme_server.engine.index.codes import Codes, NameCodes
from mneme_server.engine.index.tags import TagSets
from mneme_server.engine.index.words.languages import asks, count_words

AnyCodes: TypeAlias = Codes | TagSets


class Coding:
    """What the numbers in columns stand for. One writer; readers need no lock."""

    def __init__(self) -> None:
        self.tags, self.authors = TagSets(), NameCodes()
        self.kinds, self.sessions, self.roles = Codes(), Codes(), Codes()
        self.agents, self.users, self.projects = Codes(), Codes(), Codes()
        self.categories, self.types, self.names = Codes(), Codes(), Codes()
        self.of_columns: Mapping[str, AnyCodes] = {
            "kind": self.kinds, "session": self.sessions, "agent": self.agents,
            "user": self.users, "project": self.projects, "category": self.categories,
            "author": self.authors, "type": self.types, "name": self.names,
            "role": self.roles, "tags": self.tags,
        }  # fmt: skip
        """By the columns' names."""

    def values(self, documents: Sequence[Document]) -> Mapping[str, Sequence[Any]]:
        """Return what stands of documents in each column, by the columns' names."""
        return {
            "doc_id": [d.doc_id for d in documents],
            "kind": [self.kinds[d.kind.name] for d in documents],
            "session": [self.sessions[d.session_id] for d in documents],
            "position": [d.position for d in documents],
            "timestamp_us": [d.timestamp_us for d in documents],
            "importance": [d.importance for d in documents],
            "words": [count_words(d.text) for d in documents],
            "asks": [asks(d.text) for d in documents],
            "spoken": [d.spoken for d in documents],
            "failed": [d.failed for d in documents],
            "author": [self.authors[author_of(d)] for d in documents],
            "agent": [self.agents[d.agent_id] for d in documents],
            "user": [self.users[d.user_id] for d in documents],
            "project": [self.projects[d.project] for d in documents],
            "category": [self.categories[d.category] for d in documents],
            "type": [self.types[d.type] for d in documents],
            "name": [self.names[d.name] for d in documents],
            "role": [self.roles[d.role] for d in documents],
            "severity": [d.severity for d in documents],
            "shape": [d.shape for d in documents],
            "value": [d.value for d in documents],
            "archived": [d.archived for d in documents],
            "fingerprint": [fingerprint(d.text) for d in documents],
            "tags": [self.tags[d.tags] for d in documents],
        }
