"""The client for asyncio."""

from mneme._async.client import AsyncMnemeClient

__all__ = ["AsyncMnemeClient"]
