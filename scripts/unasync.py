"""Make the synchronous side of the Python client of its asyncio side.

What waits is written once, for asyncio, in the client's folders `_async`. Each file there becomes
one of the same name in the folder `_sync` beside it, by the rules below; docstrings and comments
follow them as code does. What differs in kind (channels, streams, threads, a loop's guard) is
written twice by hand, in modules that both sides import the same names from.

Usage: python scripts/unasync.py [--check]
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import sysconfig
from pathlib import Path

from pages import ROOT, write_or_check

SOURCES = tuple(sorted((ROOT / "clients/python/mneme").rglob("_async")))
OUTPUTS = tuple(folder.with_name("_sync") for folder in SOURCES)
RUFF = Path(sysconfig.get_path("scripts")) / "ruff"

RULES = (
    (r"\basync (?=def|with|for)", ""),
    (r"\bawait ", ""),
    (r"\b__a(?=(enter|exit)__)", "__"),
    (r"\baclose\b", "close"),
    (r"(?m)(?<=^import )asyncio$|\basyncio(?=\.sleep\b)", "time"),
    (r"(?m)\bmneme\._core\.iterables(?= import AnyIterable$)", "collections.abc"),
    (r"\bAnyIterable\b", "Iterable"),
    (r"(?<=\.)_async\b", "_sync"),
    (r"(?<=\b_core\.)aio\b", "sync"),
    (r"\blocal_aio_channel\b", "local_channel"),
    (r"\blocal_async\b", "local"),
    (r"\bAsync(?=Caller|Services)", "Sync"),
    (r"Async(?=[A-Z])", ""),
)
"""Patterns, and what stands for what they find, in this order."""
_WAITS = (ast.AsyncFunctionDef, ast.AsyncFor, ast.AsyncWith, ast.Await)


class UnasyncError(Exception):
    """A source that the rules do not make synchronous, or a rule that makes nothing."""


def unasync(text: str, name: str) -> str:
    """Make the text of a module synchronous; `name` is what it is called, for words.

    Raises:
        UnasyncError: something in it still waits.
    """
    for pattern, replacement in RULES:
        text = re.sub(pattern, replacement, text)
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, _WAITS) or (isinstance(node, ast.comprehension) and node.is_async):
            raise UnasyncError(f"{name}: no rule makes this synchronous: {ast.unparse(node)}")
    lines = text.splitlines(keepends=True)
    head = tree.body[0].end_lineno  # That of the docstring.
    mark = f"\n# Made of {name} by scripts/unasync.py. Do not edit.\n"
    return "".join([*lines[:head], mark, *lines[head:]])


def formatted(text: str, path: Path) -> str:
    """Sort the imports and fold the lines as the project does in a file of this path."""
    own = "lint.isort.known-first-party = ['mneme']"  # Also where the folder is new.
    sort = ["check", "--quiet", "--fix-only", "--select=I", "--config", own]
    for command in (sort, ["format", "--quiet"]):
        done = subprocess.run(
            [RUFF, *command, "--stdin-filename", path, "-"],
            input=text, capture_output=True, text=True, check=True, cwd=ROOT,
        )  # fmt: skip
        text = done.stdout
    return text


def made() -> dict[Path, str]:
    """The synchronous modules, by where they belong.

    Raises:
        UnasyncError: something in them still waits, or a rule finds nothing.
    """
    texts = {path: path.read_text() for folder in SOURCES for path in folder.glob("*.py")}
    for pattern, _ in RULES:
        if not any(re.search(pattern, text) for text in texts.values()):
            raise UnasyncError(f"no module needs the rule {pattern}")
    homes = {path: path.parents[1] / "_sync" / path.name for path in texts}
    return {
        homes[path]: formatted(unasync(text, f"../_async/{path.name}"), homes[path])
        for path, text in sorted(texts.items())
    }


def main() -> int:
    """Write the modules, or check them; return the exit code."""
    try:
        texts = made()
    except UnasyncError as error:
        print(error, file=sys.stderr)
        return 1
    return max(
        write_or_check(
            {path: text for path, text in texts.items() if path.parent == folder},
            owned=folder,
            kind="*.py",
        )
        for folder in OUTPUTS
    )


if __name__ == "__main__":
    sys.exit(main())
