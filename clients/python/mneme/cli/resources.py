"""Commands made from tables: what lists, shows, makes, changes and deletes things of a kind.

A `Resource` says how things of a kind are shown; each of its methods adds a command to a group, and
takes the command's row: the client's method, the text of help, and the fields of the request with
the options that they are taken from. What a kind does besides is a function beside its rows, which
takes such fields with a parameter that is annotated with them.
"""

# Without `from __future__ import annotations`: parameters are annotated with the fields of a row.
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mneme.cli.app import App, Cli
from mneme.cli.cells import Shown, plural
from mneme.cli.fields import Fields
from mneme.cli.options import Limit, Yes
from mneme.cli.output import Column, Output, row_of

if TYPE_CHECKING:
    from mneme._core.answers import Answer

NO_FIELDS = Fields()
_MAX_PAGE = 1000


def inside(part: str, columns: Sequence[Column]) -> Iterator[Column]:
    """Columns of things, where each is in a part of what is listed, as of what a search found."""

    def of_part(shown: Shown) -> Shown:
        if isinstance(shown, str):
            return f"{part}.{shown}"
        return lambda whole: shown(getattr(whole, part))

    return (replace(column, shown=of_part(column.shown)) for column in columns)


def found(
    out: Output, answer: Any, columns: Sequence[Column], one: str, many: str | None = None
) -> None:
    """Write what a search found, best first, or say of how many things none fits."""
    if out.as_json:
        out.message(answer)
        return
    out.things(columns, answer.results)
    if not answer.results:
        out.remark(f"None of {plural(answer.searched_count, one, many)} fits.")


class Resource:
    """The commands for things of a kind.

    Args:
        app: the group of commands.
        part: the field of answers that holds one.
        key: the field of requests that names one, and its argument.
        columns: what lists show of each.
        facts: what is shown of one, by name.
    """

    def __init__(
        self,
        app: App,
        part: str = "",
        *,
        key: Fields = NO_FIELDS,
        columns: Sequence[Column] = (),
        facts: Mapping[str, Shown] | None = None,
    ) -> None:
        self._app, self._part, self._key = app, part, key
        self._columns, self._facts = columns, facts or {}

    def list(
        self,
        walk: str,
        help: str,
        fields: Fields = NO_FIELDS,
        *,
        name: str = "list",
        limit: int = 50,
        most: int = _MAX_PAGE,
    ) -> None:
        """Add a command that lists what a walk of the client yields, at most `most` to a page."""

        def list_(cli: Cli, *, request: Annotated[Any, fields], limit: Limit = limit) -> None:
            # One more than are shown tells whether there are more.
            size = min(limit + 1 if limit else most, most)
            with cli.connect() as client:
                things = getattr(client, walk)(**request, page_size=size)
                self._show(cli.out, things, limit)

        self._add(name, list_, help, walk)

    def get(self, method: str, help: str) -> None:
        """Add the command `get`, which shows one."""

        def get(cli: Cli, *, request: Annotated[Any, self._key]) -> None:
            with cli.connect() as client:
                answer = getattr(client, method)(**request)
            cli.out.thing(getattr(answer, self._part), self._facts)

        self._add("get", get, help, method)

    def create(
        self, method: str, help: str, fields: Fields, *, name: str = "create", said: str = "{0.id}"
    ) -> None:
        """Add a command that makes one; `said` is a format of what it says then, of the new one."""
        self._write(name, method, help, fields, said=said)

    def change(
        self,
        name: str,
        method: str,
        help: str,
        fields: Fields = NO_FIELDS,
        *,
        said: str,
        confirm: str = "",
    ) -> None:
        """Add a command that changes, deletes or restores one.

        Args:
            said: a format of what it says then, of the one and the request's fields.
            confirm: a format of the question before, of the request's fields; empty: it asks none.
        """
        asked = {"yes": Yes} if confirm else {}
        whole = Fields(**self._key, **fields, **asked)
        self._write(name, method, help, whole, said=said, confirm=confirm)

    def _show(self, out: Output, things: "Iterable[Answer[Any]]", limit: int) -> None:
        """Write the first `limit` things, 0 for all, as a table; as JSON, as they come."""
        walk, rows, count = iter(things), [], 0
        for thing in islice(walk, limit or None):
            count += 1
            if out.as_json:
                out.message(thing)
            else:
                rows.append(row_of(self._columns, thing))
        if limit and next(walk, None) is not None:
            out.remark(f"There are more than {limit}; --limit 0 shows all.")
        out.table(self._columns, rows)
        if not count:
            out.remark("There are none.")

    def _write(
        self, name: str, method: str, help: str, fields: Fields, *, said: str, confirm: str = ""
    ) -> None:
        def write(cli: Cli, *, request: Annotated[Any, fields]) -> None:
            if confirm and not request.pop("yes"):
                typer.confirm(confirm.format(**request), abort=True, err=True)
            with cli.connect() as client:
                answer = getattr(client, method)(**request)
            thing = getattr(answer, self._part)
            cli.out.done(said.format(thing, **request), thing)

        self._add(name, write, help, method)

    def _add(self, name: str, command: Callable[..., None], help: str, method: str) -> None:
        command.__doc__ = help
        # For who reads from the code which RPCs a command reaches.
        command.methods = (method,)  # type: ignore[attr-defined]
        self._app.command(name)(command)
