"""Arguments of tools that are parameters of the client's methods.

    @offers(
        "list_events",
        session_id=...,
        event_types='Only of these types, e.g. ["tool_error", "error"].',
        limit=Offer("Maximum events.", default=20, most=1000),
        token_budget=TOKENS,
    )
    class QueryArguments(CamelArguments):
        synonyms = {"tool": "name"}

Kinds, bounds, choices, defaults and what must be given are the API's. So is what `...` says: the
first sentence of its documentation. A text stands where a model needs other words or an example.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeVar

from mneme.parameters import MESSAGES, METHODS, Parameter
from pydantic import Field, create_model
from pydantic.fields import FieldInfo

from mneme_mcp.arguments import (
    DEFAULT_TOKEN_BUDGET,
    Arguments,
    EndTime,
    Labels,
    Place,
    Time,
    TokenBudget,
    Word,
)
from mneme_mcp.names import OTHER_NAMES

ArgumentsT = TypeVar("ArgumentsT", bound=Arguments)
TOKENS = (TokenBudget, DEFAULT_TOKEN_BUDGET)
"""How large an answer may be: no parameter, the adapter's own."""
_A_DAY_IS_PART = "To; a day is included."
_FILTER = ("Of ", "On ", "For this ", "With ", "Serving ")
"""How the API speaks of what a filter lets pass: in a tool, it might be whoever calls."""


@dataclass(frozen=True, slots=True)
class Offer:
    """How a tool offers a parameter, where more than its text is the tool's own.

    Args:
        about: what it says of it; left out: what the API says.
        at: the parameter's path, where its name does not lead there.
        kind: what it is given as.
        default: what it is where it is left out.
        required: it must be given.
        least: how many characters there must be of a text that must be given: one, if not said.
        most: the greatest number, where it is less than the API's.
        negated: it says the opposite of the parameter.
    """

    about: str = ""
    at: str = ""
    kind: Any = None
    default: Any = None
    required: bool = False
    least: int = 1
    most: float | None = None
    negated: bool = False


def offers(taker: str, **shown: Any) -> Callable[[type[ArgumentsT]], type[ArgumentsT]]:
    """Give a tool's arguments those that are parameters of a method of the client.

    Args:
        taker: the method's name, or that of a message that one takes.
        shown: by the argument's name: `...`, its text, an `Offer`, or the type and the default of
            one that is no parameter. A parameter is found by the argument's name or one of its
            `OTHER_NAMES`, in the method or in its filter.
    """

    def extend(model: type[ArgumentsT]) -> type[ArgumentsT]:
        fields: dict[str, Any] = {}
        places, holders = {}, {}
        for name, said in shown.items():
            if isinstance(said, tuple):
                fields[name] = said
                continue
            offer = said if isinstance(said, Offer) else Offer("" if said is ... else said)
            path, parameter = _found(taker, name.strip("_"), offer.at)
            fields[name] = _field(name, path, parameter, offer)
            places[name] = Place(path, offer.negated, parameter.optional)
            holders[path] = name
        made = create_model(
            model.__name__,
            __base__=model,
            __doc__=model.__doc__,
            __module__=model.__module__,
            **fields,
        )
        made.places = places
        shown_at = {path: made.shown_name(name) for path, name in holders.items()}
        made.holders = {**shown_at, **model.holders}
        return made

    return extend


def _found(taker: str, name: str, at: str) -> tuple[str, Parameter]:
    """The parameter that an argument stands for, with its path."""
    parameters = METHODS[taker] if taker in METHODS else MESSAGES[taker]
    if at:
        *outer, last = at.split(".")
        for part in outer:
            parameters = MESSAGES[parameters[part].kind]
        return at, parameters[last]
    held = MESSAGES[parameters["filter"].kind] if "filter" in parameters else {}
    for before, among in (("", parameters), ("filter.", held)):
        for other in (name, *OTHER_NAMES.get(name, ())):
            if other in among:
                return before + other, among[other]
    raise KeyError(f"{taker} has no parameter {name}")


def _field(name: str, path: str, parameter: Parameter, offer: Offer) -> tuple[Any, FieldInfo]:
    """The argument's type, and what pydantic is to know of it."""
    required = offer.required or (parameter.required and offer.default is None)
    default = parameter.default if offer.default is None else offer.default
    ends = path.endswith("end_time")
    kind = offer.kind or _kind(parameter, EndTime if ends else Time, required or default)
    bounds: dict[str, Any] = {}
    if parameter.many or parameter.kind == "text":
        bounds = {"min_length": offer.least if required else None, "max_length": parameter.most}
        if not required:
            bounds["json_schema_extra"] = _without_length
    elif parameter.kind in ("integer", "number"):
        most = parameter.most if offer.most is None else offer.most
        bounds = {"ge": parameter.least, "le": most}
    if not required:
        bounds["default"] = _nothing(parameter) if default is None else default
    alias = name.strip("_") if name.endswith("_") else None
    about = offer.about or (_A_DAY_IS_PART if ends else _words(parameter.about))
    return kind, Field(alias=alias, description=about, **bounds)


def _without_length(schema: dict[str, Any]) -> None:
    """Leave out how many labels and ids there may be, which nobody comes near to."""
    schema.pop("maxItems", None)


def _words(about: str) -> str:
    """What the API says of a parameter, for one who reads nothing else of it."""
    return f"Only {about[:1].lower()}{about[1:]}" if about.startswith(_FILTER) else about


def _nothing(parameter: Parameter) -> Any:
    """What an argument is that was left out and has no default."""
    if parameter.many:
        return []
    return None if parameter.optional else _NOTHING.get(parameter.kind)


_NOTHING: Mapping[str, Any] = {
    "text": "", "integer": 0, "number": 0, "flag": False, "choice": "", "json": {}
}  # fmt: skip
_PLAIN = {"text": str, "integer": int, "number": float, "flag": bool, "json": dict[str, Any]}


def _kind(parameter: Parameter, time: Any, given: Any) -> Any:
    """The type of an argument.

    Args:
        parameter: what it stands for.
        time: what a time is.
        given: whether it always has a value.
    """
    if parameter.kind == "choice":
        names = parameter.choices if given or parameter.many else ("", *parameter.choices)
        kind: Any = Annotated[Literal[names], Word]
    elif parameter.kind in _PLAIN:
        kind = _PLAIN[parameter.kind]
    elif parameter.kind == "time":
        kind = time
    else:
        from mneme_mcp.learned import SpaceValue, Value

        kind = {"State": Value, "Action": Value, "Space": SpaceValue}[parameter.kind]
    if parameter.many:
        return Labels if kind is str and not parameter.prose else list[kind]
    return kind if given or _nothing(parameter) is not None else kind | None
