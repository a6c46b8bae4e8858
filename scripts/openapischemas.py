"""JSON schemas of the messages as REST writes and reads them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from buf.validate import validate_pb2
from clientgen.options import refuses_absence
from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor
from mneme.v1 import options_pb2
from mneme_server.edge.grpc.schema_options import extension
from mneme_server.edge.http.rest_mapping import FLAT, GROUPS, OWNED, TENANT, prefix_of
from mneme_server.edge.http.writing import json_name

Schema = dict[str, Any]

_KNOWN: Mapping[str, Schema] = {
    "google.protobuf.Timestamp": {"type": "string", "format": "date-time"},
    "google.protobuf.Duration": {"type": "string", "pattern": r"^-?[0-9]+(\.[0-9]+)?s$"},
    "google.protobuf.FieldMask": {"type": "string"},
    "google.protobuf.Struct": {"type": "object"},
    "google.protobuf.Value": {},
    "google.protobuf.Any": {
        "type": "object",
        "properties": {"@type": {"type": "string"}},
        "required": ["@type"],
    },
}
_WHOLE = {
    FieldDescriptor.CPPTYPE_INT32: "int32",
    FieldDescriptor.CPPTYPE_INT64: "int64",
    FieldDescriptor.CPPTYPE_UINT32: "int64",
    FieldDescriptor.CPPTYPE_UINT64: "int64",
}
_OTHERS = {
    FieldDescriptor.CPPTYPE_STRING: "string",
    FieldDescriptor.CPPTYPE_BOOL: "boolean",
}
_BOUNDS = {"gte": "minimum", "gt": "exclusiveMinimum", "lte": "maximum", "lt": "exclusiveMaximum"}
_STRUCT = "google.protobuf.Struct"


class Schemas:
    """Makes schemas; those of messages are components, made when they are first referred to.

    Args:
        comments: what the schemas say of each element, by its full name.
    """

    def __init__(self, comments: Mapping[str, str]) -> None:
        self._comments = comments
        self.components: dict[str, Schema] = {}

    def answer(self, message: Descriptor) -> Schema:
        """Return the schema of a message as it is written: with every field."""
        known = _KNOWN.get(message.full_name)
        if known is not None:
            return dict(known)
        return self._component(message.name, lambda: self._written(message))

    def field_of_answer(self, field: FieldDescriptor) -> Schema:
        """Return the schema of one field as it is written."""
        inner = field.message_type
        if inner is not None and inner.GetOptions().map_entry:
            value = self.field_of_answer(inner.fields_by_name["value"])
            return {"type": "object", "additionalProperties": value}
        each = self._value(field) if inner is None else self.answer(inner)
        if field.is_repeated:
            return {"type": "array", "items": each}
        unset = field.has_presence and not (inner is not None and inner.full_name == _STRUCT)
        floats = (FieldDescriptor.CPPTYPE_DOUBLE, FieldDescriptor.CPPTYPE_FLOAT)
        return _nullable(each) if unset or field.cpp_type in floats else each

    def described(self, schema: Schema, field: FieldDescriptor) -> Schema:
        """Return a schema with what is said of the field."""
        said = self._comments.get(field.full_name)
        return {**schema, "description": said} if said else schema

    def given(self, field: FieldDescriptor) -> Schema:
        """Return the schema of a field of a request, with its rules."""
        rules = extension(field, validate_pb2.field)
        inner = field.message_type
        if inner is not None and inner.GetOptions().map_entry:
            value = self.given(inner.fields_by_name["value"])
            return {"type": "object", "additionalProperties": value}
        if field.is_repeated:
            schema: Schema = {"type": "array", "items": self._item(field, rules.repeated.items)}
            if rules.repeated.min_items:
                schema["minItems"] = rules.repeated.min_items
            if rules.repeated.max_items:
                schema["maxItems"] = rules.repeated.max_items
            if rules.repeated.unique:
                schema["uniqueItems"] = True
            return schema
        schema = self._item(field, rules)
        default = extension(field, options_pb2.default_value)
        if default and inner is None:
            schema["default"] = _default(field, default)
        return schema

    def given_message(self, message: Descriptor) -> Schema:
        """Return the schema of a message in a request."""
        known = _KNOWN.get(message.full_name)
        if known is not None:
            return dict(known)
        return self._component(f"{message.name}Input", lambda: self._read(message))

    def _component(self, name: str, make: Any) -> Schema:
        if name not in self.components:
            self.components[name] = {}  # It may refer to itself.
            self.components[name] = make()
        return {"$ref": f"#/components/schemas/{name}"}

    def written_fields(self, message: Descriptor) -> dict[str, Schema]:
        """Return the fields of a message as it is written."""
        fields: dict[str, Schema] = {}
        inner = FLAT.get(message.full_name)
        if inner is not None:
            held = message.fields_by_name[inner].message_type
            assert held is not None
            fields |= self.written_fields(held)
        for field in message.fields:
            if field.name != inner:
                schema = self.described(self.field_of_answer(field), field)
                fields[json_name(field)] = schema
        for group, members in GROUPS.get(message.full_name, {}).items():
            grouped = {
                key: fields.pop(json_name(message.fields_by_name[name]))
                for name, key in members.items()
            }
            fields[group] = _object(grouped)
        return fields

    def _written(self, message: Descriptor) -> Schema:
        schema = _object(self.written_fields(message))
        if message.full_name in OWNED:  # Not in streams, so that nobody may count on it.
            schema["properties"][TENANT] = {
                "type": "string",
                "description": "The tenant that it belongs to: that of the key. Not in streams.",
            }
        said = self._comments.get(message.full_name)
        return {"description": said, **schema} if said else schema

    def _read(self, message: Descriptor) -> Schema:
        properties = {
            str(field.json_name): self.described(self.given(field), field)
            for field in message.fields
        }
        required = [str(field.json_name) for field in message.fields if is_required(field)]
        schema: Schema = {"type": "object", "properties": properties, "additionalProperties": False}
        if required:
            schema["required"] = required
        said = self._comments.get(message.full_name)
        return {"description": said, **schema} if said else schema

    def _item(self, field: FieldDescriptor, rules: Any) -> Schema:
        if field.message_type is not None:
            return self.given_message(field.message_type)
        schema = self._value(field, nothing=False)
        kind = rules.WhichOneof("type")
        own: Any = getattr(rules, kind) if kind else None
        if kind == "string":
            schema |= _text(own)
            if extension(field, options_pb2.narrows):
                schema["minLength"] = 1
        elif own is not None and kind not in ("enum", "bool", "bytes", "repeated"):
            for name, bound in _BOUNDS.items():
                if own.HasField(name):
                    schema[bound] = getattr(own, name)
        elif kind == "enum" and getattr(own, "in"):
            assert field.enum_type is not None
            schema["enum"] = [
                _word(field.enum_type, number) for number in getattr(own, "in") if number
            ]
        return schema

    def _value(self, field: FieldDescriptor, *, nothing: bool = True) -> Schema:
        """Return the schema of a value that is no message; `nothing`: an enum's may be null."""
        if (enum := field.enum_type) is not None:
            words: list[str | None] = [_word(enum, one.number) for one in enum.values if one.number]
            if nothing:
                return {"type": ["string", "null"], "enum": [*words, None]}
            return {"type": "string", "enum": words}
        if field.type == FieldDescriptor.TYPE_BYTES:
            return {"type": "string", "contentEncoding": "base64"}
        if field.cpp_type in _WHOLE:
            return {"type": "integer", "format": _WHOLE[field.cpp_type]}
        return {"type": _OTHERS.get(field.cpp_type, "number")}


