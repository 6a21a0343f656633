"""Plain English: the words that CONTRIBUTING lists stand in no page, message, docstring or comment, and no statement
begins with "What" or "Who"."""

import ast
import inspect
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

from ..contracts.sources import SOURCE, docstrings, files, tree_of

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
PROMPTS = {"strategies", "blocks", "prompts.py"}
"""Rooms and files that hold prompts."""
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


def pattern_of(word: str) -> str:
    """Match a word with its ends at word boundaries, in any case unless it has capitals."""
    ends = ("" if re.match(r"\W", word) else r"\b", "" if re.search(r"\W$", word) else r"\b")
    return f"{ends[0]}{word if word != word.lower() else f'(?i:{word})'}{ends[1]}"


REFUSED = re.compile("|".join(pattern_of(word) for word in refused_words()))


def faults_in(text: str) -> list[str]:
    """Return the listed words, and the beginnings of statements that begin with a pronoun."""
    words = REFUSED.findall(" ".join(text.split()))
    return words + [found[1][:80] for found in STATEMENT.finditer(text)]


def prose_of(page: Path) -> str:
    """Return the text of a page without its code and output."""
    text = page.read_text("utf-8")
    return CODE.sub("", LIST.sub("", text) if page.name == "CONTRIBUTING.md" else text)


def comments_of(path: Path) -> Iterator[str]:
    """Yield the comments of a module, those of following lines as one text."""
    lines, last = list[str](), 0
    with path.open("rb") as file:
        for token in tokenize.tokenize(file.readline):
            if token.type == tokenize.COMMENT:
                if lines and token.start[0] != last + 1:
                    yield "\n".join(lines)
                    lines = []
                lines.append(token.string.lstrip("#: "))
                last = token.start[0]
    yield "\n".join(lines)


def notes_of(path: Path) -> Iterator[str]:
    """Yield the texts of a module for readers of its code: docstrings and comments."""
    for each in docstrings(tree_of(path)):
        if isinstance(each, ast.Constant) and isinstance(each.value, str):
            yield inspect.cleandoc(each.value)
    yield from comments_of(path)


def texts_of(path: Path) -> Iterator[str]:
    """Yield the texts that a module shows to people.

    These are its messages, and in the command line also its docstrings, of which the help is made. A prompt to a model
    is no such text, so strategies and blocks show their errors alone.
    """
    tree = tree_of(path)
    hidden = set[ast.expr]() if "cli" in path.relative_to(SOURCE).parts else docstrings(tree)
    roots: list[ast.AST] = [tree]
    if PROMPTS.intersection(path.relative_to(SOURCE).parts):
        calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
        roots = [call for call in calls if ast.unparse(call.func).endswith("Error")]
    for node in (node for root in roots for node in ast.walk(root)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in hidden:
            yield node.value


@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if page.name != "python-reference.md"],
    ids=lambda page: page.relative_to(ROOT).as_posix(),
)
def test_a_page_is_in_plain_english(page: Path) -> None:
    assert faults_in(prose_of(page)) == []


@pytest.mark.parametrize("room", ROOMS)
def test_messages_docstrings_and_comments_are_in_plain_english(room: str) -> None:
    texts = {path.name: (*texts_of(path), *notes_of(path)) for path in files(room)}
    found = {name: [fault for text in each for fault in faults_in(text)] for name, each in texts.items()}
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
    assert any("file not found" in text for text in texts_of(SOURCE / "tools" / "catalog.py"))
