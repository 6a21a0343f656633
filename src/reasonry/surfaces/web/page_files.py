"""Pages as files: where those that nobody named are kept, readable by their owner alone, and for how long."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from ...errors import UsageError
from .html_page import html_page
from .page import PageDocument

KEPT_S = 24 * 60 * 60
"""After so long a page that nobody named is removed, when the next one is written."""
_ENDING = ".html"


def page_folder(environ: Mapping[str, str]) -> Path:
    """Return the folder of pages that nobody named; `REASONRY_PAGES` in the environment names another."""
    named = environ.get("REASONRY_PAGES")
    if named:
        return Path(named)
    import platformdirs

    return platformdirs.user_cache_path("reasonry", appauthor=False) / "pages"


def write_page(page: PageDocument, folder: Path) -> Path:
    """Write a page to the folder, in the place of an earlier one of the same run or session, and return its path.

    Raises:
        UsageError: It cannot be written.
    """
    path = folder / f"{page.kind}-{page.id}{_ENDING}"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        _remove_old_pages(folder, time.time() - KEPT_S)
        _replace_file(path, html_page(page))
    except OSError as error:
        message = f"the page cannot be written to {folder}: {error.strerror}; name a file with --output"
        raise UsageError(message, path=str(folder)) from None
    return path.absolute()


def _replace_file(path: Path, text: str) -> None:
    descriptor, name = tempfile.mkstemp(prefix=".page-", suffix=".tmp", dir=path.parent)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
        os.replace(name, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise


def _remove_old_pages(folder: Path, before: float) -> None:
    for entry in [
        *folder.glob(f"run-*{_ENDING}"),
        *folder.glob(f"session-*{_ENDING}"),
        *folder.glob(".page-*.tmp"),
    ]:
        with contextlib.suppress(OSError):
            if entry.lstat().st_mtime < before:
                entry.unlink()


def can_show(environ: Mapping[str, str], platform: str = sys.platform) -> bool:
    """Whether there is a screen for a browser; one in the terminal would take it over."""
    if environ.get("BROWSER"):
        return True
    if platform in ("win32", "darwin"):
        return not environ.get("SSH_CONNECTION")
    return any(environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "WSL_DISTRO_NAME"))
