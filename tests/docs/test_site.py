"""The site: one list of pages, everything it leads to is there, and it fetches nothing."""

import itertools
import re
from pathlib import Path, PurePosixPath
from types import ModuleType
from typing import NamedTuple

import pytest

from .test_docs import DOCS, ROOT, load


class Site(NamedTuple):
    folder: Path
    pages: list[PurePosixPath]


@pytest.fixture(scope="module")
def builder() -> ModuleType:
    return load("build_site")


@pytest.fixture(scope="module")
def site(builder: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Site:
    pytest.importorskip("zensical", reason="the group `docs` is not installed")
    folder = tmp_path_factory.mktemp("site") / "out"
    assert builder.main(["--output", str(folder), "--url", "https://docs.example"]) == 0
    return Site(folder, [page.place for page in builder.all_pages()])


def test_each_page_is_in_the_list_once(builder: ModuleType) -> None:
    listed = [page.source for page in builder.all_pages()]
    assert set(DOCS.rglob("*.md")) <= set(listed)
    assert len(listed) == len(set(listed))
    assert all(page.about for section in builder.sections() for page in section.pages)


def test_a_page_that_is_not_listed_is_named(builder: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(builder, "sections", list)
    with pytest.raises(ValueError, match=re.escape("docs/runs.md")):
        builder.all_pages()


def test_llms_txt_has_each_page_once_in_the_form_of_llmstxt_org(builder: ModuleType) -> None:
    text = builder.llms(builder.sections(), "")
    title, summary, first = text.split("\n\n")[:3]
    assert re.fullmatch(r"# \w+", title)
    assert re.fullmatch(r"> .+\.", summary)
    assert first.startswith("## ")
    entries = [line for line in text.splitlines() if line.startswith("- ")]
    assert all(re.fullmatch(r"- \[.+\]\(\S+\.md\): .+", line) for line in entries)
    places = [re.findall(r"\]\(([^)]+)\)", line)[0] for line in entries]
    assert sorted(places) == sorted(str(page.place) for page in builder.all_pages()[1:])


def test_links_of_plain_pages_lead_to_files_of_the_site(builder: ModuleType) -> None:
    texts, files = builder.written_out(builder.all_pages())
    there = {*map(str, texts), *(str(builder.place_of(file)) for file in files)}
    assert all(file.is_relative_to(ROOT) for file in files)
    assert {"page.png", "page-dark.png"} <= there, "the picture of the page in both themes"
    for place, text in texts.items():
        prose = builder.FENCE.sub("", text)
        assert "<!-- begin" not in prose
        for link in builder.LINK.findall(prose):
            if "://" not in link and not link.startswith("#"):
                path = link.partition("#")[0]
                assert str((Path("/") / place.parent / path).resolve().relative_to("/")) in there, (
                    f"{place}: {link}"
                )


LINES = ("- a", "  - b", "text", "", "| `a\\|b` | c |", "```", "1. d")


def test_no_line_is_lost_on_the_way_to_the_generator(builder: ModuleType) -> None:
    for lines in itertools.product(LINES, repeat=4):
        made = builder.for_the_generator("\n".join(lines)).replace("\\|", "|")
        words = [line.replace("\\|", "|").split() for line in lines if line]
        assert [line.split() for line in made.split("\n") if line] == words


def test_each_page_is_there_as_html_and_as_markdown(site: Site) -> None:
    for place in site.pages:
        assert (site.folder / place).read_text("utf-8").startswith("# ")
        html = (site.folder / place).with_suffix(".html").read_text("utf-8")
        assert "<h1" in html


def test_nothing_is_fetched_from_elsewhere(site: Site) -> None:
    for page in site.folder.rglob("*.html"):
        html = page.read_text("utf-8")
        loaded = re.findall(r"<(?:script|img|iframe|source)\b[^>]*\bsrc=\"?([^\s\">]+)", html)
        loaded += re.findall(r"<link\b(?![^>]*rel=\"?canonical)[^>]*\bhref=\"?([^\s\">]+)", html)
        assert len(loaded) >= 3
        assert not [one for one in loaded if re.match(r"(https?:)?//", one)], page.name
    for sheet in site.folder.rglob("*.css"):
        assert not re.search(r"url\(\"?https?:|@import", sheet.read_text("utf-8")), sheet.name


def test_the_search_knows_every_page(site: Site) -> None:
    index = (site.folder / "search.json").read_text("utf-8")
    assert not [place for place in site.pages[1:] if str(place.with_suffix(".html")) not in index]


def test_the_whole_documentation_is_one_file(site: Site) -> None:
    whole = (site.folder / "llms-full.txt").read_text("utf-8")
    assert all((site.folder / place).read_text("utf-8") in whole for place in site.pages)
    assert "](https://docs.example/runs.md)" in (site.folder / "llms.txt").read_text("utf-8")
