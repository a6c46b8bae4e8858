"""The least that a Python gRPC server can do: answer with what it was sent.

`python -m benchmarks.echo` serves on a free port until its input ends.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import grpc

METHOD = "/benchmarks.Echo/Echo"
_WORKERS = 32


def serve() -> None:
    """Serve until standard input ends."""
    server = grpc.server(ThreadPoolExecutor(_WORKERS))
    handler: grpc.RpcMethodHandler[bytes, bytes]
    handler = grpc.unary_unary_rpc_method_handler(lambda request, context: request)
    service = grpc.method_handlers_generic_handler("benchmarks.Echo", {"Echo": handler})
    server.add_generic_rpc_handlers((service,))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    print(f"127.0.0.1:{port}", flush=True)
    sys.stdin.read()
    server.stop(None)


@contextmanager
def running() -> Iterator[str]:
    """Start the server in a process of its own; yield its address."""
    command = [sys.executable, "-m", "benchmarks.echo"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.stdin.close()
            process.wait(10)


if __name__ == "__main__":
    serve()
