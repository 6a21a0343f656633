"""Works that come during a transaction go into the next one together; each gets what came of it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event

from reasonry.app import App
from reasonry.errors import StoreError
from reasonry.queues import queue_tables as tables
from reasonry.queues.group_commit import GroupCommit

from .test_workers import queue_of


def test_works_that_come_meanwhile_are_committed_together_and_one_that_fails_undoes_only_those_with_it(
    folder: Path,
) -> None:
    async def check() -> None:
        async with App(str(folder / "runs.db"), environ={}) as app:
            queue = queue_of(app)
            engine = await queue.do(lambda: queue.engine)
            commits = list[Any]()
            event.listen(engine, "commit", commits.append)
            group = GroupCommit(queue)

            def add(connection: Any) -> int:
                tables.add(connection, "adopted", 1)
                return tables.value(connection, "adopted")

            def fail(connection: Any) -> None:
                connection.exec_driver_sql("SELECT * FROM nowhere")

            first = asyncio.create_task(group.transact(add))
            await asyncio.sleep(0)
            others = [asyncio.create_task(group.transact(add)) for _ in range(20)]
            assert await first == 1
            assert await asyncio.gather(*others) == [*range(2, 22)]
            assert len(commits) <= 3
            for one in await asyncio.gather(
                group.transact(add), group.transact(fail), return_exceptions=True
            ):
                assert isinstance(one, StoreError)
            given_up = asyncio.create_task(group.transact(add))
            await asyncio.sleep(0)
            given_up.cancel()
            with pytest.raises(asyncio.CancelledError):
                await given_up
            assert await group.transact(add) == 23
            await queue.close()

    asyncio.run(check())
