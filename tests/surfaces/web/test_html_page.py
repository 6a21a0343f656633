"""The file: whatever the data says, it holds one document, runs nothing but its own script and loads nothing."""

import html.parser
import os
import re
import stat
import sys
import time
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reasonry.surfaces.web.html_page import KEPT_S, can_show, embedded_json, html_page, write_page
from reasonry.surfaces.web.page import PageDocument
from reasonry.text import escape_unseen

from .documents import document, node
from .making import page_in

HOSTILE = st.sampled_from(
    ["</script>", "<!--", "<script", "]]>", "\u2028", "\u2029", "&lt;", "@@script@@", "\x00"]
)
texts = st.lists(HOSTILE | st.text(max_size=8), max_size=6).map("".join)


class Parts(html.parser.HTMLParser):
    """The tags of a page, and what stands inside its scripts."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: set[str] = set()
        self.comments: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_comment(self, data: str) -> None:
        self.comments.append(data)


def page_of_texts(*given: str) -> PageDocument:
    texts = [*map(escape_unseen, given)]
    named = {"kind": "session", "id": "0", "title": texts[0], "problem": texts[-1], "warnings": texts}
    return msgspec.convert(document([node("root", None, texts[0])], [], **named), PageDocument)


EMPTY = Parts(html_page(None))


@settings(deadline=None, max_examples=60)
@given(st.lists(texts, min_size=1, max_size=4))
def test_no_text_leaves_the_document_it_stands_in(given: list[str]) -> None:
    page = page_of_texts(*given)
    text = html_page(page)
    parts = Parts(text)
    assert (parts.tags, parts.comments) == (EMPTY.tags, [])
    assert page_in(text)["warnings"] == page.warnings


@given(texts)
def test_embedded_json_has_no_markup_and_means_the_same(text: str) -> None:
    embedded = embedded_json({"a": text})
    assert not re.search("[<>&\u2028\u2029]", embedded)
    assert msgspec.json.decode(embedded) == {"a": text}


def test_the_file_names_its_script_and_style_and_allows_nothing_else() -> None:
    text = html_page(page_of_texts("a"))
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)
    assert policy is not None
    rules = dict(rule.strip().split(" ", 1) for rule in policy[1].split(";"))
    assert rules["default-src"] == "'none'"
    assert re.fullmatch(r"'sha256-[\w+/=]+'", rules["script-src"])
    assert re.fullmatch(r"'sha256-[\w+/=]+'", rules["style-src"])
    assert not Parts(text).attributes & {"src", "onclick", "onload", "style"}
    assert "@@" not in text.replace("`", "")


def test_a_page_nobody_named_is_for_its_owner_alone_and_goes_after_a_day(tmp_path: Path) -> None:
    folder = tmp_path / "pages"
    path = write_page(page_of_texts("a"), folder)
    if sys.platform != "win32":
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    mine = folder / "mine.html"
    mine.write_text("kept", "utf-8")
    old = folder / "run-1.html"
    old.write_text("old", "utf-8")
    for each in (mine, old):
        os.utime(each, (time.time() - KEPT_S - 60,) * 2)
    assert write_page(page_of_texts("b"), folder) == path
    assert sorted(entry.name for entry in folder.iterdir()) == ["mine.html", "session-0.html"]
    assert page_in(path.read_text("utf-8"))["title"] == "b"


@pytest.mark.parametrize(
    ("environ", "platform", "shows"),
    [
        ({}, "linux", False),
        ({"DISPLAY": ":0"}, "linux", True),
        ({"WAYLAND_DISPLAY": "wayland-0"}, "linux", True),
        ({"BROWSER": "w3m"}, "linux", True),
        ({}, "darwin", True),
        ({"SSH_CONNECTION": "a"}, "darwin", False),
        ({}, "win32", True),
    ],
)
def test_a_browser_is_opened_where_there_is_a_screen(
    environ: dict[str, str], platform: str, shows: bool
) -> None:
    assert can_show(environ, platform) is shows
