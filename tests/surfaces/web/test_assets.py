"""The page's files, read: small, whole, without any way to run what stands in the data, and with one way out."""

import base64
import gzip
import re
from pathlib import Path

import reasonry
from reasonry.surfaces.web.html_page import live_page

ASSETS = Path(reasonry.__file__).parent / "surfaces" / "web" / "assets"
FILES = [path for path in sorted(ASSETS.rglob("*")) if path.suffix in (".js", ".css", ".html")]
BYTES = 290_000
PACKED_BYTES = 110_000


def test_a_file_is_small_and_stays_within_the_page() -> None:
    for path in FILES:
        text = path.read_text("utf-8")
        assert len(text.splitlines()) <= 250
        assert not re.search(
            r"https?://(?!www\.w3\.org/2000/svg)|@import|url\((?!\"data:font/woff2;base64,@@font@@\")", text
        )
        if path.suffix != ".html":
            assert "</script" not in text
            assert "<!--" not in text


def test_a_script_makes_text_only_text_and_one_asks_the_server() -> None:
    for path in (path for path in FILES if path.suffix == ".js"):
        text = path.read_text("utf-8")
        assert text.startswith("// ")
        assert not re.search(
            r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|setAttribute\(\"(on|style)",
            text,
        )
        code = re.sub(r"/\*\*.*?\*/", "", text, flags=re.DOTALL)
        found = re.findall(r"\bfetch\(|XMLHttpRequest|WebSocket|import\(|navigator\.sendBeacon", code)
        assert {*found} <= ({"fetch("} if path.name == "api.js" else set())


def test_the_template_has_each_mark_once_and_no_handler_or_style_of_its_own() -> None:
    text = (ASSETS / "page.html").read_text("utf-8")
    assert sorted(re.findall(r"@@(\w+)@@", text)) == ["document", "policy", "script", "style", "title"]
    assert not re.search(r"\son\w+=|\sstyle=", text)


def test_all_that_is_loaded_is_small() -> None:
    page = live_page()
    font = base64.b64encode((ASSETS / "inter.woff2").read_bytes()).decode()
    assert len(font) <= 60_000
    files = [text.replace(font, "").encode() for text in (page.document, *page.files.values())]
    assert sum(map(len, files)) <= BYTES
    assert sum(len(gzip.compress(file)) for file in files) <= PACKED_BYTES


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
