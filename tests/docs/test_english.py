"""Plain English: the words that CONTRIBUTING lists stand in no text that a reader sees, and no statement begins with
"What" or "Who"."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from ..contracts.sources import SOURCE, files, tree_of

ROOT = Path(__file__).parents[2]
ASSETS = SOURCE / "surfaces" / "web" / "assets"
PAGES = [
    *(ROOT / name for name in ("README.md", "ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "skills").rglob("*.md")),
    *sorted((ROOT / "plugins").rglob("*.md")),
]
ROOMS = sorted(
    path.name for path in SOURCE.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()
)
CODE = re.compile(r"^```.*?^```|`[^`\n]+`", re.MULTILINE | re.DOTALL)
LIST = re.compile(r"^\| not \| but \|\n\|---\|---\|\n(.*?)\n\n", re.MULTILINE | re.DOTALL)
STATEMENT = re.compile(
    r"(?:^|[.:!] |^[-*] |\d\. )((?:What|Who)\b[^.?!\n]*(?:\n[^.?!\n]+)*[.!])", re.MULTILINE
)
JS_COMMENT = re.compile(r"/\*.*?\*/|(?:^|\s)//[^\n]*", re.DOTALL | re.MULTILINE)
JS_TEXT = re.compile(r'"([^"\n]*)"|`([^`]*)`')


def refused_words() -> list[str]:
    """Return the words that CONTRIBUTING has others for."""
    rows = LIST.search((ROOT / "CONTRIBUTING.md").read_text("utf-8"))
    assert rows is not None
    return [word.strip() for row in rows[1].splitlines() for word in row.split("|")[1].split(",")]


REFUSED = re.compile(rf"\b(?:{'|'.join(refused_words())})\b", re.IGNORECASE)


def faults_in(text: str) -> list[str]:
    """Return the listed words, and the beginnings of statements that begin with a pronoun."""
    words = REFUSED.findall(" ".join(text.split()))
    return words + [found[1][:80] for found in STATEMENT.finditer(text)]


def prose_of(page: Path) -> str:
    """Return the text of a page without its code and output."""
    text = page.read_text("utf-8")
    return CODE.sub("", LIST.sub("", text) if page.name == "CONTRIBUTING.md" else text)


def docstrings(tree: ast.Module) -> Iterator[ast.expr]:
    """Yield the texts that only readers of the code see, those behind attributes too."""
    for node in ast.walk(tree):
        body: Iterable[ast.AST] = getattr(node, "body", ()) if not isinstance(node, ast.Lambda) else ()
        for part in body if isinstance(body, list) else ():
            if isinstance(part, ast.Expr):
                yield part.value


def texts_of(path: Path) -> Iterator[str]:
    """Yield the texts that a module shows to people.

    These are its messages, and in the command line also its docstrings, of which the help is made. A prompt to a model
    is no such text, so a strategy shows its errors alone.
    """
    tree = tree_of(path)
    hidden = set[ast.expr]() if "cli" in path.relative_to(SOURCE).parts else set(docstrings(tree))
    roots: list[ast.AST] = [tree]
    if "strategies" in path.parts:
        calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
        roots = [call for call in calls if ast.unparse(call.func).endswith("Error")]
    for node in (node for root in roots for node in ast.walk(root)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in hidden:
            yield node.value


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_a_page_is_in_plain_english(page: Path) -> None:
    assert faults_in(prose_of(page)) == []


@pytest.mark.parametrize("room", ROOMS)
def test_help_errors_and_other_messages_are_in_plain_english(room: str) -> None:
    found = {
        path.name: [fault for text in texts_of(path) for fault in faults_in(text)] for path in files(room)
    }
    assert {name: faults for name, faults in found.items() if faults} == {}


@pytest.mark.parametrize("path", sorted(ASSETS.rglob("*.js")), ids=lambda path: path.stem)
def test_the_words_of_the_page_are_in_plain_english(path: Path) -> None:
    code = JS_COMMENT.sub("", path.read_text("utf-8"))
    assert [
        fault for found in JS_TEXT.finditer(code) for fault in faults_in(found[1] or found[2] or "")
    ] == []


def test_each_kind_of_text_is_looked_at() -> None:
    assert STATEMENT.search("It ends.\nWhat is left is kept.\n")
    assert not STATEMENT.search("It ends. What is left?\n")
    assert "goes on" in refused_words()
    assert faults_in("The run goes on.") == ["goes on"]
    assert "Pause a run." in texts_of(SOURCE / "surfaces" / "cli" / "runs.py") or any(
        "a run" in text for text in texts_of(SOURCE / "surfaces" / "cli" / "runs.py")
    )
    assert any("no file" in text for text in texts_of(SOURCE / "tools" / "catalog.py"))
