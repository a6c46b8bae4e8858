"""Stands in for grpcurl in tests: the flags that the documentation shows, run by `buf curl`."""

from __future__ import annotations

import argparse
import os
import sys
import sysconfig
from pathlib import Path


def main() -> None:
    """Translate the call and become `buf curl`."""
    parser = argparse.ArgumentParser(prog="grpcurl", allow_abbrev=False)
    parser.add_argument("-plaintext", action="store_true", required=True)
    parser.add_argument("-d", dest="data")
    parser.add_argument("-H", dest="headers", action="append", default=[])
    parser.add_argument("address")
    parser.add_argument("symbol", nargs="+")
    given = parser.parse_args()
    buf = str(Path(sysconfig.get_path("scripts")) / "buf")
    call = [buf, "curl", "--protocol", "grpc", "--http2-prior-knowledge", "--reflect"]
    for header in given.headers:
        call += ["-H", header]
    url = f"http://{given.address}"
    if given.symbol == ["list"]:
        call += ["--list-services", url]
    elif len(given.symbol) == 1 and "/" in given.symbol[0]:
        call += [] if given.data is None else ["-d", given.data]
        call.append(f"{url}/{given.symbol[0]}")
    else:
        parser.error(f"not understood: {given.symbol}")
    os.execv(buf, call)


if __name__ == "__main__":
    sys.exit(main())
