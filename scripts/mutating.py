"""Mutants of Python code: one small change each, of the kind that a slip of the hand makes.

A mutant is named by what it changes — file, function, kind, the lines before and after — and not by
where that stands, so that the same one is found again when code was moved.
"""

from __future__ import annotations

import ast
import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

MODULE = "<module>"
Function = ast.FunctionDef | ast.AsyncFunctionDef

_LOG_METHODS = {"debug", "info", "warning", "error", "exception", "critical"}
_TYPE_MAKERS = {"TypeVar", "ParamSpec", "NewType", "cast"}
_COMPARISONS: Mapping[type[ast.cmpop], tuple[str, str]] = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.In: ("in", "not in"),
    ast.NotIn: (r"not\s+in", "in"),
    ast.Is: ("is", "is not"),
    ast.IsNot: (r"is\s+not", "is"),
}
_OPERATORS: Mapping[type[ast.operator], tuple[str, str]] = {
    ast.Add: (r"\+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: (r"\*", "/"),
    ast.Div: ("/", "*"),
    ast.FloorDiv: ("//", "*"),
    ast.Mod: ("%", "//"),
    ast.Pow: (r"\*\*", "*"),
    ast.BitAnd: ("&", "|"),
    ast.BitOr: (r"\|", "&"),
    ast.LShift: ("<<", ">>"),
    ast.RShift: (">>", "<<"),
}
_RETURNED = (
    (r"bool", "False"),
    (r"int", "0"),
    (r"float", "0.0"),
    (r"str", '""'),
    (r"bytes", 'b""'),
    (r"(list|Sequence|Collection|Iterable)\[.*", "[]"),
    (r"tuple\[.*", "()"),
    (r"(dict|Mapping)\[.*", "{}"),
    (r"(set|frozenset)\[.*", "frozenset()"),
    (r"(Iterator|Generator)\[.*", "iter(())"),
)


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change of the code.

    Args:
        file: the file, below the root of the tree.
        function: the function's qualified name, or `<module>` for what stands in none.
        kind: what kind of change it is.
        before: the lines that it changes, as they are.
        after: the same, changed.
        nth: which of several changes in the function that read alike, from 0.
        line: where it stood when it was chosen.
    """

    file: str
    function: str
    kind: str
    before: str
    after: str
    nth: int
    line: int

    @property
    def named(self) -> tuple[object, ...]:
        """What it is found again by, in its file or in another."""
        return self.function, self.kind, self.before, self.after, self.nth


@dataclass(frozen=True, slots=True)
class Edit:
    """Bytes of a source that are replaced."""

    start: int
    end: int
    put: bytes

    def apply(self, source: bytes) -> bytes:
        """Return the source with them replaced."""
        return source[: self.start] + self.put + source[self.end :]


class Source:
    """A file's bytes, and what stands where in them."""

    def __init__(self, text: bytes) -> None:
        self.text = text
        self._starts = [0]
        for line in text.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))

    @cached_property
    def tree(self) -> ast.Module:
        """Its syntax."""
        return ast.parse(self.text)

    def start(self, node: ast.expr | ast.stmt | ast.keyword) -> int:
        """Return where a node begins; with its decorators, if it has some."""
        above = node.decorator_list if isinstance(node, Function | ast.ClassDef) else []
        if above:
            return self.start(above[0]) - 1
        return self._starts[node.lineno - 1] + node.col_offset

    def end(self, node: ast.expr | ast.stmt | ast.keyword) -> int:
        """Return where a node ends."""
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self._starts[node.end_lineno - 1] + node.end_col_offset

    def find(self, pattern: str, start: int, end: int) -> tuple[int, int] | None:
        """Return where a pattern is first met between two places."""
        found = re.compile(pattern.encode()).search(self.text, start, end)
        return found.span() if found else None

    def lines(self, edit: Edit) -> tuple[int, str, str]:
        """Return the number of the first line of an edit, and its lines before and after."""
        start = self.text.rfind(b"\n", 0, edit.start) + 1
        end = self.text.find(b"\n", edit.end)
        end = len(self.text) if end < 0 else end
        inner = Edit(edit.start - start, edit.end - start, edit.put)
        before = self.text[start:end]
        return (
            bisect_right(self._starts, start),
            before.decode().strip(),
            inner.apply(before).decode().strip(),
        )

    def makes_another(self, edit: Edit) -> bool:
        """Whether what an edit makes is Python, and says something else."""
        changed = edit.apply(self.text)
        try:
            compile(changed, "mutant", "exec")
        except SyntaxError:
            return False
        return ast.dump(ast.parse(changed)) != ast.dump(self.tree)


