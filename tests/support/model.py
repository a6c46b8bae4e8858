"""A model that agents call as they call OpenAI's: it asks for a tool, then tells what that said."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

QUESTION = "Where is my order 4711?"
ANSWER = "Order 4711 left the warehouse this morning."
CALL = {
    "id": "call_9f3b",
    "type": "function",
    "function": {"name": "find_order", "arguments": '{"order": 4711}'},
}
RESULT = '{"state": "sent"}'


class ChatModel(BaseHTTPRequestHandler):
    """Answers in the form of OpenAI's API with what `message_for` returns."""

    def message_for(self, asked: dict[str, Any]) -> dict[str, Any]:
        """Return the assistant's message, without its role."""
        raise NotImplementedError

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if asked["model"] == "broken":
            self._answer(400, {"error": {"message": "no such model", "type": "invalid_request"}})
            return
        message = {"role": "assistant", **self.message_for(asked)}
        self._answer(
            200,
            {
                "id": "chatcmpl-1",
                "object": "chat.completion",
                "created": 1_790_000_000,
                "model": "gpt-x-2026",
                "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
                "usage": {"prompt_tokens": 20, "completion_tokens": 9, "total_tokens": 29},
            },
        )

    def _answer(self, status: int, body: Any) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_args: Any) -> None:
        """Say nothing."""


class Model(ChatModel):
    """Asks for the order, then tells where it is."""

    def message_for(self, asked: dict[str, Any]) -> dict[str, Any]:
        if asked["messages"][-1]["role"] == "tool":
            return {"content": ANSWER}
        return {"content": None, "tool_calls": [CALL]}


@contextmanager
def serving(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    """Serve for the block; the block gets the address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def serving_model() -> Iterator[str]:
    """Serve the model for the block; the block gets the base URL of its API."""
    with serving(Model) as address:
        yield f"{address}/v1"
