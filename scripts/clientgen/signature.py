"""Turns a request's fields into the parameters of a Python method."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from google.protobuf.descriptor import Descriptor, FieldDescriptor

from clientgen.description import PACKAGE, Field, Rpc
from clientgen.options import known_set, names_kind

SCALARS = {
    FieldDescriptor.CPPTYPE_BOOL: "bool",
    FieldDescriptor.CPPTYPE_DOUBLE: "float",
    FieldDescriptor.CPPTYPE_FLOAT: "float",
    FieldDescriptor.CPPTYPE_INT32: "int",
    FieldDescriptor.CPPTYPE_INT64: "int",
    FieldDescriptor.CPPTYPE_UINT32: "int",
    FieldDescriptor.CPPTYPE_UINT64: "int",
}
# What well-known types are called in Python, and where that comes from.
_WELL_KNOWN = {
    "google.protobuf.Timestamp": ("datetime", "datetime"),
    "google.protobuf.Duration": ("timedelta", "datetime"),
    "google.protobuf.Struct": ("Mapping[str, Any]", "collections.abc"),
    "google.protobuf.Value": ("Any", "typing"),
    "google.protobuf.ListValue": ("Iterable[Any]", "collections.abc"),
    "google.protobuf.FieldMask": ("Iterable[str]", "collections.abc"),
}
_CLEAR = "clear"
_ETAG = "etag"
_POSITIONAL = 2
_POSITIONAL_THOUGH_OPTIONAL = frozenset(
    {
        f"{PACKAGE}.SleepRequest.session_id",
        f"{PACKAGE}.ReflectRequest.analysis",
        f"{PACKAGE}.DeleteMemoriesRequest.memory_ids",
    }
)
"""What a caller usually gives, and first."""

_ONE_OR_SEVERAL = frozenset({f"{PACKAGE}.DeleteMemoriesRequest.memory_ids"})
"""Lists of ids that may be given as a single one, too."""

Import = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter: its types for both clients, and the imports that they need."""

    name: str
    type: str
    comment: str
    required: bool
    imports: frozenset[Import]
    async_type: str | None = None
    or_one: bool = False

    def declaration(self, *, is_async: bool) -> str:
        """As it stands in the method's head."""
        text = self.async_type if is_async and self.async_type else self.type
        if self.required:
            return f"{self.name}: {text}"
        return f"{self.name}: {text} | None = None"

    @property
    def field(self) -> str:
        """The field of the request that it becomes."""
        value = f"several({self.name})" if self.or_one else self.name
        return f'"{self.name}": {value},'


@dataclass(frozen=True, slots=True)
class Signature:
    """The parameters of a method and the expression that makes its request of them."""

    positional: tuple[Parameter, ...]
    keyword_only: tuple[Parameter, ...]
    update_of: tuple[str, str] | None = None
    streams_items: bool = False

    @property
    def imports(self) -> frozenset[Import]:
        """Module and name of everything that the parameters mention."""
        return frozenset(i for p in self._all for i in p.imports)

    @property
    def arguments(self) -> list[tuple[str, str]]:
        """Each parameter with its comment."""
        return [(p.name, p.comment) for p in self._all]

    @property
    def request(self) -> list[str]:
        """The lines of the expression that holds the request's fields."""
        if self.streams_items:
            return [f"{self.positional[0].name},"]
        if self.update_of is not None:
            names = [p.name for p in self._all]
            resource, id_parameter = self.update_of
            given = [f"{name}," for name in names if name in (_CLEAR, _ETAG)]
            names = [name for name in names if name not in (id_parameter, _CLEAR, _ETAG)]
            changes = ["{", *(f'    "{name}": {name},' for name in names), "},"]
            inner = [f'"{resource}",', f"{id_parameter},", *changes, *given]
            return ["update_of(", *(f"    {line}" for line in inner), "),"]
        if not self._all:
            return ["{},"]
        return ["{", *(f"    {p.field}" for p in self._all), "},"]

    def parameters(self, *, is_async: bool) -> list[str]:
        """The lines of the method's head after `self`."""
        return [
            *(p.declaration(is_async=is_async) for p in self.positional),
            "*",
            *(p.declaration(is_async=is_async) for p in self.keyword_only),
            "timeout: float | None = None",
        ]

    def without(self, name: str) -> Signature:
        """The same without one keyword."""
        kept = tuple(p for p in self.keyword_only if p.name != name)
        return replace(self, keyword_only=kept)

    @property
    def _all(self) -> tuple[Parameter, ...]:
        return self.positional + self.keyword_only


def signature(rpc: Rpc) -> Signature:
    """The parameters of an RPC's method."""
    if rpc.descriptor.client_streaming:
        return Signature((_items_parameter(rpc),), (), streams_items=True)
    if rpc.update:
        id_parameter = Parameter(
            rpc.update.id_parameter, "str", rpc.update.resource.comment, True, frozenset()
        )
        changes = tuple(_parameter(field, optional=True) for field in rpc.update.fields)
        changes += (_clear_parameter(rpc.update.fields),)
        if rpc.update.etag is not None:
            changes += (_parameter(rpc.update.etag, optional=True),)
        names = (rpc.update.resource.name, rpc.update.id_parameter)
        return Signature((id_parameter,), changes, update_of=names)
    parameters = [_parameter(field) for field in rpc.fields]
    usual = {f.name for f in rpc.fields if f.descriptor.full_name in _POSITIONAL_THOUGH_OPTIONAL}
    positional = tuple([p for p in parameters if p.required or p.name in usual][:_POSITIONAL])
    return Signature(positional, tuple(p for p in parameters if p not in positional))


