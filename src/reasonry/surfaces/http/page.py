"""The page under `/`, and its files under `/assets/`."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from ...errors import NotFoundError
from ..web.demo_page import demo_page
from ..web.live_page import PageFile, live_page
from .context import RequestContext
from .documents import reply
from .operations import Operation

_CHANGING = {"Cache-Control": "no-cache"}
_FIXED = {"Cache-Control": "public, max-age=31536000, immutable"}
_MADE = list[Any]()
"""The example, once it was made."""


async def read_page(context: RequestContext) -> Response:
    """Return the page."""
    page = await asyncio.to_thread(live_page)
    return _file_reply(context.request, page.document, _CHANGING)


async def read_demo(context: RequestContext, version: str) -> Response:
    """Return the example, which is made when it is first asked for."""
    if not _MADE:
        _MADE.append(await demo_page())
    return reply(_MADE[0], headers=_CHANGING)


async def read_asset(context: RequestContext, version: str, name: str) -> Response:
    """Return what the page loads."""
    page = await asyncio.to_thread(live_page)
    found = page.files.get(name) if version == page.version else None
    if found is None:
        raise NotFoundError("there is no such file of the page; reload it")
    return _file_reply(context.request, found, _FIXED)


def _file_reply(request: Request, file: PageFile, caching: Mapping[str, str]) -> Response:
    headers = {**caching, "Content-Type": file.media_type, "Vary": "Accept-Encoding"}
    if "gzip" not in request.headers.get("accept-encoding", ""):
        return Response(file.body, 200, headers)
    return Response(file.packed, 200, {**headers, "Content-Encoding": "gzip"})


OPERATIONS = (
    Operation("GET", "/", read_page, checks_query=False),
    Operation("GET", "/assets/{version}/demo.json", read_demo),
    Operation("GET", "/assets/{version}/{name:path}", read_asset),
)
