"""Reads what the client needs of the schemas from a `buf build` image, comments included."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.descriptor import (
    Descriptor,
    EnumValueDescriptor,
    FieldDescriptor,
    MethodDescriptor,
)

from clientgen.description import (
    ANY_SCOPE,
    PACKAGE,
    Api,
    CallError,
    Field,
    Message,
    Paging,
    Rpc,
    Service,
    Started,
    Update,
    snake_case,
)
from clientgen.limits import limits
from clientgen.options import (
    GenerationError,
    kinds_of,
    known_names,
    options_of,
    refuses_absence,
)
from clientgen.rules import RESERVED_METHODS, RESERVED_PARAMETERS

_NESTING_LIMIT = 6


def describe(image: bytes) -> Api:
    """Read an image; GenerationError when the schemas leave something open."""
    files = descriptor_pb2.FileDescriptorSet.FromString(image)
    reader = _Reader(files)
    own = [file for file in files.file if file.package == PACKAGE]
    services = tuple(reader.service(f"{PACKAGE}.{s.name}") for file in own for s in file.service)
    _refuse_clashes(services)
    methods = [rpc.descriptor for service in services for rpc in service.rpcs]
    given = _reachable(message for method in methods for message in _arguments(method))
    started = (rpc.starts for service in services for rpc in service.rpcs)
    answers = [
        *(method.output_type for method in methods),
        *(one.response for one in started if one),
    ]
    return Api(
        services=services,
        given=tuple(reader.message(found) for found in given),
        answered=tuple(reader.message(found) for found in _reachable(answers)),
        types={
            file.name.removesuffix(".proto").replace("/", ".") + "_pb2": tuple(
                sorted([*(m.name for m in file.message_type), *(e.name for e in file.enum_type)])
            )
            for file in own
        },
        choices={enum.name: _choices(enum) for file in own for enum in file.enum_type},
        known=known_names(reader.messages(own)),
        kinds=kinds_of(s.rpcs[0].descriptor.containing_service for s in services),
        comments={name: text for file in own for name, text in comments_of(file)},
        reasons=reader.values("ErrorReason"),
    )


def _choices(enum: descriptor_pb2.EnumDescriptorProto) -> tuple[str, ...]:
    """What a caller may say for an enum: its names in lower case, without their prefix."""
    prefix = enum.value[0].name.removesuffix("UNSPECIFIED")
    return tuple(value.name.removeprefix(prefix).lower() for value in enum.value if value.number)


def _arguments(method: MethodDescriptor) -> Iterator[Descriptor]:
    """The messages that a caller makes: a request's own fields are the method's parameters."""
    request = method.input_type
    if method.client_streaming and len(request.fields) > 1:
        yield request
    yield from (field.message_type for field in request.fields if field.message_type)


def _reachable(messages: Iterable[Descriptor]) -> list[Descriptor]:
    """These messages and all of the API's that they hold, by name."""
    found: dict[str, Descriptor] = {}
    waiting = list(messages)
    while waiting:
        message = waiting.pop()
        if message.full_name in found or not message.full_name.startswith(f"{PACKAGE}."):
            continue
        is_map_entry = message.GetOptions().map_entry
        if not is_map_entry:
            found[message.full_name] = message
        waiting += [field.message_type for field in message.fields if field.message_type]
    return sorted(found.values(), key=lambda message: str(message.name))


