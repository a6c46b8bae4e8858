"""JSON schemas as hosts read them: every token of a tool's schema is paid for in each request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_DEFINITIONS = "#/$defs/"
# A format would have hosts refuse the dates that the models take for their midnights.
_LEFT_OUT = ("title", "format", "minLength", "maxLength")
# What Gemini's declarations do not know; the models check it all the same.
_UNKNOWN_TO_SOME = ("exclusiveMinimum", "exclusiveMaximum", "additionalProperties")
JSON_TEXT = {"type": "string", "contentMediaType": "application/json"}
"""A value of any kind: shown as its text, and taken as it is, too."""
_AS_TEXT = "(As JSON text.)"
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


def for_models(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A tidied schema of arguments that every host passes on to its model.

    OpenAI's strict mode refuses objects of any shape, Gemini those without properties, enums with
    an empty text, and anything that has two types. So JSON of any shape is shown as its text, and
    what an empty text means is left to the description. The models take what they took before.
    """
    shown = {key: value for key, value in schema.items() if key not in _UNKNOWN_TO_SOME}
    if "enum" in shown:
        shown["enum"] = [value for value in shown["enum"] if value != ""]
    if "items" in shown:
        shown["items"] = _argument(shown["items"])
    if "properties" in shown:
        properties = shown["properties"].items()
        shown["properties"] = {name: _argument(inner) for name, inner in properties}
    return shown


def _argument(schema: Mapping[str, Any]) -> dict[str, Any]:
    free = schema.get("type") == "object" and not schema.get("properties")
    if not free and "contentMediaType" not in schema:
        return for_models(schema)
    about = f"{schema.get('description', '')} {_AS_TEXT}".lstrip()
    return {"description": about, "type": "string"}


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
