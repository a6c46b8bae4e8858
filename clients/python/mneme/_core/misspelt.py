"""Misspelt names of arguments: the error of a call says which one was meant."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Collection, Mapping
from types import FunctionType
from typing import Any

from mneme._core.named import near, short


def tells_misspelt(cls: type) -> None:
    """Have every public method that a class defines, and its making, tell of misspelt arguments.

    Python itself names a keyword that there is not, but not the one that was meant.
    """
    for name, method in list(vars(cls).items()):
        if inspect.isfunction(method) and (name == "__init__" or not name.startswith("_")):
            shown = cls.__name__ if name == "__init__" else name
            setattr(cls, name, _telling(method, shown))


def _telling(method: FunctionType, shown: str) -> Callable[..., Any]:
    code = method.__code__  # Far faster than inspect.signature, for hundreds of methods on import.
    if code.co_flags & inspect.CO_VARKEYWORDS:
        return method
    count = code.co_argcount + code.co_kwonlyargcount
    known = code.co_varnames[code.co_posonlyargcount or 1 : count]  # Without self.

    if inspect.iscoroutinefunction(method):

        @functools.wraps(method)
        async def awaited(*args: Any, **kwargs: Any) -> Any:
            _check(shown, kwargs, known)
            return await method(*args, **kwargs)

        return awaited

    @functools.wraps(method)
    def called(*args: Any, **kwargs: Any) -> Any:
        _check(shown, kwargs, known)
        return method(*args, **kwargs)

    return called


def _check(shown: str, given: Mapping[str, Any], known: Collection[str]) -> None:
    for name in given:
        if name not in known:
            meant = near(name, known)
            hint = (
                f"did you mean {meant[0]!r}?" if meant else f"it has {', '.join(known) or 'none'}"
            )
            raise TypeError(f"{shown}() has no argument {short(name)!r}: {hint}")
