"""What the MCP adapter adds to a recall: `python -m benchmarks.mcp`.

`mneme_recall` over stdio, as the official client calls it, and the same call of the Python
client, turn by turn against one server, each with queries that nobody asked before (an embedding
that was made once is cached). Budget: 5 ms more at p50.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from mcp import Client, StdioServerParameters
from mneme import MnemeClient

BUDGET_MS = 5.0
_WARM_UP = 20
_BATCH = 250
_WORDS = (
    "invoice payment refund timeout retry token login password database migration index query "
    "parser deployment container certificate schedule customer shipment address webhook cache "
    "session upload image search ranking export report tax currency rounding locale encoding"
)


@dataclass(frozen=True, slots=True)
class Overhead:
    """Medians of both, in milliseconds.

    Args:
        memories: memories in the tenant.
        calls: calls of each.
        client_p50_ms: the Python client's recall.
        adapter_p50_ms: `mneme_recall` over stdio.
        client_p95_ms: 95th percentile of the former.
        adapter_p95_ms: of the latter.
    """

    memories: int
    calls: int
    client_p50_ms: float
    adapter_p50_ms: float
    client_p95_ms: float
    adapter_p95_ms: float

    @property
    def added_ms(self) -> float:
        """What the adapter adds at p50."""
        return self.adapter_p50_ms - self.client_p50_ms


def measure(memories: int, calls: int) -> Overhead:
    """Start a server, fill it, and time both in turns."""
    with tempfile.TemporaryDirectory(prefix="mneme-bench-") as work, _server(work) as address:
        dice = random.Random(7)
        with MnemeClient(address) as client:
            _fill(client, memories, dice)
            return asyncio.run(_in_turns(client, address, memories, calls, dice))


async def _in_turns(
    client: MnemeClient, address: str, memories: int, calls: int, dice: random.Random
) -> Overhead:
    direct: list[float] = []
    adapted: list[float] = []
    environment = {name: value for name, value in os.environ.items() if name.startswith("PYTHON")}
    adapter = StdioServerParameters(
        command=sys.executable,
        args=["-m", "mneme_mcp"],
        env=environment | {"MNEME_ADDRESS": address},
    )
    async with Client(adapter) as host:
        await host.list_tools()
        for _ in range(_WARM_UP + calls):
            query = _sentence(dice)
            started = time.perf_counter()
            client.recall(query, limit=10)
            direct.append(time.perf_counter() - started)
            query = _sentence(dice)
            started = time.perf_counter()
            result = await host.call_tool("mneme_recall", {"query": query, "limit": 10})
            adapted.append(time.perf_counter() - started)
            assert not result.is_error, result
    client_ms = [1000 * taken for taken in direct[_WARM_UP:]]
    adapter_ms = [1000 * taken for taken in adapted[_WARM_UP:]]
    return Overhead(
        memories,
        calls,
        statistics.median(client_ms),
        statistics.median(adapter_ms),
        statistics.quantiles(client_ms, n=20)[-1],
        statistics.quantiles(adapter_ms, n=20)[-1],
    )


def _fill(client: MnemeClient, memories: int, dice: random.Random) -> None:
    for first in range(0, memories, _BATCH):
        batch = range(first, min(first + _BATCH, memories))
        client.record_events(
            [
                {"session_id": f"s{n % 50}", "event_type": "message", "text": _sentence(dice)}
                for n in batch
            ],
            wait_indexed=True,
            timeout=120,
        )


def _sentence(dice: random.Random) -> str:
    return "The " + " ".join(dice.sample(_WORDS.split(), 8)) + f" in case {dice.randrange(10**9)}"


@contextmanager
def _server(work: str) -> Iterator[str]:
    environment = os.environ | {
        "MNEME_LISTEN": "127.0.0.1:0",
        "MNEME_HTTP_LISTEN": "",
        "MNEME_METRICS_LISTEN": "",
        "MNEME_DATA_DIR": str(Path(work) / "data"),
        "MNEME_AUTH": "disabled",
        "MNEME_LOG_LEVEL": "warning",
    }
    process = subprocess.Popen(
        [sys.executable, "-m", "mneme_server", "serve"],
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        for line in process.stdout:
            if line.startswith("serving on "):
                yield line.removeprefix("serving on ").strip()
                return
        raise RuntimeError("the server ended instead of serving")
    finally:
        process.terminate()
        process.wait(timeout=60)
        process.stdout.close()


def main() -> int:
    """Measure and print; the exit code is 0 also when the budget is missed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--memories", type=int, default=2000)
    parser.add_argument("--calls", type=int, default=300)
    parser.add_argument("--json", action="store_true", help="print JSON instead of a sentence")
    given = parser.parse_args()
    found = measure(given.memories, given.calls)
    if given.json:
        print(json.dumps(asdict(found) | {"added_ms": found.added_ms, "budget_ms": BUDGET_MS}))
        return 0
    print(f"recall over {found.memories} memories, {found.calls} calls of each in turns:")
    for name, p50, p95 in (
        ("Python client", found.client_p50_ms, found.client_p95_ms),
        ("mneme_recall, stdio", found.adapter_p50_ms, found.adapter_p95_ms),
    ):
        print(f"  {name:<24} p50 {p50:5.1f} ms  p95 {p95:5.1f} ms")
    verdict = "within" if found.added_ms <= BUDGET_MS else "over"
    print(f"  the adapter adds {found.added_ms:.1f} ms at p50 ({verdict} its {BUDGET_MS:g} ms)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
