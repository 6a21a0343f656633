"""A process that copies one store into another and kills itself after so many pages, if any are named."""

import asyncio
import os
import signal
import sys
from itertools import count
from pathlib import Path

from reasonry.stores.copy import copy_store
from reasonry.stores.sqlite import SqliteStore


async def copy(source: str, target: str, pages: int) -> None:
    numbers = count(1)

    def note_page(_done: int, _total: int) -> None:
        os.write(1, b"a page\n")
        if next(numbers) == pages:
            os.kill(os.getpid(), getattr(signal, "SIGKILL", signal.SIGTERM))

    await copy_store(SqliteStore(Path(source)), SqliteStore(Path(target)), batch=2, on_progress=note_page)
    os._exit(0)


if __name__ == "__main__":
    asyncio.run(copy(sys.argv[1], sys.argv[2], int(sys.argv[3])))
