"""`reasonry open`: a run or a session as a page in the browser."""

from __future__ import annotations

import os
import webbrowser
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from ..web.find_page import find_page
from ..web.html_page import html_page
from ..web.page_bounds import DEFAULT_BOUNDS, EVERYTHING
from ..web.page_files import can_show, page_folder, write_page
from .output import check_writable, print_document, print_line, print_note, write_text
from .settings import Common, run_async, with_app


def open_(
    target: str = "last",
    /,
    *,
    output: Path | None = None,
    browser: Annotated[bool, Parameter(negative="--no-browser")] = True,
    full: Annotated[bool, Parameter(negative=())] = False,
    common: Common = Common(),
) -> int:
    """Show a run or a session as a page: the tree, scores, why thoughts were dropped, questions, time and spend.

    The page is one file that loads nothing from anywhere. One that is still going on is shown as it stands.

    Parameters
    ----------
    target
        The id of a run or a session, how that begins, or `last`, whichever was used last.
    output
        The file to write; without it the page is kept in your cache folder for a day, for you alone to read.
    browser
        Whether to open the page in the browser; its path is printed either way.
    full
        Leave nothing out, however large the page gets.
    """
    if output is not None:
        check_writable(output)
    bounds = EVERYTHING if full else DEFAULT_BOUNDS
    page = run_async(with_app(common.app(), lambda app: find_page(app, target, bounds)))
    if output is None:
        path = write_page(page, page_folder(os.environ))
    else:
        write_text(output, html_page(page))
        path = output.absolute()
    is_open = browser and can_show(os.environ) and webbrowser.open(path.as_uri())
    if common.json:
        print_document({"kind": page.kind, "id": page.id, "path": str(path), "opened": is_open})
        return 0
    if browser and not is_open:
        print_note("no browser could be opened here; open this file in one:")
    print_line(str(path))
    return 0
