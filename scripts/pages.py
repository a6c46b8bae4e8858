"""Pages that a script writes from another source, and checks."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def write_or_check(texts: Mapping[Path, str]) -> int:
    """Write the pages that are not as they should be; with `--check` only name them.

    Returns the exit code: 1 for pages that are out of date.
    """
    stale = {p: text for p, text in texts.items() if not p.exists() or p.read_text() != text}
    if "--check" not in sys.argv[1:]:
        for path, text in stale.items():
            path.write_text(text)
        return 0
    for path in stale:
        print(f"{path.relative_to(ROOT)} is out of date: make generate", file=sys.stderr)
    return 1 if stale else 0
