"""`python -m fuzzing`: many calls against a server of its own; exit code 1 when a bug was found."""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import threading
import time
from pathlib import Path

from support.server import ServerProcess

from fuzzing.calling import Report, fuzz

_SHOW_S = 30.0


def main() -> int:
    """Run it as the arguments say."""
    parser = argparse.ArgumentParser(prog="python -m fuzzing", description=__doc__)
    parser.add_argument("--calls", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=None, help="default: a new one, printed")
    parser.add_argument("--threads", type=int, default=4)
    arguments = parser.parse_args()
    seed = random.randrange(10**9) if arguments.seed is None else arguments.seed
    print(f"seed {seed}, {arguments.calls} calls, {arguments.threads} threads", flush=True)
    report, over = Report(), threading.Event()
    with tempfile.TemporaryDirectory() as folder:
        server = ServerProcess(Path(folder) / "data", log_level="error")
        started = time.monotonic()

        def show() -> None:
            while not over.wait(_SHOW_S):
                rate = report.calls / (time.monotonic() - started)
                print(f"{rate:.0f}/s, {report}", flush=True)

        threading.Thread(target=show, daemon=True).start()
        try:
            fuzz(
                server.address, calls=arguments.calls, seed=seed, threads=arguments.threads,
                report=report,
            )  # fmt: skip
        finally:
            over.set()
            ended = server.process.poll()
            code = server.stop() if ended is None else ended
            print(server.log[-4_000:])
    for name in sorted({name for name, _ in report.codes}):
        found = sorted((code, n) for (method, code), n in report.codes.items() if method == name)
        took = f"{report.seconds[name]:.0f} s, at most {report.longest[name]:.1f}"
        print(f"{name:28} {took}: " + ", ".join(f"{code} {count}" for code, count in found))
    for failure in report.failures:
        print(failure)
    print(f"seed {seed}: {report}; the server ended with {code}, by itself: {ended is not None}")
    return 1 if report.failures or ended is not None or code else 0


if __name__ == "__main__":
    sys.exit(main())
