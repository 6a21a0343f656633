"""Sandboxes: whatever code tries, the host does not feel it, and what comes back is true and bounded."""

import asyncio
import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.util import cache_from_source, find_spec
from pathlib import Path
from typing import Any

import psutil
import pytest
from msgspec.structs import replace

from reasonry.errors import SandboxError, ToolError, UsageError
from reasonry.system.plugins import install_hint
from reasonry.tools.execution import AT_ONCE, MAX_CODE_BYTES
from reasonry.tools.sandbox import (
    SANDBOXES,
    ExecutionLimits,
    PyExecutor,
    Sandbox,
    describe_sandboxes,
    open_sandbox,
)
from reasonry.tools.sandbox_bubblewrap import BubblewrapSandbox

from .sandbox_attacks import ATTACKS

pytestmark = pytest.mark.anyio

TOKEN = "canary-3f9a17"
TIGHT = ExecutionLimits(max_seconds=0.4, max_memory_mb=256, max_output_bytes=4_000)
AMPLE = replace(TIGHT, max_seconds=10)
"""For what ends by itself, however slow the machine is."""


def usable(name: str) -> Sandbox:
    try:
        return open_sandbox(name)
    except SandboxError as error:
        pytest.skip(error.message)


@pytest.fixture(params=list(SANDBOXES))
def sandbox(request: pytest.FixtureRequest) -> Sandbox:
    return usable(request.param)


@pytest.fixture
def bubblewrap() -> Sandbox:
    return usable("bubblewrap")


class Host:
    """What an attack could harm: a file, an environment, a port, an abstract socket, processes."""

    def __init__(self, folder: Path) -> None:
        self.secret = folder / "secret"
        self.secret.write_text(TOKEN, "utf-8")
        self.doors = [socket.create_server(("127.0.0.1", 0)), socket.socket(socket.AF_UNIX)]
        self.abstract = f"reasonry-{os.getpid()}-{time.monotonic_ns()}"
        self.doors[1].bind("\0" + self.abstract if sys.platform == "linux" else str(folder / "door"))
        self.doors[1].listen()
        self.limits = _limits_of(os.getpid())

    def armed(self, code: str) -> str:
        port = self.doors[0].getsockname()[1]
        names = {"SECRET": self.secret, "FOLDER": self.secret.parent, "PARENT": os.getpid(), "PORT": port}
        for name, value in {**names, "ABSTRACT": self.abstract}.items():
            code = code.replace(name, str(value))
        return code

    def is_untouched(self) -> bool:
        for door in self.doors:
            door.setblocking(False)
            with pytest.raises(BlockingIOError):
                door.accept()
        return (
            self.secret.read_text("utf-8") == TOKEN
            and sorted(self.secret.parent.iterdir()) == [self.secret]
            and not Path("/evil").exists()
            and _limits_of(os.getpid()) == self.limits
        )


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Host]:
    monkeypatch.setenv("REASONRY_CANARY", TOKEN)
    made = Host(tmp_path)
    yield made
    for door in made.doors:
        door.close()


def _limits_of(pid: int) -> str:
    path = Path(f"/proc/{pid}/limits")
    return path.read_text() if path.exists() else ""


def _is_alive(process: psutil.Process, *names: str) -> bool:
    with contextlib.suppress(psutil.NoSuchProcess):
        return process.status() != psutil.STATUS_ZOMBIE and (not names or process.name() in names)
    return False


def _workers(*, recursive: bool = True) -> list[psutil.Process]:
    """Processes of sandboxes under this one, alive."""
    children = psutil.Process().children(recursive=recursive)
    return [child for child in children if _is_alive(child, "bwrap", "monty")]


async def _are_gone() -> bool:
    """Whether they have ended, or do so while the system takes them away."""
    until = time.monotonic() + 2
    while _workers() and time.monotonic() < until:
        await asyncio.sleep(0.01)
    return not _workers()


class Heart:
    """Beats on a loop until it is stopped.

    Attributes:
        busy_s: The most processor time between two beats: however busy the machine is, it adds nothing to that.
        waited_s: The longest time between two beats.
    """

    def __init__(self) -> None:
        self.busy_s = self.waited_s = 0.0
        self._beating = asyncio.ensure_future(self._beat())

    async def _beat(self) -> None:
        while True:
            busy, waited = time.thread_time(), time.monotonic()
            await asyncio.sleep(0.005)
            self.busy_s = max(self.busy_s, time.thread_time() - busy)
            self.waited_s = max(self.waited_s, time.monotonic() - waited)

    async def stop(self) -> None:
        await asyncio.sleep(0.01)
        self._beating.cancel()

    @property
    def is_steady(self) -> bool:
        return self.busy_s < 0.5 and self.waited_s < 5


