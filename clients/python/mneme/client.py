"""The client for synchronous code."""

from mneme._sync.client import MnemeClient

__all__ = ["MnemeClient"]
