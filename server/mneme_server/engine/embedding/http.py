"""The request that embedders behind HTTP share: JSON with time limits, retries and errors that say
what to do.
"""

import email.utils
import json
import math
import random
import socket
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from weakref import WeakSet

import httpx2

from mneme_server.engine.embedding.port import EmbeddingError, ServiceFailed

_RETRIED_STATUSES = frozenset({408, 429, 500, 502, 503, 504, 529})
_FAILED = 500
"""What says nothing of why: it may be the text."""
_MESSAGE_LIMIT = 300
_LONGEST_WAIT_S = 86_400.0
"""What a peer asks for beyond is no time that anybody waits, and may be no number of a clock's."""
_CONNECTED = frozenset({"connection.connect_tcp.complete", "connection.start_tls.complete"})


@dataclass(frozen=True)
class HttpPolicy:
    """How long to try. Times in seconds.

    `request_timeout_s` limits each wait for the peer (connection, next bytes); `total_s` the whole
    call with its retries: no retry starts that could not begin within it. Waits double from
    `first_wait_s`, with jitter, unless the peer names its own (Retry-After).
    """

    connect_timeout_s: float = 5.0
    request_timeout_s: float = 30.0
    attempts: int = 4
    first_wait_s: float = 0.5
    total_s: float = 60.0


class StatusError(Exception):
    """An HTTP answer that retries will not change; `message` and `code` as the peer's JSON gives
    them.
    """

    def __init__(self, status: int, message: str, code: str | None) -> None:
        super().__init__(f"HTTP {status}: {message}")
        self.status = status
        self.message = message
        self.code = code


class JsonHttpClient:
    """Posts JSON to one service. Safe to share between threads; closing ends what waits."""

    def __init__(
        self,
        service: str,
        base_url: str,
        *,
        headers: Mapping[str, str] | None = None,
        policy: HttpPolicy,
    ) -> None:
        self._service = service
        self._base_url = base_url.rstrip("/")
        self._policy = policy
        self._closing = threading.Event()
        self._connecting = threading.Lock()  # Guards what follows.
        self._sockets: WeakSet[socket.socket] = WeakSet()
        try:
            if httpx2.URL(self._base_url).scheme not in ("http", "https"):
                raise httpx2.InvalidURL("it must start with http:// or https://")
        except httpx2.InvalidURL as error:
            raise ValueError(f"{service}: {base_url!r} is not a base URL: {error}") from error
        self._client = httpx2.Client(
            headers=dict(headers or {}),
            timeout=httpx2.Timeout(policy.request_timeout_s, connect=policy.connect_timeout_s),
        )

    def post(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Return the answer's JSON object. Raises StatusError for refusals, EmbeddingError for
        everything else.
        """
        deadline = time.monotonic() + self._policy.total_s
        for attempt in range(1, self._policy.attempts + 1):
            failure = self._try(path, body)
            if isinstance(failure, dict):
                return failure
            if self._closing.is_set():
                break
            wait = failure.retry_after_s
            if wait is None:
                wait = self._policy.first_wait_s * 2 ** (attempt - 1) * random.uniform(0.75, 1.25)
            if attempt == self._policy.attempts or time.monotonic() + wait > deadline:
                raise failure
            if self._closing.wait(wait):
                break
        raise EmbeddingError(f"{self._service}: the embedder is closed")

    def close(self) -> None:
        """End waits and requests; posting afterwards raises EmbeddingError."""
        with self._connecting:
            self._closing.set()
            for connected in self._sockets:
                _hang_up(connected)
        self._client.close()

    def _note_socket(self, event: str, info: Mapping[str, Any]) -> None:
        """Remember what requests wait at; httpx2 calls this at each step of a request."""
        if event in _CONNECTED:
            connected = info["return_value"].get_extra_info("socket")
            with self._connecting:
                self._sockets.add(connected)
                if self._closing.is_set():  # It was not there to be hung up on.
                    _hang_up(connected)

    def _try(self, path: str, body: Mapping[str, Any]) -> dict[str, Any] | EmbeddingError:
        """One attempt: the answer, or an error worth another attempt; raises what is not."""
        if self._closing.is_set():
            raise EmbeddingError(f"{self._service}: the embedder is closed")
        try:
            response = self._client.post(
                self._base_url + path, json=body, extensions={"trace": self._note_socket}
            )
        except httpx2.TimeoutException:
            return EmbeddingError(
                f"{self._service} did not answer in time",
                detail=f"at {self._base_url}",
                retryable=True,
            )
        except httpx2.ConnectError as error:
            return EmbeddingError(
                f"cannot connect to {self._service}",
                detail=f"at {self._base_url}: {error}; is it running?",
                retryable=True,
            )
        except (httpx2.HTTPError, RuntimeError) as error:  # RuntimeError: closed by another thread
            return EmbeddingError(
                f"the connection to {self._service} failed",
                detail=f"at {self._base_url}: {error}",
                retryable=True,
            )
        if response.is_success:
            return self._parse(response)
        message, code = _error_of(response)
        if response.status_code in _RETRIED_STATUSES and code != "insufficient_quota":
            kind = ServiceFailed if response.status_code == _FAILED else EmbeddingError
            return kind(
                f"{self._service} answered HTTP {response.status_code}: {message}",
                retryable=True,
                retry_after_s=_retry_after(response.headers),
            )
        raise StatusError(response.status_code, message, code)

    def _parse(self, response: httpx2.Response) -> dict[str, Any]:
        try:
            answer = json.loads(response.content)
        except ValueError as error:
            raise EmbeddingError(
                f"{self._service} answered with something that is not JSON",
                detail=f"at {self._base_url}: {error}",
            ) from error
        if not isinstance(answer, dict):
            raise EmbeddingError(
                f"{self._service} answered with no JSON object", detail=f"at {self._base_url}"
            )
        return answer


def _hang_up(connected: socket.socket) -> None:
    """End a connection under whoever reads from it; closing it would leave them waiting."""
    with suppress(OSError):
        # Not a TLS socket's own shutdown: that is for the thread that reads.
        socket.socket.shutdown(connected, socket.SHUT_RDWR)


def _error_of(response: httpx2.Response) -> tuple[str, str | None]:
    """The message and code in {"error": {"message", "code"}} or {"error": "message"}; else the text
    itself.
    """
    try:
        error = json.loads(response.content)["error"]
    except (ValueError, KeyError, TypeError):
        return response.text[:_MESSAGE_LIMIT].strip() or response.reason_phrase, None
    if isinstance(error, dict):
        code = error.get("code") or error.get("type")
        return str(error.get("message", ""))[:_MESSAGE_LIMIT], None if code is None else str(code)
    return str(error)[:_MESSAGE_LIMIT], None


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds to wait as the peer asks, a day at most: Retry-After as a number or an HTTP date, or
    OpenAI's retry-after-ms; None where it is none of these.
    """
    try:
        asked = _asked_wait(headers)
    except (ValueError, OverflowError):
        return None
    return None if asked is None or math.isnan(asked) else min(max(0.0, asked), _LONGEST_WAIT_S)


def _asked_wait(headers: Mapping[str, str]) -> float | None:
    if "retry-after-ms" in headers:
        return float(headers["retry-after-ms"]) / 1000
    value = headers.get("retry-after")
    if value is None:
        return None
    if value.strip().replace(".", "", 1).isdigit():
        return float(value)
    return email.utils.parsedate_to_datetime(value).timestamp() - time.time()
