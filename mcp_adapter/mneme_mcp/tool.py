"""A tool: what it says of itself, and how a call of it goes.

A call's arguments are checked against its model, its handler talks to the server through the
client of the caller's key, and whatever fails comes back as an error that the agent can act on.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import anyio
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.tools import Tool
from mcp.server.mcpserver.utilities.func_metadata import FuncMetadata
from mcp.shared.exceptions import MCPError
from mcp_types import CallToolResult, TextContent, ToolAnnotations
from mneme import AsyncMnemeClient
from mneme.visible import visible
from pydantic import ValidationError

from mneme_mcp.access import Access
from mneme_mcp.arguments import Arguments, CamelArguments, refusal
from mneme_mcp.bounds import bounded
from mneme_mcp.errors import FAILURES, Place, failure_of
from mneme_mcp.failures import BUG, Failure, Refused
from mneme_mcp.outputs import Output
from mneme_mcp.text import shorten

ArgumentsT = TypeVar("ArgumentsT", bound=Arguments)
ResultT = TypeVar("ResultT")
_BEAT_S = 2.0
_LOG = logging.getLogger("mneme_mcp")


@dataclass(frozen=True, slots=True)
class Reply:
    """What a tool answers.

    Args:
        text: for the agent's context.
        data: the same in structured form.
        budget: tokens that the structured form's prose may take; None: it is whole.
    """

    text: str
    data: Output
    budget: int | None = None


class Call:
    """A call under way: what a handler works with.

    Args:
        client: the client of the caller's key.
        context: MCP's own context of the request.
    """

    def __init__(self, client: AsyncMnemeClient, context: Context[Any, Any]) -> None:
        self.client = client
        self._context = context

    async def progress(self, done: float, total: float | None, message: str) -> None:
        """Tell the host how far the call is; nothing where the host did not ask to be told."""
        await self._context.report_progress(done, total, message)

    async def waiting_for(self, answer: Awaitable[ResultT], message: str) -> ResultT:
        """Await an answer of the server that may take long, and tell the host that it lasts.

        Hosts give up on silent calls; many wait on while they hear of progress.
        """
        await self.progress(0, None, message)
        async with _heart_beat(self, message):
            return await answer


@asynccontextmanager
async def _heart_beat(call: Call, message: str) -> AsyncIterator[None]:
    async def beat() -> None:
        waited = 0.0
        while True:
            await anyio.sleep(_BEAT_S)
            waited += _BEAT_S
            await call.progress(waited, None, f"{message}, {waited:.0f} s so far")

    # A task group would wrap what the block raises in an exception group.
    failed: BaseException | None = None
    async with anyio.create_task_group() as group:
        group.start_soon(beat)
        try:
            yield
        except Exception as error:
            failed = error
        group.cancel_scope.cancel()
    if failed is not None:
        raise failed


Handler = Callable[[Call, Any], Awaitable[Reply]]


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """Everything about a tool.

    Args:
        name: its name.
        title: the same for people.
        description: what it does, when to use it, what comes back.
        arguments: the model of its arguments.
        output: the model of its structured answer.
        handler: answers a call.
        read_only: it changes no memory.
        destructive: it may overwrite or take away what was stored.
        idempotent: calling it again with the same arguments changes nothing further.
        if_missing: what to do when the server does not find what a call names.
        kept_whole: a part of its answer would be worth nothing, as of what is signed.
    """

    name: str
    title: str
    description: str
    arguments: type[Arguments]
    output: type[Output]
    handler: Handler
    read_only: bool = False
    destructive: bool = False
    idempotent: bool = False
    if_missing: str = ""
    kept_whole: bool = False

    def failed(self, failure: Failure) -> CallToolResult:
        """The answer to a call of this tool that failed."""
        return failure.result(self.name, camel=issubclass(self.arguments, CamelArguments))


class MnemeTool(Tool):
    """A `ToolSpec` as the MCP library serves it."""

    spec: Any
    access: Any

    @classmethod
    def of(cls, spec: ToolSpec, access: Access) -> MnemeTool:
        """Make the tool of a description."""
        return cls(
            fn=spec.handler,
            name=spec.name,
            title=spec.title,
            description=spec.description,
            parameters=spec.arguments.schema_for_hosts(),
            fn_metadata=FuncMetadata(
                arg_model=spec.arguments, output_schema=spec.output.schema_for_hosts()
            ),
            is_async=True,
            context_kwarg=None,
            annotations=ToolAnnotations(
                read_only_hint=spec.read_only,
                destructive_hint=spec.destructive,
                idempotent_hint=spec.idempotent or spec.read_only,
                open_world_hint=False,
            ),
            spec=spec,
            access=access,
        )

    async def run(
        self, arguments: dict[str, Any], context: Context[Any, Any], convert_result: bool = False
    ) -> CallToolResult:
        """Answer a call; one that fails is answered with what to do about it."""
        spec: ToolSpec = self.spec
        access: Access = self.access
        try:
            given = spec.arguments.model_validate(arguments, context={"own": access.own})
        except ValidationError as error:
            return spec.failed(refusal(spec.arguments, error))
        try:
            async with access.client_for(context) as client:
                reply = await spec.handler(Call(client, context), given)
            data = reply.data.dump()
        except Refused as error:
            return spec.failed(error.failure)
        except MCPError:
            raise
        except FAILURES as error:
            if not isinstance(error, ValidationError):
                return spec.failed(failure_of(error, self._place(given)))
            _LOG.exception("%s met a bug", spec.name)  # An answer that the output does not hold.
            return spec.failed(BUG)
        except Exception:
            _LOG.exception("%s met a bug", spec.name)
            return spec.failed(BUG)
        data = data if reply.budget is None else shorten(data, reply.budget)
        text, left_out = reply.text, ""
        if not spec.kept_whole:
            data, left_out = bounded(data)
        if left_out:
            name = "leftOut" if issubclass(spec.arguments, CamelArguments) else "left_out"
            data, text = data | {name: left_out}, f"{text}\n({left_out})"
        return CallToolResult(
            content=[TextContent(type="text", text=visible(text))], structured_content=data
        )

    def _place(self, given: Arguments) -> Place:
        access: Access = self.access
        spec: ToolSpec = self.spec
        return Place(
            access.address,
            access.over_http,
            given.spelled,
            spec.if_missing,
            local=access.local is not None,
        )
