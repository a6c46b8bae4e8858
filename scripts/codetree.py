"""The code of a checkout as text: its modules, their definitions, and how these belong together.

Nothing is imported: all is read from the text, so that any checkout can be looked at.
"""

from __future__ import annotations

import ast
import io
import tokenize
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

Definition = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
DEFINITIONS = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
_NO_CODE = {
    tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT,
    tokenize.ENCODING, tokenize.ENDMARKER,
}  # fmt: skip
# What a class has without defining it, and what says nothing of a port.
_EVERY_CLASS_HAS = frozenset(dir(object)) | {"__slots__"}


@dataclass(frozen=True)
class Module:
    """One file: `path` from the counted folder, and its text."""

    path: Path
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        """The parsed text. Raises SyntaxError."""
        return ast.parse(self.text)

    @cached_property
    def nodes(self) -> list[ast.AST]:
        """All nodes of the tree."""
        return list(ast.walk(self.tree))

    @property
    def lines(self) -> int:
        """Lines of text."""
        return self.text.count("\n")

    def at(self, node: ast.AST, said: str = "") -> str:
        """Return where a node stands, as `path:line said`."""
        return f"{self.path}:{getattr(node, 'lineno', 1)} {said}".rstrip()

    def documented(self) -> Iterator[tuple[ast.AST, str]]:
        """Yield the module, its classes and its functions that have a docstring, with it."""
        for node in self.nodes:
            if isinstance(node, (ast.Module, *DEFINITIONS)):
                docstring = ast.get_docstring(node)
                if docstring is not None:
                    yield node, docstring

    def code_lines(self) -> set[int]:
        """Return the numbers of the lines that hold more than comments and docstrings."""
        found: set[int] = set()
        for token in tokenize.generate_tokens(io.StringIO(self.text).readline):
            if token.type not in _NO_CODE:
                found.update(range(token.start[0], token.end[0] + 1))
        for node, _ in self.documented():
            assert isinstance(node, (ast.Module, *DEFINITIONS))
            found.difference_update(_lines_of(node.body[0]))
        return found

    def import_lines(self) -> set[int]:
        """Return the numbers of the lines that import."""
        imports = [node for node in self.nodes if isinstance(node, (ast.Import, ast.ImportFrom))]
        return {line for node in imports for line in _lines_of(node)}


@dataclass(frozen=True)
class Code:
    """The modules of a folder, and those of the tests beside it."""

    folder: Path
    modules: tuple[Module, ...]
    tests: tuple[Module, ...] = ()

    @classmethod
    def read(cls, tree: Path, part: str, tests: str = "tests") -> Code:
        """Read the folder `part` of a checkout and its tests.

        Raises:
            FileNotFoundError: the checkout has no such folder.
        """
        if not (tree / part).is_dir():
            raise FileNotFoundError(f"{tree} has no folder {part}")
        return cls(tree / part, _modules(tree / part), _modules(tree / tests))

    def classes(self) -> Iterator[tuple[Module, ast.ClassDef]]:
        """Yield every class with its module."""
        return _classes(self.modules)


def _modules(folder: Path) -> tuple[Module, ...]:
    return tuple(
        Module(path.relative_to(folder), path.read_text()) for path in sorted(folder.rglob("*.py"))
    )


def _classes(modules: tuple[Module, ...]) -> Iterator[tuple[Module, ast.ClassDef]]:
    for module in modules:
        for node in module.nodes:
            if isinstance(node, ast.ClassDef):
                yield module, node


def _lines_of(node: ast.stmt) -> range:
    return range(node.lineno, (node.end_lineno or node.lineno) + 1)


def _base_names(node: ast.ClassDef) -> set[str]:
    """Return the last names of a class's bases, without what they are of: `Protocol[T]`."""
    bases = [base.value if isinstance(base, ast.Subscript) else base for base in node.bases]
    return {
        base.attr if isinstance(base, ast.Attribute) else base.id
        for base in bases
        if isinstance(base, (ast.Attribute, ast.Name))
    }


def protocols(code: Code) -> list[tuple[Module, ast.ClassDef]]:
    """Return the classes that have Protocol itself as a base."""
    return [(module, node) for module, node in code.classes() if "Protocol" in _base_names(node)]


