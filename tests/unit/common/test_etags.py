"""Etags: the same for the same content, another for any other."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest
from mneme_server.common.errors import Aborted, AlreadyExists, NotFound
from mneme_server.common.etags import etag_of, existing, require_etag, require_unchanged


@dataclass(frozen=True)
class Part:
    weight: float = 0.5


@dataclass(frozen=True)
class Thing:
    id: str = "one"
    text: str = "said"
    tags: tuple[str, ...] = ("a", "b")
    kinds: frozenset[str] = frozenset({"x", "y", "z"})
    part: Part | None = Part()
    vector: bytes = b"\x00\xff"
    uses: int = 0

    @property
    def etag(self) -> str:
        return etag_of(self, without=["uses"])


def test_an_etag_is_the_same_in_every_process() -> None:
    assert Thing().etag == "c130ac6fcdc0b8ec5f67602f9a117ab7"


@pytest.mark.parametrize(
    "changes",
    [
        {"id": "two"}, {"text": "said "}, {"tags": ("ab",)}, {"tags": ()}, {"kinds": frozenset()},
        {"part": None}, {"part": Part(0.25)}, {"vector": b""},
    ],
)  # fmt: skip
def test_any_other_content_has_another_etag(changes: dict[str, object]) -> None:
    assert replace(Thing(), **changes).etag != Thing().etag  # type: ignore[arg-type]


def test_what_goes_without_makes_no_difference() -> None:
    assert replace(Thing(), uses=7).etag == Thing().etag


def test_a_change_is_refused_with_another_etag_only() -> None:
    thing = Thing()
    require_etag("thing", thing, "")
    require_etag("thing", thing, thing.etag)
    with pytest.raises(Aborted, match="thing 'one' has changed: 'old' is no longer its etag"):
        require_etag("thing", thing, "old")


def test_what_is_there_is_returned_and_what_is_not_is_refused_by_its_field() -> None:
    thing = Thing()
    assert existing("thing", thing, "one", thing.etag) is thing
    with pytest.raises(Aborted):
        existing("thing", thing, "one", "old")
    with pytest.raises(NotFound, match="there is no thing 'two'") as refused:
        existing("thing", None, "two", field="thing_id")
    assert refused.value.field == "thing_id"


def test_the_same_again_is_taken_and_another_content_is_refused_by_its_fields() -> None:
    require_unchanged("thing", Thing(), [])
    with pytest.raises(AlreadyExists, match="thing 'one' exists with another text, metadata"):
        require_unchanged("thing", Thing(), ["text", "metadata_json"])