def is_required(field: FieldDescriptor) -> bool:
    """Tell whether a request must give a field."""
    return refuses_absence(extension(field, validate_pb2.field))


def _text(rules: Any) -> Schema:
    schema: Schema = {}
    if rules.min_len:
        schema["minLength"] = rules.min_len
    if rules.max_len:
        schema["maxLength"] = rules.max_len
    if rules.pattern:
        schema["pattern"] = rules.pattern
    return schema


def _object(properties: Mapping[str, Schema]) -> Schema:
    schema: Schema = {"type": "object", "properties": dict(properties)}
    if properties:
        schema["required"] = list(properties)
    return schema


def _nullable(schema: Schema) -> Schema:
    if "$ref" in schema:
        return {"anyOf": [schema, {"type": "null"}]}
    kind = schema.get("type")
    return {**schema, "type": [kind, "null"]} if isinstance(kind, str) else schema


def _default(field: FieldDescriptor, text: str) -> Any:
    if field.enum_type is not None:
        return text.lower()
    if field.cpp_type in _WHOLE:
        return int(text)
    return text if field.cpp_type == FieldDescriptor.CPPTYPE_STRING else float(text)


def _word(enum: EnumDescriptor, number: int) -> str:
    return str(enum.values_by_number[number].name).removeprefix(prefix_of(enum)).lower()
