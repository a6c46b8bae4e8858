"""`mneme-server` whose `migrate` is gone, as by SIGKILL, where a step begins:
`python -m support.cutting_a_move STEP migrate …`.

A step is what a move says that it does, e.g. "settle", or the beginning of it, e.g. "compare
events".
"""

from __future__ import annotations

import os
import runpy
import signal
import sys
from typing import Any


def main() -> None:
    """Run the command line with the cut."""
    step = sys.argv.pop(1)
    from mneme_server.commands import migrating

    say = migrating._Telling.__call__

    def cut(self: Any, tenant_id: str, said: str, done: int, count: int) -> None:
        if f"{said} ".startswith(f"{step} "):
            os.kill(os.getpid(), signal.SIGKILL)
        say(self, tenant_id, said, done, count)

    migrating._Telling.__call__ = cut  # type: ignore[method-assign]
    runpy.run_module("mneme_server", run_name="__main__")


if __name__ == "__main__":
    main()
