"""`mneme admin`: tenants, keys, backups."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mneme._generated.choices import KeyScopeChoice
from mneme.cli import cells
from mneme.cli.app import App, Cli
from mneme.cli.operations import Wait, follow
from mneme.cli.options import Limit, Yes, listed, page_size
from mneme.cli.output import Column
from mneme.cli.values import one_of

if TYPE_CHECKING:
    from mneme.types import ApiKey, Tenant

app = App(help="For the server's operator: tenants, API keys, backups.")
tenants = App(help="Separate memories, each in its own folder.")
keys = App(help="API keys, each of which opens a tenant.")
app.add_typer(tenants, name="tenants")
app.add_typer(keys, name="keys")

TenantId = Annotated[str, typer.Argument(metavar="TENANT", help="The tenant's id.")]
OwnOr = Annotated[str | None, typer.Option(metavar="ID", help="The tenant; default the key's own.")]

_TENANT_COLUMNS = (
    Column("Tenant", style="cyan"),
    Column("Name", flexible=True),
    Column("Created"),
    Column("Database", optional=1),
)
_KEY_COLUMNS = (
    Column("Key", style="cyan"),
    Column("Tenant"),
    Column("Name", flexible=True),
    Column("Scopes"),
    Column("Begins with", optional=2),
    Column("Per minute", right=True, optional=3),
    Column("Last used", optional=1),
    Column("Revoked", optional=4),
)


@tenants.command("list")
def list_tenants(cli: Cli, limit: Limit = 50) -> None:
    """List the tenants."""
    with cli.connect() as client:
        walk = client.iter_tenants(page_size=page_size(limit))
        listed(cli.out, walk, limit, _TENANT_COLUMNS, _tenant_row)


def _tenant_row(tenant: Tenant) -> list[str]:
    return [
        tenant.id,
        cells.preview(tenant.display_name),
        cells.when(tenant.created_at),
        tenant.database,
    ]


@tenants.command("create")
def create_tenant(
    cli: Cli,
    *,
    tenant_id: TenantId,
    name: Annotated[str | None, typer.Option(help="A human-readable name.")] = None,
) -> None:
    """Create a tenant."""
    with cli.connect() as client:
        answer = client.create_tenant(tenant_id, display_name=name)
    cli.out.done(f"created tenant {tenant_id}", answer.tenant)


@tenants.command("delete")
def delete_tenant(cli: Cli, *, tenant_id: TenantId, yes: Yes = False, wait: Wait = True) -> None:
    """Delete a tenant with its keys, its folder and everything in it."""
    if not yes:
        typer.confirm(
            f"Delete tenant {tenant_id} and everything in it? This cannot be undone.",
            abort=True,
            err=True,
        )
    with cli.connect() as client:
        running = client.start_delete_tenant(tenant_id)
        answer = follow(cli, running, wait=wait)
    if answer is not None:
        cli.out.done(f"deleted tenant {tenant_id}", answer)


@tenants.command("move")
def move_tenant(
    cli: Cli,
    *,
    tenant_id: TenantId,
    to: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="A database in the server's MNEME_DATABASES.",
        ),
    ],
    wait: Wait = True,
) -> None:
    """Move a tenant to another database while it is in use."""
    with cli.connect() as client:
        running = client.start_move_tenant(tenant_id=tenant_id, database=to)
        answer = follow(cli, running, wait=wait)
    if answer is not None:
        place = answer.database or "the server's own database"
        rows = cells.plural(answer.row_count, "row", "rows")
        was_there = f"tenant {tenant_id} is in {place}"
        moved = f"moved tenant {tenant_id}, {rows}, to {place}"
        cli.out.done(moved if answer.row_count else was_there, answer)


@keys.command("list")
def list_keys(
    cli: Cli,
    *,
    tenant: Annotated[str | None, typer.Option(metavar="ID", help="Of this tenant.")] = None,
    revoked: Annotated[bool, typer.Option("--revoked", help="Include revoked keys.")] = False,
    limit: Limit = 50,
) -> None:
    """List API keys, without their secrets."""
    with cli.connect() as client:
        walk = client.iter_api_keys(
            tenant_id=tenant, include_revoked=revoked, page_size=page_size(limit)
        )
        listed(cli.out, walk, limit, _KEY_COLUMNS, _key_row)


def _key_row(key: ApiKey) -> list[str]:
    return [
        key.id,
        key.tenant_id,
        cells.preview(key.name),
        ",".join(cells.name(scope) for scope in key.scopes),
        key.prefix,
        cells.count(key.rate_limit) if key.rate_limit else "no limit",
        cells.when(key.last_used_at) or "never",
        cells.when(key.revoked_at),
    ]


@keys.command("create")
def create_key(
    cli: Cli,
    *,
    tenant: Annotated[str, typer.Option(metavar="ID", help="The tenant it opens.")],
    name: Annotated[str, typer.Option(help="A human-readable name.")],
    scope: Annotated[
        list[Any] | None,
        typer.Option(
            parser=one_of(KeyScopeChoice),
            metavar="SCOPE",
            help="What it may do: read, write, learn, admin; repeatable; default read and write.",
        ),
    ] = None,
    rate_limit: Annotated[
        int | None, typer.Option(min=0, metavar="N", help="Calls per minute; default no limit.")
    ] = None,
) -> None:
    """Create an API key, and print its secret, which is never shown again."""
    with cli.connect() as client:
        answer = client.create_api_key(tenant, name, scopes=scope, rate_limit=rate_limit)
    if not cli.out.as_json:
        cli.out.remark(
            f"Key {answer.api_key.id} of tenant {tenant}. Its secret, shown only this once:"
        )
    cli.out.done(answer.secret, answer)


@keys.command("revoke")
def revoke_key(
    cli: Cli, key_id: Annotated[str, typer.Argument(metavar="KEY", help="The key's id.")]
) -> None:
    """Revoke an API key at once."""
    with cli.connect() as client:
        answer = client.revoke_api_key(key_id)
    cli.out.done(f"revoked key {key_id}", answer.api_key)


@app.command()
def backup(
    cli: Cli,
    *,
    tenant: OwnOr = None,
    wait: Wait = True,
) -> None:
    """Back up a tenant's database to the server's backup folder."""
    with cli.connect() as client:
        running = client.start_backup(tenant_id=tenant)
        answer = follow(cli, running, wait=wait)
    if answer is not None:
        size = cells.size(answer.size_bytes)
        cli.out.done(f"{answer.path} ({size}, sha256 {answer.sha256})", answer)


@app.command()
def restore(
    cli: Cli,
    *,
    backup: Annotated[
        str, typer.Argument(metavar="FILE", help="The backup: its name, or its path.")
    ],
    tenant: OwnOr = None,
    yes: Yes = False,
    wait: Wait = True,
) -> None:
    """Replace what a tenant holds with a backup, after backing up the current data."""
    name = PurePath(backup).name
    if not yes:
        whose = f"tenant {tenant}" if tenant else "the key's tenant"
        typer.confirm(f"Replace everything in {whose} with {name}?", abort=True, err=True)
    with cli.connect() as client:
        running = client.start_restore(name, tenant_id=tenant)
        answer = follow(cli, running, wait=wait)
    if answer is not None:
        cli.out.done(f"restored {name}; what was there before is {answer.replaced_path}", answer)


@app.command()
def reindex(
    cli: Cli,
    *,
    tenant: OwnOr = None,
    wait: Wait = True,
) -> None:
    """Embed all memories of a tenant again with the server's model, and rebuild its indexes."""
    with cli.connect() as client:
        running = client.start_reindex(tenant_id=tenant)
        answer = follow(cli, running, wait=wait)
    if answer is not None:
        memories = cells.plural(answer.memory_count, "memory", "memories")
        cli.out.done(f"embedded {memories} with {answer.embedding_model}", answer)
