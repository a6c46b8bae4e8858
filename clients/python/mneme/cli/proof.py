"""`mneme certify`, `mneme verify`, `mneme audit` and `mneme log`."""

from __future__ import annotations

import base64
import json
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args

import typer

from mneme._files import replacing
from mneme._generated.choices import AccessLevelChoice, MemoryKindChoice
from mneme.cli import cells
from mneme.cli.app import App, Cli
from mneme.cli.exits import FAILED, InputError
from mneme.cli.fields import Fields, choice, number
from mneme.cli.files import written
from mneme.cli.options import BestOf
from mneme.cli.output import Column
from mneme.cli.recall import WHERE
from mneme.cli.values import scope as parse_scope

if TYPE_CHECKING:
    from mneme.proof import VerifiedCertificate
    from mneme.proof.auditing import KeptHead
    from mneme.types import CertifiedResult

app = App(help="The tenant's log of everything that can be recalled: its head and its keys.")

_KEY = re.compile(r"[^\s+]+\+[0-9a-f]{8}\+[A-Za-z0-9+/]+=*")
_COLUMNS = (
    Column("Score", style="cyan"),
    Column("Source"),
    Column("Id", style="dim"),
    Column("Leaf", style="dim", optional=1),
    Column("Why", optional=2),
    Column("Text", below=True, lines=3),
)
_KEYS = (
    Column("Number", style="cyan"),
    Column("Made", style="dim"),
    Column("Retired", style="dim"),
    Column("Key", below=True, lines=2),
)


def register(root: App) -> None:
    """Add the commands to the root."""
    root.command("certify")(certify)
    root.command("verify")(verify)
    root.command("audit")(audit)


def certify(
    cli: Cli,
    *,
    query: Annotated[str, typer.Argument(metavar="QUERY", help="The question, in words.")],
    scope: Annotated[
        list[Any] | None,
        typer.Option(
            parser=parse_scope,
            metavar="KIND",
            help=f"Where to look: {', '.join(get_args(MemoryKindChoice))}; repeatable."
            " Default: memory, episode, skill.",
        ),
    ] = None,
    limit: BestOf = 12,
    chosen: Annotated[
        Any,
        Fields(
            alpha=number("Weight of similarity.", min=0, max=1),
            beta=number("Weight of uplift.", min=0, max=1),
            gamma=number("Weight of latency.", min=0, max=1),
            **WHERE,
            access_level=choice(AccessLevelChoice, "Who may see the certificate; stated in it."),
        ),
    ],
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="Write the certificate there.")
    ] = None,
) -> None:
    """Recall with a certificate: a signed proof of what was stored and returned."""
    with cli.connect() as client:
        answer = client.recall_with_certificate(query, scopes=scope, limit=limit, **chosen)
    if out is not None:
        with written(out) as target:
            target.write(answer.certificate.json)
    if cli.out.as_json:
        cli.out.message(answer)
        return
    cli.out.table(_COLUMNS, list(map(_row, answer.results)))
    minimal = cells.plural(sum(result.minimal for result in answer.results), "result")
    cli.out.remark(
        f"certificate {answer.certificate.id}"
        + (f", written to {out}" if out is not None else "")
        + f"; {minimal} would cover {answer.completeness:.0%} of the query's words"
    )


def _row(result: CertifiedResult) -> list[str]:
    why = str(result.reason).lower()
    path = f": {', '.join(result.path)}" if result.path else ""
    return [
        cells.score(result.score),
        result.source_type,
        cells.preview(result.source_id),
        str(result.leaf_index),
        f"{why}{path}",
        cells.preview(result.text),
    ]


def verify(
    cli: Cli,
    *,
    certificate: Annotated[
        Path,
        typer.Argument(
            metavar="CERTIFICATE", help="The certificate's file; - reads standard input."
        ),
    ],
    key: Annotated[
        list[str],
        typer.Option(
            "--key",
            metavar="KEY",
            help="A key that you trust, or a file with keys, e.g. what `mneme proof keys` prints;"
            " repeatable.",
        ),
    ],
) -> None:
    """Check a certificate offline: without a server, and without its database."""
    from mneme.proof import inspect_certificate

    try:
        raw = sys.stdin.buffer.read() if str(certificate) == "-" else certificate.read_bytes()
    except OSError as error:
        raise InputError(f"cannot read {certificate}: {error.strerror}") from error
    with _library():
        found, problems = inspect_certificate(raw, *_keys(key))
    if cli.out.as_json:
        cli.out.line_of(
            {
                "valid": not problems,
                "problems": [{"part": one.part, "message": one.message} for one in problems],
            }
            | ({} if found is None or problems else _told(found))
        )
    else:
        for problem in problems:
            cli.out.line(f"{problem.part}: {problem.message}")
    if problems or found is None:
        cli.out.remark("the certificate does NOT verify")
        raise typer.Exit(FAILED)
    if not cli.out.as_json:
        cli.out.line(
            f"the certificate verifies: {cells.plural(len(found.items), 'result')} of"
            f" {found.checkpoint.origin}, signed at {found.body['created_at']} over"
            f" {cells.plural(found.checkpoint.size, 'leaf', 'leaves')}"
            f" by {found.signed_by.name}+{found.signed_by.id.hex()}"
        )


