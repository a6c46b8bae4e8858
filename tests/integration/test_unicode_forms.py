"""A text is one text whether its accents are characters of their own (NFD, as in names of files on
macOS) or not (NFC): it is found, known and forgotten in either form, and comes back as it came."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mneme import MnemeClient
from mneme.v1 import auth_pb2
from support.api import Api
from support.forgetting import counts, forget, start_session
from support.http import Http
from support.making import event, list_events, record, struct
from support.server import LocalServer

WORDS = ["Brücke", "서울", "が", "Hiếu", "Ångström", "naïveté"]
in_each_form = pytest.mark.parametrize(("kept", "asked"), [("NFC", "NFD"), ("NFD", "NFC")])


def form(name: str, text: str) -> str:
    return unicodedata.normalize(name, text)  # type: ignore[arg-type]


@pytest.fixture
def client(server: LocalServer, api: Api) -> Iterator[MnemeClient]:
    with MnemeClient(server.address, api_key=api.secret) as client:
        yield client


@pytest.mark.parametrize("word", WORDS)
@in_each_form
def test_a_word_is_found_in_the_other_form(
    client: MnemeClient, word: str, kept: str, asked: str
) -> None:
    text = f"the file {form(kept, word)}.pdf"
    client.remember(text)
    for mode in ("lexical", "hybrid"):
        found = client.recall(form(asked, word), mode=mode).results
        assert [one.text for one in found] == [text]


@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(st.lists(st.sampled_from([*WORDS, "e\u0323\u0302", "Å", "plain", "ﬁ"]), min_size=1))
def test_a_text_is_known_in_each_form_and_kept_as_it_was_first_given(
    client: MnemeClient, words: list[str]
) -> None:
    mixed = " ".join(form("NFD" if place % 2 else "NFC", one) for place, one in enumerate(words))
    first = client.remember(mixed)
    stored = client.get_memory(first.memory.id).memory.text
    assert form("NFC", stored) == form("NFC", mixed)
    assert first.already_known or stored == mixed
    for name in ("NFC", "NFD"):
        again = client.remember(form(name, mixed))
        assert (again.memory.id, again.already_known) == (first.memory.id, True)


@in_each_form
def test_names_are_the_same_in_each_form_over_grpc_and_http(
    server: LocalServer, api: Api, client: MnemeClient, kept: str, asked: str
) -> None:
    name, other = form(kept, "José"), form(asked, "José")
    client.remember("lives in Oslo", user_id=name, project=name, tags=[name], memory_id=name)
    by = [{"user_id": other}, {"project": other}, {"tags": [other]}, {"any_tags": [other]}]
    for filter_ in by:
        assert len(client.list_memories(filter=filter_).memories) == 1
    assert client.get_memory(other).memory.user_id == "José"
    assert len(client.recall("Oslo", user_id=other, tags=[other]).results) == 1
    http = Http(server.http_address, api.secret)
    found = http.connect("RecallService/Recall", {"query": "Oslo", "userId": other}).json()
    assert len(found["results"]) == 1
    assert http.get(f"/api/memories/{other}")["userId"] == "José"


@in_each_form
def test_a_user_is_forgotten_in_each_form_wherever_an_event_names_them(
    server: LocalServer, kept: str, asked: str
) -> None:
    api = server.keys.tenant(f"forms-{kept.lower()}", *auth_pb2.KeyScope.values()[1:])
    name = form(kept, "Zoë")
    start_session(api, "shared", "bob")
    record(api, event("of bob", session="shared", id="bobs"))
    record(api, event("hers", session="shared", metadata=struct(user_id=name)))
    quiet = event("quiet", session="shared", searchable=False, metadata=struct(userId=name))
    record(api, quiet)
    assert counts(forget(api, user_id=form(asked, "Zoë")))["event"] == 2
    assert [one.id for one in list_events(api)] == ["bobs"]
