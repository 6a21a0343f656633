"""`--report FILE`: a run as a page to keep."""

from __future__ import annotations

from pathlib import Path

from ...engine.record import Record
from ...errors import UsageError
from ...strategies import STRATEGIES
from ..report_pages import markdown_page
from ..run_report import run_report
from ..web.html_page import html_page
from ..web.page_bounds import bound_page
from ..web.run_page import run_page
from ..web.run_times import PLACES
from .output import check_writable, write_text


def _markdown(record: Record, places: int) -> str:
    return markdown_page(run_report(record))


def _html(record: Record, places: int) -> str:
    strategy = STRATEGIES.get(record.result.strategy)
    return html_page(bound_page(run_page(record, strategy, places=places)))


REPORTS = {".md": _markdown, ".markdown": _markdown, ".html": _html, ".htm": _html}
"""How a report is made, by the ending of its file."""


def check_report(path: Path | None) -> None:
    """Check that a report can be written to a path, before any work is done for it.

    Raises:
        UsageError: It has no ending of a report, or cannot be written.
    """
    if path is None:
        return
    if path.suffix.lower() not in REPORTS:
        raise UsageError(
            f"--report writes Markdown or HTML: {path.name!r} must end in .md or .html",
            option="report",
            choices=[".md", ".html"],
        )
    check_writable(path)


def write_report(path: Path | None, record: Record, places: int = PLACES) -> None:
    """Write the report of a run, if one is wanted.

    Args:
        places: How many of its calls were performed at once.

    Raises:
        UsageError: The file cannot be written.
    """
    if path is not None:
        write_text(path, REPORTS[path.suffix.lower()](record, places))