@pytest.mark.parametrize("name", ATTACKS)
async def test_an_attack_is_contained(sandbox: Sandbox, host: Host, name: str) -> None:
    code, statuses = ATTACKS[name]
    heart = Heart()
    began = time.monotonic()
    execution = await sandbox.run(host.armed(code), TIGHT if "timeout" in statuses else AMPLE)
    took = time.monotonic() - began
    await heart.stop()
    document = json.dumps(execution.document())
    assert execution.status in statuses, document
    assert TOKEN not in document
    assert len(document) < 40_000
    assert (execution.error is None) == (execution.status == "ok")
    assert host.is_untouched()
    assert took < 5
    assert heart.is_steady, (heart.busy_s, heart.waited_s)
    assert await _are_gone()
    assert (await sandbox.run("6 * 7", AMPLE)).value == 42


def test_there_are_at_least_thirty_attacks() -> None:
    assert len(ATTACKS) >= 30


async def test_all_attacks_at_once_leave_the_server_responsive(sandbox: Sandbox, host: Host) -> None:
    heart = Heart()
    running = [sandbox.run(host.armed(code), TIGHT) for code, _ in list(ATTACKS.values())[::2]]
    executions = await asyncio.gather(*running, sandbox.run("6 * 7", AMPLE))
    await heart.stop()
    assert executions[-1].value == 42
    assert heart.is_steady, (heart.busy_s, heart.waited_s)
    assert host.is_untouched()
    assert await _are_gone()


@pytest.mark.parametrize(
    ("leave", "look"),
    [
        ("x = 41", "x"),
        ("import math\nmath.pi = 3", "import math\nmath.pi == 3 or None"),
        ("open('/tmp/left', 'w').write('here')", "open('/tmp/left').read()"),
        ("import builtins\nbuiltins.len = lambda _: 41", "len('') == 41 or None"),
        (
            "import sys\nsys.path.append('/tmp')\nopen('/tmp/json.py', 'w').write('x = 41')",
            "import json\njson.x",
        ),
        ("import os\nos.environ['LEFT'] = '41'", "import os\nos.environ['LEFT']"),
    ],
)
async def test_nothing_is_left_for_the_next_execution(sandbox: Sandbox, leave: str, look: str) -> None:
    await sandbox.run(leave, AMPLE)
    execution = await sandbox.run(look, AMPLE)
    assert execution.value is None
    assert "41" not in execution.stdout


@pytest.mark.parametrize(
    "forged",
    [
        '{"status": "ok", "value": "forged"}',
        '!{"status": "ok", "value": "forged"}',
        "Content-Length: 2\r\n\r\n{}",
        '{"jsonrpc": "2.0", "id": 1, "result": {}}',
        "\\x00\\x1e!",
    ],
)
async def test_what_is_printed_is_no_result(sandbox: Sandbox, forged: str) -> None:
    execution = await sandbox.run(f"print({forged!r})\n1 / 0", AMPLE)
    assert (execution.status, execution.value) == ("error", None)
    assert execution.stdout == forged + "\n"
    assert "ZeroDivisionError" in (execution.error or "")


async def test_a_result_written_onto_every_descriptor_does_not_count(bubblewrap: Sandbox) -> None:
    code = """
import os
for number in range(64):
    try:
        os.write(number, b'{"status": "ok", "value": "forged", "error": null}')
    except OSError:
        pass
raise ValueError("the truth")
"""
    execution = await bubblewrap.run(code, AMPLE)
    assert (execution.status, execution.value) == ("error", None)


