"""Records, frozen dataclasses of the domain, as their conversions to messages and rows see them.

A field is declared once, in the dataclass. Its name and type say how others spell it: `created_us`
is the time `created_at`, `metadata_json` the object `metadata`, a tuple a list. Conversions that
follow from it are written as Python and compiled, so that they run as fast as what one would write
by hand. They are made when they are first used: all of them would take a start 40 ms. A field that
one side lacks is an error then, and a test makes all of them.
"""

from __future__ import annotations

import itertools
import linecache
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from enum import Enum
from functools import cache, cached_property
from typing import Any, Generic, ParamSpec, TypeVar, Union, get_args, get_origin, get_type_hints

from mneme_server.common import canonical

P = ParamSpec("P")
T = TypeVar("T")
_ENDINGS = {"_us": ("_at", "_time", ""), "_json": ("",)}
"""How others spell what ends so in the domain."""
_MANY: Mapping[Any, type] = {tuple: tuple, Sequence: tuple, frozenset: frozenset}
_numbers = itertools.count()


@dataclass(frozen=True, slots=True)
class RecordField:
    """A field of a record.

    Attributes:
        name: as the domain spells it.
        type: of its value, or of the items where it has several.
        optional: whether it may be None.
        many: what several values are in, a tuple or a frozenset; None: it is one value.
        required: whether it has no default.
    """

    name: str
    type: Any
    optional: bool
    many: type | None
    required: bool

    @property
    def is_time(self) -> bool:
        """Whether it is a time or a duration, in microseconds."""
        return self.name.endswith("_us")

    @property
    def is_json(self) -> bool:
        """Whether it is canonical JSON."""
        return self.name.endswith("_json")

    @property
    def is_enum(self) -> bool:
        """Whether it is of an enum, whose numbers messages and rows have."""
        return isinstance(self.type, type) and issubclass(self.type, Enum)

    def spellings(self) -> Iterator[str]:
        """Yield how others may spell it."""
        yield self.name
        for ending, others in _ENDINGS.items():
            if self.name.endswith(ending):
                yield from (self.name.removesuffix(ending) + other for other in others)


def record_fields(record: type) -> Mapping[str, RecordField]:
    """Return the fields of a record by name."""
    return _fields_of(record)


def is_record(kind: object) -> bool:
    """Tell whether something is the class of records."""
    return isinstance(kind, type) and is_dataclass(kind)


@cache
def _fields_of(record: Any) -> Mapping[str, RecordField]:
    hints = get_type_hints(record, localns=vars(canonical))  # Where `Json` is.
    return {
        one.name: _field(one.name, hints[one.name], one.default is one.default_factory is MISSING)
        for one in fields(record)
    }


def _field(name: str, hint: Any, required: bool) -> RecordField:
    optional = get_origin(hint) in (Union, types.UnionType) and type(None) in get_args(hint)
    if optional:
        others = [one for one in get_args(hint) if one is not type(None)]
        hint = others[0] if len(others) == 1 else Any
    many = _MANY.get(get_origin(hint))
    if many is tuple and len(get_args(hint)) > 1 and get_args(hint)[1] is not ...:
        many = None  # A pair, or the like.
    return RecordField(name, get_args(hint)[0] if many else hint, optional, many, required)


class Conversion(Generic[P, T]):
    """A function that is made when it is first called.

    Args:
        make: makes it; raises TypeError where a field has no counterpart.
    """

    def __init__(self, make: Callable[[], Callable[P, T]]) -> None:
        self._make = make
        CONVERSIONS.append(self)

    @cached_property
    def function(self) -> Callable[P, T]:
        """The function itself."""
        return self._make()

    def __call__(self, *given: P.args, **named: P.kwargs) -> T:
        """Convert."""
        return self.function(*given, **named)


CONVERSIONS: list[Conversion[Any, Any]] = []
"""All that were declared, for the test that makes them."""


def compiled(name: str, arguments: str, body: str, known: Mapping[str, Any]) -> Callable[..., Any]:
    """Return a function of one expression; its source shows in tracebacks.

    Args:
        name: the function's.
        arguments: as they stand between the brackets of its definition.
        body: what it returns.
        known: what its names stand for.
    """
    source = f"def {name}({arguments}):\n    return {body}\n"
    file = f"<{name} {next(_numbers)}>"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    scope = dict(known)
    exec(compile(source, file, "exec"), scope)
    function: Callable[..., Any] = scope[name]
    return function


def call_of(name: str, values: Mapping[str, str]) -> str:
    """Return the expression of a call with arguments by name."""
    return f"{name}({', '.join(f'{key}={value}' for key, value in values.items())})"
