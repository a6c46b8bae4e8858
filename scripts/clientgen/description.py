"""What a client is generated from: the services, the messages and the rules of the schemas."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from google.protobuf.descriptor import (
    Descriptor,
    EnumValueDescriptor,
    FieldDescriptor,
    MethodDescriptor,
)
from google.protobuf.descriptor_pb2 import MethodOptions

from clientgen.options import Kind, KnownName

PACKAGE = "mneme.v1"
ANY_SCOPE = "any"
"""What is told of an RPC that any valid key may call."""


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a request, and so a parameter of a method; `limits` says its rules in words."""

    descriptor: FieldDescriptor
    comment: str
    required: bool
    limits: str

    @property
    def name(self) -> str:
        """The field's name, which is the parameter's."""
        return str(self.descriptor.name)


@dataclass(frozen=True, slots=True)
class Message:
    """A message that requests or answers hold."""

    descriptor: Descriptor
    comment: str
    fields: tuple[Field, ...]

    @property
    def name(self) -> str:
        """The message's name."""
        return str(self.descriptor.name)


@dataclass(frozen=True, slots=True)
class Paging:
    """How an RPC hands out its results page by page."""

    method_name: str
    items: FieldDescriptor


@dataclass(frozen=True, slots=True)
class Update:
    """An RPC that changes the fields of a resource that a mask names.

    `etag` is the resource's field of that name, if it has one.
    """

    resource: Field
    id_parameter: str
    fields: tuple[Field, ...]
    etag: Field | None


@dataclass(frozen=True, slots=True)
class Started:
    """The operation that an RPC starts: its kind, and the message that it ends with."""

    kind: str
    response: Descriptor


@dataclass(frozen=True, slots=True)
class CallError:
    """A way in which an RPC fails: names of the status and the reason, and when, in words.

    `reason` and `when` may be empty.
    """

    code: str
    reason: str
    when: str

    def __str__(self) -> str:
        reason = f" ({self.reason})" if self.reason else ""
        return f"{self.code}{reason}{f' when {self.when}' if self.when else ''}"


@dataclass(frozen=True, slots=True)
class Rpc:
    """One RPC with everything that its methods are made from.

    `scope` is the name of the scope that it needs, in lower case; `level` its idempotency level;
    `resumed_by` the fields of answer and request by which a stream goes on; `made_ids` the paths of
    ids that the client makes where the caller gives none; `also_called` its method's second name.
    """

    descriptor: MethodDescriptor
    method_name: str
    comment: str
    response_comment: str
    fields: tuple[Field, ...]
    scope: str
    errors: tuple[CallError, ...]
    level: int
    long_lived: bool
    resumed_by: tuple[str, str] | None
    made_ids: tuple[str, ...]
    paging: Paging | None
    update: Update | None
    starts: Started | None
    also_called: str = ""

    @property
    def repeatable(self) -> bool:
        """Whether a client may send the request again without acting twice."""
        return bool(self.made_ids) or self.level != MethodOptions.IDEMPOTENCY_UNKNOWN


@dataclass(frozen=True, slots=True)
class Service:
    """A service with its RPCs in the order of the schema."""

    name: str
    comment: str
    rpcs: tuple[Rpc, ...]

    @property
    def short_name(self) -> str:
        """`RecallService` -> `recall`: the module's and the raw stub's name."""
        return snake_case(self.name.removesuffix("Service"))


@dataclass(frozen=True, slots=True)
class Api:
    """All services, the public messages and enums by module, and what the enums hold.

    `known` are the known names, by what they are names of; `kinds` the kinds of memory, in the
    order of the services that bring them. `given` are the messages inside of requests, `answered`
    those of answers, each once; `reasons` those of errors; `comments` are those of every element,
    by its full name.
    """

    services: tuple[Service, ...]
    given: tuple[Message, ...]
    answered: tuple[Message, ...]
    types: Mapping[str, tuple[str, ...]]
    choices: Mapping[str, tuple[str, ...]]
    known: Mapping[str, tuple[KnownName, ...]]
    comments: Mapping[str, str]
    kinds: tuple[Kind, ...]
    reasons: tuple[EnumValueDescriptor, ...]


def snake_case(name: str) -> str:
    """`CreateApiKey` -> `create_api_key`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()
