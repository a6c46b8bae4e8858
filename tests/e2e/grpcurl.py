"""Stands in for grpcurl in tests: the flags that the documentation shows, run by `buf curl`."""

from __future__ import annotations

import argparse
import os
import re
import sys
import sysconfig
from pathlib import Path


def main() -> None:
    """Translate the call and become `buf curl`."""
    parser = argparse.ArgumentParser(prog="grpcurl", allow_abbrev=False)
    parser.add_argument("-plaintext", action="store_true")
    parser.add_argument("-cacert", dest="ca")
    parser.add_argument("-expand-headers", dest="expand", action="store_true")
    parser.add_argument("-d", dest="data")
    parser.add_argument("-H", dest="headers", action="append", default=[])
    parser.add_argument("address")
    parser.add_argument("symbol", nargs="+")
    given = parser.parse_args()
    buf = str(Path(sysconfig.get_path("scripts")) / "buf")
    call = [buf, "curl", "--protocol", "grpc", "--reflect"]
    call += ["--http2-prior-knowledge"] if given.plaintext else []
    call += ["--cacert", given.ca] if given.ca else []
    for header in given.headers:
        call += ["-H", expanded(header) if given.expand else header]
    url = f"{'http' if given.plaintext else 'https'}://{given.address}"
    if given.symbol == ["list"]:
        call += ["--list-services", url]
    elif len(given.symbol) == 1 and "/" in given.symbol[0]:
        # As from grpcurl, "@" is standard input; it is "@-" for buf.
        call += [] if given.data is None else ["-d", "@-" if given.data == "@" else given.data]
        call.append(f"{url}/{given.symbol[0]}")
    else:
        parser.error(f"not understood: {given.symbol}")
    os.execv(buf, call)


def expanded(header: str) -> str:
    """The header with ${NAME} replaced by the variable."""
    return re.sub(r"\$\{(\w+)\}", lambda found: os.environ[found[1]], header)


if __name__ == "__main__":
    sys.exit(main())
