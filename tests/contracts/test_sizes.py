"""Small enough to be read: files, functions, and the share of short functions."""

import ast
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from .sources import FILES, SOURCE, files, tree_of


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


def lines_of(paths: Iterable[Path]) -> int:
    return sum(len(path.read_text("utf-8").splitlines()) for path in paths)


def test_the_kernel_fits_into_18_files_and_2_900_lines() -> None:
    assert 10 < len(files("core")) <= 18
    assert 2_000 < lines_of(files("core")) <= 2_900


def test_the_machine_is_imported_with_2_800_lines_and_without_a_reader() -> None:
    script = (
        "import sys, reasonry.core.machine\n"
        "print(*(each.__file__ for each in sys.modules.values() if getattr(each, '__file__', None)), sep='\\n')"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    brought = {*map(Path, done.stdout.splitlines())} & {*FILES}
    assert SOURCE / "core" / "machine.py" in brought
    assert not brought & {*files("reading"), *files("puzzles"), *files("blocks")}
    assert lines_of(brought) <= 2_800
