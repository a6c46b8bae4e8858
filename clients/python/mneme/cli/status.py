"""`mneme status`."""

from __future__ import annotations

import time

from mneme.cli import cells
from mneme.cli.app import App, Cli


def register(app: App) -> None:
    """Add the command to the root."""
    app.command("status")(status)


def status(cli: Cli) -> None:
    """Show the server, its model, and what your tenant holds."""
    with cli.connect() as client:
        stats = client.get_stats()
        address = client.address
    if cli.out.as_json:
        cli.out.message(stats)
        return
    server, tenant = stats.server, stats.tenant
    started = server.started_at.timestamp() if server.started_at else time.time()
    up = cells.span(max(0.0, time.time() - started))
    model = f"{server.embedding_model}, {server.embedding_dimensions} dimensions"
    searched = f", searched by {tenant.dense_index}" if tenant.dense_index else ""
    cli.out.facts(
        [
            ("Server", f"{server.version} at {address}, up {up}"),
            ("Model", model),
            ("Tenant", tenant.tenant_id),
            (
                "Memories",
                f"{cells.count(tenant.memory_count)} "
                f"({cells.plural(tenant.vector_count, 'vector')}{searched})",
            ),
            ("Waiting", cells.plural(tenant.pending_count, "embedding")),
            ("Failed", f"{cells.count(tenant.failed_count)}" if tenant.failed_count else ""),
            (
                "Events",
                f"{cells.count(tenant.event_count)} in "
                f"{cells.plural(tenant.session_count, 'session')} of "
                f"{cells.plural(tenant.agent_count, 'agent')}",
            ),
            ("Lessons", cells.count(tenant.lesson_count)),
            ("On disk", cells.size(tenant.disk_bytes)),
        ]
    )
