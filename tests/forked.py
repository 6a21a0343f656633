"""Commands in processes of their own, forked from one that has all loaded, so that a start costs 20 ms and not 250.

`run_command` is `subprocess.run([sys.executable, "-m", "reasonry", …])` with all of it: environment, folder, standard
input, output and error, and exit code. Where a process cannot be forked it is just that. What imports cost and which
there are is tested with real starts (tests/contracts).
"""

from __future__ import annotations

import atexit
import contextlib
import io
import json
import os
import pkgutil
import subprocess
import sys
import threading
import traceback
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

ROOT = Path(__file__).parents[1]
NAMES = ("in", "out", "err")


def run_command(
    words: Sequence[str], *, env: Mapping[str, str], cwd: str | Path, text: bytes = b""
) -> subprocess.CompletedProcess[bytes]:
    """Run the command line in a process of its own.

    Args:
        text: Its standard input.
    """
    if not hasattr(os, "fork"):
        command = [sys.executable, "-m", "reasonry", *words]
        return subprocess.run(command, input=text, capture_output=True, env=env, cwd=cwd, check=False)
    with TemporaryDirectory() as folder:
        files = {name: Path(folder) / name for name in NAMES}
        files["in"].write_bytes(text)
        job = {
            "words": list(words),
            "env": dict(env),
            "cwd": str(cwd),
            **{name: str(file) for name, file in files.items()},
        }
        server = _server()
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write(json.dumps(job).encode() + b"\n")
        server.stdin.flush()
        code = json.loads(server.stdout.readline())
        return subprocess.CompletedProcess(
            list(words), code, files["out"].read_bytes(), files["err"].read_bytes()
        )


@cache
def _server() -> subprocess.Popen[bytes]:
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.forked"], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )

    def end() -> None:
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()
        process.wait(30)

    atexit.register(end)
    return process


def _load() -> None:
    """Import what commands need, but for what starts threads."""
    import reasonry.surfaces.cli

    for module in pkgutil.iter_modules(reasonry.surfaces.cli.__path__, "reasonry.surfaces.cli."):
        import_module(module.name)
    for name in ("app.wiring", "app.agent_app", "compare", "stores.sqlite", "surfaces.web"):
        import_module(f"reasonry.{name}")
    for name in ("openai_compatible", "http_session", "offline", "scripted", "recorded", "known"):
        import_module(f"reasonry.models.{name}")
    for name in (
        "aiohttp",
        "apsw",
        "json_repair",
        "mcp",
        "pydantic_ai.direct",
        "pydantic_monty",
        "rich.live",
        "ruamel.yaml",
    ):
        import_module(name)


def _become(job: dict[str, Any]) -> int:
    """Be the process of a command, after the fork; return its exit code."""
    os.environ.clear()
    os.environ.update(job["env"])
    os.chdir(job["cwd"])
    for descriptor, name in enumerate(NAMES):
        flags = os.O_WRONLY | os.O_CREAT if descriptor else os.O_RDONLY
        opened = os.open(job[name], flags, 0o600)
        os.dup2(opened, descriptor)
        os.close(opened)
    sys.stdin = sys.__stdin__ = io.TextIOWrapper(
        os.fdopen(0, "rb", closefd=False), "utf-8", "surrogateescape"
    )
    sys.stdout = sys.__stdout__ = io.TextIOWrapper(os.fdopen(1, "wb", closefd=False), "utf-8")
    sys.stderr = sys.__stderr__ = io.TextIOWrapper(
        os.fdopen(2, "wb", closefd=False), "utf-8", "backslashreplace", line_buffering=True
    )
    sys.argv = ["reasonry", *job["words"]]
    try:
        import reasonry.surfaces.cli

        reasonry.surfaces.cli.main()
    except SystemExit as end:
        code = end.code
    except BaseException:
        traceback.print_exc()
        code = 1
    else:
        code = 0
    if isinstance(code, str):
        print(code, file=sys.stderr)
    return code if isinstance(code, int) else int(code is not None)


def _end(code: int) -> None:
    """End as an interpreter does: with its threads, what is registered for its end, and what is still to be written."""
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError):
            stream.flush()
    os._exit(code)


def _serve() -> None:
    _load()
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    jobs = os.fdopen(os.dup(0), "rb")
    for line in jobs:
        child = os.fork()
        if child == 0:
            _end(_become(json.loads(line)))
        _, status = os.waitpid(child, 0)
        answers.write(f"{os.waitstatus_to_exitcode(status)}\n")
        answers.flush()


if __name__ == "__main__":
    _serve()
