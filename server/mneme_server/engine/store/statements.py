"""SQL as it was written once, for all databases: each would write and keep its own of each engine.

A tenant that is opened runs some hundred statements, and each takes a millisecond to write.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from sqlalchemy.engine import Compiled
from sqlalchemy.util import LRUCache

_MOST = 2_000
"""Far more than there are in the code; with the lengths of lists and sets of filters there are
more."""

_Key: TypeAlias = tuple[Any, ...]


class Statements(LRUCache[_Key, Compiled]):
    """What SQLAlchemy wrote for engines of one kind.

    Its keys begin with the engine's dialect, an object of the engine's own. Those of one kind are
    made with the same options, and write the same.
    """

    __slots__ = ()

    def __init__(self, capacity: int = _MOST) -> None:
        super().__init__(capacity)

    def get(self, key: _Key, default: Any = None) -> Any:
        """Return what was written of a statement, else the default."""
        return super().get(key[1:], default)

    def __getitem__(self, key: _Key) -> Compiled:
        return super().__getitem__(key[1:])

    def __setitem__(self, key: _Key, value: Compiled) -> None:
        super().__setitem__(key[1:], value)
