"""What comes of a request, told as a stream of events or whole; the same for both of OpenAI's APIs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Iterator, Sequence
from contextlib import aclosing
from typing import Any, Final, Protocol, TypeVar

import msgspec
from sse_starlette.sse import EventSourceResponse
from starlette.requests import Request
from starlette.responses import Response

from ....errors import ReasonryError, WorldError
from ..context import RequestContext
from ..documents import reply
from .completion import CompletionChoice, Finish, follow
from .replies import run_header
from .request import CompletionRequest

T = TypeVar("T")
Document = dict[str, Any]

PING_S: Final = 15
"""A stream in which nothing happens says so that often, for proxies that give up on silence."""

_GONE = Response(status_code=499)
_WAITING = 100
"""Pieces of several runs that wait to be sent."""


class Telling(Protocol):
    """How one of the two APIs tells what comes of a request, event by event; it keeps what it has told.

    Attributes:
        last_line: What a stream that came to its end is closed with.
    """

    last_line: bytes

    def begin(self) -> Iterator[Document]:
        """Yield the events that a reply begins with."""
        ...

    def think(self, place: int, piece: str) -> Iterator[Document]:
        """Yield a piece of what the run of a choice thinks."""
        ...

    def finish(self, place: int, finish: Finish) -> Iterator[Document]:
        """Yield how a choice ends."""
        ...

    def close(self) -> Iterator[Document]:
        """Yield what is said when all choices have ended."""
        ...

    def fail(self, error: ReasonryError, request_id: str) -> Iterator[Document]:
        """Yield how a reply ends of which nothing comes."""
        ...

    def whole(self) -> Document:
        """Return the reply, once it has ended."""
        ...


async def complete(
    context: RequestContext, wanted: CompletionRequest, choices: Sequence[CompletionChoice], telling: Telling
) -> Response:
    """Return what comes of the runs of a request: as a stream, or whole once they have ended."""
    events = _events(context, wanted, choices, telling)
    runs = [choice.run_id for choice in choices]
    if wanted.stream:
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no", **run_header(runs)}
        return EventSourceResponse(_lines(context, events, telling), headers=headers, ping=PING_S)

    async def tell_whole() -> Document:
        async with aclosing(events):
            async for _ in events:
                pass
        return telling.whole()

    document = await _unless_gone(context.request, tell_whole())
    return _GONE if document is None else reply(document, headers=run_header(runs))


async def _lines(
    context: RequestContext, events: AsyncGenerator[Document], telling: Telling
) -> AsyncGenerator[bytes]:
    with context.wiring.stream(context.principal):
        try:
            async with aclosing(events):
                async for event in events:
                    yield _event_lines(event)
        except Exception as error:
            for event in telling.fail(_own_error(error), context.request_id):
                yield _event_lines(event)
            return
        if telling.last_line:
            yield telling.last_line


async def _events(
    context: RequestContext, wanted: CompletionRequest, choices: Sequence[CompletionChoice], telling: Telling
) -> AsyncGenerator[Document]:
    for event in telling.begin():
        yield event
    async with aclosing(_pieces(context, wanted, choices)) as pieces:
        async for place, piece in pieces:
            is_end = isinstance(piece, Finish)
            for event in telling.finish(place, piece) if is_end else telling.think(place, piece):
                yield event
    for event in telling.close():
        yield event


async def _pieces(
    context: RequestContext, wanted: CompletionRequest, choices: Sequence[CompletionChoice]
) -> AsyncGenerator[tuple[int, str | Finish]]:
    """Yield what the runs think, and how each ends, as it comes, with the place of the choice."""
    queue = asyncio.Queue[tuple[int, str | Finish | Exception]](_WAITING)

    async def tell(place: int, choice: CompletionChoice) -> None:
        try:
            async with aclosing(follow(context, wanted, choice)) as pieces:
                async for piece in pieces:
                    await queue.put((place, piece))
        except Exception as error:
            await queue.put((place, error))

    tasks = [asyncio.create_task(tell(place, choice)) for place, choice in enumerate(choices)]
    open_choices = len(choices)
    try:
        while open_choices:
            place, piece = await queue.get()
            if isinstance(piece, Exception):
                raise piece
            yield place, piece
            open_choices -= isinstance(piece, Finish)
    finally:
        await _drop(tasks)


async def _unless_gone(request: Request, work: Awaitable[T]) -> T | None:
    """Do work until the client hangs up; then the work is cancelled and nothing comes of it."""

    async def hang_up() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass

    working, gone = asyncio.ensure_future(work), asyncio.create_task(hang_up())
    try:
        await asyncio.wait([working, gone], return_when=asyncio.FIRST_COMPLETED)
        return await working if working.done() else None
    finally:
        await _drop([working, gone])


async def _drop(tasks: Sequence[asyncio.Future[Any]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _event_lines(document: Document) -> bytes:
    """Return a document as one event of a stream, which has the name of its type."""
    head = f"event: {document['type']}\n".encode() if "type" in document else b""
    return head + b"data: " + msgspec.json.encode(document) + b"\n\n"


def _own_error(error: Exception) -> ReasonryError:
    if isinstance(error, ReasonryError):
        return error
    return WorldError("internal error; the server's log has it", code="internal_error")
