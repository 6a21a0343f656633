"""The files of the live page, read: small, whole, and with one way out, to the server they came from."""

from __future__ import annotations

import base64
import gzip
import re

from reasonry.surfaces.web.html_page import live_page

from .test_assets import ASSETS, is_within_the_page, makes_text_only

LIVE = sorted((ASSETS / "live").glob("*"))
BYTES = 290_000
PACKED_BYTES = 110_000


def test_all_that_is_loaded_is_small() -> None:
    page = live_page()
    font = base64.b64encode((ASSETS / "inter.woff2").read_bytes()).decode()
    assert len(font) <= 60_000
    files = [text.replace(font, "").encode() for text in (page.document, *page.files.values())]
    assert sum(map(len, files)) <= BYTES
    assert sum(len(gzip.compress(file)) for file in files) <= PACKED_BYTES


def test_a_file_is_small_and_makes_text_only_text() -> None:
    for path in LIVE:
        is_within_the_page(path)
        if path.suffix == ".js":
            makes_text_only(path, {"api.js": ["fetch("]}.get(path.name, []))


DECLARED = re.compile(r"^(?:export )?(?:const|let|(?:async )?function\*?|class) (\w+)", re.MULTILINE)


def test_a_name_is_declared_by_one_module() -> None:
    declared = [
        (name, path.name)
        for path in ASSETS.rglob("*.js")
        for name in DECLARED.findall(path.read_text("utf-8"))
        if path != ASSETS / "main.js"
    ]
    assert [pair for pair in declared if [name for name, _ in declared].count(pair[0]) > 1] == []


def test_every_module_is_served_as_it_is_and_what_it_imports_is_there() -> None:
    files = live_page().files
    scripts = {path.relative_to(ASSETS).as_posix(): path.read_text("utf-8") for path in ASSETS.rglob("*.js")}
    assert {name: text for name, text in scripts.items() if name != "main.js"} == {
        name: text for name, text in files.items() if name.endswith(".js")
    }
    for name, text in scripts.items():
        for names, source in re.findall(r'^import \{ (.*) \} from "(.*)";$', text, re.MULTILINE):
            path = (ASSETS / name).parent / source
            exported = re.findall(
                r"^export (?:const|(?:async )?function\*?|class) (\w+)", path.read_text("utf-8"), re.MULTILINE
            )
            assert {*names.split(", ")} <= {*exported}, (name, source)


def test_the_document_says_nothing_inline() -> None:
    text = live_page().document
    assert "@@" not in text
    assert not re.search(r"\son\w+=|\sstyle=|<style|<script(?![^>]* src=)", text)
