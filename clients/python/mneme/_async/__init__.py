"""Half of the client: `_async` is written by hand, and scripts/unasync.py makes `_sync` of it."""
