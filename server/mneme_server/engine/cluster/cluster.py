"""Serving tenants that other servers serve, too: following what they write, and sharing the work.

One thread asks for the newest rows of the feeds of open tenants: every 50 ms of those that are
searched often or watched here, now and then of the others. Whoever searches one of these asks for
itself, so a server that nobody asks does nothing but that. What another server tells of a commit
only shortens the wait, and may get lost; who has no use for it does not listen. Another thread
tells the others of this server's commits, of as many at once as there were meanwhile.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import structlog

from mneme_server.common.errors import FailedPrecondition, MnemeError, NotFound, Reason, is_failure
from mneme_server.engine.cluster.erasure_propagation import ErasurePropagation, ErasureWorker
from mneme_server.engine.cluster.leases import NodeLeases
from mneme_server.engine.cluster.servers import CountExchange
from mneme_server.engine.corpus.feed import Position
from mneme_server.engine.corpus.freshness import FOLLOWED_S
from mneme_server.engine.corpus.nodes import TRAINING, Head, Node
from mneme_server.engine.corpus.tenant import OpenTenant
from mneme_server.engine.tenants import local_disk
from mneme_server.engine.tenants.registry import TenantRegistry

ASKED_EVERY_S = 0.05
"""How often the feeds are asked for of tenants that are followed closely."""
SLOWLY_S = 0.5
"""How often those are of others that are in use."""
_LEAST_PAUSE_S = 0.02
"""Between two looks, however much others tell of."""
_LEARNT_S = 5.0
"""How long after somebody trained, or wanted to, claims are looked for with each look."""
_BEAT_S = 1.5
_SWEPT_S = 2.0
_LOOKED_S = 15.0
_ERASED_S = 0.5
"""How often is looked what was erased by way of other servers."""
_QUIET_AT_ONCE = 40
"""Of so many tenants that are open, and not in use, the feeds are looked at each slow time, in
turns: what that takes does not grow with how many there are."""
_AGAIN_S = 0.5
_TELL_AT_MOST_EVERY_S = 0.02
_STOP_S = 5.0

_log = structlog.get_logger(__name__)


class TenantDirectory(Protocol):
    """Which tenants there are."""

    def get(self, tenant_id: str) -> object:
        """Return something about a tenant.

        Raises:
            NotFound: there is none.
        """
        ...

    def served(self, names: Collection[str]) -> Collection[str]:
        """Return those of the names that are tenants'."""
        ...


class _NoExchange:
    """Implements `CountExchange` before there are any."""

    def report(self) -> Mapping[str, Any]:
        """Report nothing."""
        return {}

    def heard(self, reports: Mapping[str, Mapping[str, Any]]) -> None:
        """Hear nothing."""


