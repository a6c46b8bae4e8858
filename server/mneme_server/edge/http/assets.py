"""The dashboard's files: the page, which every address of it gets, and what the page loads."""

from __future__ import annotations

import gzip
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from importlib.resources.abc import Traversable
from pathlib import PurePosixPath

import grpc
from starlette.responses import Response

from mneme_server.edge.http import errors
from mneme_server.edge.http.answer import answer, failed
from mneme_server.edge.http.request import Request

PAGE_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "connect-src 'self'",
        "img-src 'self' data:",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        # What is stored is hostile: not even our own code may make HTML or scripts out of texts.
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    )
)
"""All that the page may do is run its own files and call its own server."""

_PAGE = "index.html"
_ASSETS = "assets"
_CALLED = ("api", "v1", _ASSETS)
"""What paths that no page has begin with; besides, none has a dot there, as services have."""
_KINDS = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".woff2": "font/woff2",
}
_SMALL_ALREADY = (".png", ".woff2")


@dataclass(frozen=True, slots=True)
class Asset:
    """A file as it is sent; `gzipped` is empty where that saves nothing."""

    name: str
    kind: str
    body: bytes
    gzipped: bytes
    etag: str

    @property
    def cached(self) -> str:
        """How long it may be kept: what the page loads has its content's hash in its name."""
        hashed = self.name.startswith(f"{_ASSETS}/")
        return "public, max-age=31536000, immutable" if hashed else "no-cache"


class Site:
    """The files below a folder, each read and compressed once.

    Args:
        folder: has `index.html`, other files of fixed names, and `assets/` with files that have
            their content's hash in their names. It may be missing: then nothing is found.
    """

    def __init__(self, folder: Traversable) -> None:
        self._folder = folder
        self._held: dict[str, Asset] = {}

    def has(self, raw_path: str) -> bool:
        """Tell whether a path is the page's, or is where its files are."""
        first, _, rest = raw_path[1:].partition("/")
        if "." in first:
            return not rest and first in self._names
        return first == _ASSETS or first not in _CALLED

    def find(self, raw_path: str) -> Asset | None:
        """Return the file for a path; None if there is none."""
        first = raw_path[1:].partition("/")[0]
        name = raw_path[1:] if first == _ASSETS or first in self._names else _PAGE
        held = self._held.get(name)
        if held is None and name in self._names:
            held = self._held[name] = self._read(name)
        return held

    @cached_property
    def _names(self) -> frozenset[str]:
        """The files that there are: no path leads anywhere else."""
        found = {one.name for one in _files_in(self._folder)}
        found |= {f"{_ASSETS}/{one.name}" for one in _files_in(self._folder / _ASSETS)}
        return frozenset(name for name in found if PurePosixPath(name).suffix in _KINDS)

    def _read(self, name: str) -> Asset:
        body = self._folder.joinpath(*name.split("/")).read_bytes()
        suffix = PurePosixPath(name).suffix
        smaller = b"" if suffix in _SMALL_ALREADY else gzip.compress(body, 9, mtime=0)
        return Asset(
            name,
            _KINDS[suffix],
            body,
            smaller if len(smaller) < len(body) else b"",
            f'"{sha256(body).hexdigest()[:32]}"',
        )


def serve_site(site: Site, request: Request) -> Response:
    """Return the file that a request is for."""
    asset = site.find(request.raw_path)
    if asset is None:
        status = errors.plain_status(grpc.StatusCode.NOT_FOUND, _missing(request))
        return failed(request, status)
    headers = {
        "cache-control": asset.cached,
        "etag": asset.etag,
        "content-security-policy": PAGE_POLICY,
        "referrer-policy": "no-referrer",
        "cross-origin-opener-policy": "same-origin",
        "cross-origin-resource-policy": "same-origin",
    }
    body = asset.body
    if asset.gzipped:
        headers["vary"] = "accept-encoding"
        if _takes_gzip(request.header("accept-encoding")):
            headers["content-encoding"] = "gzip"
            body = asset.gzipped
    if request.header("if-none-match") == asset.etag:
        return answer(request, b"", 304, asset.kind, headers)
    return answer(request, body, 200, asset.kind, headers)


def _files_in(folder: Traversable) -> list[Traversable]:
    return [one for one in folder.iterdir() if one.is_file()] if folder.is_dir() else []


def _takes_gzip(accepted: str) -> bool:
    for one in accepted.lower().split(","):
        name, _, weight = one.partition(";")
        if name.strip() == "gzip":
            return weight.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000")
    return False


def _missing(request: Request) -> str:
    if request.raw_path[1:].partition("/")[0] == _ASSETS:
        return f"there is no {request.raw_path[:200]}: reload the page"
    return "this installation has no dashboard: `make dashboard` builds it in a clone"
