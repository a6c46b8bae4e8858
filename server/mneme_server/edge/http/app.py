"""The HTTP edge as ASGI has it: finds who serves a request, and answers."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, TypeVar, cast

import grpc
import orjson
import structlog
from google.protobuf.descriptor import MethodDescriptor

from mneme_server.common.errors import MnemeError
from mneme_server.edge.grpc.entrance import Entrance
from mneme_server.edge.http import errors
from mneme_server.edge.http.answer import CONNECTION, JSON, LINES, Answer, Peer, ended_with, late
from mneme_server.edge.http.assets import Site, serve_site
from mneme_server.edge.http.bodies import Bodies, Left, TooLarge, TooSlow
from mneme_server.edge.http.call import CallAborted, HttpCall
from mneme_server.edge.http.connect import ConnectRpc, serve_connect
from mneme_server.edge.http.exchange import Receive, Send, answered
from mneme_server.edge.http.guard import check_host, check_origin
from mneme_server.edge.http.request import Request, UnknownEncoding
from mneme_server.edge.http.rest import Query, RestRequest, RestRpc, parse_query
from mneme_server.edge.http.rest_mapping import SEARCHED, mapping_of
from mneme_server.edge.http.routes import Route, Router, routes_of
from mneme_server.edge.http.streaming import stream_answer, stream_both
from mneme_server.edge.http.telemetry import ExportRpc, exports_of, serve_export

R = TypeVar("R", bound=ConnectRpc)

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


@dataclass(frozen=True, slots=True)
class AppOptions:
    """How requests are taken.

    Args:
        max_message_bytes: the largest body, and the largest line of a stream.
        auth_required: whether a call must carry a key.
        origins: of pages whose calls are taken where no key is asked for.
    """

    max_message_bytes: int
    auth_required: bool
    origins: Collection[str] = ()


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
        self, entrance: Entrance, options: AppOptions, is_serving: Callable[[], bool]
    ) -> None:
        self._entrance = entrance
        self._options = options
        self._is_serving = is_serving
        largest = options.max_message_bytes
        self._bodies = Bodies(entrance, largest, _BODIES * largest)
        services = [service.descriptor for service in entrance.services]
        self._router = Router(routes_of(services))
        self._methods: Mapping[str, MethodDescriptor] = {
            f"/{service.full_name}/{method.name}": method
            for service in services
            for method in service.methods
        }
        self._by_name = {method.full_name: method for method in self._methods.values()}
        self._rest: dict[tuple[str, str, str], RestRpc] = {}
        self._rpcs: dict[tuple[type[ConnectRpc], str], ConnectRpc] = {}
        self._exports = exports_of(services)
        self._site = Site(files("mneme_server.edge.http") / "dashboard")

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            return
        request = Request(scope)
        answer = Answer(request, send)
        peer = Peer(request, receive, answer, scope[CONNECTION])
        try:
            await self._dispatch(peer)
        except Left:
            return
        except TooLarge:
            await answer.refused(
                413, f"the body is larger than {self._options.max_message_bytes} bytes", close=True
            )
        except TooSlow:
            await answer.refused(408, "the body did not come in time", close=True)
        except UnknownEncoding:
            accepted = [("accept-encoding", "gzip")]
            await answer.refused(
                415, "a body may be packed by gzip, or not at all", close=True, headers=accepted
            )
        except MnemeError as error:
            await answer.failed(errors.status_of(error, request.request_id))
        except Exception:
            _log.exception("internal error", request_id=request.request_id, path=request.raw_path)
            if not answer.begun:
                await answer.failed(errors.plain_status(grpc.StatusCode.INTERNAL, "internal error"))

    async def _dispatch(self, peer: Peer) -> None:
        request, answer = peer.request, peer.answer
        if self._site.has(request.raw_path) and request.verb in ("GET", "HEAD"):
            await self._page(request, answer)
            return
        if not self._options.auth_required:
            check_origin(request, self._options.origins)
        if (method := self._methods.get(request.raw_path)) is not None:
            await serve_connect(self._entrance, self._bodies, self._rpc(ConnectRpc, method), peer)
        elif (export := self._exports.get(request.raw_path)) is not None:
            await serve_export(self._entrance, self._bodies, self._rpc(ExportRpc, export), peer)
        elif not await self._fixed(request, answer):
            await self._rest_call(peer)

    async def _page(self, request: Request, answer: Answer) -> None:
        """Send a file of the dashboard. It holds no data: a link on any page may lead to it."""
        if not self._options.auth_required:
            check_host(request)
        await serve_site(self._site, request, answer)

    async def _fixed(self, request: Request, answer: Answer) -> bool:
        """Serve what is no call; tell whether the request was for that."""
        path = request.raw_path
        if path != _HEALTH and path not in _FILES:
            return False
        if request.verb not in ("GET", "HEAD"):
            await answer.refused(405, f"{path} has GET", headers=[("allow", "GET, HEAD")])
        elif path == _HEALTH:
            serving = self._is_serving()
            body = orjson.dumps({"status": "serving" if serving else "not_serving"})
            await answer.send(200 if serving else 503, body, JSON)
        else:
            name, kind = _FILES[path]
            body = (files("mneme_server.edge.http") / name).read_bytes()
            policy = ("content-security-policy", _PAGE_POLICY)
            await answer.send(200, body, kind, [policy])
        return True

    async def _rest_call(self, peer: Peer) -> None:
        request, answer = peer.request, peer.answer
        routes = self._router.find(request.raw_path)
        route = routes.get("GET" if request.verb == "HEAD" else request.verb)
        if route is None:
            await _no_route(request, routes, answer)
            return
        query = parse_query(request.query)
        rpc = self._rest_rpc(route, query)
        call = HttpCall(request.headers, request.peer, request.timeout_s())
        if route.method.client_streaming:
            await stream_both(self._entrance, rpc, call, peer, self._bodies)
            return
        lines = _is_of_lines(request, rpc)
        if not lines and (refusal := _wrong_type(request, route)) is not None:
            await answer.refused(415, refusal)
            return
        body = await self._bodies.of(rpc.behaviour, call, peer)
        try:
            if body and not route.body:
                await answer.refused(400, f"{route.verb} {route.template} takes no body")
                return
            raw = RestRequest(request.raw_path, query, body, call, lines)
            if route.method.server_streaming:
                await stream_answer(self._entrance, rpc, raw, peer)
                return
            await self._unary(rpc, raw, call, peer)
        finally:
            self._bodies.release(body, call.sender)

    async def _unary(self, rpc: RestRpc, raw: RestRequest, call: HttpCall, peer: Peer) -> None:
        answer = peer.answer

        def work(run: Callable[..., Any]) -> bytes:
            return rpc.dump(raw, run(raw, call))

        try:
            body = await answered(self._entrance, rpc.behaviour, call, work, peer.receive)
        except CallAborted:
            await answer.failed(ended_with(call))
            return
        if body is not None:
            await answer.send(200, body, JSON, list(call.answered_with()))
        elif (status := late(call)) is not None:
            await answer.failed(status)

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


def quiet_libraries() -> None:
    """Keep what any peer can cause out of the log."""
    logging.getLogger("uvicorn.error").setLevel(logging.ERROR)


def _is_of_lines(request: Request, rpc: RestRpc) -> bool:
    return bool(rpc.mapping.lines) and request.content_type == LINES


def _wrong_type(request: Request, route: Route) -> str | None:
    """Return why a body cannot be read. A browser sends JSON to other origins only when asked."""
    if not route.body or request.content_type == JSON:
        return None
    if request.body_bytes == 0 and not request.content_type:
        return None
    return f"a body must be {JSON}, and the header content-type say so"


async def _no_route(request: Request, routes: Mapping[str, Route], answer: Answer) -> None:
    if not routes:
        status = errors.plain_status(
            grpc.StatusCode.NOT_FOUND,
            f"there is no {request.raw_path[:200]}; /api/openapi.json lists what there is",
        )
        await answer.failed(status)
        return
    allowed = ", ".join(sorted({*routes, *(["HEAD"] if "GET" in routes else [])}))
    await answer.refused(
        405, f"{request.raw_path[:200]} has {allowed}", headers=[("allow", allowed)]
    )