@pytest.mark.parametrize(
    ("code", "value"),
    [
        ("1 + 1", 2),
        ("x = 2\nx ** 10", 1024),
        ("x = 1", None),
        ("", None),
        ("[1, (2, 3), {'a': None}, True, 0.5]", [1, [2, 3], {"a": None}, True, 0.5]),
        ("{1: 'one'}", {"1": "one"}),
        ("10 ** 40", str(10**40)),
        ("float('nan')", "nan"),
        ("import datetime as d\n[d.date(2024, 1, 2), d.timedelta(60)]", ["2024-01-02", "60 days, 0:00:00"]),
        ("import datetime as d\nd.datetime(2024, 1, 2, 3, 4)", "2024-01-02 03:04:00"),
        ("'é\\u2028\\x00'", "é\u2028\x00"),
        ("import math\nmath.sqrt(2)", 2**0.5),
        ("def fib(n):\n    return n if n < 2 else fib(n - 1) + fib(n - 2)\nfib(15)", 610),
        ("from __future__ import annotations\ndef f(x: Nothing): return x\nf(3)", 3),
        ("sum(n * n for n in range(10))", 285),
    ],
)
async def test_the_value_of_the_last_line_comes_back(sandbox: Sandbox, code: str, value: Any) -> None:
    execution = await sandbox.run(code, AMPLE)
    assert (execution.status, execution.value, execution.error) == ("ok", value, None)
    assert execution.sandbox == sandbox.name


async def test_an_object_of_monty_is_shown_by_its_attributes() -> None:
    code = "class Point:\n    def __init__(self):\n        self.x = [1, 2]\n[Point(), 3]"
    assert (await usable("monty").run(code, AMPLE)).value == [{"x": [1, 2]}, 3]


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("1 / 0", "ZeroDivisionError"),
        ("def", "SyntaxError"),
        ("nothing_here", "NameError"),
        ("print('before')\n[][1]", "IndexError"),
        ("'\ud800'", "half a character"),
        ("x = '\\0'; 1 +", "SyntaxError"),
        ("#" * (MAX_CODE_BYTES + 1), "at most"),
    ],
)
async def test_an_error_says_what_is_wrong(sandbox: Sandbox, code: str, told: str) -> None:
    execution = await sandbox.run(code, AMPLE)
    assert execution.status == "error"
    assert told in (execution.error or "")


async def test_output_is_kept_up_to_the_limit_and_the_value_still_comes(sandbox: Sandbox) -> None:
    execution = await sandbox.run("for n in range(5000): print('line', n)\n7", AMPLE)
    assert (execution.status, execution.value, execution.truncated) == ("ok", 7, True)
    assert len(execution.stdout.encode()) == TIGHT.max_output_bytes
    assert execution.stdout.startswith("line 0\nline 1\n")


async def test_a_value_over_the_limit_is_text_that_is_cut(sandbox: Sandbox) -> None:
    execution = await sandbox.run("list(range(100000))", AMPLE)
    assert execution.truncated
    assert isinstance(execution.value, str)
    assert len(execution.value.encode()) <= TIGHT.max_output_bytes


async def test_cancelling_ends_the_code_at_once(sandbox: Sandbox) -> None:
    running = asyncio.ensure_future(sandbox.run("while True: pass", ExecutionLimits(max_seconds=60)))
    await asyncio.sleep(0.3)
    began = time.monotonic()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert time.monotonic() - began < 2
    assert await _are_gone()


async def test_many_at_once_take_turns(sandbox: Sandbox) -> None:
    most = 0

    async def one(number: int) -> Any:
        return (await sandbox.run(f"sum(range(300_000)) * 0 + {number} + 1", ExecutionLimits())).value

    running = [asyncio.ensure_future(one(number)) for number in range(8 * AT_ONCE)]
    while not all(task.done() for task in running):
        # A program is one child, and its own children.
        most = max(most, len(_workers(recursive=False)))
        await asyncio.sleep(0.01)
    assert [task.result() for task in running] == list(range(1, 8 * AT_ONCE + 1))
    assert 0 < most <= AT_ONCE


async def test_in_bubblewrap_nobody_is_root_and_the_environment_is_empty(bubblewrap: Sandbox) -> None:
    code = "import os\n[os.getresuid(), os.getresgid(), os.getgroups(), dict(os.environ), os.path.exists('/proc')]"
    users, groups, others, environment, has_processes = (await bubblewrap.run(code, ExecutionLimits())).value
    assert 0 not in users + groups + others
    assert (environment, has_processes) == ({}, False)


