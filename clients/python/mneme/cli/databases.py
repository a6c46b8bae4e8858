"""`mneme import` of databases: AgentDB's."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from mneme.cli import cells
from mneme.cli.app import Cli
from mneme.cli.exits import InputError

if TYPE_CHECKING:
    from mneme.importing.agentdb import AgentDbReport

_SHOWN_BROKEN = 20


def import_databases(cli: Cli, files: list[Path], *, dry_run: bool) -> bool:
    """Bring in databases, say what became of them, and return whether all rows went in."""
    from mneme.errors import ArgumentError
    from mneme.importing.agentdb import import_agentdb

    whole = True
    for file in files:
        try:
            if dry_run:
                report = import_agentdb(None, file)
            else:
                with cli.connect(retries=4) as client:
                    report = import_agentdb(client, file)
        except ArgumentError as error:
            raise InputError(str(error)) from error
        _tell(cli, file, report, dry_run=dry_run)
        whole = whole and not report.broken
    return whole


def _tell(cli: Cli, file: Path, report: AgentDbReport, *, dry_run: bool) -> None:
    if cli.out.as_json:
        left = {name: {"rows": rows, "why": why} for name, (rows, why) in report.left.items()}
        document = {
            "file": str(file),
            "dry_run": dry_run,
            "brought": dict(report.brought),
            "not_brought": left,
            "broken": [{"place": place, "reason": reason} for place, reason in report.broken],
        }
        cli.out.line(json.dumps(document, ensure_ascii=False))
        return
    for place, reason in report.broken[:_SHOWN_BROKEN]:
        cli.out.remark(f"{place}: {cells.clean(reason)}")
    hidden = len(report.broken) - _SHOWN_BROKEN
    if hidden > 0:
        cli.out.remark(f"and {cells.plural(hidden, 'more broken row')}; --json lists all")
    for table, (rows, why) in report.left.items():
        cli.out.remark(f"not brought: {cells.plural(rows, 'row')} of {table} ({why})")
    said = ", ".join(
        f"{cells.count(count)} {kind.replace('_', ' ')}"
        for kind, count in report.brought.items()
        if count
    )
    what = said or "nothing"
    before = "dry run, nothing was sent. " if dry_run else ""
    cli.out.line(f"{before}{file}: {what}, {cells.count(len(report.broken))} broken")