class _Reader:
    def __init__(self, files: descriptor_pb2.FileDescriptorSet) -> None:
        self._pool = descriptor_pool.DescriptorPool()
        for file in files.file:
            self._pool.Add(file)
        message_factory.GetMessageClassesForFiles([file.name for file in files.file], self._pool)
        self._comments = {name: text for file in files.file for name, text in comments_of(file)}

    def service(self, full_name: str) -> Service:
        descriptor = self._pool.FindServiceByName(full_name)
        return Service(
            name=descriptor.name,
            comment=self._comment(full_name),
            rpcs=tuple(self._rpc(method) for method in descriptor.methods),
        )

    def messages(self, files: Iterable[descriptor_pb2.FileDescriptorProto]) -> Iterator[Descriptor]:
        for file in files:
            yield from self._pool.FindFileByName(file.name).message_types_by_name.values()

    def message(self, descriptor: Descriptor) -> Message:
        fields = tuple(self._field(field) for field in descriptor.fields)
        return Message(descriptor, self._comment(descriptor.full_name), fields)

    def _rpc(self, method: MethodDescriptor) -> Rpc:
        qualified = f"{method.containing_service.name}.{method.name}"
        name = snake_case(method.name)
        fields = tuple(self._field(field) for field in method.input_type.fields)
        if taken := RESERVED_PARAMETERS & {field.name for field in fields}:
            raise GenerationError(f"{qualified}: the client needs the parameter {sorted(taken)}")
        made_ids = tuple(self._made_ids(method.input_type))
        return Rpc(
            descriptor=method,
            method_name=name,
            comment=self._comment(method.full_name),
            response_comment=self._comment(method.output_type.full_name),
            fields=fields,
            scope=self._scope(method, qualified),
            errors=self._errors(method),
            level=self._level(method, qualified),
            long_lived=bool(self._option(method, "long_lived")),
            resumed_by=self._resumed_by(method, qualified),
            made_ids=made_ids,
            paging=self._paging(method, name),
            update=self._update(method, fields),
            starts=self._starts(method),
            also_called=self._also_called(method),
        )

    def _also_called(self, method: MethodDescriptor) -> str:
        name = str(self._option(method, "also_called") or "")
        if name and not re.fullmatch("[a-z]+(_[a-z]+)*", name):
            raise GenerationError(f"{method.full_name}: {name!r} cannot name a method")
        return name

    def _resumed_by(self, method: MethodDescriptor, qualified: str) -> tuple[str, str] | None:
        resumption = self._option(method, "resumed_by")
        if resumption is None:
            return None
        place, after = resumption.place, resumption.after
        if (
            place not in method.output_type.fields_by_name
            or after not in method.input_type.fields_by_name
        ):
            raise GenerationError(f"{qualified}: resumed_by names fields that are not there")
        return place, after

    def _scope(self, method: MethodDescriptor, qualified: str) -> str:
        scope = self._option(method, "required_scope")
        if self._option(method, "any_scope"):
            return ANY_SCOPE
        if not scope:
            raise GenerationError(f"{qualified}: give it the option (mneme.v1.required_scope)")
        scopes = self._pool.FindEnumTypeByName(f"{PACKAGE}.KeyScope")
        name = str(scopes.values_by_number[scope].name).removeprefix("KEY_SCOPE_").lower()
        return f"{name} and read" if self._option(method, "also_reads") else name

    def _errors(self, method: MethodDescriptor) -> tuple[CallError, ...]:
        return tuple(
            CallError(
                _value_name(error, "code"),
                _value_name(error, "reason").removeprefix("ERROR_REASON_") if error.reason else "",
                error.when,
            )
            for error in self._option(method, "errors") or ()
        )

    @staticmethod
    def _level(method: MethodDescriptor, qualified: str) -> int:
        options = method.GetOptions()
        if not options.HasField("idempotency_level"):
            raise GenerationError(
                f"{qualified}: say with idempotency_level whether the request may be sent twice"
            )
        return int(options.idempotency_level)

    def values(self, enum: str) -> tuple[EnumValueDescriptor, ...]:
        """The values of an enum of the API's package."""
        return tuple(self._pool.FindEnumTypeByName(f"{PACKAGE}.{enum}").values)

    def _field(self, field: FieldDescriptor) -> Field:
        comment = self._comment(field.full_name)
        required = self._is_required(field)
        return Field(field, comment, required, limits(field, options_of(field), required))

    def _is_required(self, field: FieldDescriptor) -> bool:
        """Whether the field's rules refuse its absence."""
        rules = options_of(field).get("field")
        if rules is None:
            return False
        if _is_one_of_several(field):  # Its other rules hold where it is the one that is given.
            return bool(rules.required)
        return refuses_absence(rules) or self._is_resource_of_update(field)

    @staticmethod
    def _is_resource_of_update(field: FieldDescriptor) -> bool:
        """Whether the request changes this field's message, as its update_mask says."""
        return bool(
            field.containing_type
            and "update_mask" in field.containing_type.fields_by_name
            and field.message_type
            and field.message_type.full_name.startswith(PACKAGE)
        )

    def _made_ids(self, message: Descriptor, depth: int = 0) -> Iterator[str]:
        """Paths of the ids that are made when they are empty: `lesson_id`, `events.id`."""
        if depth > _NESTING_LIMIT:
            return
        for field in message.fields:
            if options_of(field).get("made_when_empty"):
                yield field.name
            elif field.message_type and field.message_type.full_name.startswith(PACKAGE):
                for path in self._made_ids(field.message_type, depth + 1):
                    yield f"{field.name}.{path}"

    def _paging(self, method: MethodDescriptor, name: str) -> Paging | None:
        request, response = method.input_type.fields_by_name, method.output_type.fields_by_name
        if "page_token" not in request or "next_page_token" not in response:
            return None
        items = [field for field in method.output_type.fields if field.is_repeated]
        if len(items) != 1:
            raise GenerationError(f"{method.full_name}: a page holds one repeated field")
        return Paging(f"iter_{name.removeprefix('list_')}", items[0])

    def _starts(self, method: MethodDescriptor) -> Started | None:
        """The operation that an RPC starts, as its option says."""
        said = self._option(method, "starts")
        if said is None:
            return None
        if [field.name for field in method.output_type.fields] != ["operation"]:
            raise GenerationError(f"{method.full_name}: its answer must have one field, operation")
        try:
            return Started(said.kind, self._pool.FindMessageTypeByName(said.response))
        except KeyError:
            raise GenerationError(
                f"{method.full_name}: the option (mneme.v1.starts) names {said.response},"
                " which is no message"
            ) from None

    def _update(self, method: MethodDescriptor, fields: tuple[Field, ...]) -> Update | None:
        """The resource behind an `update_mask`, with the fields that the mask may name."""
        by_name = {field.name: field for field in fields}
        if "update_mask" not in by_name:
            return None
        resources = [f for f in fields if self._is_resource_of_update(f.descriptor)]
        if len(fields) != 2 or len(resources) != 1:
            raise GenerationError(f"{method.full_name}: an update holds a resource and its mask")
        resource = resources[0]
        message = resource.descriptor.message_type
        assert message is not None
        mask = options_of(by_name["update_mask"].descriptor).get("changeable")
        named = list(mask.paths) if mask else []
        if not named or not set(named) <= set(message.fields_by_name):
            raise GenerationError(
                f"{method.full_name}: the option (mneme.v1.changeable) of update_mask must name"
                f" fields of {message.name}"
            )
        changeable = tuple(self._field(message.fields_by_name[name]) for name in named)
        etag = message.fields_by_name.get("etag")
        return Update(
            resource, f"{resource.name}_id", changeable, self._field(etag) if etag else None
        )

    def _comment(self, full_name: str) -> str:
        return self._comments.get(full_name, "")

    def _option(self, method: MethodDescriptor, name: str) -> Any:
        return options_of(method).get(name)


