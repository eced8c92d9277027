"""A stage's code digest follows what the code does, not how it is explained."""

from pathlib import Path

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
