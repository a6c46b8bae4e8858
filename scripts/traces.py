"""Traces of calls through the server: how many of its files and functions one call touches.

    python scripts/traces.py
    python scripts/traces.py --json
    python scripts/traces.py --files GetSession

A server in this process is called until it is warm, and then traced. What it does meanwhile of its
own accord differs from call to call, so that only what each of several calls touched is counted.
Comprehensions are no functions of their own. It looks at the checkout that it lies in.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from types import FrameType
from typing import Any

import grpc
import mneme_server
import structlog
from mneme.v1 import event_service_pb2 as events_pb
from mneme.v1 import event_service_pb2_grpc as events_grpc
from mneme.v1 import learn_service_pb2 as learn_pb
from mneme.v1 import learn_service_pb2_grpc as learn_grpc
from mneme.v1 import recall_service_pb2 as recall_pb
from mneme.v1 import recall_service_pb2_grpc as recall_grpc
from mneme_server.app import Application
from mneme_server.settings import Settings
from pages import ROOT

SERVER = Path(mneme_server.__file__).parent
MODEL = Path(os.environ.get("MNEME_MODEL_DIR") or ROOT / "model" / "mneme_minilm")
KEY = "mn_the-key-that-is-traced"
WARM_CALLS, TRACED_CALLS = 5, 10
# When a call is over: no function of the server began for so long. It never waits longer than that.
QUIET_S, AT_MOST_S = 0.05, 2.0
_COMPREHENSIONS = {"<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"}

Call = Callable[[], Any]


@dataclass
class Trace:
    """What a call touched: its calls of functions, `file: function` of each, the deepest stack."""

    calls: int = 0
    functions: set[str] = field(default_factory=set)
    deepest: int = 0

    @property
    def files(self) -> set[str]:
        """The files that the functions are of, from the traced folder."""
        return {function.partition(":")[0] for function in self.functions}


class Tracer:
    """Traces the functions of a folder, in all threads that begin in its block, when told to."""

    def __init__(self, folder: Path) -> None:
        self._own = f"{folder}{os.sep}"
        self._trace: Trace | None = None
        self._last_s = 0.0

    def __enter__(self) -> Tracer:
        threading.setprofile(self._seen)
        return self

    def __exit__(self, *_: object) -> None:
        threading.setprofile(None)

    def trace(self, call: Call) -> Trace:
        """Return what a call touches, until nothing more is done for it."""
        self._trace, self._last_s = (trace := Trace()), time.monotonic()
        call()
        over = time.monotonic() + AT_MOST_S
        while time.monotonic() < min(over, self._last_s + QUIET_S):
            time.sleep(QUIET_S / 10)
        self._trace = None
        return trace

    def _seen(self, frame: FrameType, event: str, _argument: object) -> None:
        trace = self._trace
        if trace is None or event != "call" or not self._is_own(frame):
            return
        trace.calls += 1
        name = frame.f_code.co_filename.removeprefix(self._own)
        trace.functions.add(f"{name}: {frame.f_code.co_qualname}")
        trace.deepest = max(trace.deepest, self._depth(frame))
        self._last_s = time.monotonic()

    def _is_own(self, frame: FrameType) -> bool:
        code = frame.f_code
        return code.co_filename.startswith(self._own) and code.co_name not in _COMPREHENSIONS

    def _depth(self, frame: FrameType | None) -> int:
        depth = 0
        while frame is not None:
            depth += self._is_own(frame)
            frame = frame.f_back
        return depth


def common(traces: list[Trace]) -> Trace:
    """Return what all traces have touched; of calls and depth the medians."""
    return Trace(
        calls=round(median(trace.calls for trace in traces)),
        functions=set.intersection(*(trace.functions for trace in traces)),
        deepest=round(median(trace.deepest for trace in traces)),
    )


@contextmanager
def served() -> Iterator[grpc.Channel]:
    """Run a server with an empty folder in this process, and connect with it."""
    with tempfile.TemporaryDirectory() as folder:
        settings: dict[str, Any] = {
            "listen": "127.0.0.1:0",
            "http_listen": "",
            "metrics_listen": "",
            "data_dir": Path(folder),
            "model_dir": MODEL,
            "admin_key": KEY,
        }
        application = Application(Settings(**settings))
        try:
            address, _ = application.start()
            with grpc.insecure_channel(address) as channel:
                yield channel
        finally:
            application.stop()


def calls(channel: grpc.Channel) -> dict[str, Call]:
    """Record what there is to find, and return the calls that are traced, by RPC."""
    events = events_grpc.EventServiceStub(channel)
    recall = recall_grpc.RecallServiceStub(channel)
    learn = learn_grpc.LearnServiceStub(channel)
    key = (("authorization", f"Bearer {KEY}"),)
    texts = ("The deployment timed out.", "The rollback repaired the service.", "All is well.")
    recorded = [
        events_pb.NewEvent(session_id="traced", agent_id="planner", event_type="message", text=text)
        for text in texts
    ]
    events.StartSession(events_pb.StartSessionRequest(session_id="traced"), metadata=key)

    def record(**more: Any) -> Any:
        for event in recorded:
            event.ClearField("id")
        return events.RecordEvents(
            events_pb.RecordEventsRequest(events=recorded, **more), metadata=key
        )

    record(wait_indexed=True)
    session = events_pb.GetSessionRequest(session_id="traced")
    query = recall_pb.RecallRequest(query="What repaired the deployment?")
    lesson = learn_pb.CreateLessonRequest(title="Roll back first", content="Then look for causes.")
    return {
        "GetSession": lambda: events.GetSession(session, metadata=key),
        "Recall": lambda: recall.Recall(query, metadata=key),
        "RecordEvents": record,
        "CreateLesson": lambda: learn.CreateLesson(lesson, metadata=key),
    }


def traced() -> dict[str, Trace]:
    """Return what each call touches in a warm server."""
    found = {}
    with Tracer(SERVER) as tracer, served() as channel:
        for name, call in calls(channel).items():
            for _ in range(WARM_CALLS):
                call()
            found[name] = common([tracer.trace(call) for _ in range(TRACED_CALLS)])
    return found


def main() -> int:
    """Print what the calls touch, or the files of one."""
    arguments = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    arguments.add_argument("--json", action="store_true", help="print the counts as JSON")
    arguments.add_argument("--files", metavar="RPC", help="print the files that a call touches")
    given = arguments.parse_args()
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    found = traced()
    if given.files:
        print("\n".join(sorted(found[given.files].files)))
        return 0
    sizes = {
        name: {
            "calls": trace.calls,
            "functions": len(trace.functions),
            "files": len(trace.files),
            "deepest": trace.deepest,
        }
        for name, trace in found.items()
    }
    if given.json:
        print(json.dumps(sizes, indent=2))
        return 0
    print("| RPC | own calls | distinct functions | distinct files | deepest stack |")
    print("|---|---:|---:|---:|---:|")
    for name, size in sizes.items():
        print(f"| {name} | " + " | ".join(f"{value:,}" for value in size.values()) + " |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
