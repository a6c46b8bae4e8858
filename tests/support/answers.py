"""What the examples are answered with, without what differs from run to run or between machines."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from google.protobuf.json_format import MessageToDict

from support.api import Api
from support.examples import EXAMPLES, chosen_in, full_name, needed, requests_of
from support.moments import timeless
from support.operations import ended, in_the_end
from support.server import REPOSITORY

ANSWERS = REPOSITORY / "tests/fixtures/api_answers.json"
"""What `tests/fixtures/make_answers.py` wrote: an answer of each RPC, of a stream the first."""
WIDTH = 100
# What differs from run to run, or between machines, by its field.
_OF_THE_RUN = frozenset(
    {"disk_bytes", "path", "prefix", "replaced_path", "replaced_size_bytes", "salt", "secret"}
    | {"hashes", "json", "leaf_hash", "note", "introduction", "root_hash", "verifier_key"}
    | {"cache_hits", "folder_bytes", "memory_bytes", "vector_bytes", "schema_version"}
    | {"leaf_index", "new_size", "newest_leaf_index", "size"}
    | {"model_bytes", "prediction_id", "session_duration", "size_bytes", "training_time", "version"}
)
# What may be there or not: the embedder works on while the calls are made, and they may take time.
_OF_THE_MOMENT = frozenset({"duration_seconds", "pending_count", "vector_count"})
_MADE = re.compile(r"\b(?:[0-9A-HJKMNP-TV-Z]{26}|[0-9a-f]{32,64})\b")


def answers_of(api: Api) -> dict[str, Any]:
    """Send what the examples need and the examples in their order; return their answers.

    Args:
        api: an administrator of a server that holds nothing.
    """
    for name, request in needed().items():
        api.call(full_name(name), request)
    chosen: dict[str, str] = {}
    answers = {}
    for name in EXAMPLES:
        requests = requests_of(name, chosen)
        answers[name] = in_the_end(lambda: api.call(full_name(name), requests))[0]  # noqa: B023
        if "operation" in answers[name].DESCRIPTOR.fields_by_name:
            ended(api, answers[name].operation.id)  # What follows finds the same, however quick.
        chosen |= chosen_in(name, answers[name])
    return answers


def masked(answers: Mapping[str, Any]) -> dict[str, Any]:
    """Return answers as JSON, without what differs from run to run."""
    return {
        name: _masked(MessageToDict(answer, preserving_proto_field_name=True))
        for name, answer in answers.items()
    }


def as_text(value: Any, indent: str = "", before: int = 0) -> str:
    """Return JSON of which a part stands on one line where it fits into `WIDTH` characters."""
    line = json.dumps(value, ensure_ascii=False, sort_keys=True)
    if len(indent) + before + len(line) < WIDTH or not isinstance(value, dict | list) or not value:
        return line
    inner = indent + "  "
    if isinstance(value, list):
        lines = [as_text(one, inner) for one in value]
    else:
        names = {name: f"{json.dumps(name)}: " for name in sorted(value)}
        lines = [key + as_text(value[name], inner, len(key)) for name, key in names.items()]
    begin, end = "[]" if isinstance(value, list) else "{}"
    return f"{begin}\n{inner}" + f",\n{inner}".join(lines) + f"\n{indent}{end}"


def _masked(value: Any, field: str = "") -> Any:
    if field in _OF_THE_RUN or isinstance(value, float):
        return f"({field})"
    if isinstance(value, dict):
        if field in ("operation", "operations"):  # It goes on meanwhile.
            return {name: value[name] for name in ("id", "kind", "tenant_id")}
        kept = {name: inner for name, inner in value.items() if name not in _OF_THE_MOMENT}
        return {name: _masked(inner, name) for name, inner in kept.items()}
    if isinstance(value, list):
        return [_masked(inner, field) for inner in value]
    if isinstance(value, str):
        return _MADE.sub("(made)", timeless(value))
    return value
