"""Requests must keep the rules that their proto states; names get one form, and what is left out is
put in."""

from __future__ import annotations

from google.protobuf.message import Message

from mneme_server.edge.grpc.call import Call
from mneme_server.edge.grpc.defaults import fill_defaults
from mneme_server.edge.grpc.names import compose_names
from mneme_server.edge.grpc.validation import validate


def check_rules(call: Call, message: Message) -> None:
    """Give a request message's names their one form, check its `buf.validate` rules, and put its
    defaults in.

    Public methods have neither, and those of other projects' services.
    """
    if call.method.scope is not None and call.method.has_rules:
        compose_names(message)
        validate(message)
        fill_defaults(message)
