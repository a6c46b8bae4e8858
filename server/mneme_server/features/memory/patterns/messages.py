"""Translation between the messages of patterns and the domain."""

from __future__ import annotations

from mneme.v1 import memory_service_pb2 as memory_pb
from mneme.v1 import pattern_pb2 as pb

from mneme_server.common.canonical import canonical_json
from mneme_server.common.errors import InvalidArgument, Reason
from mneme_server.common.stored import reads
from mneme_server.edge.grpc.conversions import json_of, struct_of, to_timestamp
from mneme_server.edge.grpc.paging import fitting
from mneme_server.edge.grpc.records import MessageReader
from mneme_server.features.memory import messages as memories
from mneme_server.features.memory.patterns.model import (
    Definition,
    MatchedMemory,
    Pattern,
    PatternMatches,
    PatternStats,
    Regex,
    Semantic,
    Structural,
    StructureOf,
    TextMatch,
)

_MS = 1_000
_KINDS = ("regex", "semantic", "structural")


def _definition(message: pb.Pattern | pb.CreatePatternRequest, path: str) -> Definition:
    within = f"{path}." if path else ""
    schema = json_of(message.structural, "schema", f"{within}structural")
    given = [kind for kind in _KINDS if message.HasField(kind)]
    if len(given) != 1:
        raise InvalidArgument(
            f"give exactly one of {', '.join(_KINDS)}",
            reason=Reason.INVALID_PARAMETER if given else Reason.MISSING_REQUIRED_FIELD,
            field=within + (given[1] if given else _KINDS[0]),
        )
    if given[0] == "regex":
        if not message.regex.expression:
            raise _missing(f"{within}regex.expression")
        return Regex(message.regex.expression)
    if given[0] == "semantic":
        if not message.semantic.text.strip():
            raise _missing(f"{within}semantic.text")
        return Semantic(message.semantic.text, message.semantic.threshold)
    if not message.structural.HasField("schema"):
        raise _missing(f"{within}structural.schema")
    return Structural(canonical_json(schema), StructureOf(message.structural.target))


def _missing(field: str) -> InvalidArgument:
    return InvalidArgument(
        f"{field} is required", reason=Reason.MISSING_REQUIRED_FIELD, field=field
    )


new_pattern = MessageReader(
    pb.CreatePatternRequest,
    Pattern,
    spelled={"id": "pattern_id", "created_us": "", "definition": _KINDS},
    made={"definition": _definition},
)
"""Return the pattern that a request creates.

Raises:
    InvalidArgument: it says not exactly one thing to look for.
"""
read_pattern = MessageReader(
    pb.Pattern,
    Pattern,
    spelled={"created_us": "", "definition": _KINDS},
    made={"definition": _definition},
    unread=["created_at", "etag"],
)
"""Return the pattern of a message, without what the server adds to it."""


@reads("pattern")
def pattern(stored: Pattern) -> pb.Pattern:
    """Return the message of a pattern."""
    definition = stored.definition
    message = pb.Pattern(
        id=stored.id,
        name=stored.name,
        description=stored.description,
        created_at=to_timestamp(stored.created_us),
        etag=stored.etag,
    )
    if isinstance(definition, Regex):
        message.regex.expression = definition.expression
    elif isinstance(definition, Semantic):
        message.semantic.text = definition.text
        message.semantic.threshold = definition.threshold
    else:
        schema = struct_of(definition.schema_json)
        message.structural.SetInParent()
        message.structural.schema.SetInParent()  # `{}` is a schema, too.
        if schema is not None:
            message.structural.schema.CopyFrom(schema)
        message.structural.target = definition.of.value  # type: ignore[assignment]
    return message


def stats(found: PatternStats) -> pb.PatternStats:
    """Return the message of a pattern's statistics."""
    use, (low, high) = found.use, found.interval
    return pb.PatternStats(
        pattern=pattern(found.pattern),
        uses=use.times,
        match_count=use.matches,
        average_ms=use.took_us / use.times / _MS if use.times else None,
        last_used_at=to_timestamp(use.last_us) if use.last_us else None,
        right_count=found.right,
        wrong_count=found.wrong,
        success_rate=found.success_rate,
        lower_bound=low,
        upper_bound=high,
    )


def search_response(found: PatternMatches) -> memory_pb.MatchPatternResponse:
    """Return the message of what a search found."""
    return memory_pb.MatchPatternResponse(
        results=fitting(map(_matched, found.results)),
        total_matches=found.total,
        matches_capped=found.capped,
        searched_count=found.searched,
        search_ms=found.took_s * _MS,
        partial=found.partial,
    )


def _matched(one: MatchedMemory) -> memory_pb.MatchedMemory:
    return memory_pb.MatchedMemory(
        memory=memories.memory(one.memory),
        matches=map(_match, one.matches),
        similarity=one.similarity,
    )


def _match(match: TextMatch) -> pb.PatternMatch:
    return pb.PatternMatch(text=match.text, start=match.start, end=match.end, groups=match.groups)
