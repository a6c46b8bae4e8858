"""What is set before a server starts, so that it takes little memory."""

from __future__ import annotations

from mneme_server.common.allocator import limit_arenas, limit_native_stacks, limit_stacks
from mneme_server.common.memory import address_space_is_limited, check_address_space


def spare_memory(threads: int) -> None:
    """Limit what malloc and threads take. Call it before threads are started.

    Args:
        threads: that will serve calls.

    Raises:
        FailedPrecondition: the address space is too small for a server with so many threads.
    """
    if address_space_is_limited():
        limit_arenas(1)
        limit_native_stacks()
    else:
        limit_arenas()
    limit_stacks()
    check_address_space(threads)
