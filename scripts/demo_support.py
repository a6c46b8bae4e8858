"""What the demo needs to show itself: a report on the terminal, and a server to talk to."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sysconfig
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from mneme.types import RecallResult, Session
from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sysconfig.get_path("scripts"))
WIDTH_WITHOUT_TERMINAL = 100
BAR = 10  # Characters of a full bar.
NAME = 26  # Characters of a session's id that are shown.


class Report:
    """What the demo says, and which promises did not hold."""

    def __init__(self, svg: Path | None) -> None:
        self.svg = svg
        self.console = Console(
            record=svg is not None,
            highlight=False,
            force_terminal=True if svg is not None else None,
        )
        self.is_plain = not self.console.is_terminal
        if self.is_plain or svg is not None:
            self.console.width = WIDTH_WITHOUT_TERMINAL
        self.broken: list[str] = []
        self._chapters = 0

    def chapter(self, title: str) -> None:
        """Begin a part."""
        self._chapters += 1
        heading = f"{self._chapters}  {title}"
        self.console.print()
        if self.is_plain:
            self.console.print(f"== {heading} ==")
        else:
            self.console.rule(Text(heading, style="bold cyan"), align="left", style="cyan")

    def begin_picture(self) -> None:
        """Leave what was shown so far out of the picture."""
        if self.svg is not None:
            self.console.export_text(clear=True)

    def end_picture(self) -> None:
        """Write the picture, if one is wanted."""
        if self.svg is not None:
            picture = self.console.export_svg(title="make demo")
            # A picture that fetches fonts from elsewhere is not shown the same everywhere.
            self.svg.write_text(re.sub(r"@font-face \{.*?\}\s*", "", picture, flags=re.DOTALL))

    def say(self, text: str) -> None:
        """Say something in passing."""
        self.console.print(Text(text))

    def check(self, holds: bool, promise: str) -> None:
        """Say that a promise holds, or that it does not."""
        mark = ("  ok  ", "bold green") if holds else ("  NO  ", "bold red")
        self.console.print(Text.assemble(mark, promise), soft_wrap=self.is_plain)
        if not holds:
            self.broken.append(promise)

    def question(self, text: str) -> None:
        """Show a question."""
        self.console.print()
        self.console.print(Text.assemble(("? ", "bold magenta"), (text, "bold")))

    def answers(self, rows: Iterable[tuple[float, str, str, str]]) -> None:
        """Show what was found: score, date, where it is from, text."""
        lines = [
            (f"  {score:.2f}", self._bar(score), when, _cut(where), " ".join(text.split()))
            for score, when, where, text in rows
        ]
        self._columns(lines, ("cyan", "cyan", "dim", "dim", ""), gives_way=4)

    def table(self, head: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
        """Show a table; the second column gives way, those after it hold numbers."""
        lines = list(rows)
        styles = ("dim", "", *("cyan" for _ in head[2:]))
        self._columns([head, *lines], styles, gives_way=1, numbers_from=2)

    def _columns(
        self,
        lines: Sequence[Sequence[str]],
        styles: Sequence[str],
        *,
        gives_way: int,
        numbers_from: int = 99,
    ) -> None:
        """Show lines in columns; where the terminal is narrow, one of them is cut."""
        widths = [max(map(cell_len, column)) for column in zip(*lines, strict=True)]
        gaps = 2 * (len(widths) - 1)
        room = self.console.width - gaps - sum(widths) + widths[gives_way]
        widths[gives_way] = max(min(widths[gives_way], room), 10)
        for line in lines:
            shown = Text()
            for place, (cell, width, style) in enumerate(zip(line, widths, styles, strict=True)):
                text = Text(cell, style=style)
                text.truncate(width, overflow="ellipsis")
                text.align("right" if place >= numbers_from else "left", width)
                shown += text if place == 0 else Text("  ") + text
            shown.rstrip()
            self.console.print(shown, soft_wrap=True)

    def _bar(self, score: float) -> str:
        filled = round(score * BAR)
        return "" if self.is_plain else "━" * filled + " " * (BAR - filled)


def _cut(name: str) -> str:
    return name if len(name) <= NAME else name[: NAME - 1] + "…"


class Server:
    """A Mneme server on free ports of this machine; its data outlives its process."""

    def __init__(self, folder: Path) -> None:
        self.data = folder / "data"
        self.log = folder / "server.log"
        self.process: subprocess.Popen[str] | None = None
        self.address = ""
        self.dashboard = ""

    def start(self) -> float:
        """Start it; return the seconds until it answered."""
        own = {"MNEME_MODEL_DIR"}
        environment = {
            name: value
            for name, value in os.environ.items()
            if name in own or not name.startswith("MNEME_")
        } | {
            "MNEME_LISTEN": "127.0.0.1:0",
            "MNEME_HTTP_LISTEN": "127.0.0.1:0",
            "MNEME_METRICS_LISTEN": "",
            "MNEME_AUTH": "disabled",
            "MNEME_DATA_DIR": str(self.data),
        }
        began = time.monotonic()
        with self.log.open("a") as log:
            self.process = subprocess.Popen(
                [BIN / "mneme-server", "serve"],
                env=environment,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.startswith("dashboard: "):
                self.dashboard = line.removeprefix("dashboard: ").strip()
            if line.startswith("serving on "):
                self.address = line.removeprefix("serving on ").strip()
                return time.monotonic() - began
        raise SystemExit(f"The server did not start:\n{self.log.read_text()}")

    def kill(self) -> int:
        """End it as a crash does, with no chance to tidy up; return what the process left."""
        assert self.process is not None
        self.process.send_signal(signal.SIGKILL)
        return self.process.wait()

    def stop(self) -> None:
        """Ask it to end, and wait."""
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()
            self.process.wait(timeout=30)


def events_in(file: Path) -> Counter[str]:
    """How many events of each session a file of Mneme's own events holds."""
    lines = (json.loads(line) for line in file.read_text().splitlines())
    return Counter(line["session_id"] for line in lines if "event_type" in line)


def started(session: Session) -> datetime:
    """When a session started; long ago where nobody said."""
    return session.started_at or datetime.min.replace(tzinfo=UTC)


def session_row(session: Session) -> tuple[str, ...]:
    """A session as a row of a table."""
    failed = session.status == "error"
    return (
        f"{started(session):%a %d %b}",
        str(session.metadata["title"]) + (" (failed)" if failed else ""),
        str(session.event_count),
        str(session.tool_call_count),
        str(session.error_count),
        f"${session.total_cost_usd:.3f}",
    )


def answer(result: RecallResult) -> tuple[float, str, str, str]:
    """A result as `Report.answers` shows it."""
    when = f"{result.timestamp:%d %b}" if result.timestamp else ""
    return result.score, when, result.session_id, result.text
