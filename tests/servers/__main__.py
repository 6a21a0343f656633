"""The loopback model server from the shell: `python -m tests.servers --port 8124 --latency-ms 50`.

The first line on stdout is the base URL. It serves until it is interrupted.
"""

from __future__ import annotations

import argparse
import asyncio
import runpy
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec
from msgspec.structs import replace

from .behaviour import Behaviour
from .brain import Reply
from .model_server import ModelServer


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve; the exit code is 0 when interrupted, 2 when the settings or the port are no good."""
    parser = argparse.ArgumentParser(prog="python -m tests.servers", description=__doc__)
    parser.add_argument("--port", type=int, default=8124, help="0 takes a free one (default: 8124)")
    parser.add_argument("--latency-ms", type=float, help="from request to reply (default: 0)")
    parser.add_argument(
        "--brain", default="form", help="who answers: form, game24, or FILE.py:NAME (default: form)"
    )
    parser.add_argument(
        "--behaviour", type=Path, metavar="FILE", help="settings as JSON: replies, rules, faults, …"
    )
    given = parser.parse_args(arguments)
    try:
        behaviour = _behaviour(given.behaviour, given.latency_ms)
        asyncio.run(_serve(ModelServer(port=given.port, behaviour=behaviour, reply=_reply(given.brain))))
    except KeyboardInterrupt:
        return 0
    except (OSError, ValueError, msgspec.MsgspecError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    return 0


async def _serve(server: ModelServer) -> None:
    await server.listen()
    sys.stdout.write(f"{server.url}\n")
    sys.stdout.flush()
    await server.serve()


def _behaviour(file: Path | None, latency_ms: float | None) -> Behaviour:
    raw = b"{}" if file is None else file.read_bytes()
    behaviour = msgspec.json.decode(raw, type=Behaviour)
    return behaviour if latency_ms is None else replace(behaviour, latency_ms=latency_ms)


def _reply(brain: str) -> Reply | None:
    if brain == "form":
        return None
    if brain == "game24":
        from .game24 import play

        return play
    path, colon, name = brain.rpartition(":")
    if not colon or not path.endswith(".py"):
        raise ValueError(f"--brain takes form, game24 or FILE.py:NAME, not {brain!r}")
    # As for a script, its neighbours can be imported.
    sys.path.append(str(Path(path).resolve().parent))
    found = runpy.run_path(path).get(name)
    if not callable(found):
        raise ValueError(f"{path} has no function {name!r}")
    return found


if __name__ == "__main__":
    sys.exit(main())
