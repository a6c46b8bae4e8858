"""The HTTP edge as ASGI has it: finds who serves a request, and sends the answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from importlib.resources import files
from typing import TypeVar, cast

import grpc
import orjson
import structlog
from google.protobuf.descriptor import MethodDescriptor
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from mneme_server.common.errors import MnemeError
from mneme_server.edge.grpc.entrance import Entrance
from mneme_server.edge.http import errors
from mneme_server.edge.http.answer import JSON, LINES, answer, failed, refused
from mneme_server.edge.http.assets import Site, serve_site
from mneme_server.edge.http.bodies import Bodies
from mneme_server.edge.http.call import HttpCall
from mneme_server.edge.http.connect import ConnectRpc, serve_connect
from mneme_server.edge.http.guard import check_host, check_origin
from mneme_server.edge.http.options import HttpOptions
from mneme_server.edge.http.request import Request
from mneme_server.edge.http.rest import Query, RestRequest, RestRpc, parse_query
from mneme_server.edge.http.rest_mapping import SEARCHED, mapping_of
from mneme_server.edge.http.routes import Route, Router, routes_of
from mneme_server.edge.http.streaming import stream_answer, stream_both
from mneme_server.edge.http.telemetry import ExportRpc, exports_of, serve_export

R = TypeVar("R", bound=ConnectRpc)
Endpoint = Callable[[Request], Awaitable[Response | None]]
"""Serves a request: returns its answer, unless that was sent in parts or nobody waits for it."""

_log = structlog.get_logger(__name__)

_BODIES = 4
"""Bodies of the largest size that may be held at once; a tenant that is alone has half of them."""
_HEALTH = "/api/health"
_FILES = {
    "/api/openapi.json": ("openapi.json", JSON),
    "/api/docs": ("docs.html", "text/html; charset=utf-8"),
}
_PAGE_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'"
)


class HttpApp:
    """The application.

    Args:
        entrance: where calls are served.
        options: how.
        is_serving: tells whether the server takes calls.

    Raises:
        RouteError: the schemas' routes cannot be served.
    """

    def __init__(
        self, entrance: Entrance, options: HttpOptions, is_serving: Callable[[], bool]
    ) -> None:
        self._entrance = entrance
        self._options = options
        self._is_serving = is_serving
        largest = options.max_message_bytes
        self._bodies = Bodies(largest, _BODIES * largest)
        services = [service.descriptor for service in entrance.services]
        self._router = Router(routes_of(services))
        self._by_name = {
            method.full_name: method for service in services for method in service.methods
        }
        self._rest: dict[tuple[str, str, str], RestRpc] = {}
        self._rpcs: dict[tuple[type[ConnectRpc], str], ConnectRpc] = {}
        self._site = Site(files("mneme_server.edge.http") / "dashboard")
        self._endpoints: dict[str, Endpoint] = {
            f"/{service.full_name}/{method.name}": partial(self._connect, method)
            for service in services
            for method in service.methods
        }
        for path, method in exports_of(services).items():
            self._endpoints[path] = partial(self._export, method)
        for path, (name, kind) in _FILES.items():
            self._endpoints[path] = partial(self._file, name, kind)
        self._endpoints[_HEALTH] = self._health

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            return
        request = Request(scope, receive, send)
        response: Response | None
        try:
            response = await self._serve(request)
        except ClientDisconnect:
            return
        except HTTPException as refusal:
            response = refused(request, refusal)
        except MnemeError as error:
            response = failed(request, errors.status_of(error, request.request_id))
        except Exception:
            _log.exception("internal error", request_id=request.request_id, path=request.raw_path)
            status = errors.plain_status(grpc.StatusCode.INTERNAL, "internal error")
            response = None if request.begun else failed(request, status)
        if response is not None:
            await response(scope, receive, send)

    async def _serve(self, request: Request) -> Response | None:
        is_open = not self._options.auth_required
        if self._site.has(request.raw_path) and request.method in ("GET", "HEAD"):
            if is_open:  # The page holds no data: a link on any other may lead to it.
                check_host(request)
            return serve_site(self._site, request)
        if is_open:
            check_origin(request, self._options.origins)
        return await self._endpoints.get(request.raw_path, self._call)(request)

    async def _health(self, request: Request) -> Response:
        request.allow("GET", "HEAD")
        serving = self._is_serving()
        body = orjson.dumps({"status": "serving" if serving else "not_serving"})
        return answer(request, body, 200 if serving else 503)

    async def _file(self, name: str, kind: str, request: Request) -> Response:
        request.allow("GET", "HEAD")
        body = (files("mneme_server.edge.http") / name).read_bytes()
        return answer(request, body, 200, kind, {"content-security-policy": _PAGE_POLICY})

    async def _connect(self, method: MethodDescriptor, request: Request) -> Response | None:
        return await serve_connect(self._rpc(ConnectRpc, method), request, self._bodies)

    async def _export(self, method: MethodDescriptor, request: Request) -> Response | None:
        return await serve_export(self._rpc(ExportRpc, method), request, self._bodies)

    async def _call(self, request: Request) -> Response | None:
        """Serve a call that comes as REST has it."""
        routes = self._router.find(request.raw_path)
        route = routes.get("GET" if request.method == "HEAD" else request.method)
        if route is None:
            return _no_route(request, routes)
        query = parse_query(request.scope["query_string"])
        rpc = self._rest_rpc(route, query)
        call = HttpCall(request.metadata, request.peer, request.timeout_s())
        if route.method.client_streaming:
            return await stream_both(rpc, call, request, self._bodies)
        lines = bool(rpc.mapping.lines) and request.content_type == LINES
        if not lines:
            _check_type(request, route)
        body = await self._bodies.of(rpc, call, request)
        try:
            if body and not route.body:
                raise HTTPException(400, f"{route.verb} {route.template} takes no body")
            raw = RestRequest(request.raw_path, query, body, call, lines)
            if route.method.server_streaming:
                return await stream_answer(rpc, raw, request)
            told = await rpc.call(raw, call, request.receive)
        finally:
            self._bodies.release(body, call.sender)
        if isinstance(told, bytes):
            return answer(request, told, headers=call.answered_with())
        return None if told is None else failed(request, told)

    def _rest_rpc(self, route: Route, query: Query) -> RestRpc:
        method, mapping = route.method, mapping_of(route.method)
        searched = SEARCHED.get(method.full_name)
        if searched is not None and searched[0] in query:
            method, mapping = self._by_name[searched[1]], searched[2]
        key = (route.verb, route.template, str(method.full_name))
        rpc = self._rest.get(key)
        if rpc is None:
            rpc = self._rest[key] = RestRpc(route, method, mapping, self._entrance)
        return rpc

    def _rpc(self, kind: type[R], method: MethodDescriptor) -> R:
        rpc = self._rpcs.get((kind, method.full_name))
        if rpc is None:
            rpc = self._rpcs[kind, method.full_name] = kind(method, self._entrance)
        return cast(R, rpc)


def _check_type(request: Request, route: Route) -> None:
    """Refuse a body that cannot be read. A browser sends JSON to other origins only when asked.

    Raises:
        HTTPException: it cannot.
    """
    if not route.body or request.content_type == JSON:
        return
    if request.body_bytes != 0 or request.content_type:
        raise HTTPException(415, f"a body must be {JSON}, and the header content-type say so")


def _no_route(request: Request, routes: Mapping[str, Route]) -> Response:
    path = request.raw_path[:200]
    if routes:
        allowed = ", ".join(sorted({*routes, *(["HEAD"] if "GET" in routes else [])}))
        raise HTTPException(405, f"{path} has {allowed}", {"allow": allowed})
    why = f"there is no {path}; /api/openapi.json lists what there is"
    return failed(request, errors.plain_status(grpc.StatusCode.NOT_FOUND, why))
