"""In the place of `engine.store.copies`: work that says its process' id, and never ends."""

from __future__ import annotations

import os
import threading
from typing import Any

from mneme_server.common.progress import Step


def digest(step: Step, **_arguments: Any) -> str:
    """Hang."""
    step.report("hanging", os.getpid())
    threading.Event().wait()
    return ""
