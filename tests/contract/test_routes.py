"""The paths of RPCs over HTTP, as their schemas state them."""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import quote

import pytest
from google.protobuf.descriptor_pb2 import MethodOptions
from mneme_server.edge.http.routes import Route, RouteError, Router, routes_of, values_in
from support.api import METHODS
from support.descriptors import services

ROUTES = tuple(routes_of(services()))
LETTERS = set("abcdefghijklmnopqrstuvwxyz-")


def found(path: str, verb: str = "GET") -> Route:
    return Router(ROUTES).find(path)[verb]


@pytest.mark.parametrize("rpc", sorted(METHODS))
def test_every_rpc_has_a_path_over_http(rpc: str) -> None:
    method = METHODS[rpc]
    assert [route for route in ROUTES if route.method is method]


def test_no_request_could_be_meant_for_two_rpcs() -> None:
    Router(ROUTES)


def test_two_routes_that_would_take_the_same_request_are_refused_by_name() -> None:
    get, other = found("/api/lessons/1"), found("/api/skills/1")
    other = Route(
        "GET", "/api/{x}/1", ("api", ("skill_id",), "1"), "", "", other.method, primary=True
    )
    with pytest.raises(RouteError, match=r"SkillService.GetSkill would take what /api/lessons/"):
        Router([get, other])


def test_get_is_never_the_verb_of_what_may_act_twice() -> None:
    gets = [route for route in ROUTES if route.verb == "GET"]
    assert gets
    assert [
        route.template
        for route in gets
        if route.method.GetOptions().idempotency_level == MethodOptions.IDEMPOTENCY_UNKNOWN
    ] == []


def test_fixed_parts_of_paths_are_words_in_lower_case() -> None:
    parts = {part for route in ROUTES for part in route.segments if isinstance(part, str)}
    assert [part for part in parts if not set(part) <= LETTERS] == []


@pytest.mark.parametrize(
    "identifier", ["a/b", "a:b", "100%", "two words", "ü", "..", "a?b#c", "%2F"]
)
def test_an_id_may_hold_any_character_when_it_is_encoded(identifier: str) -> None:
    path = f"/api/operations/{quote(identifier, safe='')}/wait"
    route = found(path)
    assert route.method.name == "WaitOperation"
    assert dict(values_in(route, path)) == {("operation_id",): identifier}


@pytest.mark.parametrize("path", ["/api/lessons/", "/api", "/", "", "/api/lessons/1/2/3", "/x"])
def test_a_path_that_no_rpc_has_leads_nowhere(path: str) -> None:
    assert Router(ROUTES).find(path) == {}


def test_a_path_tells_all_its_verbs() -> None:
    assert names(Router(ROUTES).find("/api/lessons/1").values()) == [
        "ArchiveLesson",
        "GetLesson",
        "UpdateLesson",
    ]


def names(routes: Iterable[Route]) -> list[str]:
    return sorted(route.method.name for route in routes)
