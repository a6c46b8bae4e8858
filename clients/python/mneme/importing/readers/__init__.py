"""One file for each format that can be imported.

A reader is a subclass of `Reader` in a module of this folder. Nothing lists it: put the file here,
and it takes part, the command line and its help included.
"""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache
from typing import Any

from mneme.importing.readers.base import Reader, attempted

__all__ = ["Reader", "attempted", "best", "readers"]


@cache
def readers() -> dict[str, type[Reader]]:
    """The readers by name, in the order of their names."""
    found: dict[str, type[Reader]] = {}
    for module in pkgutil.iter_modules(__path__):
        loaded = importlib.import_module(f"{__name__}.{module.name}")
        for value in vars(loaded).values():
            if isinstance(value, type) and issubclass(value, Reader) and value is not Reader:
                found[value.name] = value
    return dict(sorted(found.items()))


def best(value: Any) -> type[Reader] | None:
    """The reader that recognises a record most surely; None when none does."""
    # Two that are as sure as each other: the first by name, so that it is always the same.
    surest = max(readers().values(), key=lambda reader: reader.detects(value))
    return surest if surest.detects(value) > 0 else None
