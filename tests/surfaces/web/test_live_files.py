"""The files of the live page, read: small, whole, and with one way out, to the server they came from."""

from __future__ import annotations

import gzip
import re

import pytest

from reasonry.surfaces.web.lean import lean_script, lean_style
from reasonry.surfaces.web.live_page import live_page

from .test_assets import ASSETS, is_within_the_page, makes_text_only

LIVE = sorted((ASSETS / "live").glob("*"))
BYTES = 80_000


def test_all_that_is_loaded_is_small() -> None:
    page = live_page()
    files = [page.document, *page.files.values()]
    assert sum(len(file.packed) for file in files) <= BYTES
    assert all(gzip.decompress(file.packed) == file.body for file in files)


def test_a_file_is_small_and_makes_text_only_text() -> None:
    for path in LIVE:
        is_within_the_page(path)
        if path.suffix == ".js":
            makes_text_only(path, {"api.js": ["fetch("], "demo.js": ["fetch("]}.get(path.name, []))


def test_every_module_is_served_and_what_it_imports_is_there() -> None:
    files = live_page().files
    assert {f"live/{path.name}" for path in LIVE if path.suffix == ".js"} <= {*files}
    for name, file in files.items():
        text = file.body.decode()
        for names, source in re.findall(r'^import \{ (.*) \} from "(.*)";$', text, re.MULTILINE):
            named = "live/" + source[2:] if source[:2] == "./" and "live/" in name else source.lstrip("./")
            exported = re.findall(
                r"^export (?:const|(?:async )?function\*?|class) (\w+)",
                files[named].body.decode(),
                re.MULTILINE,
            )
            assert {*names.split(", ")} <= {*exported}, (name, source)


COMMENT = re.compile(r"^\s*//[^\n]*|(?<=[;,{]) // [^\n]*|/\*.*?\*/", re.MULTILINE | re.DOTALL)
LITERAL = re.compile(r"\"(?:[^\"\n\\]|\\.)*\"")


def test_serving_leaves_out_comments_and_spaces_alone() -> None:
    for name, file in live_page().files.items():
        if name.endswith(".js"):
            served, written = file.body.decode(), COMMENT.sub("", (ASSETS / name).read_text("utf-8"))
            assert "".join(served.split()) == "".join(written.split()), name
            assert LITERAL.findall(served) == LITERAL.findall(written), name


@pytest.mark.parametrize(
    ("written", "served"),
    [
        ("a = b / c / d; // why", "a=b/c/d;"),
        ("return /x \\/ [/ ]y/g.test(z) ? 1 : - -n;", "return/x \\/ [/ ]y/g.test(z)?1:- -n;"),
        ('`a  ${ b ? `c  ${d}` : "  }" }  e`', '`a  ${b?`c  ${d}`:"  }"}  e`'),
        ('let a = 1\n/* one\ntwo */ let b = "// no";', 'let a=1\nlet b="// no";'),
    ],
)
def test_what_a_browser_reads_is_left_as_it_is(written: str, served: str) -> None:
    assert lean_script(written) == served


def test_a_style_keeps_what_its_selectors_say() -> None:
    assert lean_style('a :is(b, c) > d {\n  content: "x;  y";\n  width: calc(1px + 2%);\n}') == (
        'a :is(b,c)>d{content:"x;  y";width:calc(1px + 2%);}'
    )


def test_the_document_says_nothing_inline() -> None:
    text = live_page().document.body.decode()
    assert "@@" not in text
    assert not re.search(r"\son\w+=|\sstyle=|<style|<script(?![^>]* src=)", text)
