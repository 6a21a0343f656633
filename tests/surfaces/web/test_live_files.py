"""The files of the live page, read: small, whole, and with one way out, to the server they came from."""

from __future__ import annotations

import gzip
import re

import pytest

from reasonry.surfaces.web.lean import lean_script, lean_style
from reasonry.surfaces.web.live_page import live_page

from .test_assets import ASSETS, is_within_the_page, makes_text_only

LIVE = sorted((ASSETS / "live").glob("*"))
BYTES = 150_000
PACKED_BYTES = 50_000


def test_all_that_is_loaded_is_small() -> None:
    page = live_page()
    files = [page.document, *page.files.values()]
    assert sum(len(file.body) for file in files) <= BYTES
    assert sum(len(file.packed) for file in files) <= PACKED_BYTES
    assert all(gzip.decompress(file.packed) == file.body for file in files)


def test_a_file_is_small_and_makes_text_only_text() -> None:
    for path in LIVE:
        is_within_the_page(path)
        if path.suffix == ".js":
            makes_text_only(path, {"api.js": ["fetch("], "demo.js": ["fetch("]}.get(path.name, []))


DECLARED = re.compile(r"^(?:export )?(?:const|let|(?:async )?function\*?|class) (\w+)", re.MULTILINE)


def test_a_name_is_declared_by_one_module() -> None:
    declared = [
        (name, path.name)
        for path in ASSETS.rglob("*.js")
        for name in DECLARED.findall(path.read_text("utf-8"))
        if path != ASSETS / "main.js"
    ]
    assert [pair for pair in declared if [name for name, _ in declared].count(pair[0]) > 1] == []


def test_every_module_is_served_and_what_it_imports_is_there() -> None:
    served = live_page().files["script.js"].body.decode()
    scripts = {path.relative_to(ASSETS).as_posix(): path.read_text("utf-8") for path in ASSETS.rglob("*.js")}
    declared = {name: DECLARED.findall(text) for name, text in scripts.items()}
    for name in scripts:
        if "live/" in name:
            assert all(re.search(rf"(?<![\w$]){one}(?![\w$])", served) for one in declared[name]), name
    assert not re.search(r"\bimport\{|\bexport (const|function|async|class)\b", served)
    for name, text in scripts.items():
        for names, source in re.findall(r'^import \{ (.*) \} from "(.*)";$', text, re.MULTILINE):
            path = (ASSETS / name).parent / source
            exported = re.findall(
                r"^export (?:const|(?:async )?function\*?|class) (\w+)", path.read_text("utf-8"), re.MULTILINE
            )
            assert {*names.split(", ")} <= {*exported}, (name, source)


COMMENT = re.compile(r"^\s*//[^\n]*|(?<=[;,{]) // [^\n]*|/\*.*?\*/", re.MULTILINE | re.DOTALL)
LITERAL = re.compile(r"\"(?:[^\"\n\\]|\\.)*\"")


EMPTY = re.compile(r"[\[,]\s*,\s*\]|\b(?:for|if|while) \((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)\s*;")


def without_spaces(text: str) -> str:
    return re.sub(r",(?=[)\]}])|;(?=})", "", "".join(text.split()))


def test_serving_leaves_out_comments_and_spaces_alone() -> None:
    for path in ASSETS.rglob("*.js"):
        text = path.read_text("utf-8")
        served, written = lean_script(text), COMMENT.sub("", text)
        assert not EMPTY.search(written), path.name
        assert without_spaces(served) == without_spaces(written), path.name
        assert LITERAL.findall(served) == LITERAL.findall(written), path.name


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
    assert lean_style('a :is(b, c) > d {\n  content: "x;  y";\n  width: calc(0.5px + 10.5%);\n}') == (
        'a :is(b,c)>d{content:"x;  y";width:calc(.5px + 10.5%)}'
    )


def test_the_document_says_nothing_inline() -> None:
    text = live_page().document.body.decode()
    assert "@@" not in text
    assert not re.search(r"\son\w+=|\sstyle=|<style|<script(?![^>]* src=)", text)