def _told(found: VerifiedCertificate) -> dict[str, str | int]:
    """What a certificate that holds says of who made it."""
    return {
        "signed_by": f"{found.signed_by.name}+{found.signed_by.id.hex()}",
        "origin": found.checkpoint.origin,
        "size": found.checkpoint.size,
    }


def audit(
    cli: Cli,
    *,
    heads: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Where the last head is kept; default heads.json in $XDG_STATE_HOME/mneme.",
        ),
    ] = None,
    accept_new_log: Annotated[
        bool,
        typer.Option("--accept-new-log", help="Go on with the log of a restored or reset tenant."),
    ] = False,
) -> None:
    """Check that the log only grew since the last audit, and remember its head."""
    from mneme.proof import auditing

    file = heads or _state_file()
    kept = _kept(file)
    with _library(), cli.connect() as client:
        said = client.get_checkpoint()
        # The server of a folder has another address each time that it starts.
        folder = cli.settings.local
        place = client.address if folder is None else str(folder.expanduser().resolve())
        name = "/".join([place, *said.origin.split("/")[:2]])
        before = kept.get(name)
        try:
            head, seen = auditing.audit(client, before)
        except auditing.LogBegunAnew as anew:
            if not accept_new_log:
                cli.out.line(str(anew))
                cli.out.remark("--accept-new-log goes on with the new one")
                raise typer.Exit(FAILED) from None
            head, seen = anew.head, anew.kept
        except auditing.AuditFailed as error:
            cli.out.line(f"the audit FAILED: {error}")
            raise typer.Exit(FAILED) from None
    _keep(file, kept | {name: seen})
    leaves = cells.plural(head.size, "leaf", "leaves")
    if cli.out.as_json:
        root = base64.b64encode(head.root).decode()
        cli.out.line_of({"origin": head.origin, "size": head.size, "root_hash": root})
    elif before is None:
        cli.out.line(f"{head.origin} has {leaves}; its head is kept in {file}")
        cli.out.remark(f"compare the key with what the operator says: {seen.key}")
    else:
        cli.out.line(f"{head.origin} has {leaves}, and begins with all that it had before")


@app.command("head")
def head(cli: Cli) -> None:
    """Print the signed head of the log, as a note that other tools can read."""
    with cli.connect() as client:
        answer = client.get_checkpoint()
    if cli.out.as_json:
        cli.out.message(answer)
    else:
        cli.out.line(answer.note.removesuffix("\n"))


@app.command("keys")
def keys(cli: Cli) -> None:
    """List the keys that sign heads and certificates; the last one signs."""
    with cli.connect() as client:
        answer = client.list_log_keys()
    if cli.out.as_json:
        cli.out.message(answer)
        return
    rows = [
        [str(k.number), cells.when(k.created_at), cells.when(k.retired_at), k.verifier_key]
        for k in answer.keys
    ]
    cli.out.table(_KEYS, rows)


@app.command("rotate")
def rotate(
    cli: Cli,
    tenant: Annotated[
        str | None, typer.Option(metavar="ID", help="The tenant; default your own.")
    ] = None,
) -> None:
    """Make a new key, signed by the old one, which is destroyed. Needs the scope admin."""
    with cli.connect() as client:
        answer = client.rotate_log_key(tenant_id=tenant)
    cli.out.done(f"key {answer.key.number}: {answer.key.verifier_key}", answer)


def _keys(given: list[str]) -> list[str]:
    """The keys themselves, and those in files."""
    found: list[str] = []
    for one in given:
        path = Path(one)
        if _KEY.fullmatch(one) or ("+" in one and not path.is_file()):
            found.append(one)
            continue
        try:
            found += _KEY.findall(path.read_text())
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"--key {one}: neither a key nor a file with keys") from error
    if not found:
        raise InputError("--key: the file holds no key")
    return found


@contextmanager
def _library() -> Iterator[None]:
    """Say in a line what is not installed."""
    from mneme.proof.libraries import LibraryMissing

    try:
        yield
    except LibraryMissing as error:
        raise InputError(str(error)) from error


def _state_file() -> Path:
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local/state"
    return Path(state) / "mneme" / "heads.json"


def _kept(file: Path) -> dict[str, KeptHead]:
    from mneme.proof.auditing import KeptHead

    try:
        stored = json.loads(file.read_text())
        return {name: KeptHead(one["note"], one["key"]) for name, one in stored.items()}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{file} cannot be read; it held the heads that were kept") from error


def _keep(file: Path, kept: dict[str, KeptHead]) -> None:
    heads = {name: {"note": one.note, "key": one.key} for name, one in kept.items()}
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with replacing(file) as target:
            json.dump(heads, target, indent=1)
    except OSError as error:
        raise InputError(f"cannot write {file}: {error.strerror}") from error
