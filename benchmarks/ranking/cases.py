"""What recall knows of each question of the sets before it ranks, kept, so that a ranking is tried
on all of them in seconds.

Candidates depend neither on the weights nor on the terms. They are found by the server's own code
among recorded and embedded sets, and ranked by the server's own code again.
"""

from __future__ import annotations

import hashlib
import pickle
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, fields
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from mneme_server.engine.corpus.document import Document, DocumentFilter
from mneme_server.engine.corpus.ports import WordEvidence
from mneme_server.features.recall.confidence import words_of
from mneme_server.features.recall.hybrid import CandidateSet, search_hybrid
from mneme_server.features.recall.model import RecallMode
from mneme_server.features.recall.query import as_asked
from mneme_server.features.recall.ranking import Candidates
from mneme_server.features.recall.search import as_spelled

from benchmarks.ranking.judging import SEARCHED, asking
from benchmarks.ranking.sets import READERS, Asked, Talk
from benchmarks.ranking.store import Store, record, stored, tenant_of
from benchmarks.server import ROOT

OWN, OTHER, SAME, NEAR, FOREIGN = "own", "another set", "the same kind", "near", "foreign"
"""Where a question is asked: where it is answered, in a store of another set, in another one of its
own; and where nothing answers it: on the same subject, and on another."""
# What candidates and their measures are made by; not what ranks them.
_SOURCES = (
    *(f"server/mneme_server/features/recall/{name}.py"
      for name in ("dates", "hybrid", "query", "search", "spelling")),
    "server/mneme_server/engine/index/**/*.py",
    "server/mneme_server/engine/corpus/*.py",
    "benchmarks/ranking/cases.py",
    "benchmarks/ranking/sets.py",
)  # fmt: skip
_COLUMNS = ("doc_id", "kind", "session", "position", "timestamp_us", "fingerprint", "shape",
            "failed")  # fmt: skip

Say = Callable[[str], None]


@dataclass(frozen=True)
class Held:
    """What a tenant holds: columns as recall reads them, and documents by id."""

    columns: Any
    documents: Mapping[int, Document]


@dataclass(frozen=True)
class Case:
    """A question in a place, and what is found for it there.

    `of` and `talk` name its set and whose question it is, `place` those of the store, `where` how
    the two belong together.
    """

    of: str
    talk: str
    where: str
    asked: Asked
    place: tuple[str, str]
    found: CandidateSet
    words: WordEvidence


@dataclass
class Cases:
    """All questions, and what the stores hold, by set and talk; `answers` are the server's own, by
    set, talk and question."""

    cases: list[Case] = field(default_factory=list)
    held: dict[tuple[str, str], Held] = field(default_factory=dict)
    answers: dict[tuple[str, str, str], Sequence[str]] = field(default_factory=dict)


def cases_of(files: Mapping[str, Path], embedder: str, say: Say) -> Cases:
    """Return the cases of these sets: those that are kept, if they are of these files and this
    code."""
    cache = ROOT / ".cache" / "bench"
    kept = cache / f"cases-{_digest(files, embedder)}.pickle"
    if not kept.exists():
        for old in cache.glob("cases-*.pickle"):
            old.unlink()
        found = _collected(cache, files, embedder, say)
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_bytes(pickle.dumps(found))
    found = pickle.loads(kept.read_bytes())  # Written above.
    assert isinstance(found, Cases)
    return found


def _collected(cache: Path, files: Mapping[str, Path], embedder: str, say: Say) -> Cases:
    sets = {of: READERS[of](file) for of, file in files.items()}
    with ExitStack() as opened:
        stores = {
            of: opened.enter_context(stored(
                cache, of, file, embedder,
                lambda store, talks=sets[of]: record(store, talks), say,  # type: ignore[misc]
            ))
            for of, file in files.items()
        }  # fmt: skip
        found = Cases()
        for of, talks in sets.items():
            say(f"{of}: asking")
            for talk in talks:
                _ask(found, stores, sets, of, talk)
    return found


def _ask(
    found: Cases,
    stores: Mapping[str, Store],
    sets: Mapping[str, Sequence[Talk]],
    of: str,
    talk: Talk,
) -> None:
    chance = random.Random(f"{of} {talk.id}")
    found.held[of, talk.id] = _held(stores[of], talk)
    for asked in talk.questions:
        for where, whose, place in _places(sets, of, talk, chance):
            found.cases.append(_case(stores[whose], (whose, place), of, talk, where, asked))
        answer = asking(stores[of], RecallMode.HYBRID)(tenant_of(talk), asked.text)
        found.answers[of, talk.id, asked.text] = answer
    for where, texts in ((NEAR, talk.near), (FOREIGN, talk.foreign)):
        for text in texts:
            asked = Asked(text, frozenset())
            found.cases.append(_case(stores[of], (of, talk), of, talk, where, asked))


def _places(
    sets: Mapping[str, Sequence[Talk]], of: str, talk: Talk, chance: random.Random
) -> Iterator[tuple[str, str, Talk]]:
    yield OWN, of, talk
    for others in sorted(sets.keys() - {of}):
        yield OTHER, others, chance.choice(sets[others])
    alike = [one for one in sets[of] if one is not talk]
    if alike:
        yield SAME, of, chance.choice(alike)


def _case(
    store: Store, place: tuple[str, Talk], of: str, talk: Talk, where: str, asked: Asked
) -> Case:
    whose, there = place
    recall = store.recall
    with recall.tenants.open(tenant_of(there)) as memory:
        index = memory.index
        selection = index.select(DocumentFilter(kinds=SEARCHED))
        text = as_spelled(index, asked.text, selection)
        vectors = recall.embedder.begin([as_asked(text)])
        words = words_of(index, text, selection)
        found = search_hybrid(
            index, text, vectors, selection, words=lambda: words, scale=recall.scale
        )
    return Case(of, talk.id, where, asked, (whose, there.id), found, words)


def _held(store: Store, talk: Talk) -> Held:
    with store.recall.tenants.open(tenant_of(talk)) as memory:
        columns = memory.index.columns
        kept = {name: np.array(getattr(columns, name)[: columns.size]) for name in _COLUMNS}
        with memory.reading_shown() as reader:
            views = reader.get_many(kept["doc_id"].tolist(), bare=True)
    return Held(SimpleNamespace(**kept), {key: view.document for key, view in views.items()})


def _digest(files: Mapping[str, Path], embedder: str) -> str:
    digest = hashlib.sha256(embedder.encode())
    digest.update(repr([one.name for one in fields(Candidates)]).encode())
    for pattern in _SOURCES:
        for path in sorted(ROOT.glob(pattern)):
            digest.update(path.read_bytes())
    for name, file in sorted(files.items()):
        digest.update(f"{name} {file.resolve()} {file.stat().st_mtime_ns}".encode())
    return digest.hexdigest()[:12]
