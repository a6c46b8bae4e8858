"""The dashboard's files as browsers get them."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from mneme_server.edge.http.assets import Site, serve_site
from mneme_server.edge.http.request import Request
from starlette.requests import empty_receive, empty_send

PAGE = b"<!doctype html>" + b"<p>Mneme</p>" * 50
SCRIPT = b"console.log('Mneme');" * 50


@pytest.fixture
def site(tmp_path: Path) -> Site:
    folder = tmp_path / "dashboard"
    (folder / "assets").mkdir(parents=True)
    (folder / "index.html").write_bytes(PAGE)
    (folder / "theme.js").write_bytes(b"1")
    (folder / "assets" / "main-1a2b.js").write_bytes(SCRIPT)
    (folder / "assets" / "secret.pem").write_bytes(b"no kind that a page loads")
    (tmp_path / "outside.js").write_bytes(b"outside")
    return Site(folder)


class Got:
    """What a browser gets."""

    def __init__(self, site: Site, path: str, **headers: str) -> None:
        sent = [(k.replace("_", "-").encode(), v.encode()) for k, v in headers.items()]
        scope = {"type": "http", "method": "GET", "raw_path": path.encode(), "headers": sent}
        response = serve_site(site, Request(scope, empty_receive, empty_send))
        names = response.headers.keys()
        assert len(names) == len(set(names)), "no header is sent twice"
        self.status, self.body, self.headers = response.status_code, response.body, response.headers


@pytest.mark.parametrize(
    "path", ["/", "/lessons", "/sessions/s-42", "/sessions/a.b%2Fc", "/lessons/", "/no-such-page"]
)
def test_every_address_of_the_page_gets_the_page(site: Site, path: str) -> None:
    assert site.has(path)
    got = Got(site, path)
    assert (got.status, got.body) == (200, PAGE)
    assert got.headers["content-type"] == "text/html; charset=utf-8"
    assert got.headers["cache-control"] == "no-cache"


@pytest.mark.parametrize(
    "path",
    [
        "/api/lessons", "/api", "/v1/traces", "/mneme.v1.LearnService/GetLesson",
        "/grpc.health.v1.Health/Check",
        "/favicon.ico", "/.env", "/index.html/x", "/../outside.js",
    ],
)  # fmt: skip
def test_what_belongs_to_the_api_or_is_no_page_is_left_to_it(site: Site, path: str) -> None:
    assert not site.has(path)


def test_what_has_its_hash_in_its_name_is_kept_for_good(site: Site) -> None:
    got = Got(site, "/assets/main-1a2b.js")
    assert (got.status, got.body) == (200, SCRIPT)
    assert got.headers["content-type"] == "text/javascript; charset=utf-8"
    assert got.headers["cache-control"] == "public, max-age=31536000, immutable"


def test_a_file_of_a_fixed_name_is_asked_for_again(site: Site) -> None:
    assert site.has("/theme.js")
    got = Got(site, "/theme.js")
    assert (got.body, got.headers["cache-control"]) == (b"1", "no-cache")
    again = Got(site, "/theme.js", if_none_match=got.headers["etag"])
    assert (again.status, again.body) == (304, b"")


@pytest.mark.parametrize(
    "path",
    [
        "/assets/", "/assets/none.js", "/assets/secret.pem", "/assets/../index.html",
        "/assets/..%2f..%2foutside.js", "/assets//main-1a2b.js", "/assets/main-1a2b.js/",
    ],
)  # fmt: skip
def test_what_is_no_asset_is_not_found_rather_than_the_page(site: Site, path: str) -> None:
    assert site.has(path)
    got = Got(site, path)
    assert got.status == 404
    assert got.headers["content-type"] == "application/json"
    assert got.headers["cache-control"] == "no-store"


@pytest.mark.parametrize("accepted", ["gzip", "br, GZIP;q=0.5", "deflate, gzip, zstd"])
def test_files_are_sent_compressed_to_whoever_takes_that(site: Site, accepted: str) -> None:
    got = Got(site, "/assets/main-1a2b.js", accept_encoding=accepted)
    assert got.headers["content-encoding"] == "gzip"
    assert got.headers["vary"] == "accept-encoding"
    assert int(got.headers["content-length"]) == len(got.body) < len(SCRIPT)
    assert gzip.decompress(got.body) == SCRIPT


@pytest.mark.parametrize("accepted", ["", "br", "gzip;q=0", "xgzip"])
def test_files_are_sent_as_they_are_to_others(site: Site, accepted: str) -> None:
    got = Got(site, "/assets/main-1a2b.js", accept_encoding=accepted)
    assert "content-encoding" not in got.headers
    assert (got.headers["vary"], got.body) == ("accept-encoding", SCRIPT)


def test_the_page_may_do_nothing_but_run_its_own_files(site: Site) -> None:
    headers = Got(site, "/").headers
    policy = dict(part.split(" ", 1) for part in headers["content-security-policy"].split("; "))
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
    assert policy["frame-ancestors"] == policy["base-uri"] == policy["form-action"] == "'none'"
    assert policy["require-trusted-types-for"] == "'script'"
    assert "unsafe" not in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"


def test_an_installation_without_the_dashboard_says_how_to_build_it(tmp_path: Path) -> None:
    got = Got(Site(tmp_path / "nothing"), "/")
    assert got.status == 404
    assert b"make dashboard" in got.body
