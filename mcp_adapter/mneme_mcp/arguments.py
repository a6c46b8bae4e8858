"""What a tool may be called with: models that take names in either spelling.

A model's JSON schema shows one spelling, its own; `session_id` and `sessionId` are both accepted.
Names that a tool does not know are refused, because a filter that is silently ignored answers
another question than the one that was asked.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from difflib import get_close_matches
from functools import cache, partial
from types import UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ClassVar,
    Literal,
    NamedTuple,
    Union,
    get_args,
    get_origin,
)

from mcp.server.mcpserver.utilities.func_metadata import ArgModelBase
from mneme.days import moment
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    model_validator,
)

from mneme_mcp import own
from mneme_mcp.failures import Failure
from mneme_mcp.names import OTHER_NAMES
from mneme_mcp.schemas import for_models, tidy
from mneme_mcp.spelling import to_camel, to_snake

DEFAULT_TOKEN_BUDGET = 800
_LONGEST_NAME = 100
_LONGEST_LITERAL = 100_000
"""Characters of a list or an object that is read as Python writes one."""


class Nested(BaseModel):
    """What a list of an argument holds, or an argument that is an object; it takes no other keys
    than its own."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False, coerce_numbers_to_str=True)

    @model_validator(mode="before")
    @classmethod
    def _as_meant(cls, given: Any, info: ValidationInfo) -> Any:
        """Read what came as text, leave out what says nothing, and fill in whom it is about."""
        given = unwrapped(given)
        if not isinstance(given, Mapping):
            return given
        for name, value in own.of_context(info.context).items():
            if name in cls.model_fields and (given.get(name) is None or own.is_blank(given[name])):
                given = {**given, name: value}
        return {
            name: _parsed(cls, name, value) if name in cls.model_fields else value
            for name, value in given.items()
            if name not in cls.model_fields or not _says_nothing(cls, name, value)
        }


class Place(NamedTuple):
    """Where what is given for an argument goes.

    Args:
        path: among the parameters of the client's method.
        negated: it says the opposite.
        optional: what is empty is sent, too.
    """

    path: str
    negated: bool
    optional: bool


class UnknownArguments(ValueError):
    """A call gave arguments that the tool does not have."""


class Arguments(ArgModelBase):
    """The arguments of a tool; subclasses say which spelling their schema shows."""

    model_config = ConfigDict(
        extra="forbid",
        populate_by_name=True,
        str_strip_whitespace=True,
        allow_inf_nan=False,
        coerce_numbers_to_str=True,  # An id may be a number to whoever made it.
        defer_build=True,
    )

    synonyms: ClassVar[Mapping[str, str]] = {}
    """Names that only this tool takes besides `OTHER_NAMES`, and the fields that they mean."""

    holders: ClassVar[Mapping[str, str]] = {}
    """Paths in a request of the API, and the arguments that are given for what is there."""

    places: ClassVar[Mapping[str, Place]] = {}
    """Where what is given for the fields goes that are offered (`mneme_mcp.offers`)."""

    hidden: ClassVar[Sequence[str]] = ()
    """Fields that are taken and not shown: what others can spare needs no room in a context."""

    whose: ClassVar[Literal["said", "own", "named"]] = "own"
    """What an empty or absent user, agent or project means. "said": what it says, as where an empty
    one lifts a restriction. "own": the one that the adapter's settings name; where they name none,
    as "said". "named": the same, but an empty one that they do not fill is refused."""

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """An argument that is offered."""

    @model_validator(mode="before")
    @classmethod
    def _named_as_fields(cls, given: Any, info: ValidationInfo) -> Any:
        """Give every argument its field's name, whatever spelling it came in."""
        if not isinstance(given, Mapping):
            return given
        taken: dict[str, Any] = {}
        unknown = []
        for name, value in given.items():
            field = cls.field_named(name)
            if field is None:
                unknown.append(name)
            elif not _says_nothing(cls, field, value):
                parsed = _parsed(cls, field, value)
                if field in taken and taken[field] != parsed:
                    raise ValueError(
                        f"{cls.shown_name(field)} is given twice, with different values"
                    )
                taken[field] = parsed
        if unknown:
            raise UnknownArguments(_unknown_text(cls, unknown))
        return cls._with_own(taken, own.of_context(info.context))

    @classmethod
    def _with_own(cls, taken: dict[str, Any], settings: own.Own) -> dict[str, Any]:
        """Fill in the user, the agent and the project that the adapter's settings name.

        Raises:
            ValueError: one is empty, and must be somebody.
        """
        if cls.whose == "said":
            return taken
        for name in own.NAMES:
            if name not in cls.model_fields or not own.is_blank(taken.get(name, "")):
                continue
            if name in settings:
                taken[name] = settings[name]
            elif name in taken and cls.whose == "named":
                raise ValueError(own.nobody(cls.shown_name(name)))
        return taken

    @classmethod
    def field_named(cls, name: str) -> str | None:
        """The field that a caller, or the API, means by a name; None when there is none."""
        names = _accepted_names(cls)
        return names.get(name) or names.get(to_snake(name))

    @classmethod
    def shown_name(cls, field: str) -> str:
        """A field's name as the schema shows it."""
        return cls.model_fields[field].alias or field

    def spelled(self, path: str) -> str:
        """A field's path in a request of the API as callers of the tool name it."""
        for place, argument in self.holders.items():
            inside = path.removeprefix(place)
            if inside != path and inside[:1] in ("", ".", "["):
                return argument + (to_camel(inside) if isinstance(self, CamelArguments) else inside)
        # What lies in an argument is the caller's own: free JSON may have any argument's name.
        parts = path.split(".")
        for number, part in enumerate(parts):
            name = part.partition("[")[0]
            if field := self.field_named(name):
                argument = self.shown_name(field) + part.removeprefix(name)
                return ".".join([argument, *parts[number + 1 :]])
        return path

    def request(self) -> dict[str, Any]:
        """What was given for parameters of the client's method, by their names."""
        sent: dict[str, Any] = {}
        for field, place in self.places.items():
            value = getattr(self, field)
            value = not value if place.negated else value
            if value is None or not (value or place.optional):
                continue
            *outer, last = place.path.split(".")
            message = sent
            for part in outer:
                message = message.setdefault(part, {})
            message[last] = value
        return sent

    @classmethod
    def schema_for_hosts(cls) -> dict[str, Any]:
        """The input schema, without what only costs tokens."""
        schema = tidy(cls.model_json_schema(by_alias=True))
        for name in cls.hidden:
            del schema["properties"][cls.shown_name(name)]
        return for_models(schema)

    @classmethod
    def shown_names(cls) -> list[str]:
        """The arguments that the schema shows."""
        return [cls.shown_name(name) for name in cls.model_fields if name not in cls.hidden]


