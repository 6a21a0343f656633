"""Processes forked from one that has all loaded, so that a start costs 20 ms of a processor and not 300 to 600.

`ForkedProcess` is `subprocess.Popen([sys.executable, …])` with all of it: a process id of its own to be killed by,
environment, folder, standard input, output and error, and exit code. Where a process cannot be forked it is just that.
What imports cost and which there are is tested with real starts (tests/contracts).
"""

import atexit
import contextlib
import gc
import io
import json
import os
import pkgutil
import runpy
import selectors
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import traceback
import warnings
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).parents[1]
FORKS = sys.platform == "linux"
MAX_JOB_BYTES = 200_000
"""As much as the system takes in one message."""


class ForkedProcess(subprocess.Popen[Any]):
    """A process that runs `-m MODULE`, `-c CODE` or a file with this interpreter; of other options, those below."""

    _end: socket.socket | None = None
    """Is told how the process ended; closed before, it ends it."""

    if FORKS:

        def _execute_child(self, args: Sequence[str], *more: Any) -> None:
            _, _, close_fds, pass_fds, cwd, env, *_ = more
            in_read, in_write, out_read, out_write, err_read, err_write, *_ = more[9:]
            assert args[0] == sys.executable
            assert close_fds
            assert not pass_fds
            job = {
                "words": [str(word) for word in args[1:]],
                "env": dict(os.environ if env is None else env),
                "cwd": os.fspath(cwd or os.getcwd()),
                "session": more[20],
            }
            streams = [
                own if given == -1 else given for own, given in enumerate((in_read, out_write, err_write))
            ]
            self._end = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            self._end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, MAX_JOB_BYTES)
            self._end.connect(_address())
            socket.send_fds(self._end, [json.dumps(job).encode()], streams)
            self.pid = int(self._end.recv(20))
            self._child_created = True
            self._close_pipe_fds(in_read, in_write, out_read, out_write, err_read, err_write)

        def _ended(self, flags: int) -> tuple[int, int]:
            """Return what `os.waitpid` would."""
            if self._end is None:
                return 0, 0
            try:
                status = self._end.recv(20, socket.MSG_DONTWAIT if flags & os.WNOHANG else 0)
            except BlockingIOError:
                return 0, 0
            self._end.close()
            # Where the server ended, which its processes outlive, nobody knows.
            return self.pid, int(status or 255 << 8)

        def _try_wait(self, wait_flags: int) -> tuple[int, int]:
            return self._ended(wait_flags)

        def _internal_poll(self, _deadstate: int | None = None, **_: Any) -> int | None:
            if self.returncode is None and self._waitpid_lock.acquire(blocking=False):
                try:
                    pid, status = self._ended(os.WNOHANG) if self.returncode is None else (0, 0)
                    if pid:
                        self._handle_exitstatus(status)
                finally:
                    self._waitpid_lock.release()
            return self.returncode


