"""The measurement of tests changes code by one slip of the hand at a time, and nothing else."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from pathlib import Path

import pytest
from mutants import choose
from mutanttrees import written_files
from mutating import MODULE, Mutant, Source, changes, find, functions, insertion

ROOT = Path(__file__).parents[3]
CODE = '''
def larger(a: int, b: int) -> int:
    """Return 1 if not a < b, and 0 else."""
    if a < b and not done(a):
        _log.info("1 < 2", first=a + 1)
        note(a, twice=True)
        return a * 2
    return b
'''


def made(text: str, kind: str) -> list[tuple[str, str]]:
    source = Source(text.encode())
    found = list(changes("x.py", source))
    for _, edit in found:
        assert source.makes_another(edit)
    return [(one.before, one.after) for one, _ in found if one.kind == kind]


def texts(*folders: str) -> dict[str, bytes]:
    files = written_files(ROOT)
    wanted = [f"server/mneme_server/{folder}/" for folder in folders]
    assert all(any(file.startswith(one) for file in files) for one in wanted), f"where is {wanted}?"
    return {file: (ROOT / file).read_bytes() for file in files if file.startswith(tuple(wanted))}


@pytest.mark.parametrize(
    ("kind", "made_of"),
    [
        ("compare", [("if a < b and not done(a):", "if a <= b and not done(a):")]),
        ("and-or", [("if a < b and not done(a):", "if a < b or not done(a):")]),
        ("not", [("if a < b and not done(a):", "if a < b and done(a):")]),
        ("if", [("if a < b and not done(a):", "if not (a < b and not done(a)):")]),
        ("call", [("note(a, twice=True)", "pass")]),
        ("keyword", [("note(a, twice=True)", "note(a, )")]),
        ("arithmetic", [("return a * 2", "return a / 2")]),
        ("constant", [("return a * 2", "return a * 3")]),
        (
            "return",
            [("if a < b and not done(a):", "return 0\n    if a < b and not done(a):")],
        ),
    ],
)
def test_each_kind_changes_what_it_says(kind: str, made_of: Sequence[tuple[str, str]]) -> None:
    assert made(CODE, kind) == made_of


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a == b", "a != b"),
        ("a != b", "a == b"),
        ("a >= b", "a > b"),
        ("a in b", "a not in b"),
        ("a not in b", "a in b"),
        ("a is None", "a is not None"),
        ("a is not None", "a is None"),
        ("(a) > (b)", "(a) >= (b)"),
    ],
)
def test_each_comparison_becomes_its_neighbour(before: str, after: str) -> None:
    assert made(f"x = {before}\n", "compare") == [(f"x = {before}", f"x = {after}")]


@pytest.mark.parametrize(
    ("before", "after"), [("0", "1"), ("1", "0"), ("7", "8"), ("0.5", "1.5"), ("1.0", "0.0")]
)
def test_a_constant_is_off_by_one(before: str, after: str) -> None:
    assert made(f"x = {before}\n", "constant") == [(f"x = {before}", f"x = {after}")]


@pytest.mark.parametrize(
    ("annotation", "returned"),
    [
        (" -> None", "return"),
        ("", "return"),
        (" -> bool", "return False"),
        (" -> str | None", "return None"),
        (" -> Sequence[str]", "return []"),
        (" -> Mapping[str, int]", "return {}"),
    ],
)
def test_a_function_ends_at_once_with_the_least_that_its_type_allows(
    annotation: str, returned: str
) -> None:
    code = f"def f(){annotation}:\n    '''Say.'''\n    return g()\n"
    assert made(code, "return") == [("return g()", f"{returned}\n    return g()")]


@pytest.mark.parametrize(
    "code",
    [
        '"""If 1 < 2 and not 3."""\n',
        "x: Literal[1]\n",
        "def f(x: Annotated[int, 1] = None) -> Literal[2]: ...\n",
        "if TYPE_CHECKING:\n    import a\n    x = 1 < 2\n",
        "class A:\n    def __repr__(self):\n        return str(1 + 1)\n",
        "def f(x):\n    _log.warning('1', at=2 + 3, of=not x)\n    return x\n",
        "T = TypeVar('T', bound=A)\n",
        "Either = A | B\n",
        "x = f'{1 + 1}'\n",
        "@dataclass(frozen=True, order=1)\nclass A:\n    pass\n",
    ],
)
def test_texts_types_logs_and_descriptions_stay(code: str) -> None:
    found = changes("x.py", Source(code.encode()))
    assert [one for one, _ in found if one.kind != "return"] == []


def test_no_change_of_a_package_touches_a_docstring_or_a_line_of_types() -> None:
    for file, text in texts("statistics", "features/admin/forgetting").items():
        source = Source(text)
        documented = [
            node.body[0]
            for node in ast.walk(source.tree)
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
            and ast.get_docstring(node)
        ]
        spans = [(source.start(one), source.end(one)) for one in documented]
        for mutant, edit in changes(file, source):
            assert not [span for span in spans if span[0] < edit.end and edit.start < span[1]], (
                mutant
            )


def test_the_same_seed_chooses_the_same_and_another_others() -> None:
    given = texts("statistics", "features/admin/forgetting", "common")
    first = choose(given, 1, 20)
    assert len(first) == 20
    assert choose(given, 1, 20) == first
    assert choose(given, 2, 20) != first


def test_a_folder_of_its_own_gets_the_same_whatever_changes_in_another() -> None:
    given = texts("statistics", "features/admin/forgetting")
    changed = {
        file: text.replace(b" < ", b" <= ") if "/statistics/" in file else text
        for file, text in given.items()
    }
    before, after = (
        [one for one in choose(some, 1, 20) if "/forgetting/" in one.file]
        for some in (given, changed)
    )
    assert before == after != []


def test_small_folders_get_more_than_their_share_of_lines() -> None:
    given = {"small/a.py": b"x = 1 < 2\n" * 9, "large/a.py": b"x = 1 < 2\n" * 900}
    chosen = choose(given, 1, 33)
    assert sum(one.file == "small/a.py" for one in chosen) == 3


def test_what_is_chosen_is_python_that_says_something_else() -> None:
    given = texts("statistics", "features/admin/forgetting", "features/recall")
    for mutant in choose(given, 3, 40):
        source = Source(given[mutant.file])
        [edit] = [edit for one, edit in changes(mutant.file, source) if one == mutant]
        assert source.makes_another(edit)


def named(text: str, place: int, file: str = "a.py") -> Mutant:
    found = [one for one, _ in changes(file, Source(text.encode())) if one.kind == "compare"]
    return found[place]


TWICE = "def f(a):\n    x = a < 1\n    x = a < 1\n    return x\n"


def test_a_mutant_is_found_again_where_lines_moved_and_among_its_like(tmp_path: Path) -> None:
    mutant = named(TWICE, 1)
    (tmp_path / "a.py").write_text("import os\n\n\n" + TWICE)
    found = find(tmp_path, mutant, lambda: [])
    assert found is not None
    changed = found[1].apply((tmp_path / "a.py").read_bytes()).decode()
    assert changed == "import os\n\n\n" + TWICE[::-1].replace("<", "=<", 1)[::-1]


def test_a_mutant_is_found_in_the_only_other_file_that_has_it(tmp_path: Path) -> None:
    mutant = named(TWICE, 0)
    (tmp_path / "b.py").write_text(TWICE)
    (tmp_path / "c.py").write_text(TWICE.replace("def f", "def g"))
    found = find(tmp_path, mutant, lambda: ["b.py", "c.py"])
    assert found is not None
    assert found[0] == "b.py"
    (tmp_path / "c.py").write_text(TWICE)
    assert find(tmp_path, mutant, lambda: ["b.py", "c.py"]) is None


def test_functions_begin_with_another_statement_and_are_named_as_mutants_are() -> None:
    code = (
        "class A:\n    def f(self):\n        '''Say.'''\n        @g\n        def h():\n"
        "            return 1\n        return h\n    def e(self): ...\n"
    )
    source = Source(code.encode())
    edits = {name: insertion(source, function, "note()") for name, function in functions(source)}
    assert edits["A.e"] is None
    first = edits["A.f"]
    assert first is not None
    assert b"'''Say.'''\n        note()\n        @g\n" in first.apply(source.text)
    inner = edits["A.f.h"]
    assert inner is not None
    assert b"            note()\n            return 1" in inner.apply(source.text)
    assert {one.function for one, _ in changes("a.py", source)} <= {*edits, MODULE}
