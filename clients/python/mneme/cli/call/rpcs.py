"""The RPCs by the names that people type, and what the schemas say of them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from mneme._core import named
from mneme._core.rpc import Rpc
from mneme._generated.services import RPCS
from mneme.cli.exits import InputError

_SENTENCE = re.compile(r"(.*?[.!?])(?:\s+[A-Z`]|$)", re.DOTALL)


def find(name: str) -> Rpc[Any, Any]:
    """The RPC of a name: `RecallService.Recall`, `recall`, `LearnService/CreateLesson`, …

    Raises:
        InputError: there is none, or several services have one.
    """
    fits = [rpc for rpc in RPCS if _folded(name) in _names(rpc)]
    if len(fits) == 1:
        return fits[0]
    if fits:
        raise InputError(f"{name} is ambiguous: {' or '.join(map(title, fits))}")
    known = {one: rpc for rpc in RPCS for one in _names(rpc)}
    near = dict.fromkeys(title(known[one]) for one in named.near(_folded(name), known, 5))
    guess = f"; did you mean {' or '.join(list(near)[:3])}?" if near else ""
    raise InputError(f"there is no RPC {named.short(name)}{guess}\n`mneme call` lists all of them.")


def of_service(name: str) -> list[Rpc[Any, Any]]:
    """The RPCs of a service, with or without "Service" at its end.

    None when there is no such service, or when an RPC has the name: that one is meant.
    """
    if any(_folded(name) == rpc.method.lower() for rpc in RPCS):
        return []
    return [rpc for rpc in RPCS if _folded(name) in _service_names(rpc)]


def title(rpc: Rpc[Any, Any]) -> str:
    """`RecallService.Recall`."""
    return f"{service(rpc)}.{rpc.method}"


def service(rpc: Rpc[Any, Any]) -> str:
    """The service's name without its package."""
    return rpc.service.rpartition(".")[2]


def comment(full_name: str) -> str:
    """What the schemas say of a service, an RPC, a message, a field or a value."""
    return _comments().get(full_name, "")


def summary(full_name: str) -> str:
    """The first sentence of that, on one line."""
    text = comment(full_name)
    found = _SENTENCE.match(text)
    return " ".join((found[1] if found else text).split())


@cache
def _comments() -> Mapping[str, str]:
    texts: Mapping[str, str] = json.loads(
        files("mneme._generated").joinpath("comments.json").read_text(encoding="utf-8")
    )
    return texts


def _names(rpc: Rpc[Any, Any]) -> Iterator[str]:
    method = rpc.method.lower()
    yield method
    yield from (f"{service}.{method}" for service in _service_names(rpc))


def _service_names(rpc: Rpc[Any, Any]) -> tuple[str, str, str]:
    short = service(rpc).lower()
    return rpc.service.lower(), short, short.removesuffix("service")


def _folded(name: str) -> str:
    """As `_names` has it: without case, underscores and hyphens."""
    return re.sub(r"[-_\s]", "", name.lower()).replace("/", ".").strip(".")