class Cluster:
    """This server as one of several. Implements `Servers`, and `TenantListener`.

    Args:
        node: what the store knows of it.
        tenants: those that are open.
        root: the folder with a folder for each tenant.
        known: says which tenants there are.
        committed_elsewhere: called with a tenant that another server wrote to.
        look_after: called with a tenant that may have work which nobody does.
        look_again: called now and then; others may have noted turns.
    """

    def __init__(
        self,
        node: Node,
        tenants: TenantRegistry[Any],
        root: Path,
        known: TenantDirectory,
        *,
        committed_elsewhere: Callable[[str], None],
        look_after: Callable[[str], None],
        look_again: Callable[[], None],
    ) -> None:
        self.leases = NodeLeases(node)
        self.training = NodeLeases(node, TRAINING, on_demand=True)
        self._node = node
        self._tenants = tenants
        self._root = root
        self._known = known
        self._committed_elsewhere = committed_elsewhere
        self._look_after = look_after
        self._look_again = look_again
        self._stopping = threading.Event()
        self._to_tell = threading.Event()
        self._let_go: Callable[[str], object] = lambda _tenant: None
        self._handing_over: set[str] = set()
        self._counts: CountExchange = _NoExchange()
        self._beaten_s = self._swept_s = self._looked_s = self._erased_s = float("-inf")
        self._heard_s = float("-inf")
        self._was_told = False
        self._quiet: list[str] = []
        self._watched: Callable[[], Collection[str]] = tuple
        self._heard: dict[str, Position] = {}
        self._gone: Collection[str] = ()
        self._dropping: set[str] = set()
        self._failing = False
        self._others = 0
        local_disk.enter(node.erasures, root.parent)  # Before it counts as alive: then it is known.
        self._beat(time.monotonic())  # Before anybody asks for a lease.
        self.erasure_worker = ErasureWorker(node.erasures, tenants, root, known.get)
        self.erasures = ErasurePropagation(node.erasures)
        self._threads = [
            threading.Thread(target=self._follow, name="feed-following", daemon=True),
            threading.Thread(target=self._tell, name="feed-telling", daemon=True),
        ]

    @property
    def shared(self) -> bool:
        """See `Servers`: there may be others."""
        return True

    @property
    def alive(self) -> int:
        """How many servers live, with this one, as of the last time that the database was told."""
        return self._others + 1

    @property
    def silent_s(self) -> float:
        """How long ago the database was told that this server lives, in seconds."""
        return time.monotonic() - self._beaten_s

    def start(self) -> None:
        """Catch up with what was erased while this server was off, and begin to follow.

        Raises:
            Unavailable: the store cannot be reached now.
        """
        self.erasure_worker.start(self._node.due())
        self._beat(time.monotonic())  # That may have taken long, and leases are asked for next.
        for thread in self._threads:
            thread.start()

    def count_with(self, counts: CountExchange) -> None:
        """Exchange counts with the other servers from now on, with each sign of life."""
        self._counts = counts

    def also_follow(self, watched: Callable[[], Collection[str]]) -> None:
        """Have it told at once, too, what is written elsewhere to the tenants that this returns,
        whether they are open or not. Before it is started."""
        self._watched = watched

    def also_drop(self, drop: Callable[[str, str], object]) -> None:
        """Have this called with a tenant and an erasure that came by way of another server."""
        self.erasure_worker.also_drop(drop)

    def on_claim(self, let_go: Callable[[str], object]) -> None:
        """Have this called with a tenant before its learning sessions are handed over."""
        self._let_go = let_go

    def committed(self, tenant_id: str) -> None:
        """Have the others told of a commit, soon."""
        if self._others:
            self._to_tell.set()

    def require_alone(self) -> None:
        """Check that no other server serves the tenants.

        Raises:
            FailedPrecondition: one does.
            Unavailable: it cannot be told now.
        """
        others = self._node.others()
        if others:
            raise FailedPrecondition(
                "other servers serve from the database, or did some seconds ago"
                f" ({others}): stop them first",
                reason=Reason.INITIALIZATION_FAILED,
            )

    def removed(self, tenant_id: str, *, replaced: bool) -> None:
        """Nothing follows: the lease goes with the tenant's rows, or stays."""

    def begin_stop(self) -> None:
        """Stop following, and tell nobody any more. Leases are held on to."""
        self._stopping.set()
        self._to_tell.set()
        self.erasure_worker.begin_stop()
        for thread in self._threads:
            if thread.is_alive():
                thread.join(_STOP_S)

    def close(self) -> None:
        """Leave. Whatever is leased to this server others take over at once."""
        self.begin_stop()
        self._node.close()

    def _follow(self) -> None:
        while not self._stopping.is_set():
            try:
                self._tick()
            except BaseException as error:
                if not is_failure(error):
                    raise
                if not self._failing:
                    _log.warning("the feeds cannot be followed now", error=str(error),
                                 exc_info=not isinstance(error, MnemeError))  # fmt: skip
                self._failing = True
                self._stopping.wait(_AGAIN_S)
            else:
                if self._failing:
                    _log.info("the feeds are followed again")
                self._failing = False

    def _tick(self) -> None:
        now = time.monotonic()
        if now - self._beaten_s >= _BEAT_S:
            self._beat(now)
        slowly = now - self._heard_s >= SLOWLY_S
        if slowly:
            self._heard_s = now
        if slowly or self._was_told:
            self._hear(now, quiet=slowly)
        else:
            self._hear_closely(now)
        if slowly or self._was_told or self.training.was_asked(_LEARNT_S):
            self._share()
        if now - self._erased_s >= _ERASED_S:
            self._erased_s = now
            if due := self._node.due():
                self.erasure_worker.note(due)
        if now - self._swept_s >= _SWEPT_S:
            self._swept_s = now
            for tenant_id in self._node.orphans():
                self._have_done(tenant_id)
        if now - self._looked_s >= _LOOKED_S:
            self._looked_s = now
            self._look_again()
        self._rest(now)

    def _rest(self, now: float) -> None:
        """Wait for the next look."""
        close = self._is_close()
        until = now + (ASKED_EVERY_S if close else SLOWLY_S)
        listens = bool(self._others) and (close or bool(self.leases.held()))
        self._was_told = False
        pause_s = _LEAST_PAUSE_S if listens else until - time.monotonic()
        self._node.hear(listens)
        if not self._stopping.wait(max(0.0, pause_s)) and listens:
            self._was_told = self._node.listen(max(0.0, until - time.monotonic()))

    def _is_close(self) -> bool:
        """Tell whether there is something to look for every moment."""
        if self._watched() or self.training.was_asked(_LEARNT_S):
            return True
        return any(one.is_followed_closely for one in self._tenants.in_use(FOLLOWED_S))

    def _hear_closely(self, now: float) -> None:
        """Ask for the feeds of tenants that are followed closely."""
        in_use = self._tenants.in_use(FOLLOWED_S)
        self._ask({one.tenant_id: one for one in in_use if one.is_followed_closely}, now)

    def _hear(self, now: float, *, quiet: bool = True) -> None:
        """Ask for the feeds of tenants in use, and with `quiet` of some others that are open."""
        tenants = {tenant.tenant_id: tenant for tenant in self._tenants.in_use(FOLLOWED_S)}
        if quiet:
            tenants |= {tenant.tenant_id: tenant for tenant in self._some_quiet()}
        self._ask(tenants, now)

    def _ask(self, tenants: Mapping[str, OpenTenant], now: float) -> None:
        """Ask for the feeds of these, and of those that are watched."""
        watched = dict.fromkeys(self._watched())
        self._heard = {name: at for name, at in self._heard.items() if name in watched}
        if not tenants and not watched:
            return
        for head in self._node.heads({**watched, **tenants}):
            tenant = tenants.get(head.tenant_id)
            if head.tenant_id in watched and self._heard.get(head.tenant_id) != head.newest:
                self._heard[head.tenant_id] = head.newest
                if tenant is None:
                    self._committed_elsewhere(head.tenant_id)
            if tenant is None:
                continue
            if head.generation != tenant.generation:
                self._drop(head)
            elif tenant.told(head.newest, now):
                self._committed_elsewhere(head.tenant_id)

    def _some_quiet(self) -> Sequence[OpenTenant]:
        """Return some of the tenants that are open, others the next time."""
        if not self._quiet:
            self._quiet = [tenant.tenant_id for tenant in self._tenants.open_tenants()]
        chosen, self._quiet = self._quiet[-_QUIET_AT_ONCE:], self._quiet[:-_QUIET_AT_ONCE]
        return self._tenants.open_tenants(chosen)

    def _share(self) -> None:
        """Have others told of work that is theirs, and hear what is this server's; hand over what
        others claim."""
        for leases in (self.leases, self.training):
            wanted = {leases.name_of(tenant_id): tenant_id for tenant_id in leases.wanted()}
            if wanted:
                held = set(self._node.want(wanted))
                free = {wanted[name] for name in set(wanted) - held}
                leases.free(free)
                for tenant_id in free:
                    self._look_after(tenant_id)
        if self.leases.held() or self.training.held():
            for name in self._node.wanted():
                if name.startswith(TRAINING):
                    self._hand_over(name.removeprefix(TRAINING))
                else:
                    self._look_after(name)

    def _hand_over(self, tenant_id: str) -> None:
        if tenant_id not in self._handing_over:
            self._handing_over.add(tenant_id)
            threading.Thread(
                target=self._handed_over, args=(tenant_id,), name="handing-over", daemon=True
            ).start()

    def _handed_over(self, tenant_id: str) -> None:
        try:
            self.training.give_up(tenant_id, self._let_go)
        except MnemeError as error:  # What was not saved is learned again from what was recorded.
            _log.warning("learning sessions were handed over unsaved", tenant=tenant_id,
                         error=error.message)  # fmt: skip
        finally:
            self._handing_over.discard(tenant_id)

    def _beat(self, now: float) -> None:
        self._others, gone, reports = self._node.beat(self._counts.report())
        self.leases.alive(now)
        self.training.alive(now)
        self._beaten_s = now
        self._counts.heard(reports)
        if set(gone) - set(self._gone):
            # What they wrote last they may not have told of.
            for tenant_id in self.leases.held():
                self._look_after(tenant_id)
        self._gone = gone

    def _have_done(self, tenant_id: str) -> None:
        self.leases.free([tenant_id])
        self.training.free([tenant_id])
        self._look_after(tenant_id)

    def _drop(self, head: Head) -> None:
        """Let go of a tenant that another server has deleted, or whose rows are others now."""
        if head.tenant_id in self._dropping:
            return
        self._dropping.add(head.tenant_id)
        threading.Thread(
            target=self._dropped, args=(head,), name="tenant-dropping", daemon=True
        ).start()

    def _dropped(self, head: Head) -> None:
        try:
            gone = head.generation is None
            with self._tenants.removing(head.tenant_id, replaced=not gone):
                if gone:
                    local_disk.remove_folder(self._root / head.tenant_id)
        except (MnemeError, OSError) as error:
            _log.warning("a tenant that is gone is still in use", tenant=head.tenant_id,
                         error=str(error))  # fmt: skip
        finally:
            self._dropping.discard(head.tenant_id)

    def tidy(self) -> None:
        """Remove the folders of tenants that were deleted by way of other servers. For a thread of
        its own: feeds are followed meanwhile."""
        folders = list(self._root.iterdir()) if self._root.exists() else []
        served = set(self._known.served([folder.name for folder in folders]))
        for folder in folders:
            if folder.name in served:
                continue
            try:
                self._known.get(folder.name)  # It may have been made meanwhile.
            except NotFound:
                try:
                    with self._tenants.removing(folder.name, timeout_s=0.0):
                        local_disk.remove_folder(folder)
                except MnemeError:
                    continue  # It is in use, or being deleted here; it goes the next time.
                except OSError as error:
                    _log.warning("the folder of a tenant that is gone cannot be removed",
                                 tenant=folder.name, error=str(error))  # fmt: skip

    def _tell(self) -> None:
        while True:
            self._to_tell.wait()
            if self._stopping.is_set():
                return
            self._to_tell.clear()
            try:
                self._node.tell()
            except MnemeError:
                continue  # The others find out by asking.
            self._stopping.wait(_TELL_AT_MOST_EVERY_S)
