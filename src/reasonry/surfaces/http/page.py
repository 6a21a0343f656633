"""The page under `/`, and its files under `/assets/`."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from fastapi import APIRouter, Request, Response

from ...errors import NotFoundError
from ..web.demo_page import demo_page
from ..web.live_page import PageFile, live_page
from .documents import reply

_CHANGING = {"Cache-Control": "no-cache"}
_FIXED = {"Cache-Control": "public, max-age=31536000, immutable"}

router = APIRouter(include_in_schema=False)


@router.get("/")
async def read_page(request: Request) -> Response:
    """Return the page."""
    page = await asyncio.to_thread(live_page)
    return _file_reply(request, page.document, _CHANGING)


@router.get("/assets/{version}/demo.json")
async def read_demo(request: Request, version: str) -> Response:
    """Return the example, which is made when it is first asked for."""
    state = request.app.state
    making: asyncio.Task[object] | None = getattr(state, "demo", None)
    if making is None or (making.done() and (making.cancelled() or making.exception())):
        making = state.demo = asyncio.create_task(demo_page())
    return reply(await asyncio.shield(making), headers=_CHANGING)


@router.get("/assets/{version}/{name:path}")
async def read_asset(request: Request, version: str, name: str) -> Response:
    """Return what the page loads."""
    page = await asyncio.to_thread(live_page)
    found = page.files.get(name) if version == page.version else None
    if found is None:
        raise NotFoundError("there is no such file of the page; reload it")
    return _file_reply(request, found, _FIXED)


def _file_reply(request: Request, file: PageFile, caching: Mapping[str, str]) -> Response:
    headers = {**caching, "Content-Type": file.media_type, "Vary": "Accept-Encoding"}
    if "gzip" not in request.headers.get("accept-encoding", ""):
        return Response(file.body, 200, headers)
    return Response(file.packed, 200, {**headers, "Content-Encoding": "gzip"})