class CamelArguments(Arguments):
    """Arguments whose schema shows camelCase names."""

    model_config = ConfigDict(alias_generator=to_camel)


class SnakeArguments(Arguments):
    """Arguments whose schema shows snake_case names."""


@cache
def _accepted_names(model: type[Arguments]) -> dict[str, str]:
    own: dict[str, str] = {}
    others: dict[str, str] = {}
    for name, info in model.model_fields.items():
        for spelling in (name, name.strip("_"), info.alias or name):
            own[spelling] = name
        others |= dict.fromkeys(OTHER_NAMES.get(name.strip("_"), ()), name)
    # What one tool calls its own is no other name for something else in it.
    return {**others, **model.synonyms, **own}


def _unknown_text(model: type[Arguments], unknown: list[str]) -> str:
    shown = model.shown_names()
    # What is longer is no name, and comparing it takes time with the product of the lengths.
    parts = [
        f"{name!r}{_meant(name, shown)}" for name in (name[:_LONGEST_NAME] for name in unknown)
    ]
    return f"there is no argument {', '.join(parts)}"


def _meant(name: str, shown: Sequence[str]) -> str:
    """Which of the names that there are an unknown one may stand for."""
    close = get_close_matches(to_snake(name), [to_snake(s) for s in shown], n=1)
    meant = next((s for s in shown if close and to_snake(s) == close[0]), None)
    return f" (did you mean {meant!r}?)" if meant else ""


def _parsed(model: type[BaseModel], field: str, value: Any) -> Any:
    """Lists and objects as such where a host sent them as JSON text, which some do."""
    wants = str(model.model_fields[field].annotation)
    return unwrapped(value) if "list" in wants or "dict" in wants else value


def _says_nothing(model: type[BaseModel], field: str, value: Any) -> bool:
    """Whether an argument is as good as not given: null, or no text where none is wanted.

    Hosts and models fill in "" for a time, a number or a list that they leave open. A text that may
    be given, such as whom a search is about, is what it says: "" names nobody.
    """
    info = model.model_fields[field]
    if value is None:
        return True
    blank = isinstance(value, str) and not value.strip()
    # What a validator takes besides: "" may lift what an alert's rule has.
    kinds = [info.annotation, *(getattr(m, _TAKEN, None) for m in info.metadata)]
    return blank and not info.is_required() and not any(map(_takes_text, kinds))


_TAKEN = "json_schema_input_type"


def _takes_text(kind: Any) -> bool:
    if get_origin(kind) is Annotated:
        return _takes_text(get_args(kind)[0])
    if get_origin(kind) in (Union, UnionType):
        return any(map(_takes_text, get_args(kind)))
    if get_origin(kind) is Literal:
        return "" in get_args(kind)  # It says something, such as that there is none any more.
    return kind in (str, Any)


def unwrapped(value: Any) -> Any:
    """The list or the object that a text holds, as JSON or as Python writes it; else the value."""
    if not isinstance(value, str) or value.strip()[:1] not in ("[", "{"):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):  # It is no JSON, or nested too deep to be meant.
        pass
    try:
        read = ast.literal_eval(value.strip()) if len(value) <= _LONGEST_LITERAL else value
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return value
    return read if isinstance(read, list | dict) else value