async def test_in_bubblewrap_numpy_and_sympy_work(bubblewrap: Sandbox) -> None:
    if not all(map(find_spec, ("numpy", "sympy"))):
        pytest.skip("numpy and sympy are not installed")
    if not Path(cache_from_source(str(find_spec("sympy").origin))).exists():
        # In the sandbox nothing compiled is kept: each start would compile all of it again.
        subprocess.run([sys.executable, "-c", "import sympy"], check=True)
    limits = ExecutionLimits(max_seconds=60)
    numbers = await bubblewrap.run("import numpy as np\nnp.linalg.inv(np.eye(2) * 4)", limits)
    assert (numbers.status, numbers.value) == ("ok", [[0.25, 0.0], [0.0, 0.25]])
    symbols = await bubblewrap.run("import sympy\nsympy.factor(sympy.Symbol('x') ** 2 - 1)", limits)
    assert (symbols.status, symbols.value) == ("ok", "(x - 1)*(x + 1)")


async def test_in_bubblewrap_no_descriptor_of_the_host_is_open(bubblewrap: Sandbox, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text(TOKEN, "utf-8")
    descriptor = os.open(tmp_path / "secret", os.O_RDONLY)
    os.set_inheritable(descriptor, True)
    try:
        code = """
import os, stat
kinds = []
for number in range(3, 64):
    try:
        kinds.append(stat.S_IFMT(os.fstat(number).st_mode))
    except OSError:
        pass
[kind == stat.S_IFIFO for kind in kinds]
"""
        # The one pipe is the channel of the result.
        assert (await bubblewrap.run(code, ExecutionLimits())).value == [True]
    finally:
        os.close(descriptor)


async def test_in_bubblewrap_threads_are_counted(bubblewrap: Sandbox) -> None:
    code = """
import threading, time
started = 0
try:
    for _ in range(200):
        threading.Thread(target=time.sleep, args=(5,), daemon=True).start()
        started += 1
except RuntimeError:
    pass
started
"""
    execution = await bubblewrap.run(code, ExecutionLimits(max_processes=8))
    assert 1 <= execution.value <= 8


async def test_in_bubblewrap_memory_outside_of_every_limit_is_not_to_be_had(bubblewrap: Sandbox) -> None:
    code = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
memfd_create = 319 if os.uname().machine == "x86_64" else 279
refused = [libc.shmget(0, 1 << 20, 0o1600) == -1, libc.syscall(memfd_create, b"m", 0) == -1]
try:
    os.memfd_create("hoard")
except OSError:
    refused.append(True)
refused
"""
    assert (await bubblewrap.run(code, ExecutionLimits())).value == [True, True, True]


@pytest.mark.parametrize("name", list(SANDBOXES))
def test_the_first_programs_of_a_process_run_side_by_side_and_it_ends_well_right_after_them(
    name: str,
) -> None:
    usable(name)
    script = (
        "import asyncio\nfrom reasonry.tools.sandbox import *\nasync def main():\n"
        f"    ran = await asyncio.gather(*(open_sandbox({name!r}).run(f'{{n}}') for n in range(8)))\n"
        "    print([each.value for each in ran])\nasyncio.run(main())"
    )
    for _ in range(4):
        done = subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False
        )
        assert (done.returncode, done.stdout, done.stderr) == (0, "[0, 1, 2, 3, 4, 5, 6, 7]\n", "")


@pytest.mark.skipif(sys.platform != "linux", reason="tried on Linux alone")
@pytest.mark.parametrize("name", list(SANDBOXES))
def test_when_the_host_is_killed_its_code_dies_too(name: str) -> None:
    usable(name)
    script = (
        "import asyncio\nfrom reasonry.tools.sandbox import *\n"
        f"asyncio.run(open_sandbox({name!r}).run('while True: pass', ExecutionLimits(max_seconds=3)))"
    )
    with subprocess.Popen([sys.executable, "-c", script]) as host:
        deadline = time.monotonic() + 20
        least = 3 if name == "bubblewrap" else 1
        while (
            len(family := psutil.Process(host.pid).children(recursive=True)) < least
            and time.monotonic() < deadline
        ):
            time.sleep(0.02)
        time.sleep(0.2)
        host.send_signal(signal.SIGKILL)
        host.wait()
    # Monty's worker has no parent to watch for while it computes; its own limit of time ends it.
    patience = time.monotonic() + (1 if name == "bubblewrap" else 8)
    while any(map(_is_alive, family)) and time.monotonic() < patience:
        time.sleep(0.05)
    assert family
    assert not any(map(_is_alive, family))


async def test_without_bwrap_it_is_unavailable(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SandboxError) as caught:
        open_sandbox("bubblewrap")
    assert caught.value.code == "sandbox_unavailable"


@pytest.mark.skipif(sys.platform != "linux", reason="bubblewrap is for Linux")
@pytest.mark.parametrize(
    "fake", ["echo 'bwrap: No permissions to create new namespace' >&2; exit 1", "exit 0", "kill -9 $$"]
)
async def test_a_bwrap_that_does_not_work_is_unavailable_and_nothing_is_run(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, fake: str
) -> None:
    (tmp_path / "bwrap").write_text(f"#!/bin/sh\n{fake}\n")
    (tmp_path / "bwrap").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    sandbox = BubblewrapSandbox()
    with pytest.raises(SandboxError) as caught:
        await sandbox.run("1 + 1", AMPLE)
    assert caught.value.code == "sandbox_unavailable"
    row = next(row for row in await describe_sandboxes() if row["name"] == "bubblewrap")
    assert (row["usable"], row["reason"]) == (False, caught.value.message)


@pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed")
async def test_the_child_refuses_to_be_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = shutil.which("bwrap")
    # A wrapper that lets the code be root inside a user namespace of its own.
    (tmp_path / "bwrap").write_text(f'#!/bin/sh\nexec {real} --unshare-user --uid 0 --gid 0 "$@"\n')
    (tmp_path / "bwrap").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    if os.geteuid() != 0:
        pytest.skip("only root asks for no other id")
    with pytest.raises(SandboxError):
        await BubblewrapSandbox().run("1 + 1", AMPLE)


async def test_without_any_sandbox_code_is_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pydantic_monty", None)
    with pytest.raises(SandboxError) as caught:
        await PyExecutor().call({"code": "1"})
    assert caught.value.code == "sandbox_unavailable"
    rows = {row["name"]: row for row in await describe_sandboxes()}
    assert (rows["monty"]["usable"], install_hint("sandbox") in rows["monty"]["reason"]) == (False, True)


def test_an_unknown_sandbox_is_refused_with_the_choices() -> None:
    with pytest.raises(UsageError) as caught:
        open_sandbox("docker")
    assert caught.value.details["choices"] == ["monty", "bubblewrap"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"max_seconds": 0},
        {"max_seconds": -1},
        {"max_seconds": 1e9},
        {"max_seconds": float("nan")},
        {"max_memory_mb": 0},
        {"max_memory_mb": 10**9},
        {"max_output_bytes": 0},
        {"max_output_bytes": 10**12},
        {"max_processes": 0},
        {"max_processes": 10**6},
    ],
)
def test_limits_out_of_range_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError) as caught:
        ExecutionLimits(**wrong)
    assert caught.value.details["option"] in wrong


async def test_the_tool_returns_the_document(sandbox: Sandbox) -> None:
    tool = PyExecutor(sandbox)
    document = await tool.call({"code": "print('hi')\n2 + 2"})
    expected = {"status": "ok", "value": 4, "stdout": "hi\n", "error": None, "truncated": False}
    assert document == {**expected, "sandbox": sandbox.name}
    assert list(tool.parameters["properties"]) == ["code"]


@pytest.mark.parametrize("arguments", [{}, {"code": 3}, {"code": " "}, {"code": "1", "sandbox": "none"}])
async def test_the_tool_refuses_what_is_no_code(arguments: dict[str, Any]) -> None:
    with pytest.raises(ToolError):
        await PyExecutor(usable("monty")).call(arguments)


@pytest.mark.skipif(sys.platform == "win32", reason="the binary is a shell script")
async def test_a_start_that_fails_is_tried_again_and_is_never_the_programs_error(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    usable("monty")
    from pydantic_monty._binary import find_monty_binary

    flag, binary = tmp_path / "failed", tmp_path / "monty"
    binary.write_text(
        f'#!/bin/sh\n[ -e {flag} ] || {{ touch {flag}; exit 3; }}\nexec {find_monty_binary()} "$@"\n'
    )
    binary.chmod(0o755)
    monkeypatch.setenv("MONTY_BIN", str(binary))
    assert (await open_sandbox().run("6 * 7", AMPLE)).value == 42
    assert flag.exists()
    binary.write_text("#!/bin/sh\nexit 3\n")
    with pytest.raises(SandboxError) as caught:
        await open_sandbox().run("6 * 7", AMPLE)
    assert "it could not be started: MontyCrashedError" in caught.value.message
