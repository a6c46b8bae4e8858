"""Half of the client: `_async` is written by hand, and scripts/unasync.py makes `_sync` of it."""

# Made of ../_async/__init__.py by scripts/unasync.py. Do not edit.
