"""The API over HTTP, as a tenant calls it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import httpx2

TIMEOUT_S = 60.0


class Http:
    """Calls over HTTP with a key.

    Args:
        address: the server's, as a URL.
        secret: the key; None: none is sent.
    """

    def __init__(self, address: str, secret: str | None = None) -> None:
        self.address = address
        headers = {} if secret is None else {"authorization": f"Bearer {secret}"}
        # Reading the certificates that TLS trusts would take longer than most tests.
        self.client = httpx2.Client(
            base_url=address, headers=headers, timeout=TIMEOUT_S, verify=False
        )

    def __call__(self, verb: str, path: str, body: Any = None, **more: Any) -> Any:
        """Return what a call answers.

        Raises:
            AssertionError: it failed; the message is the answer.
        """
        answer = self.ask(verb, path, body, **more)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def get(self, path: str, **more: Any) -> Any:
        """Return what GET answers."""
        return self("GET", path, **more)

    def ask(
        self,
        verb: str,
        path: str,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
        **more: Any,
    ) -> httpx2.Response:
        """Return the answer to a call, whatever it is."""
        return self.client.request(verb, path, json=body, headers=headers, **more)

    def error(self, verb: str, path: str, body: Any = None, **more: Any) -> Error:
        """Return how a call fails."""
        return Error(self.ask(verb, path, body, **more))

    def connect(self, rpc: str, request: Any, **more: Any) -> httpx2.Response:
        """Return the answer to a call in Connect's protocol, e.g. of "LearnService/GetLesson"."""
        return self.client.post(f"/mneme.v1.{rpc}", json=request, **more)

    def lines(self, verb: str, path: str, sent: list[Any] | None = None, **more: Any) -> list[Any]:
        """Send lines, where there are some; return the lines of the answer."""
        if sent is not None:
            more["content"] = "".join(json.dumps(one) + "\n" for one in sent).encode()
            more["headers"] = {"content-type": "application/x-ndjson"}
        answer = self.client.request(verb, path, **more)
        assert answer.status_code == 200, answer.text
        return [json.loads(line) for line in answer.text.splitlines()]

    def close(self) -> None:
        """Close the connections."""
        self.client.close()


class Error:
    """What a call that failed says over REST."""

    def __init__(self, answer: httpx2.Response) -> None:
        self.answer = answer
        self.http_status = answer.status_code
        self.said = answer.json()["error"]
        assert self.said["code"] == self.http_status
        self.status: str = self.said["status"]
        self.message: str = self.said["message"]
        details = {one["@type"].rpartition(".")[2]: one for one in self.said["details"]}
        info = details.get("ErrorInfo", {})
        self.reason: str = info.get("reason", "")
        self.metadata: Mapping[str, str] = info.get("metadata", {})
        violations = details.get("BadRequest", {}).get("fieldViolations", [])
        self.fields = {one["field"]: one["description"] for one in violations}


def events_of(answer: httpx2.Response) -> Iterator[tuple[str, str, Any]]:
    """Yield the events of a stream of Server-Sent Events: id, kind, data; a lone id has no data."""
    seen: dict[str, str] = {}
    for line in answer.iter_lines():
        name, _, value = line.partition(": ")
        if line and name:
            seen[name] = value
        elif not line and seen:
            data = json.loads(seen["data"]) if "data" in seen else None
            yield seen.get("id", ""), seen.get("event", "message"), data
            seen = {}
