"""Small enough to be read: files, functions, and the share of short functions."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from .sources import FILES, SOURCE, tree_of


def bodies() -> Iterator[tuple[str, int]]:
    for path in FILES:
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                statements = node.body
                if ast.get_docstring(node) is not None:
                    statements = statements[1:]
                lines = statements[-1].end_lineno - statements[0].lineno + 1 if statements else 0  # pyright: ignore
                yield f"{path.relative_to(SOURCE)}:{node.name}", lines


def test_no_file_is_over_700_lines() -> None:
    lengths = {str(path.relative_to(SOURCE)): len(path.read_text("utf-8").splitlines()) for path in FILES}
    assert not {name: length for name, length in lengths.items() if length > 700}


def test_no_function_body_is_over_60_lines_and_nine_in_ten_are_at_most_30() -> None:
    sizes = dict(bodies())
    assert not {name: size for name, size in sizes.items() if size > 60}
    assert sum(size <= 30 for size in sizes.values()) >= 0.9 * len(sizes)


def test_no_module_has_a_name_that_says_nothing() -> None:
    empty = {"utils", "helpers", "common", "manager", "base", "misc"}
    assert not [path for path in FILES if path.stem in empty]
