"""Watches, which follow events as they are recorded: any number of a tenant, and one reader.

A watch is a place in the order of recording. What was recorded lately is kept in a window that all
watches of the tenant share; the reader adds to it after each commit, and a watch whose place is
before the window reads for itself. So a watch that is slow, or resumes, costs no memory, and one
that has seen everything holds no thread, and does not keep its tenant open: a commit opens it
anyway.
"""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Generic, TypeVar

import structlog

from mneme_server.engine.corpus.tenant import OpenTenants, farewell
from mneme_server.features.events.model import Event, EventFilter
from mneme_server.features.events.store.events import SqlEvents
from mneme_server.features.events.store.sessions import SqlSessions

M = TypeVar("M")

_log = structlog.get_logger(__name__)

_READ = 100
"""Events that are read at a time."""
_TAKEN = 32
"""Events that a watch takes at a time."""
_WINDOW = 1_000
_WINDOW_CHARS = 1_000_000
"""Most of the window of a tenant: events, and characters of their texts and JSON."""

_EVERYTHING = EventFilter()


def _do_nothing() -> None:
    pass


class _WindowEvent(Generic[M]):
    """An event of the window with its session's project, and its message once one made it."""

    __slots__ = ("event", "message", "project")

    def __init__(self, event: Event, project: str) -> None:
        self.event = event
        self.project = project
        self.message: M | None = None

    @property
    def cursor(self) -> int:
        """Its place in the order of recording."""
        return self.event.cursor


@dataclass(frozen=True, slots=True)
class _Window(Generic[M]):
    """What was recorded after the cursor `start`, up to `head`, with nothing left out."""

    start: int
    head: int
    recorded: tuple[_WindowEvent[M], ...] = ()

    def with_more(self, more: Sequence[_WindowEvent[M]]) -> _Window[M]:
        """Return the window with what was recorded next, and without the oldest if it is large."""
        recorded = (*self.recorded, *more)
        kept, room = len(recorded), _WINDOW_CHARS
        while kept > max(0, len(recorded) - _WINDOW):
            room -= _size(recorded[kept - 1].event)
            if room < 0:
                break
            kept -= 1
        start = recorded[kept - 1].cursor if kept else self.start
        return _Window(start, more[-1].cursor if more else self.head, recorded[kept:])


class _TenantWatches(Generic[M]):
    """The watches of a tenant and their window."""

    def __init__(self, tenant_id: str) -> None:
        self.tenant_id = tenant_id
        self.lock = threading.Lock()  # Guards what follows; never held while reading.
        self.watches: set[Watch[M]] = set()
        self.window: _Window[M] | None = None  # Replaced, never changed.
        self.behind = False  # A commit came that the reader has not read.
        self.reading = False
        self.failed = False  # The reader could not read: each watch finds out for itself.
        self.end: Callable[[], Exception] | None = None

    def wake_all(self) -> None:
        """Have every watch look what there is for it."""
        with self.lock:
            watches = list(self.watches)
        for watch in watches:
            watch.wake()

    def tidy(self) -> None:
        """Forget the window once every watch has seen it."""
        window = self.window
        if window is None or not window.recorded:
            return
        with self.lock:
            if self.window is window and all(w.cursor >= window.head for w in self.watches):
                self.window = _Window(window.head, window.head)


class Watch(Generic[M]):
    """One watch, a source of messages: the first tells from where it began, the others events.

    Made by `Watches.follow`.
    """

    def __init__(self, watches: Watches[M], feed: _TenantWatches[M], filter_: EventFilter) -> None:
        self._watches = watches
        self._feed = feed
        self._filter = filter_
        self._begun = False
        self.cursor = 0
        self.wake: Callable[[], None] = _do_nothing

    def on_ready(self, wake: Callable[[], None]) -> None:
        """Have `wake` called whenever there may be messages."""
        self.wake = wake

    def take(self) -> Sequence[M]:
        """Return the next messages in the order of recording; none when there are none now.

        Raises:
            NotFound: the tenant was deleted meanwhile.
            Unavailable: it is being restored.
        """
        if not self._begun:
            self._begun = True
            return [self._watches.begun(self.cursor)]
        while True:
            feed = self._feed
            if feed.end is not None:
                raise feed.end()
            if feed.failed:
                return self._read()
            window = feed.window
            if window is None or self.cursor >= window.head:
                feed.tidy()
                return ()
            before = self.cursor < window.start
            messages = self._read(window.start) if before else self._look(window)
            if messages:
                return messages

    def close(self) -> None:
        """Watch no longer."""
        self.wake = _do_nothing
        self._watches.left(self._feed, self)

    def _look(self, window: _Window[M]) -> Sequence[M]:
        """Return what the window has for this watch."""
        messages: list[M] = []
        place = bisect_right(window.recorded, self.cursor, key=lambda recorded: recorded.cursor)
        for recorded in window.recorded[place:]:
            if self._filter.matches(recorded.event, recorded.project):
                if recorded.message is None:  # Two watches may make it at once; one is kept.
                    recorded.message = self._watches.made(recorded.event)
                messages.append(recorded.message)
            self.cursor = recorded.cursor
            if len(messages) == _TAKEN:
                break
        return messages

    def _read(self, start: int = 0) -> Sequence[M]:
        """Return what comes next, from before the window, which begins after the cursor `start`."""
        with self._watches.tenants.open(self._feed.tenant_id) as tenant, tenant.read() as unit:
            newest = unit.get(SqlEvents).last_cursor()
            events = unit.get(SqlEvents).recorded_after(self.cursor, self._filter, _TAKEN)
        if len(events) == _TAKEN:
            self.cursor = events[-1].cursor
        else:  # What does not match need not be read again.
            # The newest may have been forgotten: then there is none at the window's start.
            self.cursor = max(self.cursor, newest, start)
        return [self._watches.made(event) for event in events]


