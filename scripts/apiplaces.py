"""Where the reference of the API tells of a message, an enum or known names: each in one place.

What only one RPC is sent or answers with is told with that RPC; what only one service uses, on its
page; all else on a page that the services share.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from apimarkdown import anchor
from clientgen.description import Rpc, Service
from clientgen.options import known_set
from google.protobuf.descriptor import Descriptor, EnumDescriptor

MESSAGES = "messages.md"
ENUMS = "enums.md"


@dataclass(frozen=True, slots=True)
class Place:
    """A heading of a page; `rpc` is its full name where the element is told with one."""

    page: str
    anchor: str
    rpc: str = ""

    def seen_from(self, page: str) -> str:
        """The target of a link to it."""
        return f"#{self.anchor}" if page == self.page else f"{self.page}#{self.anchor}"


def page_of(service: Service) -> str:
    """The name of a service's page: `RecallService` -> `recall.md`."""
    return f"{service.short_name}.md"


def heading_of(service: Service, rpc: Rpc) -> str:
    """The heading that an RPC is told under."""
    return f"{service.name}.{rpc.descriptor.name}"


def places_of(
    services: Sequence[Service],
    messages: Mapping[str, Descriptor],
    enums: Mapping[str, EnumDescriptor],
    known: Iterable[str],
) -> dict[str, Place]:
    """The places of all messages and enums by their full names, of known names by their set."""
    told = _with_an_rpc(services)
    users = _users(services)

    def place(key: str, name: str, shared: str) -> Place:
        pages = users[key]
        page = next(iter(pages)) if len(pages) == 1 else shared
        return told.get(key) or Place(page, anchor(name))

    return {
        **{key: place(key, message.name, MESSAGES) for key, message in messages.items()},
        **{key: place(key, enum.name, ENUMS) for key, enum in enums.items()},
        **{key: place(key, key, ENUMS) for key in known},
    }


def _with_an_rpc(services: Iterable[Service]) -> dict[str, Place]:
    """The places of the requests and answers that only one RPC has."""
    rpcs = [(service, rpc) for service in services for rpc in service.rpcs]
    used = Counter(message.full_name for _, rpc in rpcs for message in _sent(rpc))
    return {
        message.full_name: Place(
            page_of(service), anchor(heading_of(service, rpc)), rpc.descriptor.full_name
        )
        for service, rpc in rpcs
        for message in _sent(rpc)
        if used[message.full_name] == 1
    }


def _sent(rpc: Rpc) -> tuple[Descriptor, Descriptor]:
    return rpc.descriptor.input_type, rpc.descriptor.output_type


def _users(services: Iterable[Service]) -> Mapping[str, set[str]]:
    """The pages of the services that use an element, themselves or inside of another."""
    users: defaultdict[str, set[str]] = defaultdict(set)
    for service in services:
        ahead = [message for rpc in service.rpcs for message in _sent(rpc)]
        # What an operation ends with is in no answer.
        ahead += [rpc.starts.response for rpc in service.rpcs if rpc.starts]
        page = page_of(service)
        while ahead:
            message = ahead.pop()
            if page in users[message.full_name]:
                continue
            users[message.full_name].add(page)
            for field in message.fields:
                if field.enum_type is not None:
                    users[field.enum_type.full_name].add(page)
                if field.message_type is not None:
                    ahead.append(field.message_type)
                if names := known_set(field):
                    users[names].add(page)
    return users
