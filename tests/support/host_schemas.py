"""What the models' makers say a tool's name and arguments must look like, as one small checker.

MCP hosts pass tools on to a model's maker, and one that is refused costs the whole request. The
rules are from the makers' own pages, as looked up on 29 November 2026:

OpenAI, "Structured model outputs", section "Supported schemas", and "Function calling", section
"Strict mode" (platform.openai.com/docs/guides/structured-outputs, the second as of 31 March 2026):
the root is an object and no `anyOf`; each object has `additionalProperties: false` and requires all
of its properties; 5,000 properties, 10 levels and 1,000 values of enums at most; only some keywords
("'default' is not permitted"). Without `strict`, the Responses API makes a schema strict itself
where it can, by requiring all and forbidding more: `made_strict` does that, and says where it
cannot. A name has the characters a-z, A-Z, 0-9, _ and -, 64 at most.

Anthropic, "Define tools" and "Structured outputs", section "JSON Schema limitations"
(platform.claude.com/docs/en/agents-and-tools/tool-use, /build-with-claude/structured-outputs, as of
13 November 2025): a name as OpenAI's; `input_schema` is an object, without `oneOf`, `allOf` and
`anyOf` at its root. Strict tools also need `additionalProperties: false`, and know no bounds of
numbers, texts and lists, which the official libraries move into descriptions.

Google, "FunctionDeclaration" and "Schema" (ai.google.dev/api/caching and
cloud.google.com/vertex-ai/docs/reference/rest/v1/Schema, and the fields of
googleapis.github.io/js-genai, `interface Schema`): a name begins with a letter or an underscore, 64
characters at most, and so do names of parameters; a schema has one `type` and no fields but those
below; an enum is of texts. From what its API answered to MCP servers (GitHub issues
MarkusPfundstein/mcp-obsidian 21 of March 2025, google-gemini/gemini-cli 4400 of July 2025,
anomalyco/opencode 11889 of February 2026): no text of an enum is empty, an object has properties,
a list says what it holds, and a function without parameters declares none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

_TYPES = {"string", "integer", "number", "boolean", "array", "object"}
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_GEMINI_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_.-]{0,63}")
_GEMINI_FIELDS = {
    "type", "format", "title", "description", "nullable", "enum", "items", "maxItems", "minItems",
    "properties", "required", "minProperties", "maxProperties", "minimum", "maximum", "minLength",
    "maxLength", "pattern", "example", "anyOf", "propertyOrdering", "default",
}  # fmt: skip
_STRICT_FIELDS = {
    "type", "description", "enum", "const", "items", "maxItems", "minItems", "properties",
    "required", "additionalProperties", "minimum", "maximum", "exclusiveMinimum",
    "exclusiveMaximum", "multipleOf", "pattern", "format", "anyOf",
}  # fmt: skip
_LEVELS, _PROPERTIES, _ENUM_VALUES = 10, 5_000, 1_000

Schema = Mapping[str, Any]


def faults(name: str, schema: Schema) -> list[str]:
    """What any of the makers would refuse of a tool, with the maker's name."""
    return [
        *(f"OpenAI: {said}" for said in _openai(name, schema)),
        *(f"Anthropic: {said}" for said in _anthropic(name, schema)),
        *(f"Gemini: {said}" for said in _gemini(name, schema)),
    ]


def made_strict(schema: Schema) -> dict[str, Any]:
    """The schema as OpenAI's API or library makes it strict: all required, nothing else."""
    strict = {key: value for key, value in schema.items() if key != "default"}
    if "properties" in strict:
        strict["properties"] = {n: made_strict(one) for n, one in strict["properties"].items()}
    if "items" in strict:
        strict["items"] = made_strict(strict["items"])
    if strict.get("type") == "object":
        strict["required"] = list(strict.get("properties", {}))
        strict.setdefault("additionalProperties", False)
    return strict


def _openai(name: str, schema: Schema) -> Iterator[str]:
    if not _NAME.fullmatch(name):
        yield f"the name {name!r}"
    if schema.get("type") != "object" or "anyOf" in schema:
        yield "the root is no plain object"
    nodes = list(_nodes(made_strict(schema)))
    for path, level, node in nodes:
        if unknown := node.keys() - _STRICT_FIELDS:
            yield f"{path}: {sorted(unknown)}"
        if level > _LEVELS:
            yield f"{path}: {level} levels"
        if node.get("type") == "object":
            if path and not node.get("properties"):
                yield f"{path}: an object of any shape cannot be made strict"
            if node.get("additionalProperties") is not False:
                yield f"{path}: additionalProperties"
    if sum(len(node.get("properties", ())) for _, _, node in nodes) > _PROPERTIES:
        yield "too many properties"
    if sum(len(node.get("enum", ())) for _, _, node in nodes) > _ENUM_VALUES:
        yield "too many values of enums"


def _anthropic(name: str, schema: Schema) -> Iterator[str]:
    if not _NAME.fullmatch(name):
        yield f"the name {name!r}"
    if schema.get("type") != "object":
        yield "the root is no object"
    if combined := schema.keys() & {"oneOf", "allOf", "anyOf"}:
        yield f"{sorted(combined)} at the root"
    for path, _, node in _nodes(schema):
        if "$ref" in node:
            yield f"{path}: a reference"
        for argument in node.get("properties", ()):
            if not re.fullmatch(r"[a-zA-Z0-9_.-]{1,64}", argument):
                yield f"{path}: the name {argument!r}"


def _gemini(name: str, schema: Schema) -> Iterator[str]:
    if not _GEMINI_NAME.fullmatch(name):
        yield f"the name {name!r}"
    if not schema.get("properties"):
        return  # It declares no parameters.
    for path, _, node in _nodes(schema):
        kind = node.get("type")
        if not isinstance(kind, str) or kind not in _TYPES:
            yield f"{path}: the type {kind!r}"
        if unknown := node.keys() - _GEMINI_FIELDS:
            yield f"{path}: {sorted(unknown)}"
        if kind == "object" and not node.get("properties"):
            yield f"{path}: an object without properties"
        if kind != "object" and node.keys() & {"properties", "required"}:
            yield f"{path}: properties of what is no object"
        if kind == "array" and "items" not in node:
            yield f"{path}: a list of nothing"
        if not all(isinstance(one, str) and one for one in node.get("enum", ())):
            yield f"{path}: an enum of something else than texts, or with an empty one"
        if set(node.get("required", ())) - set(node.get("properties", ())):
            yield f"{path}: requires what it does not have"
        for argument in node.get("properties", ()):
            if not _GEMINI_NAME.fullmatch(argument):
                yield f"{path}: the name {argument!r}"


def _nodes(schema: Schema, path: str = "", level: int = 1) -> Iterator[tuple[str, int, Schema]]:
    """The schemas in a schema, each with its path and its level; the root's path is empty."""
    yield path, level, schema
    for name, inner in schema.get("properties", {}).items():
        yield from _nodes(inner, f"{path}.{name}", level + 1)
    if "items" in schema:
        yield from _nodes(schema["items"], f"{path}[]", level + 1)
    for inner in schema.get("anyOf", ()):
        yield from _nodes(inner, f"{path}|", level)
