"""How the C library keeps freed memory."""

from __future__ import annotations

import ctypes

_M_TRIM_THRESHOLD = -1  # As in glibc's malloc.h.
_M_ARENA_MAX = -8

_ARENAS = 2
_TRIM_BYTES = 1024 * 1024


def limit_arenas() -> bool:
    """Have malloc use few arenas and give freed memory back; return whether it does.

    glibc gives threads arenas of their own, up to eight per processor, and what one of them frees
    another cannot use. Tenants are opened, searched and closed on whichever of the workers is free,
    so that all arenas grow to the size of the largest. A server on two processors held 628 MB after
    61 tenants of five events had been opened and searched, and kept them; with two arenas that are
    trimmed beyond 1 MiB it held 449 MB, and 305 MB twenty seconds later.

    Call it before threads are started. Other C libraries do without, and nothing is done there.
    """
    try:
        libc = ctypes.CDLL(None)
        libc.gnu_get_libc_version  # noqa: B018  # musl has a mallopt that knows nothing.
        mallopt = libc.mallopt
    except (OSError, TypeError, AttributeError):
        return False
    mallopt.argtypes = (ctypes.c_int, ctypes.c_int)
    mallopt.restype = ctypes.c_int
    return all(
        mallopt(option, value) == 1
        for option, value in ((_M_ARENA_MAX, _ARENAS), (_M_TRIM_THRESHOLD, _TRIM_BYTES))
    )