def needless_protocols(code: Code) -> list[tuple[Module, ast.ClassDef]]:
    """Return the protocols that one class of the code implements, and no class of the tests.

    An approximation, which knows names and no types. A class implements a protocol when it has all
    names that the protocol has: methods and annotated attributes, its own or those of its bases,
    and what its methods assign to `self`. What is a protocol itself implements none, and a protocol
    without a name of its own, which only joins others, is left out. A class of the tests that has
    all the names counts as a fake.
    """
    ports = protocols(code)
    own = _Members(list(code.classes()))
    fakes = _Members([*code.classes(), *_classes(code.tests)])
    abstract = {id(node) for _, node in ports}
    built = [own.of(node) for _, node in code.classes() if id(node) not in abstract]
    faked = [
        fakes.of(node) for _, node in _classes(code.tests) if "Protocol" not in _base_names(node)
    ]
    found = []
    for module, port in ports:
        wanted = own.of(port)
        implementers = sum(wanted <= names for names in built)
        if wanted and implementers == 1 and not any(wanted <= names for names in faked):
            found.append((module, port))
    return found


class _Members:
    """The names that classes have, their bases' among them; bases are found by name."""

    def __init__(self, classes: list[tuple[Module, ast.ClassDef]]) -> None:
        self._named: dict[str, list[ast.ClassDef]] = defaultdict(list)
        for _, node in classes:
            self._named[node.name].append(node)
        self._known: dict[int, frozenset[str]] = {}

    def of(self, node: ast.ClassDef) -> frozenset[str]:
        """Return the names that a class has."""
        if id(node) not in self._known:
            self._known[id(node)] = frozenset()  # A class that is its own base has no more names.
            bases = [base for name in _base_names(node) for base in self._named[name]]
            names = _own_members(node).union(*(self.of(base) for base in bases))
            self._known[id(node)] = frozenset(names - _EVERY_CLASS_HAS)
        return self._known[id(node)]


def _own_members(node: ast.ClassDef) -> set[str]:
    names: set[str] = set()
    for statement in node.body:
        if isinstance(statement, DEFINITIONS):
            names.add(statement.name)
        names |= _assigned(statement)
    for inner in ast.walk(node):
        if (
            isinstance(inner, ast.Attribute)
            and isinstance(inner.ctx, ast.Store)
            and isinstance(inner.value, ast.Name)
            and inner.value.id == "self"
        ):
            names.add(inner.attr)
    return names


def _assigned(statement: ast.stmt) -> set[str]:
    """Return the names that a statement gives a value or a type."""
    targets: list[ast.expr] = []
    if isinstance(statement, ast.Assign):
        targets = statement.targets
    elif isinstance(statement, ast.AnnAssign):
        targets = [statement.target]
    return {
        node.id for target in targets for node in ast.walk(target) if isinstance(node, ast.Name)
    }


def components(module: Module) -> int:
    """Return into how many groups a module's classes and functions fall, by use of one another.

    Classes and functions at the top of the module belong together when one names the other anywhere
    in its text, decorators, annotations and strings that are a name among it, or when both use the
    same constant, which is any other name that the module assigns at its top. Constants do not
    count themselves, nor does what is imported. 0 when the module defines nothing.
    """
    definitions: dict[str, list[ast.stmt]] = defaultdict(list)
    constants: dict[str, list[ast.stmt]] = defaultdict(list)
    for statement in module.tree.body:
        if isinstance(statement, DEFINITIONS):
            definitions[statement.name].append(statement)
        else:
            for name in _assigned(statement):
                constants[name].append(statement)
    joined = {name: name for name in [*definitions, *constants]}

    def root(name: str) -> str:
        while joined[name] != name:
            name = joined[name]
        return name

    for name, statements in [*definitions.items(), *constants.items()]:
        for used in _names_in(statements) & joined.keys():
            joined[root(name)] = root(used)
    return len({root(name) for name in definitions})


def _names_in(statements: list[ast.stmt]) -> set[str]:
    nodes = [node for statement in statements for node in ast.walk(statement)]
    names = {node.id for node in nodes if isinstance(node, ast.Name)}
    texts = {node.value for node in nodes if isinstance(node, ast.Constant)}
    return names | {text for text in texts if isinstance(text, str)}
