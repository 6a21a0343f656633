"""`reasonry open` shows a run, a session or a comparison as a page. `--report FILE` writes the report of a run."""

import os
import webbrowser
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from ...app.app import App
from ...core.registry import Registry
from ...engine.record import Record
from ...errors import UsageError
from ...records import COMPARISON
from ..run_report import markdown_page, run_report
from ..web.find_page import find_page
from ..web.html_page import can_show, html_page, page_folder, write_page
from ..web.page import DEFAULT_BOUNDS, EVERYTHING, PageDocument
from ..web.run_page import run_page
from .output import check_writable, print_line, print_note, write_text
from .settings import Common

_MARKDOWN, _HTML = (".md", ".markdown"), (".html", ".htm")


def open_(
    target: str = "last",
    /,
    *,
    output: Path | None = None,
    browser: Annotated[bool, Parameter(negative="--no-browser")] = True,
    full: bool = False,
    common: Common = Common(),
) -> int:
    """Show a run, a session or a comparison as a page: the tree, scores, dropped thoughts, questions, time and spend.

    The page is a single file that loads nothing from elsewhere. If a run has not ended, the page shows its work so far.

    Args:
        target: The id or the start of the id of a run, session or comparison, or `last` (the run or session used last).
        output: The file to write. Default: a file that only you can read, kept in your cache folder for a day.
        browser: Whether to open the page in the browser; the path of the page is printed either way.
        full: Leave nothing out, however large the page gets.
    """
    if output is not None:
        check_writable(output)
    bounds = EVERYTHING if full else DEFAULT_BOUNDS

    # Imported here, since most commands that use this module compare nothing.
    from ...compare.trial_table import read_comparison

    async def find(app: App) -> tuple[str, str, PageDocument | dict[str, Any]]:
        page = await find_page(app, target, bounds)
        if page.id.startswith(COMPARISON):
            return "comparison", page.id, await read_comparison(app, page.id)
        return page.kind, page.id, page

    kind, id, page = common.do(find)
    if output is None:
        path = write_page(page, page_folder(os.environ))
    else:
        write_text(output, html_page(page))
        path = output.absolute()
    is_open = browser and can_show(os.environ) and webbrowser.open(path.as_uri())

    def draw() -> None:
        if browser and not is_open:
            print_note("no browser opens here; open this file in a browser:")
        print_line(str(path))

    return common.show({"kind": kind, "id": id, "path": str(path), "opened": is_open}, draw)


def check_report(path: Path | None) -> None:
    """Check, before any other work, that a report can be written to a path.

    Raises:
        UsageError: The path has no Markdown or HTML suffix, or cannot be written.
    """
    if path is None:
        return
    if path.suffix.lower() not in _MARKDOWN + _HTML:
        message = f"--report writes Markdown or HTML: {path.name!r} must end in .md or .html"
        raise UsageError(message, option="report", choices=[".md", ".html"])
    check_writable(path)


def write_report(path: Path, record: Record, known: Registry) -> None:
    """Write the report of a run.

    Raises:
        UsageError: The file cannot be written.
    """
    if path.suffix.lower() in _MARKDOWN:
        write_text(path, markdown_page(run_report(record)))
    else:
        strategy = known.get(record.result.strategy)
        write_text(path, html_page(run_page(record, strategy, bounds=DEFAULT_BOUNDS)))
