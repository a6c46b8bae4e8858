"""A memory in a folder, without a server to start: `mneme.local` and `mneme.local_async`."""

from mneme._async.folder import local_async
from mneme._sync.folder import local

__all__ = ["local", "local_async"]
