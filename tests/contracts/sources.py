"""The sources of the package, each parsed once for all tests of a process."""

import ast
from functools import cache
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src" / "reasonry"
FILES = sorted(SOURCE.rglob("*.py"))


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


def docstrings(tree: ast.Module) -> set[ast.expr]:
    """Return the expressions that stand alone, those that document attributes too."""
    return {node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)}


def files(room: str) -> list[Path]:
    """Return the files of a room, which may be one file."""
    return [path for path in FILES if path.is_relative_to(SOURCE / room)]
