"""Requests must keep the rules that their proto states."""

from __future__ import annotations

from google.protobuf.message import Message

from mneme_server.transport.call import Call
from mneme_server.transport.validation import validate


def check_rules(call: Call, message: Message) -> None:
    """Check a request message's `buf.validate` rules; those of public methods have none."""
    if call.method.scope is not None:
        validate(message)
