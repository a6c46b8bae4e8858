"""What tells an index's failure: any error of its own, and panics of libraries written in Rust.

Such a panic arrives as an exception that is no `Exception` and has no importable class, so that it
passes whatever catches errors.
"""

from __future__ import annotations


def is_panic(error: BaseException) -> bool:
    """Whether a library written in Rust panicked."""
    return type(error).__name__ == "PanicException"


def is_failure(error: BaseException) -> bool:
    """Whether something failed, rather than that the interpreter is told to stop."""
    return isinstance(error, Exception) or is_panic(error)
