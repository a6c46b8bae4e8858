"""What a caller gives where items are sent one after another."""

from __future__ import annotations

from collections.abc import AsyncIterable, Iterable
from typing import TypeAlias

from mneme._core.rpc import ItemT

AnyIterable: TypeAlias = Iterable[ItemT] | AsyncIterable[ItemT]
"""For asyncio; in synchronous code an `Iterable`."""
