"""The loopback model server in a process of its own: `python -m tests.servers BRAIN BEHAVIOUR`; see `ServerProcess`.

The behaviour is JSON. The first line on stdout is the base URL. It serves until it is interrupted.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import runpy
import sys
from pathlib import Path

from .brain import Reply
from .game24 import play
from .model_server import ModelServer


async def serve(brain: str, behaviour: str) -> None:
    server = ModelServer(reply=reply_of(brain), **json.loads(behaviour))
    await server.listen()
    print(server.url, flush=True)
    await server.serve()


def reply_of(brain: str) -> Reply | None:
    path, colon, name = brain.rpartition(":")
    if not colon:
        return {"form": None, "game24": play}[brain]
    # As for a script, its neighbours can be imported.
    sys.path.append(str(Path(path).resolve().parent))
    return runpy.run_path(path)[name]


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(serve(*sys.argv[1:]))
