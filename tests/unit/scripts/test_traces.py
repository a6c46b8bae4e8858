"""Traces of calls: what a call touches in any thread counts, and what stands by does not."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest
from pages import ROOT
from traces import Trace, Tracer, common

HOUSE = """
from statistics import mean


def enter():
    return mean([knock() for _ in range(3)])


def knock():
    return 1


class Cellar:
    def enter(self):
        return enter()
"""


@pytest.fixture
def house(tmp_path: Path) -> ModuleType:
    (tmp_path / "house.py").write_text(HOUSE)
    spec = spec_from_file_location("house", tmp_path / "house.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def in_a_thread(house: ModuleType) -> None:
    thread = threading.Thread(target=house.Cellar().enter)
    thread.start()
    thread.join()


def test_a_trace_holds_what_the_threads_of_a_call_touch(house: ModuleType, tmp_path: Path) -> None:
    with Tracer(tmp_path) as tracer:
        trace = tracer.trace(lambda: in_a_thread(house))
        in_a_thread(house)  # Nobody looks.
    assert trace.functions == {"house.py: Cellar.enter", "house.py: enter", "house.py: knock"}
    assert (trace.calls, trace.deepest, trace.files) == (5, 3, {"house.py"})


def test_what_only_some_calls_touch_does_not_count() -> None:
    traces = [
        Trace(10, {"a.py: one", "b.py: two"}, 4),
        Trace(12, {"a.py: one", "c.py: three"}, 9),
        Trace(90, {"a.py: one"}, 5),
    ]
    assert common(traces) == Trace(12, {"a.py: one"}, 5)


def test_calls_of_a_real_server_are_traced() -> None:
    command = [sys.executable, ROOT / "scripts/traces.py", "--json"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True)
    found = json.loads(printed.stdout)
    assert set(found) == {"GetSession", "Recall", "RecordEvents", "CreateLesson"}
    for rpc in found.values():
        assert rpc["calls"] >= rpc["functions"] >= rpc["files"] > 10
    assert found["Recall"]["files"] > found["GetSession"]["files"]
