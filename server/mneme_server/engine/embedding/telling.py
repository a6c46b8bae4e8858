"""The span of an embedding, as OpenTelemetry's conventions for generative AI have it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from mneme_server.common import tracing
from mneme_server.common.fairness import on_behalf_of
from mneme_server.common.tracing import SpanKind

_OPERATION = "embeddings"
_REMOTE = frozenset({"openai", "ollama"})
_SELF = "mneme"


@contextmanager
def told(model_id: str, texts: int, began_ns: int) -> Iterator[None]:
    """Tell of an embedding, whose vectors the block waits for.

    Args:
        model_id: the model; what is before a colon provides it.
        texts: how many are embedded.
        began_ns: when that began, in nanoseconds since 1970.
    """
    outer = tracing.current()
    if not outer.is_told:
        yield
        return
    provider, _, model = model_id.rpartition(":")
    remote = provider in _REMOTE
    span = outer.child(
        f"{_OPERATION} {model}",
        {
            "gen_ai.operation.name": _OPERATION,
            "gen_ai.provider.name": provider if remote else _SELF,
            "gen_ai.request.model": model,
            "mneme.tenant": on_behalf_of(),
            "mneme.texts": texts,
        },
        kind=SpanKind.CLIENT if remote else SpanKind.INTERNAL,
        began_ns=began_ns,
    )
    try:
        yield
    except BaseException as error:
        span.end(type(error).__name__)
        raise
    span.end()