def _is_one_of_several(field: FieldDescriptor) -> bool:
    """Whether another field may be given in its place; an optional one has a oneof to itself."""
    oneof = field.containing_oneof
    return oneof is not None and len(oneof.fields) > 1


def _value_name(message: Any, field: str) -> str:
    """The name of an enum value that a message holds."""
    values = message.DESCRIPTOR.fields_by_name[field].enum_type.values_by_number
    return str(values[getattr(message, field)].name)


def comments_of(file: descriptor_pb2.FileDescriptorProto) -> Iterator[tuple[str, str]]:
    """The leading comment of every element, by the element's full name."""
    for location in file.source_code_info.location:
        if location.leading_comments:
            name = name_at(file, tuple(location.path))
            if name:
                text = "\n".join(line.strip() for line in location.leading_comments.splitlines())
                yield f"{file.package}.{name}", text.strip()


def name_at(element: Any, path: tuple[int, ...]) -> str:
    """The dotted name of what a source location's path points to; "" for options and the like."""
    names: list[str] = []
    while path:
        if len(path) < 2:
            return ""
        field = element.DESCRIPTOR.fields_by_number.get(path[0])
        if field is None or not field.is_repeated or field.message_type is None:
            return ""
        element = getattr(element, field.name)[path[1]]
        if not hasattr(element, "name"):
            return ""
        names.append(element.name)
        path = path[2:]
    return ".".join(names)


def _refuse_clashes(services: tuple[Service, ...]) -> None:
    owners: dict[str, str] = dict.fromkeys(RESERVED_METHODS, "the client itself")
    for service in services:
        for rpc in service.rpcs:
            owner = f"{service.name}.{rpc.descriptor.name}"
            names = [rpc.method_name, *([rpc.paging.method_name] if rpc.paging else [])]
            for name in filter(None, [*names, rpc.also_called]):
                if name in owners:
                    raise GenerationError(
                        f"{owner} and {owners[name]} would both be `{name}`: "
                        "a method is called as its RPC is, so that one of them needs another name"
                    )
                owners[name] = owner
