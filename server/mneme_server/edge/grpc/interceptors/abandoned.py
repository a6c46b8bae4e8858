"""Calls whose caller has left before a worker was free."""

from __future__ import annotations

from typing import cast

import grpc

from mneme_server.edge.grpc.call import Call


def skip_abandoned(call: Call) -> None:
    """Do not begin a call that was cancelled, or whose deadline passed, while it was queued.

    gRPC hands such calls to their handlers; after a jam, answering them would prolong it.
    """
    if call.time_left() == 0:
        cast(grpc.ServicerContext, call.edge).abort(
            call.abandoned_code, "the caller left before the call began"
        )
