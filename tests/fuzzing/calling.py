"""Threads that call a server at random, and what became of their calls."""

from __future__ import annotations

import base64
import itertools
import random
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import grpc
from google.protobuf import text_format
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from mneme.v1 import admin_service_pb2 as admin_pb
from mneme.v1 import auth_pb2
from support.api import Api
from support.descriptors import services
from support.examples import EXAMPLES, needed, requests_of
from support.operations import finished
from support.server import ADMIN_KEY, Keys

from fuzzing.making import Maker, Pool, smaller

BUGS = frozenset(
    {
        grpc.StatusCode.INTERNAL,
        grpc.StatusCode.UNKNOWN,
        grpc.StatusCode.DATA_LOSS,
        grpc.StatusCode.UNIMPLEMENTED,
        grpc.StatusCode.DEADLINE_EXCEEDED,
    }
)
"""Codes that no request may cause, however it is made, when its caller has time."""

HANG_S = 60.0
_HURRY_S = 0.003
_LOOK_S = 0.2
_CALLS_PER_TENANT = 2_000
_SHRINKING = 300
_READ = 200
_SLOW = frozenset(
    {
        *("CreateTenant", "WatchEvents"),
        *("Backup", "DeleteTenant", "Forget", "MoveTenant", "Reindex", "Restore"),
    }
)
"""Methods that take long by their nature and are called less for it."""
_ENDS = ("Delete", "End", "Archive")
"""How methods begin that take away what others ask after, and are called less for it."""
_BY_EXAMPLE = 0.4
"""How often what is sent is the method's example, but for some of its fields."""
_ADMIN = frozenset({"AdminService", "OperationService"})


def methods() -> Sequence[MethodDescriptor]:
    """Return every method of every service that the package has, whatever it will have."""
    return [method for service in services() for method in service.methods]


def examples_of(method: MethodDescriptor) -> list[Message]:
    """Return the documentation's example of a method: what is sent."""
    return requests_of(f"{method.containing_service.name}.{method.name}")


@dataclass(slots=True)
class Failure:
    """A call that met a bug: enough to make it again."""

    method: MethodDescriptor
    requests: Sequence[Message]
    code: str
    details: str
    number: str

    def __str__(self) -> str:
        sent = [base64.b64encode(request.SerializeToString()).decode() for request in self.requests]
        shown = [text_format.MessageToString(r, as_utf8=True)[:4_000] for r in self.requests]
        return (
            f"{self.method.full_name} gave {self.code} ({self.details}) in call {self.number}\n"
            f"{chr(10).join(shown)}\nas bytes in base64: {' '.join(sent)[:20_000]}"
        )


@dataclass
class Report:
    """What became of the calls so far."""

    calls: int = 0
    codes: Counter[tuple[str, str]] = field(default_factory=Counter)
    seconds: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    longest: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    failures: list[Failure] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, method: MethodDescriptor, code: str, seconds: float) -> None:
        """Count a call and its time."""
        with self.lock:
            self.calls += 1
            self.seconds[method.name] += seconds
            self.longest[method.name] = max(self.longest[method.name], seconds)
            self.codes[method.name, code] += 1

    def fail(self, failure: Failure) -> None:
        """Keep a failure; one of each kind of method and code tells enough."""
        with self.lock:
            self.failures.append(failure)

    def answered(self) -> set[str]:
        """Return the methods that were answered at least once."""
        return {name for (name, code), count in self.codes.items() if code == "OK" and count}

    def __str__(self) -> str:
        totals: Counter[str] = Counter()
        for (_, code), count in self.codes.items():
            totals[code] += count
        shown = ", ".join(f"{code} {count}" for code, count in totals.most_common())
        return f"{self.calls} calls: {shown}; {len(self.failures)} failures"


