"""`--report FILE`: a run as a page to keep."""

from __future__ import annotations

from pathlib import Path

from ...engine.record import Record
from ...errors import UsageError
from ...masking import SECRETS
from ..report_pages import html_page, markdown_page
from ..run_report import run_report
from .output import check_writable, write_text

REPORTS = {".md": markdown_page, ".markdown": markdown_page, ".html": html_page, ".htm": html_page}
"""How a report is drawn, by the ending of its file."""


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


def write_report(path: Path | None, record: Record) -> None:
    """Write the report of a run, if one is wanted.

    Raises:
        UsageError: The file cannot be written.
    """
    if path is not None:
        write_text(path, SECRETS.mask(REPORTS[path.suffix.lower()](run_report(record))))
