"""What protobuf says of JSON that does not fit a message, in other words: for whoever wrote it."""

from __future__ import annotations

import re
from typing import Any

from google.protobuf.descriptor import FieldDescriptor

from mneme._core.named import near, short

_OF_FIELD = re.compile(r"Failed to parse (?P<name>\S+) field: ")
_NO_FIELD = re.compile(r'Message type "(?P<type>[^"]*)" has no field named "(?P<name>[^"]*)"')
_PLACE = re.compile(r"\.* at \"?[A-Za-z][\w.\[\]]*\"?\.*$")
_SAID = 500
"""Characters of what protobuf says: it may hold all that was given."""
_FORMS = {
    "google.protobuf.Timestamp": "is no time with its zone, such as 2026-01-31T12:00:00Z",
    "google.protobuf.Duration": "is no duration in seconds, such as 1.5s",
}


def in_words(error: Exception, descriptor: Any) -> str:
    """Return what is wrong, and with which field.

    Args:
        error: what protobuf raised.
        descriptor: of the message that was to be filled.
    """
    rest, path, form = str(error), [], ""
    inside = descriptor
    while found := _OF_FIELD.match(rest):
        name, rest = found["name"], rest[found.end() :]
        fields = {} if inside is None else _fields(inside)
        inside = fields[name].message_type if name in fields else None
        form = _FORMS.get(inside.full_name, "") if inside is not None else ""
        path.append(short(name))
    said = form or _missing(rest, descriptor) or _PLACE.sub("", short(rest, _SAID))
    return f"{'.'.join(path)}: {said}" if path else said


def _missing(said: str, descriptor: Any) -> str:
    """Return that there is no such field, and which may have been meant."""
    found = _NO_FIELD.match(said)
    if found is None:
        return ""
    known = _fields(descriptor.file.pool.FindMessageTypeByName(found["type"]))
    meant = near(found["name"], known)
    names = [field.name for field in known.values()]
    there_are = ", ".join(dict.fromkeys(names))
    hint = f"did you mean {meant[0]!r}?" if meant else f"there are {there_are}"
    return f"there is no field {short(found['name'])!r}; {hint}"


def _fields(descriptor: Any) -> dict[str, FieldDescriptor]:
    return {**descriptor.fields_by_camelcase_name, **descriptor.fields_by_name}
