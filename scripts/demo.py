"""The demo: what Mneme does, on a real server in a temporary folder.

It imports the sample sessions, recalls from them, keeps lessons, reflects on its errors, hands a
session over to the next, shows two tenants apart, kills the server and shows that nothing is lost.
Each promise is checked; one that does not hold is marked, and the exit code is 1.

Usage: python scripts/demo.py [--svg FILE]     (`make demo` sets up what it needs)
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from demo_handover import pick_up_where_it_left_off
from demo_proof import prove
from demo_support import BIN, ROOT, Report, Server, answer, events_in, session_row, started
from mneme import MnemeClient
from mneme.errors import MnemeError, NotFoundError
from mneme.types import ImportanceChoice
from rich.text import Text

SAMPLES = ROOT / "samples"

# A question, and how the id of the session begins whose memories answer it. They
# share no telling word with what they ask for.
QUESTIONS = (
    ("the buyer was charged double", "inv-03-double-capture"),
    ("cents are missing on a bill", "inv-02-rounding"),
    ("a database upgrade made the website unavailable", "inv-07-migration-lock"),
    ("the program needs too much RAM and gets killed", "inv-09-export-memory"),
    ("a test is unreliable", "inv-04-flaky-ci"),
)

# Title, content, category, importance, and a question in other words.
LESSONS: tuple[tuple[str, str, str, ImportanceChoice, str], ...] = (
    (
        "Large tables change in steps",
        "Add the column as nullable, fill it in small batches while watching the replica, build "
        "the index concurrently, and set lock_timeout in every migration.",
        "database",
        "critical",
        "how do I alter a big relation without an outage",
    ),
    (
        "A repeated call must be recognised as a repeat",
        "Derive an idempotency key from the order, store it before the first attempt, and send it "
        "with every retry. Consumers of a queue claim a unique key before they act.",
        "reliability",
        "high",
        "avoid doing the work again when an answer got lost",
    ),
    (
        "Never add a sleep to a flaky test",
        "A test that fails now and then shows a bug: an order that is not defined, a fixed port, a "
        "full disk. Find it; waiting or rerunning hides it.",
        "testing",
        "normal",
        "the suite is unreliable, should I wait longer",
    ),
)

NEXT = (
    ("make serve", "a server with its data in ./mneme-data, and its dashboard at"),
    ("", "http://127.0.0.1:8080/, which shows what is recorded"),
    (".venv/bin/mneme import FILE", "your own transcripts (docs/guides/importing.md)"),
    (".venv/bin/mneme recall QUESTION", "what bears on a question"),
    (".venv/bin/mneme lessons --help", "what to remember next time"),
    ("docs/guides/quick-start.md", "Python, TypeScript, HTTP, grpcurl, and keys"),
)

SHARED_QUESTION = "a credential ran out"
LAST_WORDS = "The spare key of the server room hangs behind the portrait in the corridor."
LAST_QUESTION = "how do I get into the machine room"


class Demo:
    """The parts of the demo, in their order."""

    def __init__(self, report: Report, server: Server) -> None:
        self.report = report
        self.server = server
        self.other_key = ""

    def client(self, api_key: str = "") -> MnemeClient:
        """A client of the server: of tenant `default` without a key."""
        return MnemeClient(self.server.address, api_key=api_key)

    def run(self) -> None:
        """Run all parts."""
        self.start_server()
        self.import_sessions()
        self.report.begin_picture()
        self.recall()
        self.keep_lessons()
        self.reflect()
        pick_up_where_it_left_off(self.report, self.server)
        self.separate_tenants()
        prove(self.report, self.server)
        self.survive_a_crash()
        self.report.end_picture()
        self.say_what_next()

    def start_server(self) -> None:
        """Start it, and say what it is."""
        report = self.report
        report.chapter("A server, from nothing")
        seconds = self.server.start()
        with self.client() as client:
            info = client.get_stats().server
        report.say(
            f"mneme-server {info.version} on {self.server.address}, ready after {seconds:.1f} s. "
            f"Embeddings: {info.embedding_model}, {info.embedding_dimensions} dimensions, computed "
            "here. No network, no key."
        )
        report.say(f"Its data: {self.server.data}")

    def import_sessions(self) -> None:
        """Bring in the samples, twice, and show what they hold."""
        report = self.report
        files = sorted((SAMPLES / "invoices").iterdir())
        report.chapter("A coding agent's last four weeks go in")
        self._import(files)
        with self.client() as client:
            self._wait_until_indexed(client)
            sessions = sorted(client.iter_sessions(), key=started)
            before = client.get_stats().tenant
            report.table(
                ("Started", "Session", "Events", "Tool calls", "Errors", "Cost"),
                [session_row(session) for session in sessions],
            )
            report.say(
                f"{before.session_count} sessions, {before.event_count} events, "
                f"{before.memory_count} memories, "
                f"${sum(s.total_cost_usd for s in sessions):.2f} of model calls."
            )
            self._import(files)
            after = client.get_stats().tenant
        held = events_in(SAMPLES / "invoices" / "sessions.jsonl")
        report.check(
            held == {s.id: s.event_count for s in sessions if s.id in held},
            f"the counters of {len(held)} sessions equal what their file holds",
        )
        report.check(
            before.vector_count == before.memory_count > 0, "every memory has its embedding"
        )
        report.check(
            (before.event_count, before.session_count) == (after.event_count, after.session_count),
            "importing the files a second time changed nothing",
        )

    def recall(self) -> None:
        """Ask questions, and show what comes back."""
        report = self.report
        report.chapter("Recall: questions in other words than the memories'")
        with self.client() as client:
            for question, expected in QUESTIONS:
                results = client.recall(question, limit=3, scopes=["event"]).results
                report.question(question)
                report.answers(answer(result) for result in results)
                report.check(
                    any(result.session_id.startswith(expected) for result in results),
                    f"the session that answers it is among them: {expected}",
                )

    def keep_lessons(self) -> None:
        """Save lessons, and find each at once."""
        report = self.report
        report.chapter("Lessons: kept, and found at once in other words")
        with self.client() as client:
            for title, content, category, importance, _ in LESSONS:
                saved = client.create_lesson(
                    title, content, category=category, importance=importance, agent_id="builder"
                ).lesson
                report.say(f"  saved  {saved.title}  ({category}, {importance})")
            for title, _, _, _, question in LESSONS:
                found = client.search_lessons(question, limit=2).results
                report.question(question)
                report.answers(
                    (
                        hit.score,
                        "lesson",
                        hit.lesson.category,
                        f"{hit.lesson.title}. {hit.lesson.content}",
                    )
                    for hit in found
                )
                best = found[0].lesson.title if found else "nothing"
                report.check(best == title, f"the best answer is the lesson “{title}”")

    def reflect(self) -> None:
        """Look at the agent's own record."""
        report = self.report
        report.chapter("Reflect: what the agent's own record says")
        with self.client() as client:
            errors = client.reflect("error_patterns", limit=3)
            loops = client.reflect("tool_sequences", limit=3)
            counted = sum(session.error_count for session in client.iter_sessions())
        report.table(
            ("error", "tool", "times", "sessions"),
            [
                (p.template, p.tool_name, str(p.count), str(p.sessions_affected))
                for p in errors.error_patterns.patterns
            ],
        )
        for sequence in loops.tool_sequences.common:
            tools = " → ".join(sequence.tools)
            report.say(f"  {tools}: {sequence.count} times in {sequence.sessions} sessions")
        report.check(
            errors.error_patterns.error_count == counted,
            f"every error was looked at: {counted}",
        )

    def separate_tenants(self) -> None:
        """Ask two tenants the same, and try to reach one from the other."""
        report = self.report
        report.chapter("Two tenants: another team on the same server")
        with self.client() as client:
            client.create_tenant("planning", display_name="Demand planning")
            made = client.create_api_key("planning", "demo", scopes=["read", "write"])
        self.other_key = made.secret
        report.say(f"Tenant “planning” has a folder and a key of its own: {made.api_key.prefix}…")
        self._import(sorted((SAMPLES / "demand").iterdir()), self.other_key)
        with self.client() as ours, self.client(self.other_key) as theirs:
            self._wait_until_indexed(theirs)
            found = {}
            for name, client in (("default", ours), ("planning", theirs)):
                results = client.recall(SHARED_QUESTION, limit=100, scopes=["event"]).results
                report.question(f"{SHARED_QUESTION}   (asked as tenant {name})")
                report.answers(answer(result) for result in results[:3])
                found[name] = {result.session_id for result in results}
            report.check(
                bool(found["default"])
                and all(session.startswith("inv-") for session in found["default"]),
                "default recalls its own sessions only",
            )
            report.check(
                bool(found["planning"])
                and all(session.startswith("dem-") for session in found["planning"]),
                "planning recalls its own sessions only",
            )
            report.check(
                not theirs.list_lessons().lessons, "planning sees none of default's lessons"
            )
            report.check(
                _is_missing(theirs, "inv-03-double-capture") and _is_missing(theirs, "no-such-id"),
                "to planning, a session of default's is as missing as one that never was",
            )

    def survive_a_crash(self) -> None:
        """Kill the server after a write, start it again, and count."""
        report = self.report
        report.chapter("kill -9, right after an acknowledged write")
        with self.client() as ours, self.client(self.other_key) as theirs:
            before = [client.get_stats().tenant for client in (ours, theirs)]
            receipt = ours.record_events(
                [{"session_id": "last-words", "event_type": "message", "text": LAST_WORDS}]
            ).receipts[0]
            code = self.server.kill()
        report.say(f"Acknowledged: event {receipt.id}, hash {receipt.hash[:16]}…")
        report.say(f"The server was killed (exit code {code}) and had no time to write anything.")
        seconds = self.server.start()
        report.say(f"It serves again after {seconds:.1f} s, now on {self.server.address}.")
        with self.client() as ours, self.client(self.other_key) as theirs:
            after = [client.get_stats().tenant for client in (ours, theirs)]
            expected = [
                (before[0].event_count + 1, before[0].session_count + 1, before[0].lesson_count),
                (before[1].event_count, before[1].session_count, before[1].lesson_count),
            ]
            report.check(
                [(t.event_count, t.session_count, t.lesson_count) for t in after] == expected,
                f"every event, session and lesson is there: {expected[0][0]} events in default, "
                f"{expected[1][0]} in planning",
            )
            chains = [client.verify_events() for client in (ours, theirs)]
            walked = sum(chain.events_checked for chain in chains)
            report.check(
                all(chain.valid for chain in chains)
                and walked == sum(tenant.event_count for tenant in after),
                f"the hash chains of all {walked} events verify",
            )
            head = ours.get_session("last-words").session.head_hash
            report.check(head == receipt.hash, "the last event has the hash that was acknowledged")
            self._wait_until_indexed(ours)
            results = ours.recall(LAST_QUESTION, limit=2).results
            report.question(LAST_QUESTION)
            report.answers(answer(result) for result in results)
            report.check(
                bool(results) and results[0].source_id == receipt.id,
                "the last write is recalled by its meaning",
            )

    def say_what_next(self) -> None:
        """Say what to try."""
        report = self.report
        report.chapter("What next")
        for command, meaning in NEXT:
            report.say(f"  {command:34}{meaning}")
        report.console.print()
        report.say(f"The dashboard of this demo: {self.server.dashboard}")
        if sys.stdin.isatty() and not report.is_plain:
            report.say("Look around; Enter ends the demo and takes its data away.")
            with suppress(EOFError, KeyboardInterrupt):
                input()

    def _import(self, files: Sequence[Path], api_key: str = "") -> None:
        """Import through the command line, as a person would."""
        report = self.report
        shown = " ".join(str(file.relative_to(ROOT)) for file in files)
        report.console.print(Text(f"$ mneme import {shown}", style="bold"), soft_wrap=True)
        shows_progress = report.svg is None and not report.is_plain
        done = subprocess.run(
            [BIN / "mneme", "--address", self.server.address, "import", *files],
            env=os.environ | {"MNEME_API_KEY": api_key},
            capture_output=not shows_progress,
            text=True,
            check=False,
        )
        if not shows_progress:
            report.say((done.stdout + done.stderr).strip())
        if done.returncode != 0:
            report.check(False, f"mneme import ended with exit code {done.returncode}")

    def _wait_until_indexed(self, client: MnemeClient) -> None:
        deadline = time.monotonic() + 30
        while (waiting := client.get_stats().tenant.pending_count) and time.monotonic() < deadline:
            time.sleep(0.05)
        if waiting:
            self.report.check(False, f"{waiting} memories still wait for their embedding")


def _is_missing(client: MnemeClient, session_id: str) -> bool:
    try:
        client.get_session(session_id)
    except NotFoundError:
        return True
    return False


def main() -> int:
    """Run the demo; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument(
        "--svg", type=Path, help="also write a picture of the main parts to this file"
    )
    options = parser.parse_args()
    report = Report(options.svg)
    folder = Path(tempfile.mkdtemp(prefix="mneme-demo-"))
    server = Server(folder)
    began = time.monotonic()
    try:
        Demo(report, server).run()
    except MnemeError as error:
        report.check(False, f"the demo goes on to its end ({error})")
    finally:
        server.stop()
    report.console.print()
    if report.broken:
        count = len(report.broken)
        report.say(f"{count} {'promise' if count == 1 else 'promises'} did not hold:")
        for promise in report.broken:
            report.say(f"  - {promise}")
        report.say(f"The data and the server's log are kept in {folder}.")
        return 1
    report.say(f"All promises held. The demo took {time.monotonic() - began:.0f} s.")
    shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
