"""Write the tables of the documentation that have their source elsewhere.

The settings come from `mneme_server.settings`, the error reasons from `errors.proto`, the list of
decisions from docs/adr. A table stands between `<!-- begin: NAME -->` and `<!-- end: NAME -->`;
the rest of a page is kept.

Usage: python scripts/reference.py [--check]
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from google.rpc.code_pb2 import Code  # type: ignore[import-untyped]
from mneme.v1.errors_pb2 import ErrorReason, codes
from mneme_server.common.errors import Reason
from mneme_server.edge.grpc.errors import INTERNAL_REASON
from mneme_server.edge.grpc.memory_operations import OPERATIONS, OperationName
from mneme_server.edge.grpc.schema_options import extension
from mneme_server.features.otlp.model import TelemetryKind
from mneme_server.features.otlp.vocabulary import KINDS, ROWS, Dialect
from mneme_server.settings import Settings, flag_of, variable_of
from pages import ROOT, write_or_check

ERRORS_PROTO = ROOT / "proto/mneme/v1/errors.proto"
# No page is this script's alone: it fills in tables.
OUTPUTS: tuple[Path, ...] = ()

# What a server of this version can answer: the reasons of its domain, and that of a bug.
RAISED = {reason.name for reason in Reason} | {INTERNAL_REASON}

_COMMENT = re.compile(r"((?:^  //.*\n)+)^  (\w+) = \d+", re.MULTILINE)
_PREFIX = "ERROR_REASON_"


def settings_table() -> str:
    """The settings as a table: variable, flag, default, meaning."""
    rows = []
    for name, field in Settings.model_fields.items():
        if field.default_factory is not None:
            default = ""  # The description says where it comes from.
        elif field.default is None:
            default = "none"
        else:
            default = f"`{field.default}`"
        rows.append((f"`{variable_of(name)}`", f"`{flag_of(name)}`", default, field.description))
    return _table(("variable", "flag", "default", "meaning"), rows)


def reasons() -> Iterator[tuple[str, str, str]]:
    """The error reasons of errors.proto: name, gRPC status codes, meaning."""
    meanings = {
        name: " ".join(line.strip().removeprefix("//").strip() for line in comment.splitlines())
        for comment, name in _COMMENT.findall(ERRORS_PROTO.read_text())
    }
    for value in ErrorReason.DESCRIPTOR.values[1:]:
        name, meaning = value.name.removeprefix(_PREFIX), meanings[value.name]
        if name not in RAISED:
            meaning = f"Reserved, not sent yet: {meaning[0].lower()}{meaning[1:]}"
        yield name, " or ".join(f"`{Code.Name(code)}`" for code in extension(value, codes)), meaning


def errors_table() -> str:
    """The error reasons as a table."""
    return _table(
        ("reason", "status", "meaning"),
        [(f"`{name}`", codes, meaning) for name, codes, meaning in reasons()],
    )


def decisions() -> str:
    """The records of docs/adr as a list."""
    return "\n".join(
        f"- [{file.read_text().splitlines()[0].removeprefix('# ')}](adr/{file.name})"
        for file in sorted((ROOT / "docs/adr").glob("[0-9]*.md"))
    )


def telemetry_kinds() -> str:
    """What tells what a span is, as a table."""
    return _table(
        ("attribute", "of", "a model's call", "a tool's call", "an agent"),
        [
            (
                f"`{row.attribute}`",
                row.dialect.value,
                *(
                    _codes(row.values.get(kind, ()))
                    for kind in (TelemetryKind.MODEL, TelemetryKind.TOOL, TelemetryKind.AGENT)
                ),
            )
            for row in KINDS
        ],
    )


def telemetry_fields() -> str:
    """What the attributes of spans become, as a table."""
    return _table(
        ("becomes", *(dialect.value for dialect in Dialect)),
        [
            (row.becomes, *(_codes(row.names.get(dialect, ())) for dialect in Dialect))
            for row in ROWS
        ],
    )


def memory_operations() -> str:
    """The RPCs by what they do to memory, as a table."""
    return _table(
        ("`gen_ai.operation.name`", "RPCs"),
        [
            (
                f"`{name.value}`",
                ", ".join(f"`{rpc}`" for rpc, one in OPERATIONS.items() if one.name is name),
            )
            for name in OperationName
        ],
    )


def _codes(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}N.`" if name.endswith(".") else f"`{name}`" for name in names)


def tables() -> dict[str, str]:
    """Every table by its name."""
    return {
        "settings": settings_table(),
        "errors": errors_table(),
        "decisions": decisions(),
        "telemetry kinds": telemetry_kinds(),
        "telemetry fields": telemetry_fields(),
        "memory operations": memory_operations(),
    }


def pages() -> list[Path]:
    """The pages that hold tables."""
    return sorted((ROOT / "docs").rglob("*.md"))


def filled(page: str) -> str:
    """A page with its tables as they now are."""
    for name, table in tables().items():
        begin, end = f"<!-- begin: {name} -->", f"<!-- end: {name} -->"
        page = re.sub(
            f"{re.escape(begin)}.*?{re.escape(end)}",
            lambda _, t=table, b=begin, e=end: f"{b}\n{t}\n{e}",  # type: ignore[misc]
            page,
            flags=re.DOTALL,
        )
    return page


def _table(head: Sequence[str], rows: Iterable[Sequence[str | None]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(
        "| " + " | ".join((cell or "").replace("|", "\\|") for cell in line) + " |"
        for line in lines
    )


if __name__ == "__main__":
    sys.exit(write_or_check({path: filled(path.read_text()) for path in pages()}))
