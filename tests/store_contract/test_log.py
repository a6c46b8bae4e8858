"""The log: a leaf for every version of what can be recalled, in the transaction that wrote it."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from mneme_server.common.clock import now_us
from mneme_server.engine.corpus.tenant_store import TenantStore
from mneme_server.features.events.event_types import EVENT
from mneme_server.features.learn.model import LESSON
from mneme_server.features.proof.merkle import leaf_hash
from mneme_server.features.proof.model import Leaf
from mneme_server.features.proof.store.log import SqlLog
from mneme_server.features.proof.versions import commitment_of
from store_contract.conftest import Stores, document

Store = TenantStore[Any]


def _add(store: Store, *names: str, **fields: Any) -> None:
    with store.write() as unit:
        unit.documents.add([document(name, LESSON, **fields) for name in names])


def _events(store: Store, *names: str) -> None:
    with store.write() as unit:
        unit.documents.add([document(name, EVENT, commitment=name.encode() * 32) for name in names])


def _leaves(store: Store, name: str, kind: str = "lesson") -> list[Leaf]:
    with store.read() as unit:
        return list(unit.get(SqlLog).leaves_of(kind, [name]).get(name, []))


def _size(store: Store) -> int:
    with store.read() as unit:
        return int(unit.get(SqlLog).size())


def test_a_new_item_is_a_leaf_that_commits_to_its_content(stores: Stores) -> None:
    acme, rival = stores.open("acme"), stores.open("rival")
    _add(acme, "a", "b")
    _add(rival, "a")
    (leaf,) = _leaves(acme, "b")
    assert leaf.index == 1
    assert '"text":"what b says"' in leaf.content
    assert leaf.commitment == commitment_of(leaf.salt, leaf.content)
    assert leaf.hash == leaf_hash(leaf.commitment)
    assert _leaves(rival, "a")[0].salt != _leaves(acme, "a")[0].salt
    assert (_size(acme), _size(rival)) == (2, 1)


def test_events_come_with_commitments_and_are_found_by_their_documents(store: Store) -> None:
    _events(store, *"abc")
    _add(store, "between")
    _events(store, *"de")
    for index, name in enumerate("abc-de"):
        if name != "-":
            (leaf,) = _leaves(store, name, "event")
            assert (leaf.index, leaf.hash) == (index, leaf_hash(name.encode() * 32))
    with store.read() as unit:
        assert unit.get(SqlLog).at(4).source_id == "d"
        assert unit.get(SqlLog).at(3).source_id == "between"
        assert unit.get(SqlLog).at(6) is None


def test_every_version_is_a_leaf_and_only_the_newest_can_be_shown(store: Store) -> None:
    _add(store, "a")
    with store.write() as unit:
        unit.documents.set_archived(LESSON, "a", archived=True)
    with store.write() as unit:
        unit.documents.remove(LESSON, ["a"])
        unit.documents.add([document("a", LESSON, category="new")])
    first, archived, replaced = _leaves(store, "a")
    assert [one.content for one in (first, archived)] == ["", ""]
    assert (first.salt, archived.salt) == (b"", b"")
    assert '"category":"new"' in replaced.content
    assert len({first.commitment, archived.commitment, replaced.commitment}) == 3


def test_a_removal_is_a_leaf_that_says_so(store: Store) -> None:
    _add(store, "a")
    with store.write() as unit:
        unit.documents.remove(LESSON, ["a", "unknown"])
    first, removed = _leaves(store, "a")
    assert first.content == ""
    assert '"removed_at":' in removed.content
    assert _size(store) == 2


def test_what_a_session_gives_its_events_is_no_new_version_of_them(store: Store) -> None:
    with store.write() as unit:
        unit.documents.add([document("a", EVENT, session_id="s", commitment=b"c" * 32)])
        unit.documents.set_session(EVENT, "s", user_id="u", project="p", tags=("t",))
    with store.write() as unit:
        unit.documents.set_session(EVENT, "s", user_id="u", project="q", tags=())
    assert _size(store) == 1


def test_the_newest_leaf_of_each_item_is_found_whatever_came_before_it(store: Store) -> None:
    _events(store, "e0", "e1")
    _add(store, *"abc")
    _events(store, "e2", "e3")
    for archived in (True, False):
        with store.write() as unit:
            unit.documents.set_archived(LESSON, "b", archived=archived)
    with store.read() as unit:
        newest = unit.get(SqlLog).newest("lesson", ["c", "b", "unknown", "a"])
        assert {name: leaf.index for name, leaf in newest.items()} == {"a": 2, "b": 8, "c": 4}
        assert all(leaf.content and leaf.hash == unit.get(SqlLog).at(leaf.index).hash
                   for leaf in newest.values())  # fmt: skip
        events = unit.get(SqlLog).newest("event", ["e3", "unknown", "e0", "e2"])
        assert {name: leaf.index for name, leaf in events.items()} == {"e0": 0, "e2": 5, "e3": 6}
        assert events["e3"].hash == leaf_hash(b"e3" * 32)
        assert not unit.get(SqlLog).newest("lesson", ["e0"])
        assert not unit.get(SqlLog).newest("lesson", [])


def test_whether_any_leaf_of_some_was_forgotten_is_told(store: Store) -> None:
    _add(store, *"abc")
    _events(store, "e0", "e1")
    with store.write() as unit:
        unit.get(SqlLog).forget("lesson", ["b"], 7)
        unit.get(SqlLog).forget("event", ["e1"], 8)
        unit.documents.remove(LESSON, ["b"])
        unit.documents.remove(EVENT, ["e1"])
    with store.read() as unit:
        assert [unit.get(SqlLog).any_forgotten([0, 2, 3, one]) for one in (0, 1, 2, 3, 4, 99)] == [
            False, True, False, False, True, False,
        ]  # fmt: skip
        assert not unit.get(SqlLog).any_forgotten([])


def test_a_transaction_that_is_undone_leaves_no_leaf(store: Store) -> None:
    _add(store, "a")
    with store.read() as unit:
        root = unit.get(SqlLog).tree().root()
    with suppress(KeyError), store.write() as unit:
        unit.documents.add([document("undone", LESSON)])
        unit.seal()
        assert unit.get(SqlLog).size() == 2
        raise KeyError
    with store.read() as unit:
        assert (unit.get(SqlLog).size(), unit.get(SqlLog).tree().root()) == (1, root)


def test_what_is_added_and_removed_at_once_was_never_there(store: Store) -> None:
    with store.write() as unit:
        unit.documents.add([document("a", LESSON), document("b", LESSON)])
        unit.documents.remove(LESSON, ["a"])
    assert _leaves(store, "b")
    assert [leaf.content[:12] for leaf in _leaves(store, "a")] == []


def test_the_feed_covers_the_commitments_of_all_kinds(store: Store) -> None:
    _add(store, "a", "b")
    with store.read() as unit:
        (row,) = unit.feed.changes_after(unit.feed.head()._replace(number=0, mark=0), 9)
    assert len(row.kinds[0].commitment) == 64


def test_forgetting_erases_salt_content_and_id_and_keeps_the_tree(store: Store) -> None:
    _add(store, "a", "b")
    _events(store, "e")
    with store.write() as unit:
        unit.documents.set_archived(LESSON, "a", archived=True)
    with store.read() as unit:
        root, size = unit.get(SqlLog).tree().root(), unit.get(SqlLog).size()
    with store.write() as unit:
        gone = unit.get(SqlLog).forget("lesson", ["a", "unknown"], 7)
        gone |= unit.get(SqlLog).forget("event", ["e"], 8)
        unit.documents.remove(LESSON, ["a"])
        unit.documents.remove(EVENT, ["e"])
    assert {name: [leaf.index for leaf in leaves] for name, leaves in gone.items()} == {
        "a": [0, 3], "e": [2],
    }  # fmt: skip
    with store.read() as unit:
        assert (unit.get(SqlLog).size(), unit.get(SqlLog).tree().root()) == (size, root)
        for index, when in ((0, 7), (3, 7), (2, 8)):
            leaf = unit.get(SqlLog).at(index)
            assert (leaf.source_id, leaf.salt, leaf.content) == ("", b"", "")
            assert leaf.forgotten_us == when
        assert unit.get(SqlLog).at(1).forgotten_us is None
        assert not unit.get(SqlLog).leaves_of("lesson", ["a"])


def test_what_is_stored_again_after_it_was_forgotten_is_logged_anew(store: Store) -> None:
    _add(store, "a")
    with store.write() as unit:
        unit.get(SqlLog).forget("lesson", ["a"], now_us())
        unit.documents.remove(LESSON, ["a"])
    _add(store, "a")
    assert [leaf.index for leaf in _leaves(store, "a")] == [1]