_REASONS = {
    "missing": "MISSING_REQUIRED_FIELD",
    "string_too_short": "MISSING_REQUIRED_FIELD",  # Those that must not be empty.
    "string_too_long": "OUT_OF_RANGE",
    "greater_than": "OUT_OF_RANGE",
    "greater_than_equal": "OUT_OF_RANGE",
    "less_than": "OUT_OF_RANGE",
    "less_than_equal": "OUT_OF_RANGE",
    "finite_number": "OUT_OF_RANGE",
}


# What an argument is need not be said of it: "string should have at least 1 character".
_KIND = re.compile(r"^(?:input|string|list) should ")


def refusal(model: type[Arguments], error: ValidationError) -> Failure:
    """How a call with arguments that cannot be used is answered."""
    problems = error.errors(include_url=False)
    fields = []
    for item in problems:
        if item["loc"]:
            path, said = _place(model, item["loc"]), _problem(model, item)
            fields.append((path, said.removeprefix(path).lstrip(": ")))
    reason = _REASONS.get(problems[0]["type"], "INVALID_PARAMETER")
    details: dict[str, Any] = {"valid_params": model.shown_names()}
    if fields:
        details["parameter"] = fields[0][0]
    return Failure(
        explain(model, error), "INVALID_ARGUMENT", reason, fields=fields, details=details
    )


def explain(model: type[Arguments], error: ValidationError) -> str:
    """What is wrong with the arguments of a call, and how they should be."""
    problems = [_problem(model, item) for item in error.errors(include_url=False)]
    arguments = ", ".join(
        model.shown_name(name) + (" (required)" if info.is_required() else "")
        for name, info in model.model_fields.items()
        if name not in model.hidden
    )
    taken = f"Arguments: {arguments}" if arguments else "It takes no arguments"
    return f"{'; '.join(problems)}. {taken}."


def _problem(model: type[Arguments], item: Any) -> str:
    cause = (item.get("ctx") or {}).get("error")
    if item["loc"] == ():
        return str(cause or item["msg"])
    path = _place(model, item["loc"])
    if item["type"] == "missing":
        return f"{path} is required"
    if item["type"] == "extra_forbidden":
        meant = _meant(item["loc"][-1], _beside(model, item["loc"]))
        return f"there is no argument {path!r}{meant}"
    said = str(cause) if isinstance(cause, ValueError) else item["msg"]
    said = said[:1].lower() + said[1:]
    return f"{path}: {_KIND.sub('should ', said)}, got {_shortened(item['input'])}"


def _beside(model: type[Arguments], where: Sequence[int | str]) -> Sequence[str]:
    """The names that there are where a call gave another one."""
    node: Any = model.schema_for_hosts()
    for part in where[:-1]:
        node = node["items"] if isinstance(part, int) else node["properties"][part]
    return list(node["properties"])


def _place(model: type[Arguments], where: Sequence[int | str]) -> str:
    """Where in a call's arguments something is, e.g. `open_todos[0].content`."""
    first, *rest = where
    name = model.shown_name(str(first)) if first in model.model_fields else str(first)
    return name + "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in rest)


def _shortened(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 80 else text[:79] + "…"


def _time(value: Any, *, end: bool = False) -> Any:
    if isinstance(value, datetime):
        return value if value.tzinfo else value.replace(tzinfo=UTC)
    try:
        return moment(value, end=end)
    except (AttributeError, ValueError, OverflowError):  # It is no text, or none that names a time.
        raise ValueError(
            'should be a time such as "2026-05-01" or "2026-05-01T09:30:00Z"'
        ) from None


def _labels(value: Any) -> Any:
    value = unwrapped(value)
    if not _is_text(value):
        return value
    if value.strip()[:1] in ("[", "{"):
        raise ValueError('should be a list such as ["a", "b"], or texts separated by commas')
    return [part.strip() for part in value.split(",") if part.strip()]


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _word(value: Any) -> Any:
    return value.strip().lower().replace("-", "_").replace(" ", "_") if _is_text(value) else value


Time = Annotated[datetime, BeforeValidator(_time)]
"""A time, or a date for its first moment; UTC without a zone."""

EndTime = Annotated[datetime, BeforeValidator(partial(_time, end=True))]
"""The end of a span: a time, or a date, which is part of the span; UTC without a zone."""

Labels = Annotated[list[str], BeforeValidator(_labels)]
"""Texts in a list, or in one text separated by commas."""

Word = BeforeValidator(_word)
"""Put beside a Literal: its values in any case, with hyphens or spaces too."""

TokenBudget = Annotated[
    int,
    Field(
        ge=100,
        le=100_000,
        description="Most tokens",
        json_schema_extra=lambda schema: schema.pop("maximum"),
    ),
]
