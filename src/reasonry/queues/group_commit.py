"""Works on the queue that go into one transaction, as each commit costs more than all that it holds."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from .queue import Queue

if TYPE_CHECKING:
    from sqlalchemy import Connection

T = TypeVar("T")


class GroupCommit:
    """Does works of one event loop on a queue: those that come during a transaction go into the next one, together."""

    def __init__(self, queue: Queue) -> None:
        self._queue = queue
        self._waiting = list[tuple[Callable[["Connection"], Any], asyncio.Future[Any]]]()
        self._performing: asyncio.Task[None] | None = None

    async def transact(self, work: Callable[[Connection], T]) -> T:
        """Return what comes of work, once that is committed.

        Raises:
            StoreError: The queue cannot be used at present; nothing is done of all that was in the transaction.
        """
        done: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._waiting.append((work, done))
        if self._performing is None:
            self._performing = asyncio.create_task(self._perform())
        return await done

    async def _perform(self) -> None:
        while self._waiting:
            together, self._waiting = self._waiting, []
            error, results = await self._try_together([work for work, _ in together])
            for number, (_, done) in enumerate(together):
                if done.done():
                    continue
                if error is None:
                    done.set_result(results[number])
                else:
                    done.set_exception(error)
        self._performing = None

    async def _try_together(
        self, works: list[Callable[[Connection], Any]]
    ) -> tuple[Exception | None, list[Any]]:
        def transact() -> list[Any]:
            return self._queue.transact(lambda connection: [work(connection) for work in works])

        try:
            return None, await self._queue.do(transact)
        except Exception as error:
            return error, []
