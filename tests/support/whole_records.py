"""Records with every field set, and what a server answers to the calls that make and read them.

The calls and their answers are kept in tests/fixtures/whole_records.json, in their order.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping
from typing import Any

from google.protobuf.json_format import MessageToDict
from google.protobuf.timestamp_pb2 import Timestamp
from mneme.v1 import auth_pb2

from support.api import METHODS
from support.examples import full_name, messages_of
from support.server import REPOSITORY, LocalServer

KEPT = REPOSITORY / "tests/fixtures/whole_records.json"
CALLS: list[dict[str, Any]] = json.loads(KEPT.read_text())
"""Each call with its `rpc`, its `request`, a list where it takes a stream, and its `answer`.

Of a call that `shows` ids, a list that a filter narrows, only the records' ids are kept.
"""
_MADE = re.compile(r"[0-9A-HJKMNP-TV-Z]{26}|[0-9a-f]{32,64}|[A-Za-z0-9+/]{22}==|[A-Za-z0-9+/]{43}=")
# What the embedding model says, which differs a little between machines, and what calls took.
_MEASURED = frozenset({"score", "similarity", "figures", "session_duration", "training_time"})
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")


class Normal:
    """Answers without what differs from run to run.

    A time since the beginning of the run is `(now)`; an id, a hash or a salt that was made is
    `(made 1)`, and wherever the same one is met again, the same.
    """

    def __init__(self) -> None:
        self._since = Timestamp(seconds=int(time.time()) - 1)
        self._made: dict[str, str] = {}

    def of(self, value: Any) -> Any:
        """Return a value of JSON as it is kept."""
        if isinstance(value, dict):
            return {
                name: f"({name})" if name in _MEASURED else self.of(inner)
                for name, inner in value.items()
            }
        if isinstance(value, list):
            return [self.of(inner) for inner in value]
        if isinstance(value, float):
            return float(f"{value:.9g}")
        return self._text(value) if isinstance(value, str) else value

    def _text(self, text: str) -> str:
        if _TIME.fullmatch(text):
            moment = Timestamp()
            moment.FromJsonString(text)
            return "(now)" if moment.seconds >= self._since.seconds else text
        if _MADE.fullmatch(text):
            return self._made.setdefault(text, f"(made {len(self._made) + 1})")
        return text


def answers_of(server: LocalServer) -> list[Any]:
    """Return what the calls are answered in a new tenant; a list where they are a stream."""
    api = server.keys.tenant("whole", *(scope for scope in auth_pb2.KeyScope.values() if scope))
    normal, found = Normal(), []
    for call in CALLS:
        rpc = full_name(call["rpc"])
        answers = [
            normal.of(MessageToDict(answer, preserving_proto_field_name=True))
            for answer in api.call(rpc, messages_of(call["rpc"], call["request"]))
        ]
        if "shows" in call:
            answers = [_ids(answer) for answer in answers]
        found.append(answers if METHODS[rpc].server_streaming else answers[0])
    return found


def _ids(page: Mapping[str, Any]) -> list[str]:
    return [record["id"] for value in page.values() if isinstance(value, list) for record in value]


def as_text(answers: list[Any]) -> str:
    """Return the calls with these answers as the text that is kept, a line for each part."""
    calls = (call | {"answer": answer} for call, answer in zip(CALLS, answers, strict=True))
    return "[\n" + ",\n".join(map(_lines, calls)) + "\n]\n"


def _lines(call: Mapping[str, Any]) -> str:
    texts = {name: json.dumps(v, ensure_ascii=False, sort_keys=True) for name, v in call.items()}
    return "{\n" + ",\n".join(f' "{name}": {text}' for name, text in texts.items()) + "\n}"
