"""A report as lines of a terminal, as Markdown, as one HTML page that needs nothing else; text stays text in all."""

from __future__ import annotations

import html
from collections.abc import Iterable, Iterator, Sequence

from ..core.markdown import inline_text, prose_lines
from ..core.text import inert
from .run_report import Block, Bullets, Grid, Heading, Prose

_STYLE = """
:root { color-scheme: light dark; --line: #d0d7de; --soft: #57606a; --chosen: #dafbe1; --back: #fff; --text: #1f2328 }
@media (prefers-color-scheme: dark) {
  :root { --line: #3d444d; --soft: #9198a1; --chosen: #12361d; --back: #0d1117; --text: #e6edf3 }
}
body { max-width: 52rem; margin: 2rem auto; padding: 0 1rem; background: var(--back); color: var(--text);
  font: 16px/1.5 system-ui, sans-serif; overflow-wrap: anywhere }
h1 { line-height: 1.25 } h2 { margin-top: 2rem; border-bottom: 1px solid var(--line) }
h3 { color: var(--soft); font-size: 1rem; margin-bottom: .25rem }
p { white-space: pre-wrap; margin: .25rem 0 .75rem }
table { border-collapse: collapse; width: 100%; margin: .75rem 0 }
th, td { border: 1px solid var(--line); padding: .3rem .6rem; text-align: left; vertical-align: top }
th { color: var(--soft); font-weight: 600 } tr.chosen { background: var(--chosen) }
td:not(:last-child) { white-space: nowrap }
@media (max-width: 40rem) { td:not(:last-child) { white-space: normal } }
"""
_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
{body}
</body>
</html>
"""


def html_page(blocks: Sequence[Block]) -> str:
    """Return a page without script, that loads nothing, in the light or dark colours of its reader."""
    title = next((block.text for block in blocks if isinstance(block, Heading)), "Report")
    return _PAGE.format(title=_escape(title), style=_STYLE, body="\n".join(map(_html_block, blocks)))


def _html_block(block: Block) -> str:
    match block:
        case Heading(text, level):
            return f"<h{level}>{_escape(text)}</h{level}>"
        case Prose(text):
            return f"<p>{_escape(text)}</p>"
        case Bullets(items):
            return "<ul>\n" + "\n".join(f"<li>{_escape(item)}</li>" for item in items) + "\n</ul>"
        case Grid():
            return _html_table(block)


def _html_table(grid: Grid) -> str:
    heads = "".join(f"<th>{_escape(head)}</th>" for head in grid.heads)
    rows = [
        ('<tr class="chosen">' if place == grid.chosen else "<tr>")
        + "".join(f"<td>{_escape(cell)}</td>" for cell in row)
        + "</tr>"
        for place, row in enumerate(grid.rows)
    ]
    return "\n".join(["<table>", f"<tr>{heads}</tr>", *rows, "</table>"])


def _escape(text: str) -> str:
    return html.escape(inert(text))


def markdown_page(blocks: Iterable[Block]) -> str:
    """Return a page that holds no link, image or tag of what was thought."""
    return "\n\n".join("\n".join(_markdown_block(block)) for block in blocks) + "\n"


def _markdown_block(block: Block) -> Iterator[str]:
    match block:
        case Heading(text, level):
            yield f"{'#' * level} {inline_text(text)}"
        case Prose(text):
            yield from (f"> {line}".rstrip() for line in prose_lines(text))
        case Bullets(items):
            yield from (f"- {inline_text(item)}" for item in items)
        case Grid(heads, rows, chosen):
            yield _markdown_row(heads)
            yield "|---" * len(heads) + "|"
            for place, row in enumerate(rows):
                cells = (inline_text(cell) for cell in row)
                yield _markdown_row([f"**{cell}**" if place == chosen and cell else cell for cell in cells])


def _markdown_row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def text_lines(blocks: Iterable[Block]) -> Iterator[str]:
    """Yield the lines that a terminal shows: nothing is cut."""
    for block in blocks:
        match block:
            case Heading(text):
                yield from ("", text)
            case Prose(text):
                yield from (f"  {line}".rstrip() for line in text.splitlines())
            case Bullets(items):
                yield from (f"  - {' '.join(item.split())}" for item in items)
            case Grid():
                yield from _text_rows(block)


def _text_rows(grid: Grid) -> Iterator[str]:
    columns = list(zip(*grid.rows, strict=True))
    widths = [max(map(len, column)) for column in columns[:-1]]
    for row in grid.rows:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False) if width]
        yield f"  {'  '.join([*cells, ' '.join(row[-1].split())])}".rstrip()