@cache
def forking_python() -> str:
    """Return a program that is this interpreter and starts ten times as fast; `reasonry` is beside it.

    It passes signals on. If it is killed, its process ends a moment later: a test that needs the process dead kills a
    `ForkedProcess`.
    """
    if not FORKS:
        return sys.executable
    folder = Path(tempfile.mkdtemp(prefix="reasonry-forking-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    for name, words in {"python": [], "reasonry": ["-m", "reasonry"]}.items():
        script = FORKING.format(python=sys.executable, address=_address(), most=MAX_JOB_BYTES, words=words)
        (folder / name).write_text(script, "utf-8")
        (folder / name).chmod(0o700)
    return str(folder / "python")


FORKING = """#!{python} -IS
import json, os, signal, socket, sys
# The process may be heard, and a signal sent, before its number has come.
endings = signal.SIGINT, signal.SIGTERM, signal.SIGHUP
signal.pthread_sigmask(signal.SIG_BLOCK, endings)
server = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
server.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, {most})
server.connect({address!r})
job = {{"words": [*{words}, *sys.argv[1:]], "env": dict(os.environ), "cwd": os.getcwd(), "session": False}}
socket.send_fds(server, [json.dumps(job).encode()], [0, 1, 2])
pid = int(server.recv(20))
for number in endings:
    signal.signal(number, lambda number, _: os.kill(pid, number))
signal.pthread_sigmask(signal.SIG_UNBLOCK, endings)
code = os.waitstatus_to_exitcode(int(server.recv(20)))
sys.exit(code if code >= 0 else 128 - code)
"""


STAYS = b"stays"
"""The first message of a worker, which keeps the server until it hangs up."""


@cache
def _connect() -> tuple[str, socket.socket]:
    """Return the address of the process that forks the others, and the connection that keeps it.

    There is one for all workers of a run of the tests: the first that needs it starts it, the last ends it.
    """
    import fcntl

    name = f"reasonry-tests-{os.environ.get('PYTEST_XDIST_TESTRUNUID', os.getpid())}"
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with Path(tempfile.gettempdir(), f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if connection.connect_ex(f"\0{name}"):
            command = [sys.executable, "-m", "tests.forked", name]
            process = subprocess.Popen(
                command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, start_new_session=True
            )
            assert process.stdout is not None
            with process.stdout:
                process.stdout.readline()
            # It ends by itself.
            process.returncode = 0
            connection.connect(f"\0{name}")
        connection.send(STAYS)
    atexit.register(connection.close)
    return f"\0{name}", connection


def _address() -> str:
    return _connect()[0]


NEEDED = """
reasonry.app.app reasonry.app.runs reasonry.compare reasonry.stores.sqlite reasonry.stores.postgres reasonry.supervisor
reasonry.surfaces.http.server reasonry.surfaces.web reasonry.queues.worker reasonry.tools.knowledge
reasonry.tools.mcp_client reasonry.surfaces.mcp.serve reasonry.surfaces.mcp.connection
reasonry.surfaces.mcp.stdio_transport reasonry.models.choose reasonry.models.openai_compatible
reasonry.models.http_session reasonry.models.offline reasonry.models.scripted reasonry.models.known uvicorn.lifespan.off
aiohttp apsw apsw.sqlite_extra cyclopts.help encodings.idna encodings.utf_8_sig importlib.resources.readers jsonschema
json_repair mcp mcp.server.mcpserver pydantic_ai.direct procrastinate psycopg_pool pydantic_monty rich.live
rich.markdown ruamel.yaml tests.engine.running tests.servers.__main__ tomlkit uvicorn.protocols.http.h11_impl
"""
"""What processes import, but for what starts threads."""


def _load() -> None:
    from cyclopts.argument import _argument

    import reasonry.surfaces.cli

    commands = pkgutil.iter_modules(reasonry.surfaces.cli.__path__, "reasonry.surfaces.cli.")
    for name in (*(module.name for module in commands), *NEEDED.split()):
        import_module(name)
    # A command that starts has not loaded pydantic; where it is loaded, cyclopts has it check each option again.
    _argument.parse_version = lambda _: (1,)  # pyright: ignore


def settle() -> None:
    """Do what processes do at their first use of a pattern or a form, so that children find it done."""
    from reasonry.app.strategy_table import describe
    from reasonry.strategies import STRATEGIES
    from reasonry.text import _Pattern

    for pattern in [one for one in gc.get_objects() if isinstance(one, _Pattern)]:
        assert pattern.search
    for strategy in STRATEGIES.values():
        describe(strategy)


def _rehearse() -> None:
    """Call the command line as most jobs do, so that they find compiled and looked up all that it needs."""
    from reasonry.surfaces.cli import run

    settle()
    lost = io.StringIO()
    with (
        tempfile.TemporaryDirectory() as folder,
        contextlib.redirect_stdout(lost),
        contextlib.redirect_stderr(lost),
    ):
        store = ["--store", str(Path(folder, "store.db"))]
        for words in (["solve", "Use 4, 6 and 1 to make 24", "--model", "offline"], ["runs", "list"]):
            run([*words, *store])
        run(["solve", "--help"])


def _become(job: dict[str, Any], streams: Sequence[int]) -> int:
    """Be the process of a job, after the fork; return its exit code."""
    if job["session"]:
        os.setsid()
    os.environ.clear()
    os.environ.update(job["env"])
    os.chdir(job["cwd"])
    for descriptor, opened in enumerate(streams):
        os.dup2(opened, descriptor)
        os.close(opened)
    at_once = bool(job["env"].get("PYTHONUNBUFFERED"))
    sys.stdin = sys.__stdin__ = io.TextIOWrapper(
        os.fdopen(0, "rb", closefd=False), "utf-8", "surrogateescape"
    )
    sys.stdout = sys.__stdout__ = io.TextIOWrapper(
        os.fdopen(1, "wb", closefd=False), "utf-8", line_buffering=at_once
    )
    sys.stderr = sys.__stderr__ = io.TextIOWrapper(
        os.fdopen(2, "wb", closefd=False), "utf-8", "backslashreplace", line_buffering=True
    )
    # Like the option -W, not for processes that this one starts.
    sys.warnoptions = list(filter(None, os.environ.pop("PYTHONWARNINGS", "").split(",")))
    for wanted in sys.warnoptions:
        warnings._setoption(wanted)  # type: ignore[attr-defined]
    try:
        _run(job["words"])
    except SystemExit as end:
        code = end.code
    except KeyboardInterrupt:
        traceback.print_exc()
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
        raise
    except BaseException:
        traceback.print_exc()
        code = 1
    else:
        code = 0
    if isinstance(code, str):
        print(code, file=sys.stderr)
    return code if isinstance(code, int) else int(code is not None)


def _run(words: Sequence[str]) -> None:
    """Run what the interpreter was given: a module, code or a file."""
    kind, *rest = words
    sys.path[0] = str(Path(kind).parent) if kind not in ("-m", "-c") else os.getcwd()
    sys.path[1:1] = filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))
    if kind == "-m":
        name = rest[0] if not hasattr(sys.modules.get(rest[0]), "__path__") else f"{rest[0]}.__main__"
        sys.modules.pop(name, None)
        sys.argv = rest
        runpy.run_module(name, run_name="__main__", alter_sys=True)
    elif kind == "-c":
        sys.argv = ["-c", *rest[1:]]
        main = sys.modules["__main__"] = ModuleType("__main__")
        exec(compile(rest[0], "<string>", "exec"), main.__dict__)
    else:
        sys.argv = list(words)
        runpy.run_path(kind, run_name="__main__")


def _end(code: int) -> None:
    """End as an interpreter does: with its threads, what is registered for its end, and what is still to be written."""
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    if sys.warnoptions:
        # What was left open says so when it goes.
        gc.collect()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError):
            stream.flush()
    os._exit(code)


