"""A process that restores a backup again and again, is killed before each change of a name in turn, and looks."""

import asyncio
import os
import shutil
import sys
from itertools import count
from pathlib import Path

from reasonry.stores import backup
from reasonry.stores.sqlite import SqliteStore

from .samples import texts

CHANGES = {"os.rename", "os.remove", "os.link"}


async def said(path: Path) -> list[str]:
    store = SqliteStore(path, busy_timeout_s=0.2)
    try:
        return await texts(store, "s")
    finally:
        await store.close()


def state_of(path: Path) -> str:
    """Return `old` or `new`; anything else is an error."""
    return {("old", "in the log"): "old", ("new",): "new"}[tuple(asyncio.run(said(path)))]


async def restore(path: Path, file: Path) -> None:
    await SqliteStore(path).whole.restore(file)


def take_place_until(number: int, draft: Path, path: Path) -> int:
    """Let a child do it, which dies before its `number`-th change; return its exit code."""
    child = os.fork()
    if child == 0:
        seen = [0]

        def watch(event: str, _: object) -> None:
            seen[0] += event in CHANGES
            if seen[0] == number:
                os._exit(9)

        sys.addaudithook(watch)
        backup._take_place(draft, path)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def main(folder: Path) -> None:
    """Take `store.db`, its log and `backup.db` in a folder; print how the store stood after each death."""
    path, draft, code = folder / "work" / "store.db", folder / "work" / "draft", 9
    for number in count(1):
        shutil.rmtree(path.parent, ignore_errors=True)
        path.parent.mkdir()
        for end in ("", "-wal"):
            shutil.copy(folder / f"store.db{end}", f"{path}{end}")
        shutil.copy(folder / "backup.db", draft)
        code = take_place_until(number, draft, path)
        print(state_of(path), flush=True)
        asyncio.run(restore(path, folder / "backup.db"))
        assert state_of(path) == "new"
        if code == 0:
            break


if __name__ == "__main__":
    main(Path(sys.argv[1]))
