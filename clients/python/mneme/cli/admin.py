"""`mneme admin`: tenants, keys, backups."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mneme._generated.choices import KeyScopeChoice
from mneme.cli import cells
from mneme.cli.app import App, Cli
from mneme.cli.fields import Fields, flag, number, option, text
from mneme.cli.operations import Wait, follow
from mneme.cli.options import Yes
from mneme.cli.output import Column
from mneme.cli.resources import Resource
from mneme.cli.values import one_of

if TYPE_CHECKING:
    from mneme.types import ApiKey

app = App(help="For the server's operator: tenants, API keys, backups.")
tenants = App(help="Separate memories, each in its own folder.")
keys = App(help="API keys, each of which opens a tenant.")
app.add_typer(tenants, name="tenants")
app.add_typer(keys, name="keys")

TenantId = Annotated[str, typer.Argument(metavar="TENANT", help="The tenant's id.")]
OwnOr = Annotated[str | None, typer.Option(metavar="ID", help="The tenant; default the key's own.")]

_tenants = Resource(
    tenants,
    "tenant",
    columns=(
        Column("Tenant", "id", style="cyan"),
        Column("Name", "display_name", flexible=True),
        Column("Created", "created_at"),
        Column("Database", "database", optional=1),
    ),
)
_tenants.list("iter_tenants", "List the tenants.")
_tenants.create(
    "create_tenant",
    "Create a tenant.",
    Fields(tenant_id=TenantId, display_name=text("A human-readable name.", "--name")),
    said="created tenant {tenant_id}",
)


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
        running = client.delete_tenant(tenant_id)
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
        running = client.move_tenant(tenant_id=tenant_id, database=to)
        answer = follow(cli, running, wait=wait)
    if answer is not None:
        place = answer.database or "the server's own database"
        rows = cells.plural(answer.row_count, "row", "rows")
        was_there = f"tenant {tenant_id} is in {place}"
        moved = f"moved tenant {tenant_id}, {rows}, to {place}"
        cli.out.done(moved if answer.row_count else was_there, answer)


def _rate_limit(key: ApiKey) -> str:
    return cells.count(key.rate_limit) if key.rate_limit else "no limit"


_keys = Resource(
    keys,
    columns=(
        Column("Key", "id", style="cyan"),
        Column("Tenant", "tenant_id"),
        Column("Name", "name", flexible=True),
        Column("Scopes", lambda it: ",".join(map(cells.name, it.scopes))),
        Column("Begins with", "prefix", optional=2),
        Column("Per minute", _rate_limit, right=True, optional=3),
        Column("Last used", lambda it: cells.when(it.last_used_at) or "never", optional=1),
        Column("Revoked", "revoked_at", optional=4),
    ),
)
_keys.list(
    "iter_api_keys",
    "List API keys, without their secrets.",
    Fields(
        tenant_id=text("Of this tenant.", "--tenant", metavar="ID"),
        include_revoked=flag("Include revoked keys.", "--revoked"),
    ),
)


@keys.command("create")
def create_key(
    cli: Cli,
    *,
    key: Annotated[
        Any,
        Fields(
            tenant_id=option(str, "The tenant it opens.", "--tenant", metavar="ID"),
            name=option(str, "A human-readable name."),
            scopes=option(
                list[Any] | None,
                "What it may do: read, write, learn, admin; repeatable; default read and write.",
                "--scope",
                parser=one_of(KeyScopeChoice),
                metavar="SCOPE",
            ),
            rate_limit=number("Calls per minute; default no limit.", kind=int, min=0, metavar="N"),
        ),
    ],
) -> None:
    """Create an API key, and print its secret, which is never shown again."""
    with cli.connect() as client:
        answer = client.create_api_key(**key)
    if not cli.out.as_json:
        made = f"Key {answer.api_key.id} of tenant {key['tenant_id']}."
        cli.out.remark(f"{made} Its secret, shown only this once:")
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
        running = client.backup(tenant_id=tenant)
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
        running = client.restore(name, tenant_id=tenant)
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
        running = client.reindex(tenant_id=tenant)
        answer = follow(cli, running, wait=wait)
    if answer is not None:
        memories = cells.plural(answer.memory_count, "memory", "memories")
        cli.out.done(f"embedded {memories} with {answer.embedding_model}", answer)
