"""A report as lines of a terminal, and as Markdown; text stays text in both."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ..core.text import inline_text, prose_lines
from .run_report import Block, Bullets, Grid, Heading, Prose


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
