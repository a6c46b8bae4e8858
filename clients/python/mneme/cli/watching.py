"""`mneme events watch`: follows events, and comes back when the server does."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mneme.cli import cells
from mneme.cli.app import Cli
from mneme.cli.event_table import EVENT_FILTER

if TYPE_CHECKING:
    from mneme.types import WatchEventsResponse

_PATIENCE_S = 60.0
_PAUSE_S = 1.0


def watch(
    cli: Cli,
    *,
    chosen: Annotated[Any, EVENT_FILTER],
    after: Annotated[
        str | None,
        typer.Option(metavar="CURSOR", help="Continue after this cursor; 0 for the first event."),
    ] = None,
    limit: Annotated[
        int,
        typer.Option("--limit", "-n", min=0, metavar="N", help="Stop after N events; 0 for never."),
    ] = 0,
) -> None:
    """Show events as they are recorded, until interrupted. Survives a server restart."""
    from mneme.errors import CancelledError, UnavailableError

    cursor, shown, lost_at = after, 0, None
    # Who looks at the screen is told that the server is away: it is resumed here.
    with cli.connect(retries=0) as client:
        while True:
            try:
                with client.watch_events(**chosen, after_cursor=cursor) as messages:
                    for message in messages:
                        cursor, lost_at = message.cursor, None
                        if "event" not in message:
                            continue
                        _show(cli, message)
                        shown += 1
                        if shown == limit:
                            return
                    return
            except (CancelledError, UnavailableError) as error:
                now = time.monotonic()
                # Nothing was ever heard: there is no server to wait for.
                if cursor is None or now - (lost_at or now) > _PATIENCE_S:
                    raise
                if lost_at is None:
                    cli.out.remark(f"{error.message}; waiting for it to come back")
                    lost_at = now
                time.sleep(error.retry_after or _PAUSE_S)


def _show(cli: Cli, message: WatchEventsResponse) -> None:
    if cli.out.as_json:
        cli.out.message(message)
    else:
        event = message.event
        kind = event.event_type
        text = cells.preview(event.text or event.error, 200)
        name = f" {cells.preview(event.name)}" if event.name else ""
        session = cells.preview(event.session_id)
        cli.out.line(f"{cells.when(event.timestamp)}  {session}  {kind}{name}  {text}")
    cli.out.flush()
