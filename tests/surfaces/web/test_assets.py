"""The page's files, read: plain, small, and without any way to run what stands in the data."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import reasonry

ASSETS = Path(reasonry.__file__).parent / "surfaces" / "web" / "assets"

SCRIPTS = sorted(ASSETS.glob("*.js"))
FILES = [*SCRIPTS, *sorted(ASSETS.glob("*.css")), ASSETS / "page.html"]


def test_a_file_is_small_and_stays_within_the_page() -> None:
    for path in FILES:
        is_within_the_page(path)


def is_within_the_page(path: Path) -> None:
    text = path.read_text("utf-8")
    assert len(text.splitlines()) <= 250
    assert not re.search(
        r"https?://(?!www\.w3\.org/2000/svg)|@import|url\((?!\"data:font/woff2;base64,@@font@@\")", text
    )
    if path.suffix != ".html":
        assert "</script" not in text
        assert "<!--" not in text


def test_a_script_makes_text_only_text() -> None:
    for path in SCRIPTS:
        makes_text_only(path)


def makes_text_only(path: Path, ways_out: Sequence[str] = ()) -> None:
    text = path.read_text("utf-8")
    assert text.startswith("// ")
    assert not re.search(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|setAttribute\(\"(on|style)",
        text,
    )
    code = re.sub(r"/\*\*.*?\*/", "", text, flags=re.DOTALL)
    found = re.findall(r"\bfetch\(|XMLHttpRequest|WebSocket|import\(|navigator\.sendBeacon", code)
    assert {*found} <= {*ways_out}


def test_the_template_has_each_mark_once_and_no_handler_or_style_of_its_own() -> None:
    text = (ASSETS / "page.html").read_text("utf-8")
    assert sorted(re.findall(r"@@(\w+)@@", text)) == ["document", "policy", "script", "style", "title"]
    assert not re.search(r"\son\w+=|\sstyle=", text)
