"""Builds the documentation as a site, as `make site` does: `python docs/build_site.py [--output FOLDER] [--url URL]`.

The pages are those of navigation.toml, as they stand in the repository. Each is written three times: as HTML, beside
it as plain Markdown, and into llms-full.txt; llms.txt lists them. A page that is not in the list, a link that leads
nowhere and an anchor that is not there end the build. Nothing is fetched, neither by the build nor by a browser.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import NamedTuple
from urllib.parse import unquote

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
FENCE = re.compile(r"^(`{3,})(\S*)[^\n]*\n(.*?)^\1`*[ ]*$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r'(?<=\]\()[^)\s]+(?=\))|(?<=src=")[^"\s]+|(?<=srcset=")[^"\s]+')
MARKER = re.compile(r"^<!-- (?:begin|end) [^>]*-->\n\n?", re.MULTILINE)


class Page(NamedTuple):
    """A page: its file in the repository, its place on the site, and what it is about."""

    source: Path
    place: PurePosixPath
    about: str

    @property
    def group(self) -> str:
        """The folded group of the navigation that has the page, if any."""
        return {"commands": "Commands", "strategies": "All strategies"}.get(self.source.parent.name, "")

    @property
    def title(self) -> str:
        """Return the first heading."""
        found = re.search(r"^# (.+)$", self.source.read_text("utf-8"), re.MULTILINE)
        return found[1] if found else self.place.stem


class Section(NamedTuple):
    """Pages under one heading."""

    title: str
    pages: tuple[Page, ...]


FRONT = Page(DOCS / "README.md", PurePosixPath("index.md"), "")


# -- the one list


def sections() -> list[Section]:
    """Return the pages in the order of navigation.toml, the front page left out."""
    listed = tomllib.loads((DOCS / "navigation.toml").read_text("utf-8"))["section"]
    return [Section(one["title"], tuple(_pages_of(one["pages"]))) for one in listed]


def _pages_of(pages: str | dict[str, str]) -> Iterator[Page]:
    if pages == "strategies":
        from generate import page_of

        from reasonry.strategies import STRATEGIES

        summaries = {name: "" if page_of(name) != name else one.summary for name, one in STRATEGIES.items()}
        pages = {f"docs/strategies/{page_of(name)}.md": about for name, about in summaries.items()}
    assert isinstance(pages, dict)
    for name, about in pages.items():
        for source in sorted(ROOT.glob(name)) if "*" in name else [ROOT / name]:
            inside = source.relative_to(DOCS) if source.is_relative_to(DOCS) else Path(source.name.lower())
            yield Page(source, PurePosixPath(inside.as_posix()), about or _first_line(source))


def _first_line(page: Path) -> str:
    """Return the first line of text below the title."""
    found = re.search(r"^# .+\n\n(.+)$", page.read_text("utf-8"), re.MULTILINE)
    return found[1] if found else ""


def all_pages() -> list[Page]:
    """Return every page of the site, the front page first.

    Raises:
        ValueError: A page is missing, listed twice, or not listed.
    """
    pages = [FRONT, *(page for section in sections() for page in section.pages)]
    sources = [page.source for page in pages]
    wrong = {path for path in sources if not path.is_file() or sources.count(path) > 1}
    wrong |= set(DOCS.rglob("*.md")) ^ {path for path in sources if path.is_relative_to(DOCS)}
    if wrong:
        names = ", ".join(sorted(path.relative_to(ROOT).as_posix() for path in wrong))
        raise ValueError(f"docs/navigation.toml and the pages there are do not fit: {names}")
    return pages


# -- one page


def plain(page: Page, places: dict[Path, PurePosixPath], files: set[Path]) -> str:
    """Return a page as Markdown whose links fit the site; `files` gains the files that it links to."""

    def follow(link: re.Match[str]) -> str:
        path, _, anchor = unquote(link[0]).partition("#")
        if "://" in path or not path:
            return link[0]
        target = (page.source.parent / path).resolve()
        target = target / "README.md" if target.is_dir() else target
        if target not in places:
            if not target.is_file() or not target.is_relative_to(ROOT):
                raise ValueError(f"{page.source.relative_to(ROOT)}: {link[0]} leads nowhere")
            files.add(target)
        to = places.get(target) or place_of(target)
        relative = os.path.relpath(to, page.place.parent).replace(os.sep, "/")
        return f"{relative}#{anchor}" if anchor else relative

    text = MARKER.sub("", page.source.read_text("utf-8"))
    return "".join(part if fenced else LINK.sub(follow, part) for fenced, part in _parts(text))


def written_out(pages: Sequence[Page]) -> tuple[dict[PurePosixPath, str], set[Path]]:
    """Return every page as Markdown, those of folders that pages link to among them, and the files they link to."""
    places = {page.source: page.place for page in pages}
    texts, files = dict[PurePosixPath, str](), set[Path]()
    waiting = list(pages)
    while waiting:
        page = waiting.pop(0)
        texts[page.place] = plain(page, places, files)
        for source in sorted(file for file in files if file.suffix == ".md"):
            files.remove(source)
            places[source] = place_of(source)
            waiting.append(Page(source, place_of(source), ""))
    return texts, files


def place_of(file: Path) -> PurePosixPath:
    """Return where on the site a file lies that is no page."""
    return PurePosixPath(file.relative_to(DOCS if file.is_relative_to(DOCS) else ROOT).as_posix())


def _parts(text: str) -> Iterator[tuple[bool, str]]:
    """Split a page into its fenced blocks and what stands between them."""
    end = 0
    for block in FENCE.finditer(text):
        yield False, text[end : block.start()]
        yield True, block[0]
        end = block.end()
    yield False, text[end:]


def for_the_generator(text: str) -> str:
    """Return Markdown of GitHub's kind as Python-Markdown reads it, its diagrams drawn."""
    return "".join(_drawn(part) if fenced else _as_blocks(part) for fenced, part in _parts(text))


