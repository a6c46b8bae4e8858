"""What the reference of the API says of messages, enums and known names, wherever it tells them."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from apimarkdown import prose, table
from apiplaces import Place, places_of
from clientgen.description import Api
from clientgen.options import known_set
from clientgen.reading import comments_of
from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor
from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto

# Types of fields that are neither messages nor enums, as the schemas write them.
_SCALARS = {
    value.number: value.name.removeprefix("TYPE_").lower()
    for value in FieldDescriptorProto.Type.DESCRIPTOR.values
}
Named = TypeVar("Named", Descriptor, EnumDescriptor)


class Elements:
    """The messages, enums and known names of the API.

    Args:
        api: the API.
        files: its schemas, comments included.
    """

    def __init__(self, api: Api, files: Sequence[FileDescriptorProto]) -> None:
        self._known = api.known
        self._comments = {name: text for file in files for name, text in comments_of(file)}
        pool = api.services[0].rpcs[0].descriptor.containing_service.file.pool
        described = [pool.FindFileByName(file.name) for file in files]
        self._messages: Mapping[str, Descriptor] = _by_name(
            message for file in described for message in file.message_types_by_name.values()
        )
        self._enums: Mapping[str, EnumDescriptor] = _by_name(
            enum for file in described for enum in file.enum_types_by_name.values()
        )
        self._places = places_of(api.services, self._messages, self._enums, self._known)

    def messages_on(self, page: str) -> list[Descriptor]:
        """The messages that a page tells under headings of their own, by name."""
        return [one for one in self._messages.values() if self._has_heading(one, page)]

    def enums_on(self, page: str) -> list[EnumDescriptor]:
        """The enums that a page tells, by name."""
        return [one for one in self._enums.values() if self._has_heading(one, page)]

    def known_on(self, page: str) -> list[str]:
        """What the known names are names of that a page tells."""
        return [name for name in self._known if self._places[name].page == page]

    def place(self, message: Descriptor) -> Place:
        """Where a message is told."""
        return self._places[message.full_name]

    def link(self, element: Descriptor | EnumDescriptor, page: str) -> str:
        """The name of a message or an enum on that page: a link, if it is one of the API's."""
        if element.full_name not in self._places:
            return f"`{element.full_name}`"
        return f"[{element.name}]({self._places[element.full_name].seen_from(page)})"

    def message(self, message: Descriptor, page: str) -> Iterator[str]:
        """What a message is, and its fields."""
        yield self._comment(message.full_name)
        if not message.fields:
            yield "No fields."
            return
        yield table(
            ("field", "type", "meaning"),
            (
                (f"`{field.name}`", self._type(field, page), self._comment(field.full_name))
                for field in message.fields
            ),
        )

    def enum(self, enum: EnumDescriptor) -> Iterator[str]:
        """What an enum is, and its values."""
        yield self._comment(enum.full_name)
        yield table(
            ("value", "number", "meaning"),
            (
                (f"`{v.name}`", str(v.number), self._comment(f"{enum.full_name}.{v.name}"))
                for v in enum.values
            ),
        )

    def known(self, names_of: str) -> str:
        """The known names, and what they mean."""
        rows = ((f"`{one.name}`", one.meaning) for one in self._known[names_of])
        return table(("name", "meaning"), rows)

    def _has_heading(self, element: Descriptor | EnumDescriptor, page: str) -> bool:
        place = self._places[element.full_name]
        return place.page == page and not place.rpc

    def _type(self, field: FieldDescriptor, page: str) -> str:
        entry = field.message_type
        if entry is not None and entry.GetOptions().map_entry:
            key, value = (
                self._type_name(entry.fields_by_name[part], page) for part in ("key", "value")
            )
            return f"map of {key} to {value}"
        name = self._type_name(field, page)
        if field.is_repeated:
            return f"repeated {name}"
        group = field.containing_oneof
        if group is None:
            return name
        # An optional field is alone in a group that the compiler made.
        alone = len(group.fields) == 1 and group.name == f"_{field.name}"
        return f"optional {name}" if alone else f"{name}, oneof `{group.name}`"

    def _type_name(self, field: FieldDescriptor, page: str) -> str:
        if known := known_set(field):
            return f"{_SCALARS[field.type]} ([{known}]({self._places[known].seen_from(page)}))"
        kind = field.message_type or field.enum_type
        return _SCALARS[field.type] if kind is None else self.link(kind, page)

    def _comment(self, full_name: str) -> str:
        """The comment of an element; SystemExit when it has none."""
        if not (text := self._comments.get(full_name)):
            sys.exit(f"{full_name} has no comment in proto/")
        return prose(text)


def _by_name(named: Iterable[Named]) -> dict[str, Named]:
    return {one.full_name: one for one in sorted(named, key=lambda one: str(one.name))}