class Caller(threading.Thread):
    """Calls one method after the other, with keys of tenants of its own.

    Args:
        address: the server.
        report: where outcomes are counted.
        seed: where all choices come from, and the name of the thread's tenants.
        numbers: one for each call to make; shared by all threads.
    """

    def __init__(self, address: str, report: Report, seed: str, numbers: Iterator[int]) -> None:
        super().__init__(name=f"caller-{seed}", daemon=True)
        self._keys = Keys(address)
        self._report = report
        self._seed = seed
        self._numbers = numbers
        self._methods = methods()
        self.broken: BaseException | None = None

    def run(self) -> None:
        """Call until the numbers are used up, a failure was found, or the server is gone."""
        try:
            for tenant in itertools.count():
                if not self._use(tenant):
                    return
        except BaseException as error:  # Told by whoever waits for the thread.
            self.broken = error
        finally:
            self._keys.close()

    def _use(self, tenant: int) -> bool:
        """Call with a fresh tenant for a while, so that none grows without end."""
        rng = random.Random(f"{self._seed}/{tenant}")
        name = f"fuzz-{self._seed}-{tenant}"
        self._keys.admin.admin.CreateTenant(admin_pb.CreateTenantRequest(tenant_id=name))
        kept = self._keys.admin.admin.ListApiKeys(
            admin_pb.ListApiKeysRequest(tenant_id="default", page_size=1000)
        )
        pool = Pool(frozenset(key.id for key in kept.api_keys) | {ADMIN_KEY, name})
        scopes = auth_pb2.KEY_SCOPE_READ, auth_pb2.KEY_SCOPE_WRITE, auth_pb2.KEY_SCOPE_LEARN
        api = self._keys.key(name, *scopes)
        self._follow_examples(api, rng, pool, f"{self._seed}/{tenant}")
        made = 0
        for number in itertools.islice(self._numbers, _CALLS_PER_TENANT):
            code = self._call(api, rng, pool, f"{self._seed}/{tenant}/{number}")
            made += 1
            if self._report.failures:
                return False
            if code is grpc.StatusCode.UNAUTHENTICATED:
                return True  # A call of this thread or another deleted its tenant, or its key.
        with suppress(grpc.RpcError):  # A call may have deleted it.
            finished(
                self._keys.admin,
                admin_pb.DeleteTenantRequest(tenant_id=name),
            )
        return made == _CALLS_PER_TENANT

    def _follow_examples(self, api: Api, rng: random.Random, pool: Pool, number: str) -> None:
        """Call what the documentation has as examples, so that there is something to be met."""
        of = {f"{method.containing_service.name}.{method.name}": method for method in methods()}
        calls = [(name, [request]) for name, request in needed().items()]
        calls += [(name, examples_of(of[name])) for name in EXAMPLES]
        for name, requests in calls:
            method = of[name]
            if method.containing_service.name not in _ADMIN and not method.name.startswith(_ENDS):
                self._make(api, method, requests, pool, rng, number)

    def _call(self, api: Api, rng: random.Random, pool: Pool, number: str) -> grpc.StatusCode:
        method = rng.choice(self._methods)
        if method.name in _SLOW and rng.random() < 0.8:
            method = rng.choice(self._methods)
        if method.name.startswith(_ENDS) and rng.random() < 0.8:  # Or little were left.
            method = rng.choice(self._methods)
        maker = Maker(rng, pool, rng.choice((0, 0, 0, 0, 0.02, 0.3)))
        if rng.random() < _BY_EXAMPLE:
            requests = examples_of(method)
            for _ in range(rng.choice((0, 1, 1, 2, 4))):
                place = rng.randrange(len(requests))
                requests[place] = maker.altered(requests[place])
        else:
            count = rng.choice((1, 1, 2, 5)) if method.client_streaming else 1
            requests = [maker.message(method.input_type) for _ in range(count)]
        if method.containing_service.name in _ADMIN and rng.random() < 0.9:
            api = self._keys.admin
        return self._make(api, method, requests, pool, rng, number)

    def _make(
        self,
        api: Api,
        method: MethodDescriptor,
        requests: Sequence[Message],
        pool: Pool,
        rng: random.Random,
        number: str,
    ) -> grpc.StatusCode:
        hurried = rng.random() < 0.01
        started = time.monotonic()
        code, details = call(api, method, requests, pool, rng, _HURRY_S if hurried else HANG_S)
        self._report.add(method, code.name, time.monotonic() - started)
        if code in BUGS and not (hurried and code is grpc.StatusCode.DEADLINE_EXCEEDED):
            requests = _shrunk(api, method, requests, code)
            self._report.fail(Failure(method, requests, code.name, details, number))
        return code


def call(
    api: Api,
    method: MethodDescriptor,
    requests: Sequence[Message],
    pool: Pool | None,
    rng: random.Random,
    timeout: float,
) -> tuple[grpc.StatusCode, str]:
    """Call a method and return its code; put what its answers hold into the pool."""
    kind = f"{'stream' if method.client_streaming else 'unary'}_" + (
        "stream" if method.server_streaming else "unary"
    )
    watched = method.name.startswith("Watch")
    invoke = getattr(api.channel, kind)(
        f"/{method.containing_service.full_name}/{method.name}",
        request_serializer=None,
        response_deserializer=GetMessageClass(method.output_type).FromString,
    )
    raw = [request.SerializeToString() for request in requests]
    try:
        given: Any = iter(raw) if method.client_streaming else raw[0]
        answer = invoke(given, timeout=_LOOK_S if watched else timeout)
        answers = itertools.islice(answer, _READ) if method.server_streaming else [answer]
        for item in answers:
            if pool is not None:
                pool.add_from(item, rng)
        if method.server_streaming:
            answer.cancel()
    except grpc.RpcError as error:
        code = error.code()
        if watched and code is grpc.StatusCode.DEADLINE_EXCEEDED:
            return grpc.StatusCode.OK, ""  # It stays open until the caller has seen enough.
        return code, error.details() or ""
    return grpc.StatusCode.OK, ""


def _shrunk(
    api: Api, method: MethodDescriptor, requests: Sequence[Message], code: grpc.StatusCode
) -> Sequence[Message]:
    """Return as little of a request as still gives the code; what hangs is left as it is."""
    if len(requests) != 1 or code is grpc.StatusCode.DEADLINE_EXCEEDED:
        return requests
    least, tries, rng = requests[0], 0, random.Random(0)
    going = True
    while going and tries < _SHRINKING:
        going = False
        for candidate in smaller(least):
            tries += 1
            if tries > _SHRINKING:
                break
            if call(api, method, [candidate], None, rng, HANG_S)[0] is code:
                least = type(candidate)()
                least.CopyFrom(candidate)
                going = True
                break
    return [least]


def fuzz(address: str, *, calls: int, seed: int, threads: int, report: Report) -> None:
    """Make so many calls from so many threads; stops at the first failure.

    Raises:
        As setting up a tenant does, when the server is gone.
    """
    numbers = iter(_Numbers(calls))
    callers = [Caller(address, report, f"{seed}-{n}", numbers) for n in range(threads)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    for caller in callers:
        if caller.broken is not None:
            raise caller.broken


class _Numbers:
    """Counts up to a limit; threads may share it."""

    def __init__(self, limit: int) -> None:
        self._left = iter(range(limit))
        self._lock = threading.Lock()

    def __iter__(self) -> Iterator[int]:
        return self

    def __next__(self) -> int:
        with self._lock:
            return next(self._left)