def _drawn(block: str) -> str:
    found = FENCE.fullmatch(block)
    if not found or found[2] != "mermaid":
        return block
    try:
        import mmdr
    except ImportError:  # No wheel for this platform: the diagram is shown as its text.
        return block
    svg = mmdr.render(found[3], backend="mermaid-rs-renderer").svg()
    # The page's own colours show through, in light and dark.
    svg = svg.replace('fill="#FFFFFF"', 'fill="none"').replace('fill="#F8FAFC"', 'fill="none"')
    return f'<div class="diagram" role="img" aria-label="The stages and where each leads">{svg}</div>\n'


def _as_blocks(text: str) -> str:
    """Set a blank line before each list, indent nested items by four, and free pipes in the code of a table."""
    lines: list[str] = []
    for line in text.split("\n"):
        item = re.match(r"( *)(?:[-*]|\d+\.) ", line)
        before = lines[-1] if lines else ""
        if item and not item[1] and before.strip() and not re.match(r" *(?:[-*]|\d+\.) |  ", before):
            lines.append("")
        if item and item[1]:
            line = " " * (4 * ((len(item[1]) + 1) // 2)) + line.lstrip()
        if line.startswith("|"):
            line = re.sub(r"`[^`]+`", lambda code: code[0].replace("\\|", "|"), line)
        lines.append(line)
    return "\n".join(lines)


# -- the lists for language models


def llms(listed: Sequence[Section], url: str) -> str:
    """Return llms.txt: title, summary, and each section's pages with a link and a line (llmstxt.org)."""
    front = FRONT.source.read_text("utf-8").split("\n\n")
    parts = [front[0], "> " + front[1].replace("\n", " ")]
    for section in listed:
        rows = [f"- [{page.title}]({url}{page.place}): {page.about}" for page in section.pages]
        parts.append("\n".join([f"## {section.title}", "", *rows]))
    return "\n\n".join(parts) + "\n"


# -- the site


def build(output: Path, url: str = "") -> None:
    """Write the site into a folder, which is emptied first.

    Raises:
        ValueError: The list and the pages do not fit, a link leads nowhere, or the generator found fault.
    """
    listed = sections()
    texts, files = written_out(all_pages())
    url = url and url.rstrip("/") + "/"
    with tempfile.TemporaryDirectory() as folder:
        stage = Path(folder)
        for place, text in texts.items():
            _write(stage / "pages" / place, for_the_generator(text))
        for file in {*files, DOCS / "site.css"}:
            _copy(file, stage / "pages" / place_of(file))
        _write(stage / "zensical.toml", _settings(listed, url))
        command = [sys.executable, "-m", "zensical", "build", "--strict"]
        done = subprocess.run(
            command, cwd=stage, capture_output=True, encoding="utf-8", errors="replace", check=False
        )
        if done.returncode:
            raise ValueError(re.sub(r"\x1b\[[0-9;]*m", "", done.stdout + done.stderr))
        shutil.rmtree(output, ignore_errors=True)
        shutil.copytree(stage / "site", output)
    for place, text in texts.items():
        _write(output / place, text)
    _write(output / "llms.txt", llms(listed, url))
    _write(
        output / "llms-full.txt", "\n\n".join(f"<!-- {place} -->\n\n{text}" for place, text in texts.items())
    )


def _settings(listed: Sequence[Section], url: str) -> str:
    def entry(title: str, to: str) -> str:
        return f"{{ {json.dumps(title, ensure_ascii=False)} = {to} }}"

    rows = [entry("Reasonry", '"index.md"')]
    for section in listed:
        groups: dict[str, list[str]] = {"": []}
        for page in section.pages:
            groups.setdefault(page.group, []).append(entry(page.title, json.dumps(str(page.place))))
        inner = groups.pop("")
        inner += [entry(group, f"[{', '.join(pages)}]") for group, pages in groups.items()]
        rows.append(entry(section.title, f"[{', '.join(inner)}]"))
    added = f"nav = [{', '.join(rows)}]\n" + (f"site_url = {json.dumps(url)}\n" if url else "")
    return (DOCS / "zensical.toml").read_text("utf-8").replace("[project]\n", f"[project]\n{added}", 1)


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8", newline="\n")


def _copy(file: Path, to: Path) -> None:
    to.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(file, to)


def main(arguments: Sequence[str] | None = None) -> int:
    """Build the site, or say what is wrong with the pages."""
    parser = argparse.ArgumentParser(description="Build the documentation as a site.")
    parser.add_argument("--output", type=Path, default=ROOT / "site", help="the folder; it is emptied first")
    parser.add_argument("--url", default="", help="where the site will stand, for links in llms.txt")
    given = parser.parse_args(arguments)
    try:
        build(given.output, given.url)
    except ValueError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.write(f"{given.output / 'index.html'}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
