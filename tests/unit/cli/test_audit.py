"""`mneme audit`: whoever kept a head is not shown another history, whoever holds the key."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from mneme import MnemeClient
from mneme.proof import auditing, open_checkpoint
from mneme.proof.notes import NoteInvalid
from support.showing import ORIGIN, Key, Shown
from unit.cli.command import Result, mneme
from unit.client.scripted import ScriptedServer

LEAVES = tuple(f"leaf {number}" for number in range(7))


@pytest.fixture
def shown(served: ScriptedServer) -> Shown:
    made = Shown(*LEAVES)
    made.script(served)
    return made


@pytest.fixture
def heads(tmp_path: Path) -> Path:
    return tmp_path / "state" / "heads.json"


def audit(heads: Path, *options: str) -> Result:
    return mneme("audit", "--heads", str(heads), *options)


def kept(heads: Path) -> str:
    """Return the note of the head that is kept."""
    (one,) = json.loads(heads.read_text()).values()
    return str(one["note"])


def test_the_first_head_is_kept_and_its_key_is_to_be_compared(shown: Shown, heads: Path) -> None:
    result = audit(heads)
    assert (result.code, kept(heads)) == (0, shown.head())
    assert f"{shown.origin} has 7 leaves; its head is kept in {heads}" in result.out
    assert f"compare the key with what the operator says: {shown.keys[0].verifier}" in result.err


@pytest.mark.parametrize("more", range(4))
def test_a_log_that_only_grew_passes_and_its_newest_head_is_kept(
    shown: Shown, heads: Path, more: int
) -> None:
    audit(heads)
    shown.leaves = [*LEAVES, *(f"more {number}" for number in range(more))]
    result = audit(heads)
    assert result.out == (
        f"{shown.origin} has {7 + more} leaves, and begins with all that it had before\n"
    )
    assert (result.code, kept(heads)) == (0, shown.head())
    told = json.loads(audit(heads, "--json").out)
    assert (told["origin"], told["size"]) == (shown.origin, 7 + more)


def changed(shown: Shown) -> None:
    shown.leaves = ["another", *LEAVES[1:], "and one more"]


def changed_at_the_end(shown: Shown) -> None:
    shown.leaves = [*LEAVES[:-1], "another"]


def forked(shown: Shown) -> None:
    shown.leaves = [*LEAVES[:5], "one", "history", "for", "you"]


def without_one(shown: Shown) -> None:
    shown.leaves = [*LEAVES[:3], *LEAVES[4:], "in its place", "and one more"]


def cut(shown: Shown) -> None:
    shown.leaves = LEAVES[:-1]


def emptied(shown: Shown) -> None:
    shown.leaves = []


def signed_by_a_stranger(shown: Shown) -> None:
    shown.leaves = [*LEAVES, "more"]
    shown.rotate(introduced=False)


def signed_by_another_at_once(shown: Shown) -> None:
    shown.keys = [Key()]


def renamed(shown: Shown) -> None:
    shown.origin = "mneme/acme/second"


@pytest.mark.parametrize(
    ("lie", "said"),
    [
        (changed, "the log was rewritten or forked"),
        (changed_at_the_end, "two heads of one size differ"),
        (forked, "the log was rewritten or forked"),
        (without_one, "the log was rewritten or forked"),
        (cut, "the log has 6 leaves, and had 7: leaves were dropped"),
        (emptied, "the log has 0 leaves, and had 7: leaves were dropped"),
        (signed_by_a_stranger, "signed by a key that the known one did not introduce"),
        (signed_by_another_at_once, "signed by a key that the known one did not introduce"),
        (renamed, "mneme/acme/second took the place of mneme/acme/first"),
    ],
)
def test_another_history_is_caught_and_the_last_head_stays(
    shown: Shown, heads: Path, lie: Callable[[Shown], None], said: str
) -> None:
    audit(heads)
    before, keys = kept(heads), shown.keys
    lie(shown)
    for _ in range(2):  # Nor is it believed the second time.
        result = audit(heads)
        assert (result.code, kept(heads)) == (1, before)
        assert said in result.out
    shown.leaves, shown.origin, shown.keys = [*LEAVES, "more"], ORIGIN, keys[:1]
    assert audit(heads).code == 0, "nor is the truth refused afterwards"


def test_a_key_is_followed_to_those_that_it_introduced(shown: Shown, heads: Path) -> None:
    audit(heads)
    for number in range(3):
        shown.rotate()
        shown.leaves = [*shown.leaves, f"more {number}"]
    assert audit(heads).code == 0
    (one,) = json.loads(heads.read_text()).values()
    assert one["key"] == str(shown.keys[-1].verifier)
    with pytest.raises(NoteInvalid):
        open_checkpoint(one["note"], [shown.keys[0].verifier])


def test_a_new_log_is_gone_on_with_when_that_is_said(shown: Shown, heads: Path) -> None:
    audit(heads)
    shown.previous, shown.origin = shown.head(), "mneme/acme/second"
    shown.leaves = ["begun anew"]
    refused = audit(heads)
    assert refused.code == 1
    assert "it names the head that was kept, of 7 leaves" in refused.out
    assert "--accept-new-log" in refused.err
    assert audit(heads, "--accept-new-log").code == 0
    assert kept(heads) == shown.head()
    assert audit(heads).code == 0


def test_a_new_log_is_not_taken_from_a_stranger(shown: Shown, heads: Path) -> None:
    audit(heads)
    before = kept(heads)
    shown.origin, shown.keys = "mneme/acme/second", [Key()]
    result = audit(heads, "--accept-new-log")
    assert (result.code, kept(heads)) == (1, before)
    assert "signed by a key that the known one did not introduce" in result.out


@pytest.mark.parametrize(
    ("before", "said"),
    [
        (None, "it does not name the head that was kept"),
        (LEAVES[:4], "it names a head of 4 leaves, 7 were kept"),
    ],
)
def test_what_a_new_log_says_of_the_one_before_it_is_told(
    served: ScriptedServer, shown: Shown, before: list[str] | None, said: str
) -> None:
    with MnemeClient(served.address) as client:
        _, seen = auditing.audit(client, None)
        if before is not None:
            shown.leaves = before
            shown.previous = shown.head()
        shown.origin = "mneme/acme/second"
        with pytest.raises(auditing.LogBegunAnew, match=said) as anew:
            auditing.audit(client, seen)
    assert anew.value.kept.note == anew.value.head.note == shown.head()


def test_heads_of_several_logs_are_kept_beside_each_other(shown: Shown, heads: Path) -> None:
    audit(heads)
    shown.origin = "mneme/rival/other"
    assert audit(heads).code == 0
    assert len(json.loads(heads.read_text())) == 2


@pytest.mark.parametrize("stored", ["", "[]", '{"one": {}}', '{"one": 1}', "\udcff"])
def test_heads_that_cannot_be_read_are_not_written_over(
    shown: Shown, heads: Path, stored: str
) -> None:
    heads.parent.mkdir()
    raw = stored.encode(errors="surrogateescape")
    heads.write_bytes(raw)
    result = audit(heads)
    assert (result.code, heads.read_bytes()) == (2, raw)
    assert "cannot be read; it held the heads that were kept" in result.err