class Watches(Generic[M]):
    """Follows events as they are recorded. Thread-safe.

    It must be told of each commit, and of tenants that are removed.

    Args:
        tenants: where tenants are lent from, for as long as it takes to read.
        run: does a step of a tenant's soon, on another thread.
        begun: makes the message that tells from which cursor a watch began.
        made: makes the message of an event.
    """

    def __init__(
        self,
        tenants: OpenTenants,
        run: Callable[[str, Callable[[], object]], None],
        *,
        begun: Callable[[int], M],
        made: Callable[[Event], M],
    ) -> None:
        self.tenants = tenants
        self.begun = begun
        self.made = made
        self._run = run
        self._lock = threading.Lock()
        self._feeds: dict[str, _TenantWatches[M]] = {}

    def follow(self, tenant_id: str, filter_: EventFilter, after_cursor: int | None) -> Watch[M]:
        """Return a watch of what is recorded after the cursor, or from now on.

        Nothing is missed between its first message and those after it.

        Raises:
            NotFound: there is no such tenant.
            Unavailable: it is being restored.
        """
        with self._lock:
            feed = self._feeds.setdefault(tenant_id, _TenantWatches(tenant_id))
            watch = Watch(self, feed, filter_)
            with feed.lock:  # Before the newest cursor is read, so that no commit is missed.
                feed.watches.add(watch)
        try:
            with self.tenants.open(tenant_id) as tenant, tenant.read() as unit:
                newest = unit.get(SqlEvents).last_cursor()
        except BaseException:
            watch.close()
            raise
        # One that is ahead is of events that are gone, e.g. since a backup was restored.
        watch.cursor = newest if after_cursor is None else min(after_cursor, newest)
        with feed.lock:
            if feed.window is None:
                feed.window = _Window(newest, newest)
            due = self._is_due(feed)
        if due:
            self._run(tenant_id, partial(self._read, feed))
        return watch

    def watched(self) -> Collection[str]:
        """Return the tenants that have watches."""
        with self._lock:
            return list(self._feeds)

    def committed(self, tenant_id: str) -> None:
        """Take note of a commit: there may be events to show."""
        feed = self._feeds.get(tenant_id)
        if feed is None:
            return
        with feed.lock:
            feed.behind = True
            due = self._is_due(feed)
        if due:
            self._run(tenant_id, partial(self._read, feed))

    def removed(self, tenant_id: str, *, replaced: bool) -> None:
        """End the watches of a tenant that is deleted, or replaced by a backup."""
        with self._lock:
            feed = self._feeds.pop(tenant_id, None)
        if feed is not None:
            feed.end = partial(farewell, tenant_id, replaced=replaced)
            feed.wake_all()

    def purge(self, tenant_id: str, _found: object) -> None:
        """Keep nothing of what was recorded: something was erased. Watches read what is left."""
        feed = self._feeds.get(tenant_id)
        if feed is None:
            return
        with feed.lock:
            if feed.window is not None:
                feed.window = _Window(feed.window.head, feed.window.head)

    def left(self, feed: _TenantWatches[M], watch: Watch[M]) -> None:
        """Forget a watch."""
        with self._lock, feed.lock:
            feed.watches.discard(watch)
            if not feed.watches and self._feeds.get(feed.tenant_id) is feed:
                del self._feeds[feed.tenant_id]

    def _is_due(self, feed: _TenantWatches[M]) -> bool:
        """Tell whether the reader must be started. Whoever asks starts it."""
        if not feed.behind or feed.reading or feed.window is None:
            return False
        feed.reading = True
        return True

    def _read(self, feed: _TenantWatches[M]) -> None:
        """Read what was recorded since the last time, and tell the watches; in turn with others."""
        with feed.lock:
            window = feed.window
            feed.behind = False
        if window is None or not feed.watches:
            return
        try:
            with self.tenants.open(feed.tenant_id) as tenant:
                with tenant.read() as unit:
                    events = unit.get(SqlEvents).recorded_after(window.head, _EVERYTHING, _READ)
                    sessions = unit.get(SqlSessions).get_many(
                        {event.session_id for event in events}
                    )
                recorded = [
                    _WindowEvent[M](event, sessions[event.session_id].project) for event in events
                ]
                # While the tenant is lent: who erases something waits for that, then purges.
                told, due = self._add(feed, window, recorded)
        except Exception as error:
            _log.warning(
                "events could not be read for watches", tenant=feed.tenant_id, error=str(error)
            )
            with feed.lock:
                feed.failed, feed.reading = True, False
            feed.wake_all()
            return
        if told:
            feed.wake_all()
        if due:
            self._run(feed.tenant_id, partial(self._read, feed))

    def _add(
        self, feed: _TenantWatches[M], window: _Window[M], recorded: Sequence[_WindowEvent[M]]
    ) -> tuple[bool, bool]:
        """Add what was read; return whether watches are to be told, and whether to read again."""
        with feed.lock:
            if recorded:
                # Nobody but the reader moves the head.
                feed.window = (feed.window or window).with_more(recorded)
            told = bool(recorded) or feed.failed
            feed.failed = feed.reading = False
            feed.behind = feed.behind or len(recorded) == _READ
            return told, self._is_due(feed)


def _size(event: Event) -> int:
    return len(event.text) + len(event.payload_json) + len(event.metadata_json) + len(event.error)
