"""A stage's code digest follows what the code does, not how it is explained."""

import ast
import io
import tokenize
from pathlib import Path

import qnn
from qnn.store.code import code_digest, meaning

BASE = '''"""Module."""

LIMIT = "# not a comment"


def f(x: int) -> int:
    """Doc."""
    # why
    return x + 1  # trailing
'''


def test_comments_docstrings_and_blank_lines_do_not_count() -> None:
    other = BASE.replace("Module.", "Another\nword").replace("# why", "# because\n\n").replace("  # trailing", "")
    assert meaning(other) == meaning(BASE)
    assert '"# not a comment"' in meaning(BASE)


def test_what_the_code_does_counts() -> None:
    assert meaning(BASE.replace("x + 1", "x + 2")) != meaning(BASE)
    assert meaning(BASE.replace("# not a", "# not")) != meaning(BASE)


def by_tokenizer(source: str) -> str:
    """The same by Python's own tokenizer and a walk over the whole tree."""
    drop: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        if (
            isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
            and ast.get_docstring(node, clean=False) is not None
        ):
            first = node.body[0]
            drop.update(range(first.lineno, (first.end_lineno or 0) + 1))
    lines = source.splitlines()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            row, column = token.start
            lines[row - 1] = lines[row - 1][:column]
    kept = (line.rstrip() for number, line in enumerate(lines, 1) if number not in drop)
    return "\n".join(line for line in kept if line)


def test_the_fast_way_agrees_with_python_s_tokenizer() -> None:
    files = sorted(Path(qnn.__file__).parent.rglob("*.py"))
    assert len(files) > 100
    for file in files:
        source = file.read_text(encoding="utf-8")
        assert meaning(source) == by_tokenizer(source), file


HARD = r'''
x = "# no" + '# no' + r"\\"  # yes
def f():
    if x:
        def g():
            """doc # no"""
            return """# kept
  # kept too"""
    try:
        pass
    except E:
        class C:
            "doc"
            a = 'it\'s # no'
'''


def test_hard_cases() -> None:
    assert meaning(HARD) == by_tokenizer(HARD)
    assert "# kept too" in meaning(HARD)
    assert "# yes" not in meaning(HARD)
    assert "doc" not in meaning(HARD)


def test_digest_is_remembered_and_names_matter(tmp_path: Path) -> None:
    first = code_digest(["qnn.store.digest", "qnn.store.code"], tmp_path)
    assert len(list(tmp_path.iterdir())) == 2
    assert code_digest(["qnn.store.code", "qnn.store.digest"], tmp_path) == first
    assert code_digest(["qnn.store.code"], tmp_path) != first


def test_damaged_memo_is_not_believed(tmp_path: Path) -> None:
    first = code_digest(["qnn.store.digest"], tmp_path)
    for memo in tmp_path.iterdir():
        memo.write_text("")
    assert code_digest(["qnn.store.digest"], tmp_path) == first


def test_a_package_stands_for_all_its_modules(tmp_path: Path) -> None:
    whole = code_digest(["qnn.store.*"], tmp_path)
    named = [
        "qnn.store",
        "qnn.store.code",
        "qnn.store.digest",
        "qnn.store.prune",
        "qnn.store.store",
        "qnn.store.transport",
    ]
    assert code_digest(named, tmp_path) == whole
    assert code_digest(named[:-1], tmp_path) != whole
