"""Pages that a script writes from another source, and checks."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def write_or_check(
    texts: Mapping[Path, str], *, owned: Path | None = None, kind: str = "*.md"
) -> int:
    """Write the pages that are not as they should be; with `--check` only name them.

    In the folder `owned` there are no other pages: those that nothing writes any more are removed.
    Pages are files of the given kind. Returns the exit code: 1 for pages that are out of date.
    """
    stale = {p: text for p, text in texts.items() if not p.exists() or p.read_text() != text}
    unwritten = sorted(set(owned.glob(kind)) - set(texts)) if owned else []
    if "--check" in sys.argv[1:]:
        for path in [*stale, *unwritten]:
            print(f"{path.relative_to(ROOT)} is out of date: make generate", file=sys.stderr)
        return 1 if stale or unwritten else 0
    for path, text in stale.items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    for path in unwritten:
        path.unlink()
    return 0