def _serve(address: str) -> None:
    _load()
    _rehearse()
    gc.collect()
    # What a child need not look through for garbage, it need not copy.
    gc.freeze()
    with (
        selectors.DefaultSelector() as selector,
        socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener,
    ):
        listener.bind(address)
        listener.listen(64)
        selector.register(listener, selectors.EVENT_READ)
        os.write(1, b"listening\n")
        workers = -1
        while workers:
            for key, _ in selector.select():
                if key.fileobj is listener:
                    workers = max(workers, 0) + _fork(listener.accept()[0], selector)
                elif key.data is None:
                    selector.unregister(key.fileobj)
                    key.fileobj.close()
                    workers -= 1
                elif selector.get_map().get(key.fd) is key:
                    _look(key, selector)


def _fork(waiting: socket.socket, selector: selectors.BaseSelector) -> bool:
    """Fork a process for a job; return whether it was none, but a worker that stays."""
    text, streams, *_ = socket.recv_fds(waiting, MAX_JOB_BYTES, 3)
    if text == STAYS:
        selector.register(waiting, selectors.EVENT_READ)
        return True
    child = os.fork()
    if child == 0:
        for key in list(selector.get_map().values()):
            os.close(key.fd)
        waiting.close()
        selector.close()
        _end(_become(json.loads(text), streams))
    for stream in streams:
        os.close(stream)
    waiting.send(b"%d" % child)
    process = os.pidfd_open(child)
    selector.register(process, selectors.EVENT_READ, (child, process, waiting))
    selector.register(waiting, selectors.EVENT_READ, (child, process, waiting))
    return False


def _look(key: selectors.SelectorKey, selector: selectors.BaseSelector) -> None:
    """Tell that a process has ended; where nobody waits for it any more, end it."""
    child, process, waiting = key.data
    if key.fileobj is waiting:
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    for one in (process, waiting):
        selector.unregister(one)
    os.close(process)
    with contextlib.suppress(OSError), waiting:
        waiting.send(b"%d" % status)


if __name__ == "__main__":
    _serve(f"\0{sys.argv[1]}")
