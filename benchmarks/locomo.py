"""Recall on LoCoMo, or on another file of its format, through the API.

    .venv/bin/python benchmarks/locomo.py FILE [--modes hybrid,dense,lexical] [--json]

Every conversation becomes a tenant, every session a session, every turn an event with its time.
Every question that has evidence is asked; reported is which part of the evidence is among the
first results.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

if not __package__:  # Run as a script.
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from mneme import MnemeClient, MnemeError
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from ulid import ULID

from benchmarks.locomo_file import Conversation, FormatError, Question, read_conversations
from benchmarks.measure import percentile
from benchmarks.retrieval import METRICS, Judged, judge, means, means_by
from benchmarks.server import Server, ServerFailed

MODES = ("hybrid", "dense", "lexical")
_BATCH = 500
_TURN_LIMIT = 10
_SESSION_LIMIT = 100
Advance = Callable[[str, int], None]


class Host(Protocol):
    """Where conversations are put: a server of our own, or one that is running."""

    def tenant(self, name: str) -> MnemeClient:
        """Return a client for a new, empty tenant."""
        ...

    def fresh(self) -> None:
        """Forget cached embeddings of questions, where that is possible."""
        ...

    def client(self, name: str) -> MnemeClient:
        """Return a client for a tenant that was made."""
        ...


@dataclass
class Run:
    """What one mode gave: metrics by question, and the time of each call in seconds."""

    judged: list[Judged] = field(default_factory=list)
    times_s: list[float] = field(default_factory=list)


@dataclass
class Outcome:
    """What the whole benchmark gave."""

    turns: int
    asked: int
    without_evidence: int
    ingest_s: float
    runs: dict[str, Run]


def measure(
    host: Host, conversations: Sequence[Conversation], modes: Sequence[str], advance: Advance
) -> Outcome:
    """Ingest the conversations and ask their questions in every mode."""
    started = time.perf_counter()
    for number, conversation in enumerate(conversations):
        ingest(host.tenant(str(number)), conversation, lambda n: advance("ingest", n))
    ingest_s = time.perf_counter() - started
    runs = {mode: Run() for mode in modes}
    for mode, run in runs.items():
        host.fresh()
        for number, conversation in enumerate(conversations):
            client = host.client(str(number))
            client.recall("Hello!", mode=mode)  # Opens the tenant.
            for question in conversation.questions:
                ask(client, conversation, question, mode, run)
                advance(mode, 1)
    return Outcome(
        turns=sum(len(s.turns) for c in conversations for s in c.sessions),
        asked=sum(len(c.questions) for c in conversations),
        without_evidence=sum(c.without_evidence for c in conversations),
        ingest_s=ingest_s,
        runs=runs,
    )


def ingest(client: MnemeClient, conversation: Conversation, advance: Callable[[int], None]) -> None:
    """Record a conversation and wait until all of it can be found by meaning."""
    for session in conversation.sessions:
        client.start_session(session_id=session.id, started_at=session.started_at)
    events = [
        {
            "id": turn.id,
            "session_id": session.id,
            "event_type": "message",
            "timestamp": turn.at,
            "text": turn.text,
        }
        for session in conversation.sessions
        for turn in session.turns
    ]
    for start in range(0, len(events), _BATCH):
        batch = events[start : start + _BATCH]
        client.record_events(batch, wait_indexed=True)
        advance(len(batch))


def ask(
    client: MnemeClient, conversation: Conversation, question: Question, mode: str, run: Run
) -> None:
    """Ask one question, once for turns (timed) and once more, longer, for sessions."""
    before = time.perf_counter()
    answer = client.recall(question.text, scopes=["event"], limit=_TURN_LIMIT, mode=mode)
    run.times_s.append(time.perf_counter() - before)
    longer = client.recall(question.text, scopes=["event"], limit=_SESSION_LIMIT, mode=mode)
    metrics = judge(
        question.evidence,
        conversation.session_of,
        [result.source_id for result in answer.results],
        [result.session_id for result in longer.results],
    )
    run.judged.append(Judged(conversation.id, question.category, metrics))


class OwnServer:
    """Runs the conversations on a server in a temporary folder."""

    def __init__(self, folder: Path, embedder: str) -> None:
        self._server = Server(folder / "data", {"embedder": embedder})
        self._server.start()

    def tenant(self, name: str) -> MnemeClient:
        return self._server.tenant(f"conversation-{name}")

    def client(self, name: str) -> MnemeClient:
        return self._server.tenant(f"conversation-{name}", create=False)

    def fresh(self) -> None:
        self._server.stop()
        self._server.start()

    def close(self) -> None:
        self._server.stop()


class RunningServer:
    """Runs the conversations on a server that is there, in tenants that are deleted afterwards."""

    def __init__(self, address: str, admin_key: str | None) -> None:
        self._address = address
        self._admin = MnemeClient(address, api_key=admin_key, timeout=600.0)
        self._prefix = f"locomo-{str(ULID()).lower()}"
        self._clients: dict[str, MnemeClient] = {}

    def tenant(self, name: str) -> MnemeClient:
        tenant = f"{self._prefix}-{name}"
        self._admin.create_tenant(tenant)
        secret = self._admin.create_api_key(tenant, "locomo").secret
        self._clients[name] = MnemeClient(self._address, api_key=secret, timeout=600.0)
        return self._clients[name]

    def client(self, name: str) -> MnemeClient:
        return self._clients[name]

    def fresh(self) -> None:
        """Do nothing: the server is not ours to restart."""

    def close(self) -> None:
        for name, client in self._clients.items():
            client.close()
            self._admin.delete_tenant(f"{self._prefix}-{name}").result()
        self._admin.close()


@contextmanager
def own_server(embedder: str = "local") -> Iterator[OwnServer]:
    """Start a server in a temporary folder, which is removed afterwards."""
    with tempfile.TemporaryDirectory(prefix="mneme-locomo-") as folder:
        host = OwnServer(Path(folder), embedder)
        try:
            yield host
        finally:
            host.close()


@contextmanager
def running_server(address: str, admin_key: str | None) -> Iterator[RunningServer]:
    """Use a running server, and clean up afterwards."""
    host = RunningServer(address, admin_key)
    try:
        yield host
    finally:
        host.close()


def summary(outcome: Outcome) -> dict[str, object]:
    """Return the outcome for machines."""
    return {
        "turns": outcome.turns,
        "questions": outcome.asked,
        "questions_without_evidence": outcome.without_evidence,
        "ingest_seconds": round(outcome.ingest_s, 3),
        "modes": {
            mode: {
                **{name: round(value, 4) for name, value in means(run.judged).items()},
                "p50_ms": round(percentile(run.times_s, 50) * 1000, 3),
                "p95_ms": round(percentile(run.times_s, 95) * 1000, 3),
                "by_category": _rounded(means_by(run.judged, lambda item: item.category)),
                "by_conversation": _rounded(means_by(run.judged, lambda item: item.conversation)),
            }
            for mode, run in outcome.runs.items()
        },
    }


def _rounded(groups: dict[str, dict[str, float]]) -> dict[str, dict[str, float]]:
    return {
        group: {name: round(value, 4) for name, value in values.items()}
        for group, values in groups.items()
    }


def show(outcome: Outcome, console: Console, *, verbose: bool) -> None:
    """Print the outcome as tables."""
    console.print(
        f"{outcome.turns} turns ingested, embedded and searchable in {outcome.ingest_s:.1f} s"
        f" ({outcome.turns / outcome.ingest_s:.0f}/s); {outcome.asked} questions asked,"
        f" {outcome.without_evidence} left out for want of evidence"
    )
    latency = _table("", "mode", "p50", "p95", "calls")
    for mode, run in outcome.runs.items():
        times = [f"{percentile(run.times_s, q) * 1000:.1f} ms" for q in (50, 95)]
        latency.add_row(mode, *times, f"{len(run.times_s)}")
    for kind, names in _KINDS.items():
        table = _table(f"{kind}, all questions", "mode", *_headings(names))
        for mode, run in outcome.runs.items():
            table.add_row(mode, *_cells(means(run.judged), names))
        console.print(table)
        for title, key in (("category", _category), ("conversation", _conversation)):
            if verbose:
                console.print(_detail(outcome, kind, names, title, key))
    console.print(latency)


def _detail(
    outcome: Outcome, kind: str, names: Sequence[str], title: str, key: Callable[[Judged], str]
) -> Table:
    table = _table(f"{kind}, by {title}", "mode", title, "questions", *_headings(names))
    for mode, run in outcome.runs.items():
        for group, values in means_by(run.judged, key).items():
            table.add_row(mode, group, f"{values['questions']:.0f}", *_cells(values, names))
    return table


_KINDS = {
    "turns": [name for name in METRICS if not name.startswith("session ")],
    "sessions": [name for name in METRICS if name.startswith("session ")],
}


def _table(title: str, *headings: str) -> Table:
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD)
    for heading in headings:
        table.add_column(heading, no_wrap=True)
    return table


def _headings(names: Sequence[str]) -> list[str]:
    return [name.removeprefix("session ") for name in names]


def _cells(values: Mapping[str, float], names: Sequence[str]) -> list[str]:
    return [f"{values[name]:.3f}" for name in names]


def _category(item: Judged) -> str:
    return item.category


def _conversation(item: Judged) -> str:
    return item.conversation


@contextmanager
def _progress(conversations: Sequence[Conversation], modes: Sequence[str]) -> Iterator[Advance]:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True)) as bars:
        turns = sum(len(s.turns) for c in conversations for s in c.sessions)
        questions = sum(len(c.questions) for c in conversations)
        tasks = {"ingest": bars.add_task("ingest", total=turns)}
        tasks.update({mode: bars.add_task(f"ask, {mode}", total=questions) for mode in modes})
        yield lambda name, count: bars.advance(tasks[name], count)


def _modes(text: str) -> list[str]:
    modes = [part.strip().lower() for part in text.split(",") if part.strip()]
    unknown = [mode for mode in modes if mode not in MODES]
    if unknown or not modes:
        raise argparse.ArgumentTypeError(f"choose of {', '.join(MODES)}, not {text!r}")
    return modes


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    as_written = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(
        description=__doc__, allow_abbrev=False, formatter_class=as_written
    )
    parser.add_argument("file", type=Path, help="a file in LoCoMo's format")
    parser.add_argument("--modes", type=_modes, default=list(MODES), help="default: all three")
    parser.add_argument("--embedder", default="local", help="of the server, e.g. local:fp32")
    parser.add_argument("--address", help="use this server instead of one of our own")
    parser.add_argument("--admin-key", help="its admin key, where it asks for keys")
    parser.add_argument("--json", action="store_true", help="print JSON, with all groups")
    parser.add_argument("--verbose", action="store_true", help="by category and conversation too")
    arguments = parser.parse_args(argv)
    if arguments.address and arguments.embedder != "local":
        parser.error("--embedder is for a server of our own, not with --address")
    return arguments


def main(argv: Sequence[str] | None = None) -> int:
    """Run from the command line; return the exit code."""
    arguments = _arguments(argv)
    try:
        conversations = read_conversations(arguments.file)
        if not any(conversation.questions for conversation in conversations):
            raise FormatError(f"{arguments.file}: no question has evidence")
        opened = (
            running_server(arguments.address, arguments.admin_key)
            if arguments.address
            else own_server(arguments.embedder)
        )
        with opened as host, _progress(conversations, arguments.modes) as advance:
            outcome = measure(host, conversations, arguments.modes, advance)
    except (FormatError, ServerFailed, MnemeError) as error:
        print(f"locomo: {error}", file=sys.stderr)
        return 1
    if arguments.json:
        print(json.dumps(summary(outcome), indent=2))
    else:
        show(outcome, Console(), verbose=arguments.verbose)
    return 0


if __name__ == "__main__":
    sys.exit(main())
