"""Programs whose libraries come with an extra of the package."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib import import_module

from mneme._version import __version__

_OWN = ("mneme", "mneme_server", "mneme_mcp")
_MISSING = """\
{program}: not installed here: the package mneme-grpc lacks its extra `{extra}` ({reason}).
Install it with the extra, from the folder with the wheels that `make dist` builds:
    pip install 'mneme_grpc-{version}-py3-none-any.whl[{extra}]'{more}
"""


def start(
    program: str, *, extra: str, module: str, arguments: Sequence[str] | None, more: str = ""
) -> int:
    """Run `module`'s `main` and return its exit code; 1, and a line that names the extra, where a
    library that it imports is missing.

    Args:
        program: the command's name.
        extra: the extra that brings its libraries.
        module: where its `main` is.
        arguments: those of the command line; None: this process's.
        more: further wheels that the extra needs, each after a space.
    """
    try:
        main: Callable[[Sequence[str] | None], int] = import_module(module).main
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] in _OWN:
            raise  # No extra would bring it.
        line = _MISSING.format(
            program=program, extra=extra, reason=error, version=__version__, more=more
        )
        print(line, end="", file=sys.stderr)
        return 1
    return main(arguments)
