"""What comes with an extra of the package, and how it is installed."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib import import_module

from mneme._version import __version__

_OWN = ("mneme", "mneme_server", "mneme_mcp")
_MISSING = """\
{program}: not installed here: the package mneme-grpc lacks its extra `{extra}` ({reason}).
Install it {how}
"""
# It needs the wheel of the model, too: pip would look for it in a registry.
_WITH_THE_MODEL = "server"


def from_wheels(extras: str) -> str:
    """Return how the package is installed with extras, as the end of a sentence that says
    "install it": it is on no registry.

    Args:
        extras: their names, with commas between them.
    """
    model = " dist/mneme_minilm-*.whl" if _WITH_THE_MODEL in extras.split(",") else ""
    wheel = f"dist/mneme_grpc-{__version__}-py3-none-any.whl[{extras}]"
    return f"from the wheels that `make dist` builds: pip install '{wheel}'{model}"


def start(program: str, *, extra: str, module: str, arguments: Sequence[str] | None) -> int:
    """Run `module`'s `main` and return its exit code; 1, and a line that names the extra, where a
    library that it imports, as it is loaded or as it runs, is missing.

    Args:
        program: the command's name.
        extra: the extra that brings its libraries.
        module: where its `main` is.
        arguments: those of the command line; None: this process's.
    """
    try:
        main: Callable[[Sequence[str] | None], int] = import_module(module).main
        return main(arguments)  # It imports, too: what a command needs, when it is named.
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] in _OWN:
            raise  # No extra would bring it.
        line = _MISSING.format(program=program, extra=extra, reason=error, how=from_wheels(extra))
        print(line, end="", file=sys.stderr)
        return 1