def item_type(field: FieldDescriptor) -> str:
    """The type of one element of a repeated field of an answer."""
    return str(field.message_type.name) if field.message_type else _single(field)[0]


def is_map(field: FieldDescriptor) -> bool:
    """Whether the field is a map."""
    return bool(field.message_type and field.message_type.GetOptions().map_entry)


def map_value(field: FieldDescriptor) -> FieldDescriptor:
    """The field that holds a map's values."""
    assert field.message_type is not None
    return field.message_type.fields_by_name["value"]


def module_of(file_name: str) -> str:
    """The Python module of a schema's messages."""
    return file_name.removesuffix(".proto").replace("/", ".") + "_pb2"


def _parameter(field: Field, *, optional: bool = False) -> Parameter:
    text, imports = _annotation(field.descriptor)
    required = field.required and not optional
    if field.descriptor.full_name in _ONE_OR_SEVERAL:
        imports |= {("mneme._core.rpc", "several")}
        comment = f"{field.comment} A single one needs no list."
        return Parameter(field.name, text, comment, required, imports, or_one=True)
    return Parameter(field.name, text, field.comment, required, imports)


def _clear_parameter(fields: Iterable[Field]) -> Parameter:
    """The names of an update's fields that may be empty: None leaves a field as it is."""
    names = ", ".join(f'"{field.name}"' for field in fields if not field.required)
    return Parameter(
        _CLEAR,
        f"Iterable[Literal[{names}]]",
        "Fields to empty, by name: what is None stays as it is. A field that is named here is not"
        " given a value, too.",
        False,
        frozenset({("collections.abc", "Iterable"), ("typing", "Literal")}),
    )


def _many(name: str) -> str:
    return f"{name.removesuffix('y')}ies" if name.endswith("y") else f"{name}s"


def _items_parameter(rpc: Rpc) -> Parameter:
    """The stream's items: what a request wraps when it has one field, else whole requests."""
    if len(rpc.fields) == 1:
        field = rpc.fields[0]
        name, comment = _many(field.name), f"The stream's items. Each: {field.comment}"
        text, imports = _single(field.descriptor)
    else:
        request = rpc.descriptor.input_type
        name, comment = "requests", "The stream's requests, as messages or their fields."
        text, imports = _message(request)
    either = {("mneme._core.iterables", "AnyIterable"), ("collections.abc", "Iterable")}
    return Parameter(
        name,
        f"Iterable[{text}]",
        comment,
        True,
        frozenset(imports | either),
        async_type=f"AnyIterable[{text}]",
    )


def _annotation(field: FieldDescriptor) -> tuple[str, frozenset[Import]]:
    if is_map(field):
        value, imports = _single(map_value(field))
        return f"Mapping[str, {value}]", imports | {("collections.abc", "Mapping")}
    text, imports = _single(field)
    if field.is_repeated:
        return f"Iterable[{text}]", imports | {("collections.abc", "Iterable")}
    return text, imports


def _single(field: FieldDescriptor) -> tuple[str, frozenset[Import]]:
    """The type of a value of the field, and what it needs imported."""
    if known := known_set(field):
        return f"{known}Name | str", frozenset({("mneme._generated.choices", f"{known}Name")})
    if field.enum_type or names_kind(field):
        choice = f"{field.enum_type.name if field.enum_type else 'MemoryKind'}Choice"
        return choice, frozenset({("mneme._generated.choices", choice)})
    if field.type in (FieldDescriptor.TYPE_STRING, FieldDescriptor.TYPE_BYTES):
        return ("str" if field.type == FieldDescriptor.TYPE_STRING else "bytes"), frozenset()
    if field.cpp_type in SCALARS:
        return SCALARS[field.cpp_type], frozenset()
    message = field.message_type
    assert message is not None  # Nothing else is left.
    if message.full_name.startswith(f"{PACKAGE}."):
        return _message(message)
    python, module = _WELL_KNOWN[message.full_name]
    needed = {(module, python.split("[", maxsplit=1)[0])}
    if "Any" in python:
        needed.add(("typing", "Any"))
    return python, frozenset(needed)


def _message(message: Descriptor) -> tuple[str, frozenset[Import]]:
    """A dict of the message's fields, or the message itself."""
    name, module = str(message.name), module_of(str(message.file.name))
    package, _, wire = module.rpartition(".")
    itself = f"{wire}.{name}"
    if not message.fields:
        return itself, frozenset({(package, wire)})
    fields = f"{name}Fields"
    return f"{fields} | {itself}", frozenset({(package, wire), ("mneme._generated.fields", fields)})
