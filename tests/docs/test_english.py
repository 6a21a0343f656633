"""Plain English: the words that CONTRIBUTING lists stand in no page, and no statement begins with "What" or "Who"."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [
    *(ROOT / name for name in ("README.md", "ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "skills").rglob("*.md")),
]
SHOWN = re.compile(
    r"^```.*?^```|`[^`\n]+`|^<!-- begin (\w+) -->.*?^<!-- end \1 -->", re.MULTILINE | re.DOTALL
)
"""Code, output, and generated parts, whose words come from elsewhere."""
LIST = re.compile(r"^\| not \| but \|\n\|---\|---\|\n(.*?)\n\n", re.MULTILINE | re.DOTALL)
STATEMENT = re.compile(
    r"(?:^|[.:!] |^[-*] |\d\. )((?:What|Who)\b[^.?!\n]*(?:\n[^.?!\n]+)*[.!])", re.MULTILINE
)


def refused_words() -> list[str]:
    """Return the words that CONTRIBUTING has others for."""
    rows = LIST.search((ROOT / "CONTRIBUTING.md").read_text("utf-8"))
    assert rows is not None
    return [word.strip() for row in rows[1].splitlines() for word in row.split("|")[1].split(",")]


def prose_of(page: Path) -> str:
    """Return the text of a page that its writer wrote as sentences."""
    text = page.read_text("utf-8")
    return SHOWN.sub("", LIST.sub("", text) if page.name == "CONTRIBUTING.md" else text)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_a_page_is_in_plain_english(page: Path) -> None:
    prose = " ".join(prose_of(page).split())
    refused = [word for word in refused_words() if re.search(rf"\b{word}\b", prose, re.IGNORECASE)]
    statements = [found[1][:80] for found in STATEMENT.finditer(prose_of(page))]
    assert (refused, statements) == ([], [])


def test_a_statement_that_begins_with_a_pronoun_is_found() -> None:
    assert STATEMENT.search("It ends.\nWhat is left is kept.\n")
    assert not STATEMENT.search("It ends. What is left?\n")
    assert "goes on" in refused_words()
