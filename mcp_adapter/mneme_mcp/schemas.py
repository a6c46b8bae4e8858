"""JSON schemas as hosts read them: every token of a tool's schema is paid for in each request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_DEFINITIONS = "#/$defs/"
# A format would have hosts refuse the dates that the models take for their midnights.
_LEFT_OUT = ("title", "format", "minLength", "maxLength")
_BOUNDS = ("minimum", "maximum")
_FAR = 1_000_000
"""Nobody gets to a bound from here on unawares."""


def tidy(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The same schema without titles, lengths, far bounds, null alternatives and references.

    What accepts null accepts the argument's absence too, so nothing that a caller needs is lost; a
    text that is too long is answered with how long it may be.
    """
    definitions = schema.get("$defs", {})
    tidied = _tidied({k: v for k, v in schema.items() if k != "$defs"}, definitions)
    assert isinstance(tidied, dict)
    tidied.pop("additionalProperties", None)
    tidied.pop("description", None)
    return tidied


def _tidied(node: Any, definitions: Mapping[str, Any]) -> Any:
    if isinstance(node, list):
        return [_tidied(item, definitions) for item in node]
    if not isinstance(node, Mapping):
        return node
    node = _inlined(_without_null(_inlined(node, definitions)), definitions)
    result = {}
    for key, value in node.items():
        if key in _LEFT_OUT or (key == "default" and _says_nothing(value)):
            continue
        if key in _BOUNDS and abs(value) >= _FAR:
            continue
        if key in ("properties", "patternProperties"):
            result[key] = {name: _tidied(inner, definitions) for name, inner in value.items()}
        else:
            result[key] = (
                value
                if key in ("default", "enum", "const", "examples")
                else _tidied(value, definitions)
            )
    return result


def _says_nothing(default: Any) -> bool:
    """Whether a default is as good as none; an object's is what those of its members say."""
    return default in (None, "", []) or isinstance(default, Mapping)


def _inlined(node: Mapping[str, Any], definitions: Mapping[str, Any]) -> Mapping[str, Any]:
    reference = node.get("$ref", "")
    if not reference.startswith(_DEFINITIONS):
        return node
    target = definitions[reference.removeprefix(_DEFINITIONS)]
    siblings = {key: value for key, value in node.items() if key != "$ref"}
    inlined = {k: v for k, v in target.items() if k != "additionalProperties"}
    return {**inlined, **siblings}


def _without_null(node: Mapping[str, Any]) -> Mapping[str, Any]:
    alternatives = node.get("anyOf")
    if alternatives is None:
        return node
    kept = [item for item in alternatives if item.get("type") != "null"]
    rest = {key: value for key, value in node.items() if key != "anyOf"}
    return {**kept[0], **rest} if len(kept) == 1 else {"anyOf": kept, **rest}
