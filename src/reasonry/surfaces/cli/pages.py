"""`reasonry open`: a run or a session as a page to read in the browser or to keep."""

from __future__ import annotations

import os
import webbrowser
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from ...app.app import App
from ...records import COMPARISON
from ..web.find_page import find_page
from ..web.html_page import can_show, html_page, page_folder, write_page
from ..web.page import PageDocument
from .output import check_writable, print_line, print_note, write_text
from .settings import Common


def open_(
    target: str = "last",
    /,
    *,
    output: Path | None = None,
    browser: Annotated[bool, Parameter(negative="--no-browser")] = True,
    common: Common = Common(),
) -> int:
    """Show a run, a session or a comparison as a page: the tree, scores, dropped thoughts, questions, time and spend.

    The page is one file that loads nothing from elsewhere. A run that has not ended is shown so far.

    Args:
        target: The id of a run, a session or a comparison, the start of it, or `last`, the run or session used last.
        output: The file to write; without it the page is kept in your cache folder for a day, for you alone to read.
        browser: Whether to open the page in the browser; its path is printed either way.
    """
    if output is not None:
        check_writable(output)

    # Most commands that write pages compare nothing.
    from ...compare.trial_table import read_comparison

    async def find(app: App) -> tuple[str, str, PageDocument | dict[str, Any]]:
        page = await find_page(app, target)
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
