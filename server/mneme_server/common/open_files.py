"""How many files the process may open: each connection is one, and each open tenant several."""

from __future__ import annotations

from contextlib import suppress

_ENOUGH = 65_536


def most_files() -> int:
    """Return how many files the process may have open at once."""
    try:
        import resource
    except ImportError:  # Windows has no such limit.
        return _ENOUGH
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _ENOUGH if soft == resource.RLIM_INFINITY else soft


def allow_many_files() -> None:
    """Raise the soft limit of open files to the hard one, or to what is enough.

    The soft limit is low for programs that use `select`; this one does not.
    """
    try:
        import resource
    except ImportError:  # Windows has no such limit.
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = _ENOUGH if hard == resource.RLIM_INFINITY else min(hard, _ENOUGH)
    if soft != resource.RLIM_INFINITY and soft < most:
        with suppress(ValueError, OSError):  # Not allowed: the limit stays as it is.
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
