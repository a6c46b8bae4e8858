"""Which RPCs each command of the command line reaches, read from its code.

A command's function is followed into what it uses of the command line and of the importer; a
method that is called there on something named a client is an RPC's. A command that is made from a
table says itself what it calls.
"""

from __future__ import annotations

import ast
import importlib
import inspect
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from types import ModuleType
from typing import Any

from mneme.cli.main import build_whole

_FOLLOWED = ("mneme.cli.", "mneme.importing", "mneme.hooks", "mneme.knowledge_log")
# What a client is called; the importer knows one as that to which it sends.
_CLIENTS = ("client", "sink")
# It reaches every RPC, and is named where no other command does.
ANY = "mneme call"


@cache
def commands_by_method() -> Mapping[str, tuple[str, ...]]:
    """The commands that call a method of the client, by the method's name.

    What does little else comes first.
    """
    reached = {
        command: _called(function) for command, function in _commands(build_whole(), "mneme")
    }
    commands = sorted(reached, key=lambda command: len(reached[command]))
    return {
        method: tuple(command for command in commands if method in reached[command])
        for method in set().union(*reached.values())
    }


def _called(function: Any) -> set[str]:
    """The client's methods that a command comes to call."""
    methods = getattr(function, "methods", None)
    return set(methods or _reached(function.__module__, function.__name__, set()))


def client_methods(nodes: Iterable[ast.AST]) -> set[str]:
    """The methods that are called there on something named a client."""
    return {
        node.func.attr
        for node in nodes
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and _is_client(node.func.value)
    }


def _is_client(node: ast.expr) -> bool:
    name = node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
    return name.strip("_") in _CLIENTS


def _commands(group: Any, path: str) -> Iterator[tuple[str, Any]]:
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from _commands(command, f"{path} {name}")
        else:
            yield f"{path} {name}", command.callback


@dataclass(frozen=True, slots=True)
class _Module:
    """A module's functions and classes, and where the other names in it come from."""

    definitions: Mapping[str, ast.AST]
    imports: Mapping[str, tuple[str, str]]


@cache
def _module(name: str) -> _Module:
    tree = ast.parse(inspect.getsource(importlib.import_module(name)))
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return _Module(
        definitions={node.name: node for node in tree.body if isinstance(node, kinds)},
        imports={
            alias.asname or alias.name: (node.module or "", alias.name)
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
        },
    )


@dataclass(frozen=True, slots=True)
class _Use:
    """What a function or class uses: methods of the client, and definitions by module and name."""

    methods: frozenset[str]
    others: tuple[tuple[str, str], ...]


def _reached(module: str, name: str, seen: set[tuple[str, str]]) -> set[str]:
    """The client's methods that a function or class of a module comes to call."""
    if (module, name) in seen or not module.startswith(_FOLLOWED):
        return set()
    seen.add((module, name))
    used = _used(module, name)
    return set(used.methods).union(*(_reached(*other, seen) for other in used.others))


@cache
def _used(module: str, name: str) -> _Use:
    """What a definition uses itself; many commands come to it."""
    known = _module(module)
    definition = known.definitions.get(name)
    if definition is None:
        origin = known.imports.get(name)
        return _Use(frozenset(), (origin,) if origin else ())
    nodes = list(ast.walk(definition))
    local = {node.arg for node in nodes if isinstance(node, ast.arg)}
    others: dict[tuple[str, str], None] = {}
    for node in nodes:
        if isinstance(node, ast.Name) and node.id not in local:
            others[module, node.id] = None
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            package, inner = known.imports.get(node.value.id, ("", ""))
            if isinstance(_of(package, inner), ModuleType):
                others[f"{package}.{inner}", node.attr] = None
    return _Use(frozenset(client_methods(nodes)), tuple(others))


def _of(module: str, name: str) -> Any:
    if not module.startswith("mneme"):
        return None
    return getattr(importlib.import_module(module), name, None)
