"""The dashboard that is part of the server is there, and whoever may ask for it gets it."""

from __future__ import annotations

import re
from pathlib import Path

import mneme_server.edge.http
import pytest
from support.http import Http
from support.server import LocalServer, local_server

BUILT = Path(mneme_server.edge.http.__file__).parent / "dashboard" / "index.html"
pytestmark = pytest.mark.skipif(not BUILT.exists(), reason="`make dashboard` needs Node.js")


@pytest.fixture
def anyone(server: LocalServer) -> Http:
    return Http(server.http_address)


def test_the_page_and_all_that_it_names_are_served_to_whoever_asks(anyone: Http) -> None:
    page = anyone.ask("GET", "/lessons")
    assert page.status_code == 200
    named = re.findall(r'(?:src|href)="(/[^"]+)"', page.text)
    assert any(name.startswith("/assets/") for name in named)
    for name in named:
        assert anyone.ask("GET", name).status_code == 200, name
    assert "http" not in "".join(re.findall(r'(?:src|href)="([^"/][^"]*)"', page.text))


def test_a_link_from_another_page_leads_to_the_dashboard_of_a_server_without_keys(
    tmp_path: Path,
) -> None:
    """Its files hold no data; calls from other pages stay refused."""
    with local_server(tmp_path, http_listen="127.0.0.1:0", auth="disabled") as running:
        http = Http(running.http_address)
        elsewhere = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}
        assert http.ask("GET", "/sessions/s-42", headers=elsewhere).status_code == 200
        assert http.ask("GET", "/api/lessons", headers=elsewhere).status_code == 403
        rebound = http.ask("GET", "/", headers={"host": "attacker.example"})
        assert rebound.status_code == 403
        assert http.get("/api/stats")["server"]["httpAddress"] == running.http_address
        http.close()


def test_the_head_of_a_page_is_told_without_it(anyone: Http) -> None:
    head = anyone.ask("HEAD", "/")
    assert (head.status_code, head.content) == (200, b"")
    assert int(head.headers["content-length"]) > 0
