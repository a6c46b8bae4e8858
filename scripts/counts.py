"""Counts of the code's structure, of one checkout or of several side by side.

    python scripts/counts.py
    python scripts/counts.py --tree . --tree ../before
    python scripts/counts.py --json
    python scripts/counts.py --list repeated_classes

`--part` counts another folder than the server's. What a count is, its line in the table says; how
it is taken, its function here. `--list` prints what a count consists of, with its places.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from codetree import DEFINITIONS, Code, Module, components, needless_protocols, protocols
from pages import ROOT

SERVER = "server/mneme_server"
SHORT_LINES, LONG_LINES, COHESION_LINES, MANY_ARGUMENTS = 50, 800, 200, 8
QUESTIONS = ("What", "How", "Whether", "Which", "Where", "Who", "When")
# The folders of the scheduler, and the names of what is there with several nodes only.
SCHEDULER = {"runtime", "scheduling"}
CLUSTER = {"cluster", "leases", "fence", "elsewhere", "placements"}

Node = TypeVar("Node", bound=ast.AST)


@dataclass(frozen=True)
class Count:
    """A number and, where it is one of things, what and where they are."""

    value: float
    places: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, places: Iterable[str]) -> Count:
        """Count places."""
        found = list(places)
        return cls(len(found), found)


COUNTS: dict[str, tuple[str, Callable[[Code], Count]]] = {}


def _count(name: str, means: str) -> Callable[[Callable[[Code], Count]], Callable[[Code], Count]]:
    def keep(function: Callable[[Code], Count]) -> Callable[[Code], Count]:
        COUNTS[name] = (means, function)
        return function

    return keep


def counted(code: Code) -> dict[str, float]:
    """Return every count by its name."""
    return {name: function(code).value for name, (_, function) in COUNTS.items()}


@_count("files", "files")
def _files(code: Code) -> Count:
    return Count.of(f"{module.path}: {module.lines}" for module in code.modules)


@_count("lines", "lines")
def _lines(code: Code) -> Count:
    return Count(sum(module.lines for module in code.modules))


@_count("statements", "statements (nodes ast.stmt)")
def _statements(code: Code) -> Count:
    nodes = (node for module in code.modules for node in module.nodes)
    return Count(sum(isinstance(node, ast.stmt) for node in nodes))


@_count("short_files", f"files of at most {SHORT_LINES} lines")
def _short_files(code: Code) -> Count:
    return Count.of(f"{m.path}: {m.lines}" for m in code.modules if m.lines <= SHORT_LINES)


@_count("lines_of_short_files", "their lines")
def _lines_of_short_files(code: Code) -> Count:
    return Count(sum(m.lines for m in code.modules if m.lines <= SHORT_LINES))


@_count("long_files", f"files over {LONG_LINES} lines")
def _long_files(code: Code) -> Count:
    return Count.of(f"{m.path}: {m.lines}" for m in code.modules if m.lines > LONG_LINES)


@_count("longest_file", "lines of the longest file")
def _longest_file(code: Code) -> Count:
    longest = max(code.modules, key=lambda module: module.lines)
    return Count(longest.lines, [f"{longest.path}: {longest.lines}"])


@_count("inits", "files `__init__.py`")
def _inits(code: Code) -> Count:
    return Count.of(str(m.path) for m in code.modules if m.path.name == "__init__.py")


@_count("top_entries", "files and folders side by side at the top")
def _top_entries(code: Code) -> Count:
    return Count.of(sorted(_entries(code)[Path()]))


@_count("largest_folder", "files and folders side by side in the largest folder")
def _largest_folder(code: Code) -> Count:
    entries = _entries(code)
    largest = max(entries, key=lambda folder: len(entries[folder]))
    return Count(len(entries[largest]), [str(largest / name) for name in sorted(entries[largest])])


def _entries(code: Code) -> dict[Path, set[str]]:
    """Return what lies in each folder: Python files, and folders that hold some."""
    found: dict[Path, set[str]] = defaultdict(set)
    for module in code.modules:
        for entry in (module.path, *list(module.path.parents)[:-1]):
            found[entry.parent].add(entry.name)
    return found


@_count("ing_modules", "modules whose names end in -ing")
def _ing_modules(code: Code) -> Count:
    return Count.of(str(m.path) for m in code.modules if m.path.stem.endswith("ing"))


@_count("question_docstrings", "docstrings of modules that begin with What, How, Whether …")
def _question_docstrings(code: Code) -> Count:
    begins = re.compile(rf"({'|'.join(QUESTIONS)})\b")
    told = ((m, ast.get_docstring(m.tree) or "") for m in code.modules)
    return Count.of(f"{m.path}: {text.splitlines()[0]}" for m, text in told if begins.match(text))


@_count("classes", "classes")
def _classes(code: Code) -> Count:
    return Count.of(module.at(node, node.name) for module, node in code.classes())


@_count("repeated_classes", "names that several classes have, leading underscores aside")
def _repeated_classes(code: Code) -> Count:
    named: dict[str, list[str]] = defaultdict(list)
    for module, node in code.classes():
        named[node.name.lstrip("_")].append(module.at(node, node.name))
    return Count.of(
        f"{name} ×{len(places)}: {', '.join(places)}"
        for name, places in sorted(named.items(), key=lambda item: -len(item[1]))
        if len(places) > 1
    )


@_count("protocols", "protocols")
def _protocols(code: Code) -> Count:
    return Count.of(module.at(node, node.name) for module, node in protocols(code))


@_count("needless_protocols", "protocols with one implementer and no fake in tests")
def _needless_protocols(code: Code) -> Count:
    return Count.of(module.at(node, node.name) for module, node in needless_protocols(code))


@_count("as_memory", "contexts opened `as memory`")
def _as_memory(code: Code) -> Count:
    return Count.of(
        module.at(item.context_expr)
        for module, item in _nodes(code, ast.withitem)
        if isinstance(item.optional_vars, ast.Name) and item.optional_vars.id == "memory"
    )


@_count("module_docstrings", "docstrings of modules")
def _module_docstrings(code: Code) -> Count:
    return Count.of(str(m.path) for m in code.modules if ast.get_docstring(m.tree) is not None)


@_count("docstrings", "docstrings of classes and functions")
def _docstrings(code: Code) -> Count:
    return Count.of(
        module.at(node, node.name)
        for module in code.modules
        for node, _ in module.documented()
        if isinstance(node, DEFINITIONS)
    )


@_count("undocumented", "public classes and functions without one")
def _undocumented(code: Code) -> Count:
    return Count.of(
        module.at(node, node.name)
        for module in code.modules
        for node in module.nodes
        if isinstance(node, DEFINITIONS)
        and not node.name.startswith("_")
        and ast.get_docstring(node) is None
    )


@_count("import_percent", "lines of imports, in percent of lines of code")
def _import_percent(code: Code) -> Count:
    imports = sum(len(module.import_lines()) for module in code.modules)
    return Count(_percent(imports, sum(len(module.code_lines()) for module in code.modules)))


@_count("cohesive_percent", f"files over {COHESION_LINES} lines whose names hang together, percent")
def _cohesive_percent(code: Code) -> Count:
    groups = {m: components(m) for m in code.modules if m.lines > COHESION_LINES}
    apart = [f"{m.path}: {n} groups" for m, n in groups.items() if n > 1]
    return Count(_percent(len(groups) - len(apart), len(groups)), apart)


@_count("cluster_branches", "comparisons with None of a cluster, its leases or placements")
def _cluster_branches(code: Code) -> Count:
    return Count.of(
        module.at(node, ast.unparse(node))
        for module, node in _nodes(code, ast.Compare)
        if isinstance(node.ops[0], ast.Is | ast.IsNot)
        and isinstance(node.comparators[0], ast.Constant)
        and node.comparators[0].value is None
        and ast.unparse(node.left).rpartition(".")[2].lstrip("_") in CLUSTER
    )


@_count("foreground_files", "files outside the scheduler that name `foreground`")
def _foreground_files(code: Code) -> Count:
    told = ((m, len(re.findall("foreground", m.text, re.IGNORECASE))) for m in code.modules)
    return Count.of(f"{m.path}: {n}" for m, n in told if n and not SCHEDULER & {*m.path.parts})


@_count("private_schedulers", "defaults that make a private scheduler")
def _private_schedulers(code: Code) -> Count:
    return Count.of(
        module.at(node)
        for module, node in _nodes(code, ast.keyword)
        if node.arg == "default_factory" and ast.unparse(node.value) == "Foreground"
    )


@_count("long_signatures", f"functions with at least {MANY_ARGUMENTS} arguments, `self` aside")
def _long_signatures(code: Code) -> Count:
    sized = [
        (module, node, _arguments(node))
        for module in code.modules
        for node in module.nodes
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    return Count.of(
        module.at(node, f"{node.name}: {size}")
        for module, node, size in sorted(sized, key=lambda one: -one[2])
        if size >= MANY_ARGUMENTS
    )


def _arguments(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    told = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    return len([one for one in told if one.arg not in ("self", "cls")])


def _nodes(code: Code, kind: type[Node]) -> Iterable[tuple[Module, Node]]:
    for module in code.modules:
        for node in module.nodes:
            if isinstance(node, kind):
                yield module, node


def _percent(part: int, whole: int) -> float:
    return round(100 * part / whole, 1) if whole else 100.0


def main() -> int:
    """Print the counts of the checkouts, or of what one count consists."""
    arguments = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    arguments.add_argument("--tree", type=Path, action="append", help="a checkout, or several")
    arguments.add_argument("--part", default=SERVER, help=f"the folder that counts: {SERVER}")
    arguments.add_argument("--json", action="store_true", help="print the counts as JSON")
    arguments.add_argument("--list", choices=sorted(COUNTS), help="print what a count consists of")
    given = arguments.parse_args()
    trees: list[Path] = given.tree or [ROOT]
    codes = [Code.read(tree, given.part) for tree in trees]
    if given.list:
        for code in codes:
            print("\n".join(COUNTS[given.list][1](code).places))
        return 0
    results = [counted(code) for code in codes]
    if given.json:
        by_tree = {str(tree): result for tree, result in zip(trees, results, strict=True)}
        print(json.dumps(by_tree if given.tree else results[0], indent=2))
        return 0
    print("| count | " + " | ".join(tree.resolve().name for tree in trees) + " |")
    print("|---|" + "---:|" * len(trees))
    for name, (means, _) in COUNTS.items():
        values = " | ".join(f"{result[name]:,}" for result in results)
        print(f"| {means} (`{name}`) | {values} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
