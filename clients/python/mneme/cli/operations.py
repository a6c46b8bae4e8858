"""`mneme operations`: work on the server that outlasts a call; and how commands wait for it."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from mneme._generated.choices import OperationStateChoice
from mneme.cli import cells, exits
from mneme.cli.app import App, Cli
from mneme.cli.fields import Fields, option, text
from mneme.cli.output import Column, terminal
from mneme.cli.resources import Resource
from mneme.cli.values import one_of

if TYPE_CHECKING:
    from mneme._core._sync.long_running import LongRunning
    from mneme._core.answers import Answer
    from mneme.types import Operation

AnswerT = TypeVar("AnswerT", bound="Answer[Any]")

app = App(help="Long work on the server: what runs, how far it is, and how it ended.")

OperationId = Annotated[str, typer.Argument(metavar="OPERATION", help="The operation's id.")]
Tenant = Annotated[
    str | None,
    typer.Option(
        metavar="ID", help="The tenant it belongs to; default the administrator's or own."
    ),
]
Wait = Annotated[
    bool, typer.Option("--wait/--no-wait", help="Wait for the end, or print the operation's id.")
]


def _progress(operation: Operation) -> str:
    progress = operation.progress
    if not progress.total:
        return progress.stage
    share = 100 * progress.done / progress.total
    return f"{progress.stage} {share:.0f} %"


def _outcome(operation: Operation) -> str:
    return cells.preview(str(operation.error)) if operation.error else _progress(operation)


_operations = Resource(
    app,
    columns=(
        Column("Operation", "id", style="cyan"),
        Column("Does", "kind"),
        Column("Tenant", "tenant_id"),
        Column("State", "state"),
        Column("Progress", _outcome, flexible=True),
        Column("Started", "created_at", optional=2),
        Column("Ended", "ended_at", optional=1),
    ),
)
_operations.list(
    "iter_operations",
    "List operations, newest first.",
    Fields(
        tenant_id=text("On this tenant.", "--tenant", metavar="ID"),
        kind=text("Of this kind: backup, restore, …", metavar="KIND"),
        states=option(
            list[Any] | None,
            "In this state: queued, running, succeeded, failed, cancelled; repeatable.",
            "--state",
            parser=one_of(OperationStateChoice),
            metavar="STATE",
        ),
    ),
)


@app.command("get")
def get(cli: Cli, *, operation_id: OperationId, tenant: Tenant = None) -> None:
    """Show an operation as it is now."""
    with cli.connect() as client:
        _show(cli, client.get_operation(operation_id, tenant_id=tenant).operation)


@app.command("wait")
def wait(cli: Cli, *, operation_id: OperationId, tenant: Tenant = None) -> None:
    """Wait until an operation has ended, and show it."""
    with cli.connect() as client:
        running = client.operation(operation_id, tenant_id=tenant)
        follow(cli, running)
    _show(cli, running.operation)


@app.command("cancel")
def cancel(cli: Cli, *, operation_id: OperationId, tenant: Tenant = None) -> None:
    """Stop an operation."""
    with cli.connect() as client:
        operation = client.cancel_operation(operation_id, tenant_id=tenant).operation
    state = cells.name(operation.state)
    said = f"has ended: {state}" if operation.done else "was told to stop"
    cli.out.done(f"operation {operation_id} {said}", operation)


def follow(
    cli: Cli, running: LongRunning[Operation, AnswerT], *, wait: bool = True
) -> AnswerT | None:
    """Wait for an operation, and show how far it is; return what it came to. Without waiting, tell
    its id and return None.

    Raises:
        MnemeError: it failed.
        typer.Exit: the user waits no longer; it goes on.
    """
    if not wait:
        cli.out.done(running.id, running.operation)
        return None
    try:
        with _Progress.shown(cli) as progress:
            for operation in running.updates(every=0.5):
                progress.update(operation)
    except KeyboardInterrupt:
        cli.out.remark(
            f"\nIt goes on. `mneme operations wait {running.id}` waits for its end, "
            f"`mneme operations cancel {running.id}` stops it."
        )
        raise typer.Exit(exits.INTERRUPTED) from None
    return running.result()


def _show(cli: Cli, operation: Operation) -> None:
    if cli.out.as_json:
        cli.out.message(operation)
        return
    response = operation.response
    came_to = [] if response is None else _set(response)
    cli.out.facts(
        [
            ("Operation", operation.id),
            ("Does", operation.kind),
            ("Tenant", operation.tenant_id),
            ("State", cells.name(operation.state)),
            ("Progress", _progress(operation)),
            ("Started", cells.when(operation.created_at)),
            ("Ended", cells.when(operation.ended_at)),
            ("Known until", cells.when(operation.expires_at)),
            ("Began", f"{operation.attempts} times" if operation.attempts > 1 else ""),
            ("Error", cells.clean(str(operation.error)) if operation.error else ""),
            *came_to,
        ]
    )


def _set(answer: Answer[Any]) -> list[tuple[str, str]]:
    """The fields that an answer has, and their values."""
    names = [field.name for field, _ in answer.raw.ListFields()]
    return [
        (name.replace("_", " ").capitalize(), cells.clean(str(getattr(answer, name))))
        for name in names
    ]


class _Progress:
    """A line on a terminal's standard error that says how far an operation is."""

    def __init__(self, status: Any) -> None:
        self._status = status

    @classmethod
    def shown(cls, cli: Cli) -> AbstractContextManager[_Progress]:
        """The line, or nothing where no terminal is."""
        console = terminal(stderr=True)
        if cli.out.as_json or not console.is_terminal:
            return nullcontext(cls(None))
        return cls(console.status("starting"))

    def __enter__(self) -> _Progress:
        self._status.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._status.stop()

    def update(self, operation: Operation) -> None:
        """Show how far it is."""
        if self._status is not None:
            self._status.update(_progress(operation) or cells.name(operation.state))