def insertion(source: Source, function: Function, statement: str) -> Edit | None:
    """Return the edit that has a function begin with another statement, behind its docstring; none
    for one that is declared alone, or stands on a single line."""
    body = function.body
    if ast.get_docstring(function, clean=False) is not None:
        body = body[1:]
    if not body or body[0].lineno == function.lineno:
        return None
    if isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant):
        return None
    start = source.start(body[0])
    indent = source.text[source.text.rfind(b"\n", 0, start) + 1 : start]
    if indent.strip():
        return None
    return Edit(start, start, statement.encode() + b"\n" + indent)


def functions(source: Source) -> Iterator[tuple[str, Function]]:
    """Yield the functions of a file, each with its qualified name."""

    def below(node: ast.AST, scope: str) -> Iterator[tuple[str, Function]]:
        for child in ast.iter_child_nodes(node):
            inner = scope
            if isinstance(child, Function | ast.ClassDef):
                inner = f"{scope}.{child.name}".lstrip(".")
            if isinstance(child, Function):
                yield inner, child
            yield from below(child, inner)

    return below(source.tree, "")


class _Changes(ast.NodeVisitor):
    """Collects the changes that a file allows, as triples of function, kind and edit."""

    def __init__(self, source: Source) -> None:
        self.found: list[tuple[str, str, Edit]] = []
        self._source = source
        self._scope: list[str] = []
        self._in_function = 0

    def _add(self, kind: str, start: int, end: int, put: str) -> None:
        function = ".".join(self._scope) if self._in_function else MODULE
        self.found.append((function, kind, Edit(start, end, put.encode())))

    def _swap(self, kind: str, between: tuple[int, int], swapped: tuple[str, str]) -> None:
        if span := self._source.find(swapped[0], *between):
            self._add(kind, *span, swapped[1])

    def _all(self, nodes: Sequence[ast.AST | None]) -> None:
        for node in nodes:
            if node is not None:
                self.visit(node)

    def _function(self, node: Function) -> None:
        if node.name == "__repr__":
            return
        self._scope.append(node.name)
        self._in_function += 1
        put = _first_default(node)
        says_more = node.name != "__init__" and not isinstance(node.body[-1], ast.Pass | ast.Raise)
        if says_more and (edit := insertion(self._source, node, put)):
            self._add("return", edit.start, edit.end, edit.put.decode())
        self._all([*node.args.defaults, *node.args.kw_defaults, *node.body])
        self._in_function -= 1
        self._scope.pop()

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self._function(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self._function(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._scope.append(node.name)
        self._all(node.body)
        self._scope.pop()

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        self._all([node.value])

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Before Python 3.12 nodes do not know where in it they stand."""

    def visit_If(self, node: ast.If) -> None:
        if ast.unparse(node.test).endswith("TYPE_CHECKING"):
            self._all(node.orelse)
            return
        self._negate(node.test)
        self.generic_visit(node)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        self._negate(node.test)
        self.generic_visit(node)

    def _negate(self, test: ast.expr) -> None:
        start, end = self._source.start(test), self._source.end(test)
        self._add("if", start, end, f"not ({self._source.text[start:end].decode()})")

    def visit_Compare(self, node: ast.Compare) -> None:
        sides = [node.left, *node.comparators]
        for left, operator, right in zip(sides, node.ops, node.comparators, strict=False):
            between = self._source.end(left), self._source.start(right)
            self._swap("compare", between, _COMPARISONS[type(operator)])
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        # Types are joined outside of functions; text and lists know no other operator.
        skipped = (isinstance(node.op, ast.BitOr) and not self._in_function) or any(
            isinstance(side, ast.JoinedStr | ast.List | ast.Tuple)
            or (isinstance(side, ast.Constant) and isinstance(side.value, str | bytes))
            for side in (node.left, node.right)
        )
        if not skipped and type(node.op) in _OPERATORS:
            between = self._source.end(node.left), self._source.start(node.right)
            self._swap("arithmetic", between, _OPERATORS[type(node.op)])
        self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        if type(node.op) in _OPERATORS:
            between = self._source.end(node.target), self._source.start(node.value)
            self._swap("arithmetic", between, _OPERATORS[type(node.op)])
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        swapped = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
        for left, right in zip(node.values, node.values[1:], strict=False):
            self._swap("and-or", (self._source.end(left), self._source.start(right)), swapped)
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, ast.Not):
            start = self._source.start(node)
            self._swap("not", (start, self._source.end(node)), (r"not\s*", ""))
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        value = node.value
        if isinstance(value, int | float) and not isinstance(value, bool):
            put = repr(type(value)(0) if value == 1 else value + 1)
            self._add("constant", self._source.start(node), self._source.end(node), put)

    def visit_Expr(self, node: ast.Expr) -> None:
        value = node.value.value if isinstance(node.value, ast.Await) else node.value
        if isinstance(value, ast.Call) and not _is_left_alone(value):
            self._add("call", self._source.start(node), self._source.end(node), "pass")
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        if _is_left_alone(node):
            return
        for keyword in node.keywords:
            # Outside of functions they declare; `strict` only says what is so.
            if keyword.arg and keyword.arg != "strict" and self._in_function:
                start, end = self._source.start(keyword), self._source.end(keyword)
                comma = re.compile(rb"\s*,\s*").match(self._source.text, end)
                self._add("keyword", start, comma.end() if comma else end, "")
        self.generic_visit(node)


def _is_left_alone(call: ast.Call) -> bool:
    """Whether a call only logs, or makes a type."""
    called = call.func
    if isinstance(called, ast.Attribute):
        logs = ast.unparse(called.value).endswith("log") and called.attr in _LOG_METHODS
        return logs or called.attr in _TYPE_MAKERS
    return isinstance(called, ast.Name) and called.id in _TYPE_MAKERS


def _first_default(function: Function) -> str:
    """Return the statement that ends a function at once, with the least that its type allows."""
    yields = any(isinstance(node, ast.Yield | ast.YieldFrom) for node in ast.walk(function))
    if function.returns is None or yields:
        return "return"
    annotation = ast.unparse(function.returns)
    for pattern, value in _RETURNED:
        if re.fullmatch(pattern, annotation):
            return f"return {value}"
    return "return" if annotation == "None" else "return None"


def changes(file: str, source: Source) -> Iterator[tuple[Mutant, Edit]]:
    """Yield the mutants that a file has, in the order of its text, and how each is made."""
    visitor = _Changes(source)
    visitor.visit(source.tree)
    told: dict[tuple[object, ...], int] = {}
    for function, kind, edit in sorted(visitor.found, key=lambda one: (one[2].start, one[1])):
        line, before, after = source.lines(edit)
        key = (function, kind, before, after)
        mutant = Mutant(file, function, kind, before, after, told.get(key, 0), line)
        told[key] = mutant.nth + 1
        yield mutant, edit


def find(root: Path, mutant: Mutant, files: Callable[[], Sequence[str]]) -> tuple[str, Edit] | None:
    """Return the file of a tree that has what a mutant changes, and the change: its own, else the
    only other one of `files` that has it."""

    def inside(file: str) -> Edit | None:
        source = Source((root / file).read_bytes())
        return next(
            (edit for one, edit in changes(file, source) if one.named == mutant.named), None
        )

    if (root / mutant.file).is_file() and (edit := inside(mutant.file)):
        return mutant.file, edit
    first = mutant.before.splitlines()[0].encode()
    others = [file for file in files() if first in (root / file).read_bytes()]
    found = [(file, edit) for file in others if (edit := inside(file))]
    return found[0] if len(found) == 1 else None
