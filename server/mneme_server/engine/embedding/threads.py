"""Threads that embed, and how they share the processor with others."""

import os
import sys
import threading

_NICENESS = 10


def give_way() -> None:
    """Lower this thread's priority, where threads have one of their own (Linux)."""
    if sys.platform == "linux":
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICENESS)
