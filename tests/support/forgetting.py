"""Planting what is to be forgotten, and looking for it in everything that a tenant left."""

from __future__ import annotations

import io
import json
import sqlite3
import tempfile
import zipfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import tantivy
from mneme.v1 import admin_service_pb2 as admin_pb
from mneme.v1 import context_service_pb2 as context_pb
from mneme.v1 import event_service_pb2 as events_pb
from mneme.v1 import forgetting_pb2 as pb
from mneme.v1 import memory_service_pb2 as memory_pb
from mneme.v1 import reflection_pb2 as reflection_pb
from mneme.v1 import skill_service_pb2 as skill_pb
from mneme_server.engine.index.words.analysis import WordField
from mneme_server.engine.index.words.files import LAYOUT, SavedWords, tantivy_schema

from support.api import Api
from support.making import at, episode, event, lesson, record, struct
from support.operations import finished
from support.server import LocalServer

GONE = "Zyxquörl"
USER = "user-of-violins-4711"
TOPICS = ("violins", "glaciers", "lanterns", "harbours")


def folder_of(server: LocalServer, api: Api) -> Path:
    """Return where a tenant's files are."""
    return Path(server.data_dir) / "tenants" / api.tenant_id


def preview(api: Api, **what: Any) -> pb.ForgetReceipt:
    """Tell what would be forgotten."""
    return finished(api, _request(what, dry_run=True))


def forget(api: Api, **what: Any) -> pb.ForgetReceipt:
    """Forget, and return the receipt."""
    return finished(api, _request(what))


def _request(what: dict[str, Any], **fields: Any) -> admin_pb.ForgetRequest:
    items = [pb.ForgetItem(kind=kind, id=one) for kind, one in what.pop("items", ())]
    if "filter" in what:
        what["filter"] = pb.ForgetFilter(**what["filter"])
    return admin_pb.ForgetRequest(items=items, **what, **fields)


def counts(receipt: pb.ForgetReceipt) -> dict[str, int]:
    """Return how many of each kind."""
    return {one.kind: one.count for one in receipt.counts}


def plant(api: Api, user: str, word: str, session: str) -> None:
    """Have every kind of thing say `word`, for a user with a session of this id."""
    agent = f"agent-of-{session}"
    start_session(api, session, user, agent)
    record(
        api,
        *(
            event(f"We spoke of {word}ing and {topic}", session=session, id=f"{session}-{number}",
                  payload=struct(note=f"a {word} in the payload"))
            for number, topic in enumerate(TOPICS)
        ),
        event(session=session, id=f"{session}-quiet", searchable=False,
              metadata=struct(said=f"{word} unheard")),
    )  # fmt: skip
    end_session(api, session)
    lesson(api, f"Mind the {word}", source_session_id=session, lesson_id=f"lesson-{session}",
           tags=[f"{word}-tag"])  # fmt: skip
    api.learn.CreateReflection(
        reflection_pb.CreateReflectionRequest(
            session_id=session, task_description=f"Tune the {word}", attempt_number=1,
            what_worked=[f"turning the {word}"], what_did_not_work=[f"hitting the {word}"],
            outcome="OUTCOME_SUCCESS",
        )
    )  # fmt: skip
    api.context.Sleep(context_pb.SleepRequest(session_id=session, progress=[f"tuned the {word}"]))
    api.memory.CreateMemory(
        memory_pb.CreateMemoryRequest(
            text=f"The {word} is kept in the attic", user_id=user, memory_id=f"memory-{session}",
            tags=[f"{word}-tag"], metadata=struct(place=f"{word} attic"),
        )
    )  # fmt: skip
    for number in range(4):
        episode(api, f"Repair the {word} of the string section", success=True, reward=1.0,
                user_id=user, episode_id=f"episode-{session}-{number}", output=f"the {word} sings",
                session_id=session, occurred_at=at(1_700_000_000 + number))  # fmt: skip
    api.skill.ConsolidateSkills(skill_pb.ConsolidateSkillsRequest(min_attempts=3))


def start_session(api: Api, session: str, user: str, agent: str = "someone") -> None:
    """Start a session of a user."""
    api.events.StartSession(
        events_pb.StartSessionRequest(
            session_id=session, user_id=user, agent_id=agent, project="attic"
        )
    )


def end_session(api: Api, session: str) -> None:
    """End a session."""
    api.events.EndSession(events_pb.EndSessionRequest(session_id=session))


def vectors_of(folder: Path, kind: str, source_id: str) -> list[bytes]:
    """Return the vectors of a memory as they are stored."""
    with sqlite3.connect(f"file:{folder / 'mneme.db'}?mode=ro", uri=True) as database:
        rows = database.execute(
            "SELECT v.vector FROM vectors v JOIN documents d USING (doc_id)"
            " WHERE d.kind = ? AND d.source_id = ?",
            (kind, source_id),
        )
        return [bytes(row[0]) for row in rows]


def spellings(word: str) -> list[bytes]:
    """Return the bytes that a word leaves: as it is, in JSON, in UTF-16, in lower case."""
    forms = {word, word.lower(), json.dumps(word)[1:-1], json.dumps(word.lower())[1:-1]}
    return [form.encode(code) for form in sorted(forms) for code in ("utf-8", "utf-16-le")]


def traces(folder: Path, needles: Sequence[bytes], stems: Sequence[str] = ()) -> list[str]:
    """Return where in a folder, in any file or inside what a file holds, something is found."""
    found = []
    for name, content in _contents(folder):
        lowered = content.lower()
        found += [f"{name}: {one!r}" for one in needles if one in content or one in lowered]
    for words in folder.rglob("lexical"):
        if (words / "manifest.json").exists():
            found += [f"{words}: the term {one}" for one in _terms(words, stems)]
    return found


def _contents(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Yield each file, and whatever archives databases hold, unpacked."""
    for file in sorted(folder.rglob("*")):
        if not file.is_file():
            continue
        yield str(file), file.read_bytes()
        if file.suffix == ".npz":
            yield from _unpacked(str(file), file.read_bytes())
    database = folder / "mneme.db"
    if database.exists():
        with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
            query = "SELECT session, data FROM learning_checkpoints"
            for session, data in connection.execute(query).fetchall():
                yield from _unpacked(f"checkpoint {session}", data)
            query = "SELECT session, data FROM learning_export_chunks ORDER BY session, number"
            exports: dict[int, bytes] = defaultdict(bytes)
            for session, data in connection.execute(query).fetchall():
                exports[session] += data
            for session, data in exports.items():
                yield from _unpacked(f"export {session}", data)


def _unpacked(name: str, data: bytes) -> Iterator[tuple[str, bytes]]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        for member in archive.namelist():
            yield f"{name}:{member}", archive.read(member)


def _terms(words: Path, stems: Sequence[str]) -> list[str]:
    """Return those stems that the copy of an index of words has a term for, also one that only
    documents have that were removed."""
    saved = SavedWords(words, LAYOUT)
    # tantivy may still be writing a lock file when it goes.
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as place:
        saved.restore(Path(place))
        index = tantivy.Index(tantivy_schema(), path=place)
        searcher = index.searcher()
        fields = [field.value for field in WordField] + ["session"]
        return [stem for stem in stems for field in fields if searcher.doc_freq(field, stem)]
