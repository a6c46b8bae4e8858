"""The worker process of a learner, from the side of the server: started, asked, watched, ended."""

from __future__ import annotations

import os
import selectors
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Mapping
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from typing import Any

import structlog

from mneme_server.common.errors import (
    MnemeError,
    Reason,
    ResourceExhausted,
    WorkFailed,
    error_of,
)
from mneme_server.common.process_limits import MIB
from mneme_server.engine.background.jobs import KEPT_ENVIRONMENT, resident_bytes
from mneme_server.engine.background.worker import ONE_THREAD
from mneme_server.features.learning.deep import frames

MEMORY_BYTES = 1024 * MIB
"""How much a worker may have resident: torch takes about 230 MiB of it."""

_LOOK_EVERY_S = 0.25
"""How often a worker's memory is looked at."""
_START_S = 30.0
"""How long starting a process may take; what it imports comes later."""
_LAST_WORDS = 2_000

_log = structlog.get_logger(__name__)

Answer = Mapping[str, Any]


class Worker:
    """A worker process. Thread-safe.

    A thread of its own starts it and hears it: where the kernel ends a process with its parent, the
    parent is the thread that started it.

    Args:
        setup: the first frame, which says what it trains.
        memory_bytes: how much memory it may have resident.
    """

    def __init__(self, setup: Mapping[str, Any], memory_bytes: int = MEMORY_BYTES) -> None:
        self._memory_bytes = memory_bytes
        self._waiting: deque[Future[Answer]] = deque()
        self._sending = threading.Lock()  # Guards `_waiting` and the order of frames.
        self._process: subprocess.Popen[bytes] | None = None
        self._started = threading.Event()
        self._closed = False
        self._ended: MnemeError | None = None
        self._last_words = b""
        self._thread = threading.Thread(target=self._run, name="learning", daemon=True)
        self._thread.start()
        self._started.wait(_START_S)
        self.ask(setup)

    @property
    def pid(self) -> int:
        """The number of the process."""
        assert self._process is not None
        return self._process.pid

    @property
    def has_ended(self) -> bool:
        """Whether the process is gone."""
        return self._ended is not None

    def ask(self, question: Mapping[str, Any]) -> Future[Answer]:
        """Hand over a frame; answers come in the order of the frames.

        The future raises `WorkFailed` or `ResourceExhausted` if the process ended before it
        answered, and what the trainer raised.
        """
        future: Future[Answer] = Future()
        with self._sending:
            if self._ended is not None:
                future.set_exception(self._ended)
                return future
            self._waiting.append(future)
            assert self._process is not None
            assert self._process.stdin is not None
            with suppress(BrokenPipeError, ValueError):  # It ended: its thread says why.
                self._process.stdin.write(frames.pack(question))
                self._process.stdin.flush()
        return future

    def close(self) -> None:
        """End the process and wait for that."""
        self._closed = True
        if self._process is not None:
            self._process.kill()
        self._thread.join()

    def _run(self) -> None:
        reading, writing = os.pipe()
        try:
            try:
                process = self._process = self._start(writing)
            finally:
                os.close(writing)
        except BaseException:
            os.close(reading)
            self._end(WorkFailed("no process could be started to train in"))
            raise
        finally:
            self._started.set()
        with process, os.fdopen(reading, "rb", buffering=0) as answers:
            too_much = False
            try:
                too_much = self._hear(process, answers.fileno())
            finally:
                process.kill()
                code = process.wait()
                self._end(self._out_of_memory() if too_much else self._crashed(code))
                with suppress(OSError):
                    assert process.stdin is not None
                    process.stdin.close()

    def _start(self, pipe: int) -> subprocess.Popen[bytes]:
        kept = {name: os.environ[name] for name in KEPT_ENVIRONMENT if name in os.environ}
        path = os.pathsep.join(str(Path(folder).resolve()) for folder in sys.path)
        me, memory = str(os.getpid()), str(self._memory_bytes)
        return subprocess.Popen(
            # -P: a folder's server may have been started where an agent works.
            [
                sys.executable,
                "-P",
                "-m",
                "mneme_server.features.learning.deep.worker",
                me,
                str(pipe),
                memory,
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            pass_fds=(pipe,),  # And nothing else: none of the server's sockets.
            env={**kept, **ONE_THREAD, "PYTHONPATH": path},
            process_group=0,  # Ctrl-C in a terminal is for the server.
        )

    def _hear(self, process: subprocess.Popen[bytes], answers: int) -> bool:
        """Hear answers until there are no more; tell whether it took too much memory."""
        assert process.stderr is not None
        words = process.stderr.fileno()
        heard = bytearray()
        with selectors.DefaultSelector() as selector:
            selector.register(answers, selectors.EVENT_READ)
            selector.register(words, selectors.EVENT_READ)
            while selector.get_map():
                if resident_bytes(process.pid) > self._memory_bytes:
                    return True
                for key, _ in selector.select(_LOOK_EVERY_S):
                    said = os.read(key.fd, 1 << 20)
                    if not said:
                        selector.unregister(key.fd)
                    elif key.fd == words:
                        self._last_words = (self._last_words + said)[-_LAST_WORDS:]
                    else:
                        heard += said
                        self._take_from(heard)
        return False

    def _take_from(self, heard: bytearray) -> None:
        """Give the answers that were heard as a whole to whoever waits for them."""
        while len(heard) >= 8:
            size = 8 + int.from_bytes(heard[:8], "little")
            if len(heard) < size:
                return
            answer = frames.unpack(bytes(heard[:size]))
            del heard[:size]
            with self._sending:
                future = self._waiting.popleft()
            if "error" in answer:
                future.set_exception(self._raised(answer["error"]))
            else:
                future.set_result(answer)

    def _end(self, why: MnemeError) -> None:
        with self._sending:
            self._ended = why
            waiting, self._waiting = self._waiting, deque()
        for future in waiting:
            future.set_exception(why)

    def _raised(self, told: Mapping[str, Any]) -> MnemeError:
        if told.get("bug") == "MemoryError":
            return self._out_of_memory()
        if "bug" not in told:
            return error_of(told)
        return WorkFailed(
            f"the process that trains failed ({told['bug']}); the server's log has the details"
        )

    def _out_of_memory(self) -> ResourceExhausted:
        return ResourceExhausted(
            f"training needs more memory than the {self._memory_bytes // MIB} MiB that its process"
            " may have: choose a smaller buffer_size, hidden_size or batch_size",
            reason=Reason.QUOTA_EXCEEDED,
        )

    def _crashed(self, code: int) -> WorkFailed:
        how = f"was ended by signal {-code}" if code < 0 else f"ended with exit code {code}"
        if not self._closed:
            said = self._last_words.decode(errors="replace")
            _log.error("a process that trains ended", how=how, said=said)
        return WorkFailed(
            f"the process that trains {how}; training goes on from what was saved last"
        )
