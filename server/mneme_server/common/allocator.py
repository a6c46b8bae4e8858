"""How freed memory is found and kept: by Python's collector, and by the C library."""

from __future__ import annotations

import ctypes
import gc
import threading

_M_TRIM_THRESHOLD = -1  # As in glibc's malloc.h.
_M_ARENA_MAX = -8

_STACK_BYTES = 2 * 1024 * 1024
"""Of each thread. The system's default, often 8 MiB, takes address space that may be limited."""

_ARENAS = 2
_TRIM_BYTES = 1024 * 1024

_COLLECT_AFTER = (2_000, 10, 20)
"""Objects made, and collections of the generation before, until the next of each generation."""


def spare_the_collector() -> None:
    """Have the garbage collector pass over what there is now, and look less often at the rest.

    Call it when everything is loaded. A full collection looks at every object and lets no other
    thread run meanwhile. A server is made of 150,000 objects that stay as long as it does; while a
    tenant recorded thousands of events a second, they were looked at nearly once a second, for 110
    milliseconds each time, and all tenants' calls stood still.
    """
    gc.freeze()
    gc.set_threshold(*_COLLECT_AFTER)
    gc.enable()  # A server is loaded without.


def give_back() -> None:
    """Collect garbage and have malloc give freed memory back to the system, where it can."""
    gc.collect()
    try:
        ctypes.CDLL(None).malloc_trim(0)
    except (OSError, TypeError, AttributeError):
        return


def limit_arenas(arenas: int = _ARENAS) -> bool:
    """Have malloc use few arenas and give freed memory back; return whether it does.

    glibc gives threads arenas of their own, up to eight per processor, and what one of them frees
    another cannot use. Tenants are opened, searched and closed on whichever of the workers is free,
    so that all arenas grow to the size of the largest. A server on two processors held 628 MB after
    61 tenants of five events had been opened and searched, and kept them; with two arenas that are
    trimmed beyond 1 MiB it held 449 MB, and 305 MB twenty seconds later.

    Where the address space is limited, one arena is right: each of the others takes it by 64 MiB at
    a time, used or not, and gives little of it back.

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
        for option, value in ((_M_ARENA_MAX, arenas), (_M_TRIM_THRESHOLD, _TRIM_BYTES))
    )


def limit_stacks() -> None:
    """Have threads that start from now on take less address space for their stacks."""
    threading.stack_size(_STACK_BYTES)


def limit_native_stacks() -> bool:
    """Have threads that libraries start take less, too; return whether they do.

    gRPC starts a dozen more under load, with the 8 MiB each that the system gives. Only glibc can
    be told.
    """
    try:
        libc = ctypes.CDLL(None)
        attributes = ctypes.create_string_buffer(256)  # A pthread_attr_t has 56 to 64 bytes.
        return not (
            libc.pthread_attr_init(attributes)
            or libc.pthread_attr_setstacksize(attributes, ctypes.c_size_t(_STACK_BYTES))
            or libc.pthread_setattr_default_np(attributes)
        )
    except (OSError, TypeError, AttributeError):
        return False
